"""Bounds on the probability of an event from its counts, and on epsilon from two such counts."""

from __future__ import annotations

import math

from scipy.special import betaincinv


def least_probability(hits: int, tries: int, error: float) -> float:
    """A lower bound on a probability; it is wrong with chance ``error`` (Clopper-Pearson).

    Parameters
    ----------
    hits : how often the event happened, of ``tries`` independent times.
    error : the chance that the bound is wrong.

    Examples
    --------
    >>> round(least_probability(20, 20, 0.05), 3)
    0.861
    """
    return 0.0 if hits == 0 else float(betaincinv(hits, tries - hits + 1, error))


def most_probability(hits: int, tries: int, error: float) -> float:
    """An upper bound on a probability; it is wrong with chance ``error`` (Clopper-Pearson).

    Examples
    --------
    >>> round(most_probability(0, 20, 0.05), 3)
    0.139
    """
    return 1.0 - least_probability(tries - hits, tries, error)


def epsilon_bound(hits: int, other_hits: int, tries: int, delta: float, error: float) -> float:
    """The least epsilon that is consistent with how often an event happened on two neighbours.

    An (epsilon, delta)-private mechanism has ``P(event | first) <= exp(epsilon) P(event | second)
    + delta`` for every event that was fixed before these tries. Both probabilities are bounded
    with ``error / 2``, so the result exceeds the true epsilon with chance ``error`` at most.

    Parameters
    ----------
    hits, other_hits : how often the event happened on the first and on the second neighbour, of
        ``tries`` times each.
    delta : the delta of the guarantee that is examined.
    error : the chance that the bound is wrong.

    Examples
    --------
    >>> round(epsilon_bound(7311, 2689, 10_000, delta=0.0, error=0.001), 3)
    0.926
    >>> epsilon_bound(5000, 5010, 10_000, delta=0.0, error=0.001)
    0.0
    """
    surely = least_probability(hits, tries, error / 2) - delta
    at_most = most_probability(other_hits, tries, error / 2)
    return max(0.0, math.log(surely / at_most)) if surely > 0 else 0.0


def interval(hits: int, tries: int, level: float = 0.95) -> tuple[float, float]:
    """An interval that holds the probability with at least this level (Clopper-Pearson).

    Examples
    --------
    >>> [round(end, 3) for end in interval(50, 100)]
    [0.398, 0.602]
    """
    error = (1 - level) / 2
    return least_probability(hits, tries, error), most_probability(hits, tries, error)
