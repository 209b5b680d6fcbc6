"""A plan and its candidates, for people and for programs.

A candidate is a protocol with its best settings, and what is predicted of it. The recommendation is
two sentences: what to use and why, and what is given up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tacit.protocol as tp
from tacit.privacy.composition import person_line
from tacit.protocol.forecast import AREA
from tacit.protocol.registry import options_of
from tacit.results.estimate import entry_of, numbers
from tacit.results.figure import AUC_FIGURE
from tacit.results.text import aligned, paragraphs_and_table

WHOLE_RECORD = (tp.Adjacency.RECORD, tp.Adjacency.REPLACE)

EQUAL_ERROR_RATIO = 1.1
"""Factor within which two errors count as equal."""

HIDES = {
    tp.Adjacency.LABEL: "a record's label",
    tp.Adjacency.RECORD: "a record, added or removed",
    tp.Adjacency.REPLACE: "a record, replaced by any other",
    tp.Adjacency.SCORE: "a record's score",
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

    protocol: tp.Protocol
    forecast: tp.Forecast
    error_range: tuple[float, float]
    traffic: tp.Traffic
    given_up: str
    figure: str = AUC_FIGURE
    smallest_epsilon: float | None = None
    fewest_records: int | None = None

    @property
    def adjacency(self) -> tp.Adjacency | None:
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
        settings = {name: _plain(value) for name, value in self.protocol.settings.items()}
        return {
            "protocol": self.protocol.name,
            "settings": settings,
            "figure": self.figure,
            "adjacency": self.adjacency.value if self.adjacency else "none",
            "feasible": self.feasible,
            "obstacle": self.forecast.obstacle,
            **entry_of(self.forecast, ("standard_error", "bias", "error")),
            "error_range": numbers(self.error_range),
            "bytes_per_client": self.traffic.bytes_per_client,
            "bytes_to_client": self.traffic.bytes_to_client,
            "bytes_between_clients": self.traffic.beyond,
            "rounds": self.traffic.rounds,
            "seconds": round(self.traffic.seconds, 1),
            "smallest_epsilon": self.smallest_epsilon,
            "fewest_records": self.fewest_records,
        }


def of_persons(candidate: Candidate, named: tp.Scenario, per_person: int) -> Candidate:
    """A candidate that was predicted with a record's fraction of epsilon, in a person's budget.

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
    """The candidates of a plan for a whole report, not for one figure.

    Of a protocol's settings that hide as much, one is left that serves all figures, where there is
    one. The errors of others say nothing about a report, in which no figure has more of epsilon
    than it can use: records are added or removed rather than replaced, which takes less noise.
    """
    best: dict[tuple[str, int], Candidate] = {}
    replaced = tp.Adjacency.REPLACE
    for each in sorted(candidates, key=lambda each: (each.adjacency is replaced, rank(each))):
        if each.feasible and each.protocol.serves_report:
            best.setdefault((each.protocol.name, rank(each)[0]), each)
    return tuple(
        each for each in candidates if best.get((each.protocol.name, rank(each)[0]), each) is each
    )


