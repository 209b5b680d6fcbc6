"""The number of incomplete records beside an evaluation, with a part of its epsilon."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

from tacit.data.clients import Clients
from tacit.privacy.cost import Adjacency, check_budget
from tacit.privacy.noise import NoiseSource
from tacit.protocol.conversation import Protocol, View
from tacit.protocol.registry import protocol_kinds
from tacit.protocol.trust import Trust
from tacit.results.evaluation import Evaluation
from tacit.results.run import LeftOut, Traffic
from tacit.running.simulation import simulate

NOBODY = "missing_epsilon counts records that were left out: read them with missing='drop'"
PERSONS = (
    "missing_epsilon counts records, of which a person may have many: it cannot be used where a "
    "person is the unit of privacy"
)


def shared_budget(protocol: Protocol, missing_epsilon: float) -> Protocol:
    """The protocol with what is left of its epsilon for it.

    Parameters
    ----------
    protocol : with the whole budget.
    missing_epsilon : the part for the count of incomplete records.

    Raises
    ------
    ValueError : for a part that is not below the whole, and for a protocol without a budget.
    """
    check_budget(missing_epsilon)
    changeable: Any = protocol
    whole = getattr(protocol, "epsilon", None)
    private = math.isfinite(protocol.guarantee.epsilon)
    if whole is None or not private or "epsilon" not in {each.name for each in fields(changeable)}:
        raise ValueError(
            f"{protocol.name} with these settings has no epsilon of which a count of incomplete "
            "records could take a part"
        )
    if protocol.guarantee.adjacency not in (
        *(Adjacency.RECORD, Adjacency.REPLACE),
        Adjacency.LABEL,
    ):
        raise ValueError(f"{protocol.name} hides no label, so no count of missing ones is private")
    if missing_epsilon >= whole:
        raise ValueError(f"missing_epsilon must be below epsilon, {whole:g}, got {missing_epsilon}")
    rest: Protocol = replace(changeable, epsilon=whole - missing_epsilon)
    return rest


def check_countable(clients: Clients, per_person: int, engine: str) -> None:
    """Refuse to count where nothing was left out, or where the count would not be covered.

    Raises
    ------
    ValueError : with the reason.
    """
    if clients.left_out is None:
        raise ValueError(NOBODY)
    if per_person:
        raise ValueError(PERSONS)
    if engine != "ideal":
        raise ValueError(f"missing_epsilon counts in this process, not with engine {engine!r}")


def counting_protocol(protocol: Protocol, epsilon: float) -> Protocol:
    """The protocol that counts incomplete records under the trust and adjacency of another.

    It counts by a sum where all that the other one asks for are sums, and else by client.

    Raises
    ------
    ValueError : where no registered protocol counts them.
    """
    kinds = [kind for kind in protocol_kinds().values() if kind.counts_missing]
    if not kinds:
        raise ValueError("no registered protocol counts incomplete records")
    summed = all(step.view_under(protocol) is View.SUM for step in protocol.steps)
    trust = Trust.SECURE_SUM if summed else Trust.EACH
    adjacency = protocol.guarantee.adjacency
    made: Protocol = kinds[0](
        epsilon=epsilon,
        trust=trust.value,
        adjacency=None if adjacency is None else adjacency.value,
    )
    return made


def left_out_in_result(clients: Clients, exact: bool) -> LeftOut | None:
    """What a result without a noisy count says of incomplete records; None where none may be.

    Parameters
    ----------
    clients : with the records that were left out.
    exact : whether the result has exact figures anyway. The exact number of incomplete records is
        outside of every guarantee, as ``Evaluation.exact`` is, and written beside it only.
    """
    if clients.left_out is None:
        return None
    return LeftOut(clients.left_out if exact else None)


def with_noisy_count(
    result: Evaluation, clients: Clients, protocol: Protocol, epsilon: float, noise: NoiseSource
) -> Evaluation:
    """The result with the noisy number of incomplete records, whose cost is added.

    Parameters
    ----------
    result : of the protocol with the rest of the budget.
    clients : with the records that were left out.
    protocol : what was run.
    epsilon : of the count.
    noise : where its noise comes from.
    """
    run = simulate(clients, counting_protocol(protocol, epsilon), noise)
    traffic = Traffic(
        result.traffic.rounds + run.rounds, result.traffic.bytes_sent + run.bytes_sent
    )
    left_out = LeftOut(estimate=run.server_result.published().estimate(), spent=run.spent)
    return replace(result, spent=result.spent + run.spent, traffic=traffic, left_out=left_out)
