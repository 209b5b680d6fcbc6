"""A run's result as the coordinator alone can know it."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from tacit.privacy.cost import most
from tacit.results.evaluation import Evaluation, Traffic
from tacit.running.coordinator import Coordinator, RunError
from tacit.running.plans import Plan

LEFT_OUT = "{name} is not in this result: {why}"


def concluded(plan: Plan, coordinator: Coordinator, received: dict[int, int]) -> Evaluation:
    """The evaluation of a run that has ended.

    Parameters
    ----------
    plan : what was run.
    coordinator : after its last leg.
    received : the bytes that each party sent.

    Raises
    ------
    RunError : for a run without findings.
    """
    protocol = plan.protocol
    if coordinator.findings is None:
        raise RunError("the run has no findings")
    findings = coordinator.findings.published()
    members = coordinator.active
    left = [place for place in range(len(plan.parties)) if place not in members]
    told = [
        LEFT_OUT.format(
            name=plan.parties[place].name,
            why=coordinator.declined.get(place, "it did not answer"),
        )
        for place in left
    ]
    return Evaluation(
        protocol={"name": protocol.name, **protocol.settings},
        estimate=findings.estimate(),
        roc=findings.roc,
        spent=most(coordinator.spent[place] for place in members),
        traffic=Traffic(
            coordinator.asks,
            np.array([received.get(place, 0) for place in members], dtype=np.int64),
        ),
        clients=len(members),
        positives=float(findings.positives),
        noise="system",
        figure=protocol.figure,
        warnings=(*told, *findings.warnings_to(tuple(plan.parties[own].name for own in members))),
        unit=plan.unit,
        histogram=findings.histogram,
        protection=findings.protection,
        negatives=float(findings.negatives),
        participants=tuple(plan.parties[place].name for place in members),
        federation=plan.name,
        time=datetime.now(UTC),
    )
