"""Costs at different adjacencies, restated at one, and the guarantee of a whole history.

A guarantee at one adjacency bounds another only where every change of the second kind is a sequence
of changes of the first. Otherwise the bound is unlimited.

The guarantee of a person with several counted records follows from that of one record. Where at
most k records of a person count, the data with and without the person are the ends of a chain of at
most k + 1 data sets, each of which differs from the next in one record. A guarantee (epsilon,
delta) about a record then gives the person k epsilon and the delta
``delta (e^(k epsilon) - 1)/(e^epsilon - 1)``: ``P(S) <= e^epsilon P'(S) + delta`` is used k times,
and the deltas add up with weights 1, e^epsilon, ..., e^((k-1) epsilon) (Vadhan 2017, Lemma 2.2).
A zero-concentrated guarantee rho gives ``k^2 rho`` (Bun and Steinke 2016, Prop. 1.9).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from tacit.privacy.cost import NOTHING, UNPROTECTED, Adjacency, Cost, Way, compose, ways_of

OF_PERSON = {
    Adjacency.RECORD: Adjacency.PERSON,
    Adjacency.LABEL: Adjacency.PERSON_LABEL,
    Adjacency.REPLACE: Adjacency.PERSON_REPLACE,
    Adjacency.SCORE: Adjacency.PERSON_SCORE,
}
"""What a person's counted records change together, by what one record changes."""

OF_RECORD = {
    **{(each, each): 1 for each in OF_PERSON},
    **{(Adjacency.REPLACE, each): 1 for each in (Adjacency.LABEL, Adjacency.SCORE)},
    **{(Adjacency.RECORD, each): 2 for each in OF_PERSON if each is not Adjacency.RECORD},
}
"""``CHANGES`` among the kinds of changes of a record."""
OF_PERSONS = {
    (OF_PERSON[first], second): changes
    for (first, of_record), changes in OF_RECORD.items()
    for second in (OF_PERSON[of_record], of_record)
}
"""The same of a person, to a change of a person's records or of one of them."""
CHANGES = OF_RECORD | OF_PERSONS | {(Adjacency.PERSON, Adjacency.RECORD): 2}
"""Number of changes of the first kind that make one of the second; missing pairs have none.

A record's guarantee says nothing of a person: nothing bounded the number of the person's records.
A person's guarantee says something of a record. A record that is added can take the places of
other counted records of its person, so the person's counted records are removed, and others are
added: two changes. Which records count does not depend on labels and scores.
"""


def restated(cost: Cost, adjacency: Adjacency) -> Cost:
    """The same release's guarantee at another adjacency, unlimited where nothing follows.

    A replaced record is one removed and one added record, and so is a changed label or score: a
    guarantee (epsilon, delta) about one added or removed record gives (2 epsilon,
    (1 + e^epsilon) delta) about these (Dwork and Roth 2014, Def. 2.4 used twice), and rho gives
    4 rho (Bun and Steinke 2016, Prop. 1.9). A change of a label or of a score alone is a
    replacement. The same holds of a person's counted records, and a person's guarantee bounds that
    of one record (``CHANGES``), which stays the same person's where its values change; a record's
    guarantee bounds no person's. Nothing else follows: a
    protocol at label adjacency may reveal all scores, one at score adjacency all labels, one at
    replace adjacency the number of records.

    Raises
    ------
    ValueError : for a finite cost without an adjacency.

    Examples
    --------
    >>> restated(Cost(0.5, adjacency=Adjacency.RECORD), Adjacency.REPLACE).epsilon
    1.0
    >>> restated(Cost(0.5, adjacency=Adjacency.LABEL), Adjacency.RECORD).epsilon
    inf
    """
    if math.isinf(cost.epsilon):
        return UNPROTECTED
    if cost.adjacency is None:
        raise ValueError(f"a cost must name its adjacency, got {cost}; see stated_cost")
    changes = CHANGES.get((cost.adjacency, adjacency))
    if changes is None:
        return UNPROTECTED
    if changes == 1:
        return replace(cost, adjacency=adjacency)
    return _of_changes(cost, changes, adjacency)


