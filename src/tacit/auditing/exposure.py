"""How much better than blind an attacker guesses, with its interval and what a guarantee allows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from tacit.auditing.bounds import interval
from tacit.auditing.inference import advantage_bound
from tacit.privacy.cost import Adjacency, Cost

LEVEL = 0.95

SURE = 0.9999
"""An advantage is said to exceed what a guarantee allows where an interval of this level does."""


@dataclass(frozen=True)
class Exposure:
    """How often an attacker guessed right.

    Parameters
    ----------
    attack : what the attacker guesses, from what.
    release : what was released.
    protected : whether something protects it.
    right, tries : right guesses, of so many.
    blind : the share of right guesses of an attacker who sees no release.
    ceiling : the most that the guarantee allows the advantage over a coin to be, where it is about
        a label drawn by a coin; None where it says nothing.
    """

    attack: str
    release: str
    protected: bool
    right: int
    tries: int
    blind: float
    ceiling: float | None = None

    @property
    def share(self) -> float:
        """The share of right guesses."""
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
    def holds(self) -> bool:
        """Whether the advantage may be as small as the guarantee says, at ``SURE``."""
        low, _ = interval(self.right, self.tries, SURE)
        return self.ceiling is None or self._over(low) <= self.ceiling

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        low, high = self.bounds
        return asdict(self) | {
            "share": self.share,
            "advantage": self.advantage,
            "advantage_low": low,
            "advantage_high": high,
            "holds": self.holds,
        }

    def _over(self, share: float) -> float:
        return (share - self.blind) / (1 - self.blind)


def label_ceiling(cost: Cost) -> float | None:
    """The most that a guarantee allows a guess of one record's label to beat a coin.

    Replacing a label is removing a record and adding another, so that guarantees about added and
    removed records count twice. None where labels are not protected.

    Examples
    --------
    >>> round(label_ceiling(Cost(1.0, adjacency=Adjacency.LABEL)), 3)
    0.462
    """
    if cost.adjacency not in (Adjacency.LABEL, Adjacency.REPLACE, Adjacency.RECORD):
        return None
    twice = cost.adjacency is Adjacency.RECORD
    if not twice:
        return advantage_bound(cost.epsilon, cost.delta)
    return advantage_bound(2 * cost.epsilon, cost.delta * (1 + math.exp(cost.epsilon)))
