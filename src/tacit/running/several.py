"""Several figures at the cost of one evaluation: of two models, or of every public group."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

import tacit.protocol as tp
from tacit.data.categories import Groups
from tacit.data.checking import as_scores
from tacit.metrics.ranking import auc
from tacit.privacy import composition
from tacit.privacy.cost import worst_case
from tacit.protocol.registry import comparison_names
from tacit.results.server_result import ComparisonResult
from tacit.results.several import Comparison, Group, GroupedEvaluation
from tacit.running import evaluating, simulation, spending


def compare(
    first: tp.Clients,
    second: tp.Clients | ArrayLike | None,
    protocol: tp.Protocol,
    seed: int | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    state: tp.ClientState | None = None,
    noise: tp.NoiseSource | None = None,
    exact: bool = False,
    federation: str | None = None,
    per_person: int | None = None,
    ledger: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Both models' AUCs and their difference, at the cost of one evaluation.

    Two evaluations cost twice, and their noises add up. Here one noisy sum is about the difference
    itself, in which a record weighs as much as the two models disagree about it, and labels that
    are flipped serve both models; so the difference is known far better than either AUC.

    Parameters
    ----------
    first : the clients' records with the first model's scores.
    second : the same records with the second model's scores, or these scores alone, shape (M,), in
        the order of the clients' records; None where the first's second values are these scores.
    protocol : one that compares models (``Protocol.comparison``), such as ``ComparedAUC``, or
        ``FedAUC`` with its epsilon and mechanism.
    seed, state, noise, federation : as for ``evaluate``. With the mechanism
        ``"randomised-response"`` labels that ``state`` has flipped at this epsilon are used again
        for the same records, and then the comparison costs nothing. ``ClientState`` says when
        records with other scores are the same.
    names : what the two models are called.
    exact : also compute the exact AUCs, which are not private.
    per_person, ledger : as for ``evaluate``.

    Raises
    ------
    DataError : for records that are not the same, or fewer than two.
    ValueError : for another protocol or settings that a comparison does not use, a seed together
        with a noise source, names that are equal, and where the ledger does not allow it.
    OSError : for a ledger that is not there.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 20000)
    >>> truth = rng.normal(labels, 1.0)
    >>> clients = tacit.Clients.split(truth, labels, clients=20, seed=0)
    >>> worse = clients.scores + rng.normal(0, 0.5, 20000)
    >>> comparison = tacit.compare(clients, worse, tacit.FedAUC(1.0), seed=1, exact=True)
    >>> comparison.spent.epsilon, comparison.better()
    (1.0, 'first')
    >>> low, high = comparison.difference.interval(0.95)
    >>> low < comparison.exact[0] - comparison.exact[1] < high
    True
    """
    evaluating.check_given(first, protocol, seed, noise)
    if len(set(names)) != 2:
        raise ValueError(f"two models need two names, got {names!r}")
    chosen = protocol.comparison()
    if chosen is None:
        listed = ", ".join(comparison_names())
        raise ValueError(f"models are compared by {listed}, got {protocol.name}")
    setup = evaluating.Setup.of(
        _together(first, second),
        chosen,
        seed,
        noise=noise,
        state=state,
        per_person=per_person,
        federation=federation,
        ledger=ledger,
    )
    divided = spending.per_record(chosen, setup.per_person)
    setup.debit(divided, exact=exact)
    run = simulation.simulate(setup.clients, divided, setup.source, setup.state)
    server_result = run.server_result.published()
    if (
        not isinstance(server_result, ComparisonResult)
        or server_result.first is None
        or server_result.second is None
    ):
        raise TypeError(f"{chosen.name} has a result about one model only")
    return Comparison(
        names,
        server_result.first.published().estimate(),
        server_result.second.published().estimate(),
        setup.concluded(chosen, run),
        _exact(setup.clients) if exact else None,
    )


def _together(first: tp.Clients, second: tp.Clients | ArrayLike | None) -> tp.Clients:
    """The first model's records with the second model's scores as second values."""
    if second is None:
        return first
    if not isinstance(second, tp.Clients):
        return replace(first, second=as_scores(second, "the second model's scores"))
    same = np.array_equal(first.offsets, second.offsets) and first.names == second.names
    if not same:
        raise tp.DataError("two models are compared on the same clients with the same records")
    different = np.flatnonzero(first.labels != second.labels)
    if different.size:
        raise tp.DataError(
            "two models are compared on the same records, "
            f"got different labels in {first.location(int(different[0]))}"
        )
    return replace(first, second=second.scores)


def _exact(clients: tp.Clients) -> tuple[float, float]:
    second = clients.scores if clients.second is None else clients.second
    return auc(clients.scores, clients.labels), auc(second, clients.labels)


READ_OFF = (
    "the list of groups was read off the records, so it shows that each of them has a record, "
    "which the guarantee does not cover: name the agreed groups, --group-name NAME for each, in "
    "Python Groups.from_arrays(..., names=(...,))"
)


