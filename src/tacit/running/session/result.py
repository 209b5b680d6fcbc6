"""A run's result as the coordinator alone can know it."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from tacit.results.concluding import evaluation_of
from tacit.results.evaluation import Evaluation
from tacit.results.run import Traffic
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
    members = coordinator.active
    left = [index for index in range(len(plan.parties)) if index not in members]
    left_out = [
        LEFT_OUT.format(
            name=plan.parties[index].name,
            why=coordinator.declined.get(index, "it did not answer"),
        )
        for index in left
    ]
    return evaluation_of(
        protocol,
        coordinator.server_result,
        spent=coordinator.most_spent,
        traffic=Traffic(
            coordinator.queries,
            np.array([received.get(index, 0) for index in members], dtype=np.int64),
        ),
        clients=len(members),
        noise="system",
        before=(*left_out, *coordinator.repeats),
        unit=plan.unit,
        names=tuple(plan.parties[index].name for index in members),
        federation=plan.name,
        time=datetime.now(UTC),
        per_person=plan.per_person,
    )