def stated_cost(cost: Cost, guarantee: Cost) -> Cost:
    """What a step spends, as a ledger takes it: free steps are free at one adjacency only.

    A step that spends nothing may still show what its protocol does not protect (FedAUC's first
    step sends all scores, at label adjacency). So a cost of nothing is stated at the adjacency of
    the protocol's guarantee, and is unlimited where the protocol guarantees nothing.

    Examples
    --------
    >>> free = stated_cost(NOTHING, Cost(1.0, adjacency=Adjacency.LABEL))
    >>> free.epsilon, restated(free, Adjacency.RECORD).epsilon
    (0.0, inf)
    """
    if cost.adjacency is not None or math.isinf(cost.epsilon):
        return cost
    if cost != NOTHING:
        raise ValueError(f"a cost must name its adjacency, got {cost}")
    if guarantee.adjacency is None:
        return UNPROTECTED
    return Cost(0.0, adjacency=guarantee.adjacency)


@dataclass(frozen=True)
class Bound:
    """What several releases about the same records guarantee together, at one adjacency.

    Parameters
    ----------
    adjacency : what the bound hides.
    releases : how many releases it covers.
    summed : epsilons and deltas added up. True whatever the releases' costs depended on.
    tightest : the smallest computed epsilon, with its delta; ``summed`` where that is the smallest.
    way : how ``tightest`` was computed: "basic", "zcdp" or "pld".
    mu : of Gaussian differential privacy, where costs were fixed; infinite where there is none.

    Notes
    -----
    Composition by "pld" takes the costs as fixed before the first reply; a server that chooses the
    next question's epsilon by the last reply's noise can make its bound wrong (Rogers et al. 2016).
    ``summed`` holds then too (their filters), and limits use it or concentrated sums, which hold as
    well (Feldman and Zrnic 2021).
    """

    adjacency: Adjacency
    releases: int
    summed: Cost
    tightest: Cost
    way: Way
    mu: float

    @property
    def advantage(self) -> float:
        """The largest advantage of an attack, by the smallest of the bounds."""
        # 2 Phi(mu/2) - 1, by the trade-off function of mu (Dong, Roth and Su, Eq. 6)
        by_mu = math.erf(self.mu / math.sqrt(8.0))
        return min(self.summed.advantage, self.tightest.advantage, by_mu)


def bound(history: Mapping[Cost, int], adjacency: Adjacency, delta: float = 1e-6) -> Bound:
    """The guarantee of a history of costs, each with how often it was spent.

    ``tightest`` is the smallest epsilon of the sum, of concentrated sums and of composed
    privacy-loss distributions (dp-accounting), the latter two at ``delta``.

    Raises
    ------
    ValueError : for a delta outside [0, 1), or a finite cost without an adjacency.

    Examples
    --------
    >>> history_bound = bound({Cost(0.1, adjacency=Adjacency.LABEL): 100}, Adjacency.LABEL)
    >>> history_bound.summed.epsilon, round(history_bound.tightest.epsilon, 2), history_bound.way
    (10.0, 4.77, 'pld')
    """
    restatements = {cost: restated(cost, adjacency) for cost in history}
    spent = [
        there
        for here, there in restatements.items()
        if there.epsilon > 0 or there.delta > 0
        for _ in range(history[here])
    ]
    composed = {way: compose(spent, delta, way) for way in ways_of(spent, delta)}
    best = min(composed, key=lambda way: composed[way].epsilon)
    # the mu of all is the root of the sum of squares (Dong, Roth and Su, Cor. 3.3), and that of the
    # summed epsilons
    root = math.sqrt(sum(times * restatements[cost].mu ** 2 for cost, times in history.items()))
    mu = min(root, composed["basic"].mu)
    return Bound(adjacency, sum(history.values()), composed["basic"], composed[best], best, mu)