def evaluate_groups(
    clients: tp.Clients,
    groups: Groups,
    protocol: tp.Protocol,
    seed: int | None = None,
    *,
    exact: bool = False,
    federation: str | None = None,
    engine: evaluating.Engine = "ideal",
    per_person: int | None = None,
    ledger: str | os.PathLike[str] | None = None,
) -> GroupedEvaluation:
    """Evaluate each group's records once, and compare the groups' figures.

    A figure is about the records of its group only: an AUC compares positives and negatives of one
    group.

    To which group a record belongs is public and does not change. A record is then in one
    evaluation, so changing it, or its label, changes one reply: evaluations at epsilon each cost
    epsilon together (parallel composition, McSherry 2009, Theorem 4). Epsilon hides what records
    hold, and not to which group they belong.

    A guarantee about added and removed records (``Adjacency.RECORD``) hides a group's size too.
    Every client is then asked about every group, whether it holds a record of it or not; a group is
    evaluated whatever its size; and of its size only the noisy counts say something, which the
    evaluation paid for. The list of groups is published: agree on it (``Groups.agreed``), as one
    that is read off the records shows that each has a record. Under other guarantees numbers of
    records are public: sizes are exact, a group of fewer than two records is not evaluated, and
    clients without a record of a group are not asked about it.

    Parameters
    ----------
    clients : all records.
    groups : to which group each belongs.
    protocol : what to run on every group, with its whole budget each time.
    seed, exact, engine : as for ``evaluate``; groups draw independent noise. Without ledgers
        ``engine="spu"`` is for clients that do not exist.
    federation : what the records are called; a group's result adds the group's name.
    per_person : as for ``evaluate``. So many records of a person count over all groups together: a
        person's records may be in several groups.
    ledger : as for ``evaluate``; it is debited once, for all groups together.

    Returns
    -------
    A group has no estimate where the noise left no signal; where its size is public, and it has
    fewer than two records; or where nothing is protected and a class is absent.

    Raises
    ------
    DataError, ValueError, OSError, MPCError : as ``evaluate``; and for groups of other records.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> scores, labels = tacit.binormal_scores(2000, 6000, 0.8, seed=0)
    >>> clients = tacit.Clients.split(scores, labels, clients=4, seed=0)
    >>> groups = tacit.Groups.from_arrays(np.arange(8000) % 2)
    >>> grouped = tacit.evaluate_groups(clients, groups, tacit.FedAUC(1.0), seed=1, exact=True)
    >>> grouped.spent.epsilon, [group.name for group in grouped.groups]
    (1.0, ['0', '1'])
    >>> low, high = grouped["0"].estimate.interval(0.95)
    >>> low < grouped["0"].evaluation.exact < high
    True
    """
    setup = evaluating.Setup.of(
        clients,
        protocol,
        seed,
        per_person=per_person,
        federation=federation,
        engine=engine,
        ledger=ledger,
    )
    if groups.records != clients.records:
        raise tp.DataError(f"{clients.records} records but {groups.records} groups")
    seeds = _seeds(seed, len(groups.names))
    groups, most = groups.taken(setup.clients, setup.inside), setup.per_person
    hidden = protocol.guarantee.hides_presence
    setup.debit(spending.per_record(protocol, most), exact=exact)
    sizes = None if hidden else groups.sizes
    results, costs = [], []
    for index, name in enumerate(groups.names):
        size = None if sizes is None else int(sizes[index])
        if size is not None and size < 2:
            reason = f"an evaluation needs at least two records, got {size}"
            results.append(Group(name, size, None, reason))
            continue
        members = groups.members(setup.clients, index, all_clients=hidden)
        part = replace(
            setup,
            clients=members,
            source=evaluating.noise_source(members, seeds[index], engine),
            state=tp.ClientState(),
            federation=None if federation is None else f"{federation}, group {name}",
            ledger=setup.ledger if setup.simulated else None,
        )
        try:
            result = part.evaluated(protocol, exact=exact and not _lacks_a_class(members, protocol))
        except tp.DataError as error:
            if not (_tells_classes(protocol) and _lacks_a_class(members, protocol)):
                raise
            results.append(Group(name, size, None, str(error)))
            costs.append(composition.of_person(spending.per_record(protocol, most).guarantee, most))
            continue
        results.append(Group(name, size, result))
        costs.append(result.spent)
    notes = (READ_OFF,) if hidden and not groups.agreed else ()
    return GroupedEvaluation(
        tuple(results),
        worst_case(costs),
        protocol.figure,
        notes,
        evaluating.left_out_in_result(clients, exact),
    )


def _tells_classes(protocol: tp.Protocol) -> bool:
    """Whether a refusal may follow from an absent class, since labels are not protected."""
    cost = protocol.guarantee
    return math.isinf(cost.epsilon) or cost.adjacency is tp.Adjacency.SCORE


def _lacks_a_class(clients: tp.Clients, protocol: tp.Protocol) -> bool:
    """Whether these records have no figure; asked only for what is not private."""
    return protocol.needs_both_classes and clients.positives in (0, clients.records)


def _seeds(seed: int | None, count: int) -> list[int | None]:
    """Independent seeds, one for each run; None for each run where ``seed`` is None."""
    if seed is None:
        return [None] * count
    return [
        int(word) for word in np.random.SeedSequence([seed, 2]).generate_state(count, np.uint64)
    ]
