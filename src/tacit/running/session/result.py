"""A run's result as the coordinator alone can know it."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from tacit.privacy import composition
from tacit.results.evaluation import Evaluation
from tacit.results.traffic import Traffic
from tacit.running.session.coordinator import Coordinator, RunError
from tacit.running.session.plan_file import Plan

ROWS_SUFFIX = ".rows.json"
"""Ending of the file beside a result that holds its summary as labelled lines."""
LEFT_OUT = "{name} is not in this result: {why}"


def concluded(plan: Plan, coordinator: Coordinator, received: dict[int, int]) -> Evaluation:
    """The evaluation of a run that has ended.

    Parameters
    ----------
    plan : what was run.
    coordinator : after its last round.
    received : the bytes that each party sent.

    Raises
    ------
    RunError : for a run without a result.
    """
    protocol = plan.protocol
    if coordinator.server_result is None:
        raise RunError("the run has no result")
    server_result = coordinator.server_result.published()
    members = coordinator.active
    left = [index for index in range(len(plan.parties)) if index not in members]
    left_out = [
        LEFT_OUT.format(
            name=plan.parties[index].name,
            why=coordinator.declined.get(index, "it did not answer"),
        )
        for index in left
    ]
    return Evaluation(
        protocol={"name": protocol.name, **protocol.settings},
        estimate=server_result.estimate(),
        roc=server_result.roc,
        spent=coordinator.most_spent,
        traffic=Traffic(
            coordinator.queries,
            np.array([received.get(index, 0) for index in members], dtype=np.int64),
        ),
        clients=len(members),
        positives=float(server_result.positives),
        noise="system",
        figure=protocol.figure,
        warnings=(
            *left_out,
            *coordinator.repeats,
            *composition.person_warnings(plan.per_person),
            *server_result.warnings_to(tuple(plan.parties[index].name for index in members)),
        ),
        unit=plan.unit,
        histogram=server_result.histogram,
        breakdown=server_result.breakdown,
        sites=server_result.sites,
        protection=None
        if server_result.protection is None
        else composition.of_person(server_result.protection, plan.per_person),
        negatives=float(server_result.negatives),
        participants=tuple(plan.parties[index].name for index in members),
        federation=plan.name,
        time=datetime.now(UTC),
        per_person=plan.per_person,
    )