@lru_cache(maxsize=256)
def largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho known to give (epsilon, delta), for a limit on concentrated sums.

    At least that of Bun and Steinke 2016, Prop. 1.3, where ``epsilon = rho + 2 sqrt(rho ln(1 /
    delta))``; more where dp-accounting's conversion allows more.

    Examples
    --------
    >>> 0.15 < largest_rho(3.0, 1e-6) < 0.25
    True
    """
    log = math.log(1 / delta)
    low = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2 * (1 - 2.0**-40)

    def within(rho: float) -> bool:
        spent = Cost(rho, delta, Adjacency.RECORD, rho)
        return compose([spent], delta, "zcdp").epsilon <= epsilon

    return largest_within(low, within)


def largest_within(low: float, within: Callable[[float], bool]) -> float:
    """The largest number that stays within a limit, to 1e-12 of it and never above it.

    Parameters
    ----------
    low : a positive number that stays within it.
    within : whether a number does; a smaller one does, too.
    """
    high = 2 * low
    while within(high):
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


MAX_RECORDS = 10_000
"""Largest number of a person's records that may be agreed to count."""


NOT_COVERED = "a person with records at two clients is not covered"
"""What every result about persons says."""


DEPENDENT = (
    "the interval about the population takes records as independent, which records of one person "
    "may not be: it may be too narrow"
)
"""What a result says in which several records of a person count."""


def check_per_person(per_person: int) -> None:
    """Refuse a number of counted records that cannot be.

    Raises
    ------
    ValueError : for anything but a whole number from 1 to ``MAX_RECORDS``.
    """
    whole = isinstance(per_person, int) and not isinstance(per_person, bool)
    if not (whole and 1 <= per_person <= MAX_RECORDS):
        raise ValueError(f"per_person must be from 1 to {MAX_RECORDS}, got {per_person!r}")


def of_person(cost: Cost, per_person: int) -> Cost:
    """What a cost about one record is about a person with so many counted records.

    Parameters
    ----------
    cost : at an adjacency of records.
    per_person : the most records of a person that count; 0 for a cost that stays about a record.

    Examples
    --------
    >>> of_person(Cost(0.5, adjacency=Adjacency.RECORD), 2)
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.PERSON: 'person'>, rho=None)
    """
    if per_person == 0 or cost == NOTHING:
        return cost
    check_per_person(per_person)
    if math.isinf(cost.epsilon) or cost.adjacency is None:
        return UNPROTECTED
    return _of_changes(cost, per_person, OF_PERSON[cost.adjacency])


def _of_changes(cost: Cost, changes: int, adjacency: Adjacency) -> Cost:
    """What a cost at one change comes to at an adjacency that is so many of its changes."""
    delta = cost.delta * delta_weights(cost.epsilon, changes) if cost.delta else 0.0
    if delta >= 1:
        return UNPROTECTED
    rho = None if cost.rho is None else changes**2 * cost.rho
    return Cost(changes * cost.epsilon, delta, adjacency, rho)


def person_line(per_person: int, epsilon: float) -> str:
    """What a result says of its unit of privacy, in one line.

    Examples
    --------
    >>> person_line(2, 1.0)[:60]
    'a person, of whom at most 2 records count at a client (epsil'
    """
    records = f"{per_person} record{'s' * (per_person > 1)}"
    verb = "count" if per_person > 1 else "counts"
    return (
        f"a person, of whom at most {records} {verb} at a client (epsilon {epsilon / per_person:g} "
        f"a record); {NOT_COVERED}"
    )


def delta_weights(epsilon: float, per_person: int) -> float:
    """How many deltas of a record make the delta of a person, with epsilon of a record.

    Examples
    --------
    >>> delta_weights(0.0, 3), round(delta_weights(1.0, 2), 3)
    (3.0, 3.718)
    """
    if epsilon == 0:
        return float(per_person)
    # (exp(k epsilon) - 1) / (exp(epsilon) - 1), whose powers overflow before it does
    share = math.expm1(-per_person * epsilon) / math.expm1(-epsilon)
    try:
        return math.exp((per_person - 1) * epsilon) * share
    except OverflowError:
        return math.inf
