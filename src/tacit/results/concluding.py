"""The evaluation of a run that has ended, no matter who ran it: what the server concluded, and its
cost.

A process with all records, the coordinator of a federation, the collector of a campaign and a
simulation of devices end in this one function.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tacit.privacy import composition
from tacit.privacy.cost import Cost
from tacit.results.evaluation import Evaluation
from tacit.results.run import Traffic
from tacit.results.server_result import ServerResult


def evaluation_of(
    protocol: Any,
    concluded: ServerResult,
    *,
    spent: Cost,
    traffic: Traffic,
    clients: int,
    noise: str,
    unit: str,
    names: Sequence[str] = (),
    before: Sequence[str] = (),
    per_person: int = 0,
    federation: str | None = None,
    simulated: bool = False,
    time: datetime | None = None,
    exact: float | None = None,
) -> Evaluation:
    """What a user reads of a run.

    Parameters
    ----------
    protocol : what was run, with its settings.
    concluded : the server's result.
    spent : what the run cost each client at most, per person where ``per_person`` is above 0.
    traffic, clients, noise, unit, names, per_person, federation, simulated, time, exact : as the
        evaluation has them; ``names`` are its participants.
    before : warnings of the run, which come before those of the result.
    """
    result = concluded.published()
    protection = result.protection
    return Evaluation(
        protocol={"name": protocol.name, **protocol.settings},
        estimate=result.estimate(),
        roc=result.roc,
        spent=spent,
        traffic=traffic,
        clients=clients,
        positives=float(result.positives),
        negatives=float(result.negatives),
        noise=noise,
        figure=protocol.figure,
        exact=exact,
        warnings=(
            *before,
            *composition.person_warnings(per_person),
            *result.warnings_to(tuple(names)),
        ),
        histogram=result.histogram,
        breakdown=result.breakdown,
        sites=result.sites,
        division=result.division,
        protection=None if protection is None else composition.of_person(protection, per_person),
        participants=tuple(names),
        federation=federation,
        simulated=simulated,
        time=time,
        unit=unit,
        per_person=per_person,
        decisions=protocol.decisions,
    )
