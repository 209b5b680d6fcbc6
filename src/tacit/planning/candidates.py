"""A protocol with its best settings, and what is predicted of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tacit.planning.forecast import Forecast
from tacit.planning.traffic import Traffic
from tacit.privacy.cost import Adjacency
from tacit.protocols.conversation import Protocol
from tacit.results.estimate import finite

WHOLE_RECORD = (Adjacency.RECORD, Adjacency.REPLACE)

NEAR = 1.1
"""Errors within this factor are as good as the same."""

HIDES = {
    Adjacency.LABEL: "a record's label",
    Adjacency.RECORD: "a record, added or removed",
    Adjacency.REPLACE: "a record, replaced by any other",
    Adjacency.SCORE: "a record's score",
    None: "nothing by noise",
}
"""What epsilon hides, in words."""


@dataclass(frozen=True)
class Candidate:
    """A protocol with its best settings, and what is predicted of it.

    Parameters
    ----------
    protocol : ready to be run.
    forecast : for the central shape of the scores.
    error_range : the least and largest root mean square error over the plausible shapes.
    traffic : bytes, rounds and seconds.
    given_up : what is given up by using it, to end a sentence.
    smallest_epsilon, fewest_records : what a target takes; None without a target, or where none
        suffices.
    """

    protocol: Protocol
    forecast: Forecast
    error_range: tuple[float, float]
    traffic: Traffic
    given_up: str
    smallest_epsilon: float | None = None
    fewest_records: int | None = None

    @property
    def adjacency(self) -> Adjacency | None:
        """What epsilon hides; None where nothing is hidden by noise."""
        return self.protocol.guarantee.adjacency

    @property
    def hides_records(self) -> bool:
        """Whether a record is hidden whole, score and label."""
        return self.adjacency in WHOLE_RECORD

    @property
    def feasible(self) -> bool:
        """Whether something could be said."""
        return self.forecast.obstacle is None

    @property
    def title(self) -> str:
        """The protocol's name with the settings that tell it from its kind."""
        used = self.protocol.settings
        told = ("trust", "mechanism", "adversary", "labels", "adjacency")
        parts = [str(used[name]) for name in told if name in used]
        if used.get("second_round"):
            parts.append("two rounds")
        return ", ".join([self.protocol.name, *parts])

    def to_dict(self) -> dict[str, Any]:
        """The candidate for JSON; numbers that are not finite are null."""
        low, high = self.error_range
        settings = {name: _plain(value) for name, value in self.protocol.settings.items()}
        return {
            "protocol": self.protocol.name,
            "settings": settings,
            "adjacency": self.adjacency.value if self.adjacency else "none",
            "feasible": self.feasible,
            "obstacle": self.forecast.obstacle,
            "standard_error": finite(self.forecast.standard_error),
            "bias": finite(self.forecast.bias),
            "error": finite(self.forecast.error),
            "error_range": [finite(low), finite(high)],
            "bytes_per_client": self.traffic.bytes_per_client,
            "bytes_between_clients": self.traffic.beyond,
            "rounds": self.traffic.rounds,
            "seconds": round(self.traffic.seconds, 1),
            "smallest_epsilon": self.smallest_epsilon,
            "fewest_records": self.fewest_records,
        }


def best_of(candidates: tuple[Candidate, ...]) -> Candidate | None:
    """The feasible one of the least error among those that hide most; or of the fewest rounds.

    An error that is at most a tenth larger is taken for fewer rounds.

    Those that hide whole records come before those that hide a part of them, and those before
    candidates without noise: epsilons at different adjacencies are not compared.
    """
    feasible = [own for own in candidates if own.feasible]
    if not feasible:
        return None
    hidden, error = rank(min(feasible, key=rank))
    near = [own for own in feasible if rank(own)[0] == hidden and rank(own)[1] <= NEAR * error]
    return min(near, key=lambda own: (own.traffic.rounds, rank(own)))


def rank(candidate: Candidate) -> tuple[int, float]:
    """By what is hidden, then by error."""
    error = candidate.forecast.error
    hidden = 0 if candidate.hides_records else 1 if candidate.adjacency else 2
    return hidden, error if math.isfinite(error) else math.inf


def _plain(value: Any) -> Any:
    """A setting as JSON has it."""
    return value.item() if hasattr(value, "item") else value
