"""How much better than blind an attacker guesses, compared with what a guarantee allows, with a
verdict.

An attack that just reaches the allowed advantage exceeds it by chance in half of all audits. So a
verdict asks how likely so many right guesses are where the guarantee holds. It reports an excess
only where this probability is below the row's part of the audit's false-alarm probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from scipy.special import betainc, rel_entr

from tacit.auditing.distinguishing import interval
from tacit.privacy.composition import restated
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol import audits


def advantage_bound(epsilon: float, delta: float = 0.0) -> float:
    """The most by which a guess of one bit beats a coin: ``(e^eps - 1 + 2 delta) / (e^eps + 1)``.

    The advantage is the fraction of right guesses minus that of wrong ones. Where the bit is
    (epsilon, delta)-private, right guesses of either value are at most ``exp(epsilon)`` times as
    frequent as wrong ones, plus delta; for delta 0 that is ``tanh(epsilon / 2)``.

    Examples
    --------
    >>> round(advantage_bound(1.0), 3)
    0.462
    """
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700.0))))


LEVEL = 0.95

FALSE_ALARM = 1e-4
"""The chance that the verdict on a single sound row is a false alarm."""


@dataclass(frozen=True)
class Exposure(audits.GuessCounts):
    """How often an attacker guessed right, with a verdict.

    Parameters
    ----------
    ceiling : the largest advantage over a coin that the guarantee allows, for a label that a coin
        drew; None where the guarantee says nothing about it.
    trials : number of independent trials; None where every guess is a trial. Guesses from one
        release are not independent.
    false_alarm : the chance that the verdict on this row is a false alarm.
    """

    ceiling: float | None = None
    trials: int | None = None
    false_alarm: float = FALSE_ALARM

    @property
    def share(self) -> float:
        """The fraction of right guesses."""
        return self.right / self.tries

    @property
    def advantage(self) -> float:
        """What the release adds: 0 for guesses as good as blind ones, 1 for knowing."""
        return self._over(self.share)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval of the advantage (Clopper-Pearson)."""
        low, high = interval(self.right, self.tries, LEVEL)
        return self._over(low), self._over(high)

    @property
    def chance(self) -> float | None:
        """An upper bound on the probability of this many right guesses where the guarantee holds.

        Let p be the largest share that the ceiling allows. The bound is the upper tail of the
        binomial distribution. If the probabilities of the guesses differ and are p on average, the
        tail is no heavier (Hoeffding 1956, Theorem 4). For n trials with several guesses each, the
        mean x of their shares exceeds p with probability at most ``exp(-n KL(x, p))`` (Hoeffding
        1963, Theorem 1).
        """
        if self.ceiling is None:
            return None
        allowed = self.blind + self.ceiling * (1 - self.blind)
        if self.share <= allowed:
            return 1.0
        if self.trials is None:
            return float(betainc(self.right, self.tries - self.right + 1, allowed))
        # the relative entropy of two coins, in nats
        divergence = float(rel_entr(self.share, allowed) + rel_entr(1 - self.share, 1 - allowed))
        return math.exp(-self.trials * divergence)

    @property
    def holds(self) -> bool:
        """Whether chance may explain the advantage, at this row's false-alarm probability."""
        return self.chance is None or self.chance >= self.false_alarm

    @property
    def above(self) -> bool:
        """Whether the advantage is larger than allowed, be it by chance."""
        return self.ceiling is not None and self.advantage > self.ceiling

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.chance is None:
            return "no bound"
        if not self.holds:
            return f"EXCEEDED (p {self.chance:.1g})"
        return f"holds; above by chance (p {self.chance:.1g})" if self.above else "holds"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        low, high = self.bounds
        return asdict(self) | {
            "share": self.share,
            "advantage": self.advantage,
            "advantage_low": low,
            "advantage_high": high,
            "chance": self.chance,
            "holds": self.holds,
            "verdict": self.verdict,
        }

    def _over(self, share: float) -> float:
        return (share - self.blind) / (1 - self.blind)


def judged_together(exposures: Sequence[Exposure], false_alarm: float) -> tuple[Exposure, ...]:
    """The same rows, with this probability of a false alarm over all of them (Bonferroni)."""
    bounded = sum(exposure.ceiling is not None for exposure in exposures)
    each = false_alarm / max(bounded, 1)
    return tuple(replace(exposure, false_alarm=each) for exposure in exposures)


def label_ceiling(cost: Cost) -> float | None:
    """The largest advantage over a coin that a guarantee allows a guess of one record's label.

    To replace a label is to remove one record and to add another, so a guarantee about added and
    removed records counts twice. None where labels are not protected.

    Examples
    --------
    >>> round(label_ceiling(Cost(1.0, adjacency=Adjacency.LABEL)), 3)
    0.462
    """
    if cost.adjacency not in (Adjacency.LABEL, Adjacency.REPLACE, Adjacency.RECORD):
        return None
    of_label = restated(cost, Adjacency.LABEL)
    return advantage_bound(of_label.epsilon, of_label.delta)
