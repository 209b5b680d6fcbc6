"""A lower bound on epsilon from draws of a mechanism on two neighbouring data sets.

The attack learns from a quarter of the draws how likely outputs are (``evidence``). With another
quarter it picks an event, and with the other half it bounds the two probabilities of this event.
The bound is valid whatever the attack learnt from the first half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.bounds import epsilon_bound
from tacit.auditing.evidence import learn

THRESHOLDS = 200
"""Number of quantiles of the score at which events may begin or end."""


@dataclass(frozen=True)
class Distinguished:
    """What an attack established.

    Parameters
    ----------
    epsilon : a lower bound on the mechanism's epsilon.
    event_rate, other_rate : how often the event happened on the neighbour where it is likelier, and
        on the other.
    tries : how many draws on each neighbour the bound rests on.
    """

    epsilon: float
    event_rate: float
    other_rate: float
    tries: int


@dataclass(frozen=True)
class Event:
    """The scores at or above a threshold, or those at or below it."""

    threshold: float
    above: bool

    def counts(self, scores: Floats, other_scores: Floats) -> tuple[int, int]:
        """How often it happened on the neighbour where it should be likely, and on the other."""
        if self.above:
            return int(np.sum(scores >= self.threshold)), int(
                np.sum(other_scores >= self.threshold)
            )
        return int(np.sum(other_scores <= self.threshold)), int(np.sum(scores <= self.threshold))


def distinguish(
    first: Floats, second: Floats, delta: float = 0.0, error: float = 0.001
) -> Distinguished:
    """Attack two neighbours' draws.

    Parameters
    ----------
    first, second : independent draws on the two neighbours, shape (R, D) each, R at least 8.
    delta : the delta of the guarantee that is examined.
    error : the chance that the bound exceeds the true epsilon.

    Raises
    ------
    ValueError : for draws of different shapes, or fewer than 8.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = (rng.laplace(mean, 1, (40_000, 1)) for mean in (1, 0))
    >>> 0.9 < distinguish(first, second).epsilon <= 1
    True
    """
    if first.shape != second.shape or first.shape[0] < 8:
        raise ValueError(
            f"draws must have one shape and be at least 8, got {first.shape} and {second.shape}"
        )
    quarter = first.shape[0] // 4
    picking = slice(quarter, 2 * quarter)
    learnt = [
        (score, _best_event(score(first[picking]), score(second[picking]), delta, error))
        for score in learn(first[:quarter], second[:quarter])
    ]
    score, (_, event) = max(learnt, key=lambda entry: entry[1][0])
    last = score(first[2 * quarter :]), score(second[2 * quarter :])
    tries = last[0].size
    likely, unlikely = event.counts(*last)
    return Distinguished(
        epsilon_bound(likely, unlikely, tries, delta, error),
        likely / tries,
        unlikely / tries,
        tries,
    )


def _best_event(first: Floats, second: Floats, delta: float, error: float) -> tuple[float, Event]:
    """The event with the largest bound expected from twice as many draws, after that bound."""
    pooled = np.concatenate([first, second])
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS), method="inverted_cdf"))
    events = [Event(float(cut), above) for cut in cuts for above in (True, False)]

    def promise(event: Event) -> float:
        likely, unlikely = event.counts(first, second)
        return epsilon_bound(2 * likely, 2 * unlikely, 2 * first.size, delta, error)

    return max(((promise(event), event) for event in events), key=lambda pair: pair[0])
