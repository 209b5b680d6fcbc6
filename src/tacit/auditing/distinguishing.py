"""A lower bound on epsilon from draws of a mechanism on two neighbouring data sets.

A quarter of the draws teaches how likely outputs are (``evidence``), a quarter picks an event, and
the other half bounds its two probabilities. The bound holds whatever the first half taught.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.bounds import epsilon_bound
from tacit.auditing.evidence import learn

Floats = NDArray[np.float64]

THRESHOLDS = 200
"""Events are picked among so many quantiles of the score, from above and from below."""


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
    """Scores from a threshold on, or up to it."""

    threshold: float
    above: bool

    def counts(self, ours: Floats, theirs: Floats) -> tuple[int, int]:
        """How often it happened where it is meant to be likely, and where not."""
        if self.above:
            return int(np.sum(ours >= self.threshold)), int(np.sum(theirs >= self.threshold))
        return int(np.sum(theirs <= self.threshold)), int(np.sum(ours <= self.threshold))


def distinguish(
    ours: Floats, theirs: Floats, delta: float = 0.0, error: float = 0.001
) -> Distinguished:
    """Attack two neighbours' draws.

    Parameters
    ----------
    ours, theirs : independent draws on the two neighbours, shape (R, D) each, R at least 8.
    delta : the delta of the guarantee that is examined.
    error : the chance that the bound exceeds the true epsilon.

    Raises
    ------
    ValueError : for draws of different shapes, or fewer than 8.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ours, theirs = (rng.laplace(mean, 1, (40_000, 1)) for mean in (1, 0))
    >>> 0.9 < distinguish(ours, theirs).epsilon <= 1
    True
    """
    if ours.shape != theirs.shape or ours.shape[0] < 8:
        raise ValueError(
            f"draws must have one shape and be at least 8, got {ours.shape} and {theirs.shape}"
        )
    quarter = ours.shape[0] // 4
    second = slice(quarter, 2 * quarter)
    learnt = [
        (score, _best_event(score(ours[second]), score(theirs[second]), delta, error))
        for score in learn(ours[:quarter], theirs[:quarter])
    ]
    score, (_, event) = max(learnt, key=lambda own: own[1][0])
    last = score(ours[2 * quarter :]), score(theirs[2 * quarter :])
    tries = last[0].size
    likely, unlikely = event.counts(*last)
    return Distinguished(
        epsilon_bound(likely, unlikely, tries, delta, error),
        likely / tries,
        unlikely / tries,
        tries,
    )


def _best_event(ours: Floats, theirs: Floats, delta: float, error: float) -> tuple[float, Event]:
    """The event from which most is expected of twice as many draws, and how much."""
    pooled = np.concatenate([ours, theirs])
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS), method="inverted_cdf"))
    events = [Event(float(cut), above) for cut in cuts for above in (True, False)]

    def promise(event: Event) -> float:
        likely, unlikely = event.counts(ours, theirs)
        return epsilon_bound(2 * likely, 2 * unlikely, 2 * ours.size, delta, error)

    return max(((promise(event), event) for event in events), key=lambda own: own[0])
