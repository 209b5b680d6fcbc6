"""Several mechanisms in one release about the same records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.privacy.cost import NOTHING, Adjacency, Cost, NoisyRelease


@dataclass(frozen=True)
class Together(NoisyRelease):
    """Independent noise on several numbers, all of which one record may move.

    Parameters
    ----------
    parts : the mechanisms; a record moves the number of each by its sensitivity.
    times : how often the release holds all of them.

    Examples
    --------
    >>> from tacit.privacy.mechanisms.laplace import DiscreteLaplace
    >>> pair = Together((DiscreteLaplace(1, 0.25), DiscreteLaplace(9, 0.75)))
    >>> pair.cost(Adjacency.LABEL).epsilon
    1.0
    """

    parts: tuple[NoisyRelease, ...]
    times: int = 1

    def cost(self, adjacency: Adjacency) -> Cost:
        """The sum of all costs, by basic composition."""
        costs = [part.cost(adjacency) for part in self.parts]
        total = sum(costs, NOTHING)
        rho = None if total.rho is None else total.rho * self.times
        known = self if all(cost.mechanism is not None for cost in costs) else None
        return Cost(total.epsilon * self.times, total.delta * self.times, adjacency, rho, known)

    def loss_distribution(self) -> Any:
        """The convolution of the parts' distributions, or None where one is not known."""
        known = [part.loss_distribution() for part in self.parts]
        if not known or any(part is None for part in known):
            return None
        whole = known[0]
        for part in known[1:]:
            whole = whole.compose(part)
        return whole.self_compose(self.times) if self.times > 1 else whole

    @property
    def loss_error(self) -> float:
        """The sum of the parts'."""
        return self.times * sum(part.loss_error for part in self.parts)