def best_of(candidates: tuple[Candidate, ...]) -> Candidate | None:
    """The feasible candidate of least error among the candidates that hide most.

    Fewer rounds win where the error is at most a tenth larger. Candidates that
    hide whole records come first, then candidates that hide a part of a record, then candidates
    without noise: epsilons at different adjacencies are not compared.
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


NO_BIAS = 1e-9
"""A smaller bias is rounding, and shown as 0."""

HEADINGS = ("protocol", "epsilon hides", "error", "plausible", "bias", "bytes", "rounds", "s")


@dataclass(frozen=True)
class Plan:
    """What an evaluation would give under a trust.

    Parameters
    ----------
    scenario : the numbers of the plan.
    trust, metric : the requested trust and metric.
    target : the requested error, if any.
    shapes : plausible shapes of the scores, the central one first.
    sampling_error : the least and largest standard error of an exact AUC about the population's.
    candidates : all that fit the trust and give the metric, those that hide whole records first,
        each group by its error.
    recommended : one of them; None where none is feasible.
    elsewhere : where there is no candidate, the protocols that give the metric, and under which
        trust models.
    others : candidates under the same trust that estimate other figures, where no metric was asked
        for.
    per_person : the most records of a person that count at a client, where epsilon is a person's;
        else 0.
    """

    scenario: tp.Scenario
    trust: str
    metric: str
    target: float | None
    shapes: tuple[tp.Shape, ...]
    sampling_error: tuple[float, float]
    candidates: tuple[Candidate, ...]
    recommended: Candidate | None
    elsewhere: Mapping[str, Sequence[tp.Trust]]
    others: tuple[Candidate, ...] = ()
    per_person: int = 0

    @property
    def meets_target(self) -> bool | None:
        """Whether the recommended protocol reaches the target; None without one."""
        if self.target is None:
            return None
        return self.recommended is not None and self.recommended.forecast.error <= self.target

    @property
    def advice(self) -> str:
        """Two sentences: what to use and why, and what is given up; or why nothing is feasible."""
        if self.recommended is None:
            return self._not_feasible()
        return f"{_reason(self.recommended, self.candidates)} {self._price(self.recommended)}"

    def _price(self, chosen: Candidate) -> str:
        """What is given up, and what an unmet target would take."""
        text, target = f"What is given up: {chosen.given_up or 'nothing'}", self.target
        if target is None or chosen.forecast.error <= target:
            return f"{text}."
        means, epsilon = _means(chosen), self.scenario.epsilon
        takes = f" and takes {means}" if means else ", nor otherwise"
        return f"{text}; an error of {target:g} is not met at epsilon {epsilon:g}{takes}."

    def _not_feasible(self) -> str:
        """Why nothing can be recommended, and what it would take."""
        if not self.candidates:
            title = _title(self.metric)
            nothing = f"Not feasible: no protocol under this trust is planned for {title}."
            return " ".join([nothing, *(_does(*each) for each in self.elsewhere.items())])
        nearest = min(self.candidates, key=lambda candidate: candidate.forecast.error)
        means = _means(nearest)
        help_ = f"It takes {means}." if means else "More records or another trust are needed."
        return (
            f"Not feasible at epsilon {self.scenario.epsilon:g}: with {nearest.title}, which comes "
            f"nearest, {nearest.forecast.obstacle}. {help_}"
        )

    @property
    def command(self) -> str | None:
        """The command that runs the recommended protocol on FILES; None without one."""
        if self.recommended is None:
            return None
        person = f" --person COLUMN --per-person {self.per_person}" if self.per_person else ""
        protocol, named = self.recommended.protocol, set[str]()
        columns = "".join(f" --{name} COLUMN" for name in protocol.record_columns)
        if protocol.scores_by_class:
            # the columns name the classes
            columns, named = " --scores COLUMN,... --label COLUMN", {protocol.categories_setting}
        return f"tacit evaluate FILES{columns} {options_of(protocol, named)}{person}"

    def to_dict(self) -> dict[str, Any]:
        """The plan for JSON."""
        scenario = self.scenario
        return {
            "records": scenario.records,
            "positives": scenario.positives,
            **({"classes": scenario.classes} if scenario.classes > 2 else {}),
            "clients": scenario.clients,
            "epsilon": scenario.epsilon,
            **({"per_person": self.per_person} if self.per_person else {}),
            **{name: getattr(self, name) for name in ("trust", "metric", "target", "meets_target")},
            "auc_guesses": sorted({shape.auc for shape in self.shapes}),
            "sampling_error_range": numbers(self.sampling_error),
            "recommended": None if self.recommended is None else self.recommended.to_dict(),
            "advice": self.advice,
            "command": self.command,
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "others": [candidate.to_dict() for candidate in self.others],
        }

    def _repr_html_(self) -> str:
        rows = [HEADINGS, *map(_row, self.candidates)]
        return paragraphs_and_table(self._heading(), rows, self._closing())

    def __str__(self) -> str:
        parts = [self._heading(), self._table(), self._other_figures(), self._closing()]
        return "\n\n".join("\n".join(lines) for lines in parts if lines)

    def _heading(self) -> list[str]:
        scenario = self.scenario
        guesses = sorted({shape.auc for shape in self.shapes})
        low, high = self.sampling_error
        assumed = f"{guesses[0]:g}" if len(guesses) == 1 else f"{guesses[0]:g} to {guesses[-1]:g}"
        if any(candidate.protocol.record_columns for candidate in self.candidates):
            assumed = f"values distributed as scores with an AUC of {assumed} are assumed"
        else:
            assumed = f"an AUC of {assumed} is assumed"
        lines = [
            f"{scenario.records:,} records, {self._sides()}, "
            f"{scenario.clients:,} clients, epsilon {scenario.epsilon:g}, "
            f"trust {self.trust}: {tp.Trust.of(self.trust).description}",
            f"errors about these records' own {_title(self.metric)}; {assumed}",
        ]
        if self.per_person:
            lines.append(f"the unit is {person_line(self.per_person, scenario.epsilon)}")
        if self.metric == AREA:
            lines.append(f"the sampling error of their exact AUC would be {_range(low, high)}")
        return lines

    def _sides(self) -> str:
        scenario = self.scenario
        if scenario.classes == 2:
            return f"{scenario.positives:,} positive"
        return f"{scenario.classes:,} classes of about {scenario.positives:,}"

    def _table(self) -> list[str]:
        if not self.candidates:
            return ["no protocol gives this metric under this trust"]
        return aligned([HEADINGS, *map(_row, self.candidates)], texts=2)

    def _other_figures(self) -> list[str]:
        """The protocols of the trust that estimate another figure, with its name."""
        if not self.others:
            return []
        rows = [(candidate.figure, *_row(candidate)) for candidate in self.others]
        return [
            "other figures under this trust:",
            *aligned([("figure", *HEADINGS), *rows], texts=3),
        ]

    def _closing(self) -> list[str]:
        lines = [self.advice]
        if self.recommended is not None:
            lines.append(f"Run it: {self.command}")
        if self.target is not None:
            lines += ["", *self._targets()]
        return lines

    def _targets(self) -> list[str]:
        """What the target takes with every candidate."""
        rows = [
            (candidate.title, _means(candidate) or "not within reach")
            for candidate in self.candidates
        ]
        return [f"For an error of {self.target:.3g}:", *(f"  {line}" for line in aligned(rows))]


def _title(metric: str) -> str:
    """What a metric is called, be it a protocol's own figure."""
    try:
        return tp.Metric(metric).title
    except ValueError:
        return metric


