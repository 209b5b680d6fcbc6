"""Evaluate every public group of records by itself, at the cost of one evaluation."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tacit.data.clients import Clients, DataError
from tacit.data.groups import Groups
from tacit.privacy.cost import most
from tacit.protocols.conversation import Protocol
from tacit.results.grouped import Group, GroupedEvaluation
from tacit.running.evaluating import evaluate


def evaluate_groups(
    clients: Clients,
    groups: Groups,
    protocol: Protocol,
    seed: int | None = None,
    *,
    exact: bool = False,
    federation: str | None = None,
    engine: Literal["ideal", "spu"] = "ideal",
) -> GroupedEvaluation:
    """One evaluation of each group's records, and how far the groups lie apart.

    A figure is about the records of its group only: an AUC compares positives and negatives of one
    group. Clients without any record of a group are not asked about it.

    To which group a record belongs is public and does not change. A record is then in one
    evaluation, so changing it, or its label, changes one reply: evaluations at epsilon each cost
    epsilon together (parallel composition, McSherry 2009, Theorem 4). Epsilon hides what records
    hold. It does not hide groups, nor which clients hold a record of a group, as that decides who
    is asked; and where a protocol shows how many records a client has, it shows that by group.

    Parameters
    ----------
    clients : all records.
    groups : to which group each belongs.
    protocol : what to run on every group, with its whole budget each time.
    seed, exact, engine : as for ``evaluate``; groups draw independent noise. Without ledgers
        ``engine="spu"`` is for clients that do not exist.
    federation : what the records are called; a group's result adds the group's name.

    Returns
    -------
    A group has no estimate where the noise left no signal, where it has fewer than two records, or
    where a class is absent and the protocol can tell.

    Raises
    ------
    DataError, ValueError, JointError : as ``evaluate``; and for groups of other records.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> scores, labels = tacit.binormal_scores(2000, 6000, 0.8, seed=0)
    >>> clients = tacit.Clients.split(scores, labels, clients=4, seed=0)
    >>> groups = tacit.Groups.from_arrays(np.arange(8000) % 2)
    >>> found = tacit.evaluate_groups(clients, groups, tacit.FedAUC(1.0), seed=1, exact=True)
    >>> found.spent.epsilon, [group.name for group in found.groups]
    (1.0, ['0', '1'])
    >>> low, high = found["0"].estimate.interval(0.95)
    >>> low < found["0"].evaluation.exact < high
    True
    """
    seeds = _seeds(seed, len(groups.names))
    found, costs = [], []
    for place, name in enumerate(groups.names):
        members = groups.members(clients, place)
        if members.records < 2:
            reason = f"an evaluation needs at least two records, got {members.records}"
            found.append(Group(name, members.records, None, reason))
            continue
        called = None if federation is None else f"{federation}, group {name}"
        try:
            result = evaluate(
                members,
                protocol,
                seeds[place],
                exact=exact and not _lacks_a_class(members, protocol),
                federation=called,
                engine=engine,
            )
        except DataError as error:
            if not _lacks_a_class(members, protocol):
                raise
            found.append(Group(name, members.records, None, str(error)))
            costs.append(protocol.guarantee)
            continue
        found.append(Group(name, members.records, result))
        costs.append(result.spent)
    return GroupedEvaluation(tuple(found), most(costs), protocol.figure)


def _lacks_a_class(clients: Clients, protocol: Protocol) -> bool:
    """Whether these records have no AUC; asked only for what is not private, or after a refusal."""
    return protocol.figure == "AUC" and clients.positives in (0, clients.records)


def _seeds(seed: int | None, count: int) -> list[int | None]:
    """Independent seeds for so many runs; none where there is none."""
    if seed is None:
        return [None] * count
    return [int(own) for own in np.random.SeedSequence([seed, 2]).generate_state(count, np.uint64)]
