"""What a guarantee about one record is worth to a person with several counted records.

Where at most k records of a person count, the data with and without the person are the ends of a
chain of at most k + 1 data sets, each of which differs from the next in one record. A guarantee
(epsilon, delta) about a record then gives the person k epsilon and the delta
``delta (e^(k epsilon) - 1)/(e^epsilon - 1)``: ``P(S) <= e^epsilon P'(S) + delta`` is used k times,
and the deltas add up with weights 1, e^epsilon, ..., e^((k-1) epsilon) (Vadhan 2017, Lemma 2.2).
A zero-concentrated guarantee rho gives ``k^2 rho`` (Bun and Steinke 2016, Prop. 1.9).
"""

from __future__ import annotations

import math

from tacit.privacy.cost import NOTHING, UNPROTECTED, Adjacency, Cost

OF_PERSON = {
    Adjacency.RECORD: Adjacency.PERSON,
    Adjacency.LABEL: Adjacency.PERSON_LABEL,
    Adjacency.REPLACE: Adjacency.PERSON_REPLACE,
    Adjacency.SCORE: Adjacency.PERSON_SCORE,
}
"""What a person's counted records change together, by what one record changes."""

MAX_RECORDS = 10_000
"""Largest number of a person's records that may be agreed to count."""


NOT_COVERED = "a person with records at two clients is not covered"
"""What every result about persons says."""


DEPENDENT = (
    "the interval about the population takes records as independent, which records of one person "
    "may not be: it may be too narrow"
)
"""What a result says in which several records of a person count."""


def person_warnings(per_person: int) -> tuple[str, ...]:
    """What the reader of a result must know, where several records of a person count."""
    return (DEPENDENT,) if per_person > 1 else ()


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
    weights = delta_weights(cost.epsilon, per_person)
    delta = cost.delta * weights if cost.delta else 0.0
    if delta >= 1:
        return UNPROTECTED
    rho = None if cost.rho is None else per_person**2 * cost.rho
    return Cost(per_person * cost.epsilon, delta, OF_PERSON[cost.adjacency], rho)


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
    try:
        return math.expm1(per_person * epsilon) / math.expm1(epsilon)
    except OverflowError:
        return math.inf
