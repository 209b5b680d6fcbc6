"""A protocol with its best settings, and what is predicted of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from tacit.privacy.cost import Adjacency
from tacit.protocol.conversation import Protocol
from tacit.protocol.forecast import Forecast
from tacit.protocol.scenario import Scenario, Traffic
from tacit.results.estimate import finite
from tacit.results.figure import AUC_FIGURE

WHOLE_RECORD = (Adjacency.RECORD, Adjacency.REPLACE)

EQUAL_ERROR_RATIO = 1.1
"""Factor within which two errors count as equal."""

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
    given_up : what is given up by using it, to end a sentence; empty for nothing.
    figure : what it estimates.
    smallest_epsilon, fewest_records : what a target takes; None without a target, or where none
        suffices.
    """

    protocol: Protocol
    forecast: Forecast
    error_range: tuple[float, float]
    traffic: Traffic
    given_up: str
    figure: str = AUC_FIGURE
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
        """Whether the candidate would give an estimate."""
        return self.forecast.obstacle is None

    @property
    def title(self) -> str:
        """The protocol's name with the settings that distinguish it."""
        return self.protocol.title

    def to_dict(self) -> dict[str, Any]:
        """The candidate for JSON; numbers that are not finite are null."""
        low, high = self.error_range
        settings = {name: _plain(value) for name, value in self.protocol.settings.items()}
        return {
            "protocol": self.protocol.name,
            "settings": settings,
            "figure": self.figure,
            "adjacency": self.adjacency.value if self.adjacency else "none",
            "feasible": self.feasible,
            "obstacle": self.forecast.obstacle,
            "standard_error": finite(self.forecast.standard_error),
            "bias": finite(self.forecast.bias),
            "error": finite(self.forecast.error),
            "error_range": [finite(low), finite(high)],
            "bytes_per_client": self.traffic.bytes_per_client,
            "bytes_to_client": self.traffic.bytes_to_client,
            "bytes_between_clients": self.traffic.beyond,
            "rounds": self.traffic.rounds,
            "seconds": round(self.traffic.seconds, 1),
            "smallest_epsilon": self.smallest_epsilon,
            "fewest_records": self.fewest_records,
        }


def of_persons(candidate: Candidate, named: Scenario, per_person: int) -> Candidate:
    """A candidate that was predicted with a record's part of epsilon, in a person's budget.

    Parameters
    ----------
    candidate : as predicted.
    named : the scenario with a person's epsilon.
    per_person : how many records of a person count; 0 where a record is the unit of privacy.
    """
    if not per_person:
        return candidate
    protocol, least = candidate.protocol, candidate.smallest_epsilon
    if "epsilon" in protocol.settings:
        changeable: Any = protocol
        protocol = replace(changeable, epsilon=named.epsilon)
    whole = None if least is None else least * per_person
    return replace(candidate, protocol=protocol, smallest_epsilon=whole)


def for_reports(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Those that remain where nobody asked for one figure alone.

    Of a protocol's settings that hide as much, one is left that serves all figures, where there is
    one. The errors of others say nothing about a report, in which no figure has more of epsilon
    than it can use: records are added or removed rather than replaced, which takes less noise.
    """
    best: dict[tuple[str, int], Candidate] = {}
    replaced = Adjacency.REPLACE
    for each in sorted(candidates, key=lambda each: (each.adjacency is replaced, rank(each))):
        if each.feasible and each.protocol.serves_report:
            best.setdefault((each.protocol.name, rank(each)[0]), each)
    return tuple(
        each for each in candidates if best.get((each.protocol.name, rank(each)[0]), each) is each
    )


def best_of(candidates: tuple[Candidate, ...]) -> Candidate | None:
    """The feasible candidate of least error, or of fewest rounds, among those that hide most.

    Fewer rounds win where the error is at most a tenth larger.

    Candidates that hide whole records come first, then those that hide a part of a record, then
    those without noise: epsilons at different adjacencies are not compared.
    """
    feasible = [candidate for candidate in candidates if candidate.feasible]
    if not feasible:
        return None
    protection, error = rank(min(feasible, key=rank))
    near = [
        candidate
        for candidate in feasible
        if rank(candidate)[0] == protection and rank(candidate)[1] <= EQUAL_ERROR_RATIO * error
    ]
    return min(near, key=lambda candidate: (candidate.traffic.rounds, rank(candidate)))


def rank(candidate: Candidate) -> tuple[int, float]:
    """The order of candidates: by what is hidden, then by error."""
    error = candidate.forecast.error
    protection = 0 if candidate.hides_records else 1 if candidate.adjacency else 2
    return protection, error if math.isfinite(error) else math.inf


def _plain(value: Any) -> Any:
    """A setting as a JSON value."""
    return value.item() if hasattr(value, "item") else value
