"""Time to event: survival by Kaplan-Meier, Harrell's C and figures at horizons, from noisy counts.

The first round counts the records. The second counts them by event and cell of time, which tells
the survival curve and that of censoring, and again in coarser cells of time by cells of risk, which
tells everything that is about risks. Where records are many a third round measures the concordance
by one number, the sum of all records' influences on it as the tables tell them (``figures``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import tacit.protocol as tp
from tacit.data.categories import check_names
from tacit.outcomes import clipping
from tacit.outcomes.survival import figures, rounds
from tacit.outcomes.survival.tables import CONCORDANCE, Told
from tacit.protocol import releases
from tacit.protocol.scenario import Traffic, measured_traffic
from tacit.protocols.shared import counting
from tacit.results.parts import SiteFigure, Sites
from tacit.results.server_result import ServerResult

STANDS_OUT = 8.0
"""A number of so many scales of its noise is no noise, but by a chance of ``exp(-8) / 2``."""

STANDING = 0.005
"""The least part of all records that the last cell of times must hold."""

FEW = 200
"""Times of fewer values have a step, where each of these has ten records or more."""

LATEST = 1e15
"""The latest end of times."""

SAMPLE = 20_000
"""Synthetic records of which a forecast makes tables."""

NO_UNTIL = "not enough signal: no time stands out from the noise; name the end of times, until"

TURNS = 9973 * math.sqrt(2)
"""By what synthetic risks are multiplied so that what is behind the point looks like chance."""


@dataclass(frozen=True)
class TimeToEvent(clipping.BoundedValues):
    """How well risks tell when events come: survival, concordance, figures at horizons.

    Clients hold risks as scores, events as labels (1) and times as second values. Records without
    an event are censored at their time; all are at ``until``.

    Parameters
    ----------
    bounds, epsilon, trust : as ``BoundedValues`` has them; the bounds are those of risks. Risks
        from 0 to 1 are taken as probabilities of an event by a horizon.
    until : the public time at which the grid ends; None to find it among 1, 2 and 5 times powers
        of 10 from noisy counts.
    horizons : times at which AUC, Brier score and calibration are given; the middle of the grid
        where empty.
    step : of what public number times are whole multiples, where many events have one time; None
        for times that are hardly ever equal. Two events at one time are no pair.
    division : what most of epsilon is for: ``"survival"``, ``"concordance"`` or ``"both"``; None
        to choose by the number of records.
    group_names : the agreed names of private groups; empty for none.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> import tacit
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.random(8000)
    >>> days = rng.exponential(40 / (0.2 + risk))
    >>> records = tacit.Clients.from_arrays(risk, days < 100, second=np.minimum(days, 100))
    >>> result = tacit.evaluate(records, TimeToEvent(until=100, epsilon=2.0), seed=0)
    >>> round(result.estimate.value, 2)
    0.63
    """

    bounds: tuple[float, float] = tp.setting(
        default=tp.UNIT_INTERVAL, help="the public least and largest risk"
    )
    trust: tp.SecureSum | tp.Each | tp.ExactSum | str = tp.trust_setting()
    until: float | None = tp.setting(default=None, help="the public time at which the grid ends")
    horizons: tuple[float, ...] = tp.setting(default=(), help="times of AUC, Brier, calibration")
    step: float | None = tp.setting(default=None, help="of what number times are multiples")
    division: str | None = tp.setting(
        default=None,
        choices=tuple(rounds.DIVISIONS),
        help="what most of epsilon is for; by the number of records where it is left out",
    )
    group_names: tuple[str, ...] = tp.setting(default=(), help="the agreed names of private groups")

    name = "time-to-event"
    figure = tp.Figure(CONCORDANCE, limits=(0.0, 1.0))
    steps = (rounds.count_records, rounds.count_times, rounds.sum_influences)
    needs_labels = True
    needs_second_values = True
    bounds_second = False
    trusts = (tp.Trust.SECURE_SUM, tp.Trust.EACH, tp.Trust.EXACT_SUM)
    record_columns: ClassVar[Mapping[str, str]] = {"time": "second", "event": "label"}
    replicated_fields = (rounds.INFLUENCES,)
    categories_setting = "group_names"
    law_settings = clipping.law_settings("time-to-event", 50.0, until=1.0)
    law_traits = tp.LawTraits(
        inexact="cells hide the order of records within them",
        loose="a record's influence is seldom the largest",
        unforecast="with so little noise most of the stated error is what cells may hide",
    )
    audit_settings = (
        {"until": 1.0, "division": "concordance"},
        {"until": 1.0, "division": "survival", "trust": tp.Each.word},
    )

    @classmethod
    def error_cases(cls: Any) -> Mapping[str, tp.ErrorCase]:
        """Both trust models with noise, and each division."""
        made = {
            "time-to-event": cls(epsilon=1.0, until=1.0),
            "time-to-event-each": cls(epsilon=2.0, until=1.0, trust=tp.Each()),
            "time-to-event-survival": cls(epsilon=1.0, until=1.0, division="survival"),
        }
        return {name: tp.ErrorCase(each, noticed=True) for name, each in made.items()}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_names:
            check_names("group_names", self.group_names, least=1)
        if self.until is not None and not 0 < self.until <= LATEST:
            raise ValueError(f"until must be above 0 and at most {LATEST:g}, got {self.until:g}")
        if self.step is not None and not 0 < self.step < math.inf:
            raise ValueError(f"step must be above 0 and finite, got {self.step:g}")
        wrong = [each for each in self.horizons if not 0 < each <= (self.until or math.inf)]
        if wrong:
            raise ValueError(
                f"horizons must be above 0 and at most {self.until or math.inf:g}, got {wrong[0]:g}"
            )

    @property
    def groups(self) -> int:
        """How many groups are counted."""
        return max(len(self.group_names), 1)

    def divided(self, name: str) -> rounds.Division:
        """A division; without noise there is one."""
        return rounds.EXACT if self.epsilon is None else rounds.DIVISIONS[name]

    def times(self, until: float) -> tuple[float, ...]:
        """The horizons; by default the middle of the grid."""
        return self.horizons or (until / 2,)

    def grid(self, division: str, until: float) -> rounds.Grid:
        """The cells of a division up to an end of times, with ends at the horizons before."""
        known = self.divided(division)
        even = np.linspace(0.0, until, known.cells[0] + 1)
        edges = np.unique([*even, *(each for each in self.times(until) if each < until)])
        return rounds.Grid(edges, known.split, known.cells[1])

    def doubts(self, clients: tp.Clients) -> Iterator[str]:
        """How many risks are outside the bounds, and times below 0."""
        yield from super().doubts(clients)
        early = clipping.counted(
            clients, lambda batch: np.count_nonzero(np.asarray(batch.second) < 0)
        )
        if early:
            yield f"{early:,} times are below 0, and are taken as 0: count times from the start"

        distinct = clipping.counted(clients, lambda batch: np.unique(rounds.times_of(batch)).size)
        most = min(FEW, clients.records / 10)
        if self.step is None and clients.records > FEW and distinct < most:
            yield (
                f"there are only {distinct:,} different times: name of what number they are "
                "multiples, step, or the figures are a little off"
            )

    def trial_records(self, clients: tp.Clients) -> tp.Clients:
        """Records whose times are longer for lower risks, but for what looks like chance."""
        if clients.second is not None:
            return self.fitted(clients)
        fitted = self.fitted(clients)
        chance = np.modf(self.scaled(fitted.scores) * TURNS + TURNS)[0]
        times = (chance + (1 - self.scaled(fitted.scores)) / 2) / 2 * (self.until or 1.0)
        return replace(fitted, second=times)

    def exact(self, clients: tp.Clients) -> float:
        """Harrell's C of the records up to the end of the grid, which is not private."""
        times, until = rounds.times_of(clients), self.until or math.inf
        died = np.where(times > until, 0, clients.labels)
        last = np.nextafter(until, math.inf)
        return figures.exact_concordance(np.minimum(times, last), died, self.scaled(clients.scores))

    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        """The stated error of tables that synthetic records of this shape would give."""
        drawn = max(min(scenario.records, SAMPLE), 2)
        some = min(max(1, round(drawn * scenario.positive_fraction)), drawn - 1)
        sample = replace(scenario, records=drawn, positives=some, clients=1).drawn(shape, seed=0)
        until, name = self.until or 1.0, self.division or self._of_size(scenario.records)
        asked = {rounds.UNTIL: until, rounds.DIVISION: name}
        query = tp.Query(rounds.count_times, self, asked, view=tp.View.SUM)
        fields, counts = rounds.tables_of(self.trial_records(sample), query)
        times, risks = (each[..., 0] * (scenario.records / drawn) for each in counts.values())
        noises = float(releases.noises_of(self.trust, scenario.clients, scenario.clients))
        noise = [each.variance(noises) for each in fields.values()]
        told = Told(self, self.grid(name, until), times, risks, *noise)
        part, result = self.divided(name).parts.get(rounds.SUM), told.concordance()
        if part is not None:
            number = {rounds.SUM: self.sum_field((), part * self.budget)}
            error = math.sqrt(number[rounds.SUM].variance(noises)) * self._unit(number)
            result = told.corrected(0.0, error * told.influences()[1])
        return clipping.forecast_of(float(result.standard_error))

    def traffic(self, scenario: tp.Scenario) -> Traffic:
        """The bytes and rounds of the division that so many records have."""
        division = self.division or self._of_size(scenario.records)
        known = replace(self, until=self.until or 1.0, division=division)
        return measured_traffic(known, scenario)

    def _unit(self, fields: releases.Fields) -> float:
        """What a unit of the sum of influences is worth."""
        return float(clipping.unit_of(fields[rounds.SUM], 1.0, rounds.WEIGHT * rounds.HEIGHT))

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> tp.ThreatModel:
        """Who sees what."""
        summed = "the number of records, and of events and censored records by cell of time, and "
        summed += "by cell of time and risk; the sum of the records' influences on the concordance"
        return clipping.summed_model(
            settings, summed, "These numbers and tables, with their noise."
        )

    def conversation(self, clients: int) -> tp.Conversation:
        """Numbers up, tables up; where records are many, influences down and their sum up."""
        counted = yield from tp.ask(rounds.count_records, self, clients)
        until, name = self._until(counted), self.division or self._division(counted)
        if until is None:
            blank = np.full(counted[rounds.RECORDS].shape[:-1], np.nan)
            return ServerResult(blank, blank, blank, withheld=NO_UNTIL)
        asked: dict[str, Any] = {rounds.UNTIL: until, rounds.DIVISION: name}
        tables = yield from tp.ask(rounds.count_times, self, clients, asked)
        counting.check_the_same_number(counted.answered, tables.answered)
        told = Told.of_sums(self, self.grid(name, until), tables)
        result, received = told.concordance(), [counted, tables]
        if rounds.SUM in self.divided(name).parts:
            asked[rounds.INFLUENCES], reach = told.influences()
            number = yield from tp.ask(rounds.sum_influences, self, clients, asked)
            counting.check_the_same_number(counted.answered, number.answered)
            drawn = math.sqrt(number.variance(rounds.SUM)) * self._unit(number.fields) * reach
            total = number[rounds.SUM] * self._unit(number.fields) * reach
            result, received = told.corrected(total, drawn), [*received, number]
            if number.noises <= 1:
                result = replace(result, laplace_error=drawn)
        result = replace(result, protection=releases.total_protection(received))
        if result.value.ndim:
            return result
        found = [] if self.division or self.epsilon is None else [f"most for {name}"]
        found += [] if self.until is not None else [f"times counted until {until:g}"]
        sites = self._sites(tables, told.grid)
        return replace(
            result, breakdown=told.breakdown(), sites=sites, division=", ".join(found) or None
        )

    def _until(self, counted: releases.Sums) -> float | None:
        """The end of the grid: of the last cell that stands out; None where none does."""
        if self.until is not None:
            return float(self.until)
        numbers = counted[rounds.RECORDS].reshape(-1, rounds.SPANS.size).mean(axis=0)
        noise = STANDS_OUT * math.sqrt(counted.variance(rounds.RECORDS) / 2)
        clear = np.flatnonzero(numbers > max(noise, STANDING * numbers.sum(), 0.0))
        return float(rounds.SPANS[clear[-1]]) if clear.size else None

    def _division(self, counted: releases.Sums) -> str:
        """By the number of records, of all replicates of a simulation together."""
        numbers = counted[rounds.RECORDS]
        replicates = numbers.size / (rounds.SPANS.size if self.until is None else 1)
        return self._of_size(float(numbers.sum() / replicates))

    def _of_size(self, records: float) -> str:
        size = records * (self.epsilon or math.inf)
        return [
            name for name, each in rounds.DIVISIONS.items() if size >= each.since or not each.since
        ][-1]

    def _sites(self, tables: releases.Sums, grid: rounds.Grid) -> Sites | None:
        """The concordance of every client that released its own tables."""
        if not isinstance(self.trust, tp.Each):
            return None
        each = Told.of_sums(self, grid, tables.by_client()).concordance().estimates()
        return Sites(lambda: (SiteFigure.of(CONCORDANCE, "log-odds", each),))