def _row(candidate: Candidate) -> tuple[str, ...]:
    forecast, traffic = candidate.forecast, candidate.traffic
    error = f"{forecast.error:.2g}" if candidate.feasible else "not feasible"
    return (
        candidate.title,
        HIDES[candidate.adjacency],
        error,
        _range(*candidate.error_range),
        f"{forecast.bias if abs(forecast.bias) > NO_BIAS else 0:+.1g}",
        f"{traffic.bytes_per_client:,}",
        str(traffic.rounds),
        f"{traffic.seconds:.0f}",
    )


def _range(low: float, high: float) -> str:
    return f"{low:.2g} to {high:.2g}"


def _reason(chosen: Candidate, candidates: Sequence[Candidate]) -> str:
    """The protocol, and what it is better than."""
    low, high = chosen.error_range
    hiding = f", which hides {HIDES[chosen.adjacency]}" if chosen.adjacency else ""
    text = (
        f"Use {chosen.title}{hiding}: its predicted error is "
        f"{chosen.forecast.error:.2g} ({low:.2g} to {high:.2g} over plausible scores)"
    )
    others = [other for other in candidates if other is not chosen and other.feasible]
    alike = [
        other for other in others if other.hides_records == chosen.hides_records and other.adjacency
    ]
    if alike and chosen.adjacency:
        follower = min(alike, key=lambda other: other.forecast.error)
        protection = (
            "the same is hidden"
            if follower.adjacency is chosen.adjacency
            else f"{HIDES[follower.adjacency]}, is hidden"
        )
        error = f"{follower.forecast.error:.2g}"
        return f"{text}, against {error} with {follower.title}, where {protection}."
    more = others and chosen.adjacency
    return f"{text}, and no other candidate hides as much." if more else f"{text}."


def _does(name: str, trusts: Sequence[tp.Trust]) -> str:
    """Under which trust models a protocol gives the metric."""
    *words, last = [trust.value for trust in trusts]
    alternatives = f"{', '.join(words)} or {last}" if words else last
    return f"The protocol {name} is, with trust {alternatives}."


def _means(candidate: Candidate) -> str:
    epsilon, records = candidate.smallest_epsilon, candidate.fewest_records
    means = [] if epsilon is None else [f"epsilon {epsilon:g}"]
    means += [] if records is None else [f"{records:,} records"]
    return " or ".join(means)
