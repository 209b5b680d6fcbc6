"""What noisy tables of times and of times and risks tell: every figure with its errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.outcomes.survival import figures
from tacit.outcomes.survival.rounds import RISKS, TIMES, Grid
from tacit.protocol import releases
from tacit.results.estimate import REACH, Estimate
from tacit.results.figure import EVERYWHERE
from tacit.results.parts import BandedCurve, Breakdown, Difference, Part
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.outcomes.survival.protocol import TimeToEvent

CONCORDANCE, HAZARDS = "concordance", "log hazard ratio"
CLEAR, AT_RISK = 6.0, 3.0
"""A number of pairs, or of records at risk, of fewer of its standard errors is lost in noise."""

RISK_GROUPS = 4
"""Groups of cells of risk in which calibration is given."""

HIDDEN_ONCE, HIDDEN_TWICE = 4.5, 9.0
"""What a sum of influences leaves of products of noise and of what cells hide, and of the latter
twice, as measured with uniform risks and with their squares."""

ORDER_LEFT = (2.0, 5.0)
"""What influences leave of the order of events in cells and its error, by what rates in cells give.
"""

WORTH, MOST_SHARED = 0.1, 0.8
"""What the order of risks is taken to be worth at least, as an AUC above a half; the largest part
of all pairs of records that may share a cell."""

PROBES = 16
"""Tables, each number moved up or down by its noise's standard deviation, that tell the error of
what influences leave: its derivative says nothing where rates are nearly equal, or everyone has an
event."""

TOO_LATE = "too few records are at risk then, as far as noise tells"
LEAST = 1e-100
"""Keeps influences that are all 0 finite."""

BEYOND = "the grid of times ends before"
NO_EVENTS = "a group has no events, as far as noise tells"
TOO_EARLY = "there are no events by then, as far as noise tells"
SHARED = "nearly all records share a cell, as far as noise tells: name narrower bounds or until"


TIME = "Time"


def banded(
    across: str,
    up: str,
    places: Floats,
    known: Sequence[Estimate],
    limits: tuple[float, float] = EVERYWHERE,
) -> BandedCurve:
    """A curve through estimates, with the band of their intervals about the population."""
    value = np.array([each.value for each in known])
    around = REACH * np.array(
        [math.hypot(each.standard_error, each.sampling_error) for each in known]
    )
    band = (np.clip(each, *limits) for each in (value, value - around, value + around))
    return BandedCurve(across, up, places, *band)


def _worth_in_cells(value: Floats | float, part: Floats) -> Floats:
    """What the order of pairs in one cell may be worth, where such are this part of all pairs."""
    return np.asarray(np.maximum(np.abs(value - 1 / 2), WORTH) * np.minimum(4 * part**2, part / 2))


@dataclass(frozen=True, eq=False)
class Told:
    """What noisy tables tell.

    Parameters
    ----------
    protocol, grid : for the cells.
    times, risks : the tables of groups, shapes (..., G, 4 n + 1) and (..., G, 2 n + 1, R).
    of_times, of_risks : the variance of each of their numbers by noise.
    """

    protocol: TimeToEvent
    grid: Grid
    times: Floats
    risks: Floats
    of_times: float
    of_risks: float

    @classmethod
    def of_sums(cls, protocol: TimeToEvent, grid: Grid, sums: releases.Sums) -> Told:
        """What received tables tell."""
        noise = sums.variance(TIMES), sums.variance(RISKS)
        return cls(protocol, grid, sums[TIMES], sums[RISKS], *noise)

    @property
    def pooled(self) -> tuple[Floats, Floats]:
        """Both tables of all groups together."""
        return self.times.sum(axis=-2), self.risks.sum(axis=-3)

    @property
    def variances(self) -> tuple[float, float]:
        """Of a number of each of these by noise."""
        groups = self.times.shape[-2]
        return groups * self.of_times, groups * self.of_risks

    def of(self, group: int) -> Told:
        """Those of one group."""
        return replace(self, times=self.times[[group]], risks=self.risks[[group]])

    def concordance(self) -> ServerResult:
        """The concordance as the table of times and risks tells it."""
        known, noise = figures.concordance(self.pooled[1]), self.variances[1]
        privacy = np.sqrt(noise * np.square(known.gradient).sum(axis=(-2, -1)))
        privacy = np.hypot(privacy, known.product_error(noise))
        events, lost, _ = figures.life_table(self.pooled[1].sum(axis=-1))
        at_once = (self._several * events * (events + lost)).sum(axis=-1) / 2 / known.pairs
        at_once = np.clip(at_once, 0.0, 1.0)
        order = np.hypot(self._order(known)[0], _worth_in_cells(known.value, at_once))
        hidden = np.hypot(self._hidden(known), order)
        shared = np.maximum(self._same_risk, at_once)
        return self._result(known, known.value - known.shift(noise), privacy, hidden, shared)

    def influences(self) -> tuple[Floats, Floats]:
        """The influences as a query has them, and what 1 is, shape (...)."""
        known = figures.concordance(self.pooled[1]).influences
        reach = np.maximum(np.abs(known).max(axis=(-3, -2, -1)), LEAST)
        return known / reach[..., np.newaxis, np.newaxis, np.newaxis], reach

    def corrected(self, total: Floats | float, drawn: Floats | float) -> ServerResult:
        """The concordance with the sum of influences: the table's errors count in products only.

        Parameters
        ----------
        total, drawn : the sum and its standard error, shape (...).
        """
        table, noise = self.pooled[1], self.variances[1]
        known = figures.concordance(table)
        apart = total - (table * known.gradient).sum(axis=(-2, -1))
        size, hidden = np.maximum(table.sum(axis=(-2, -1)), 1.0), self._hidden(known)
        cells = math.sqrt(noise * math.prod(table.shape[-2:]))
        products = np.hypot(known.product_error(noise), HIDDEN_ONCE * hidden * cells / size)
        hidden = np.hypot(HIDDEN_TWICE * hidden**2, 1 / size)
        _, left = self._order(known)
        left_error = self._order_error(known, left)
        hidden = np.hypot(hidden, ORDER_LEFT[1] * np.hypot(left, left_error))
        value = known.value + apart + known.shift(noise) + ORDER_LEFT[0] * left
        return self._result(known, value, np.hypot(drawn, products), hidden, self._same_risk)

    @property
    def _several(self) -> Floats:
        """The part of pairs in a cell of time that are at two times, shape (n,)."""
        return 2 * self.grid.spread(self.protocol.step, fine=False)[0]

    @property
    def _same_risk(self) -> Floats:
        """The part of all pairs of records that share a cell of risk, shape (...)."""
        risks, noise = self.pooled[1], self.variances[1]
        by_risk, cells = risks.sum(axis=-2), risks.shape[-1]
        same = np.square(by_risk).sum(axis=-1) - noise * risks.shape[-2] * cells
        whole = np.maximum(np.square(by_risk.sum(axis=-1)), 1.0)
        return np.asarray(np.clip(same / whole, 1 / cells, 1.0))

    def _hidden(self, known: figures.Concordance) -> Floats:
        """About what cells hide: the order of pairs that share one of risk, or one of time."""
        events, lost, at_risk = figures.life_table(self.pooled[1].sum(axis=-1))
        exposed = np.maximum(at_risk - lost / 2, 1.0)
        error = np.sqrt(self.variances[1] * self.risks.shape[-1]) / exposed
        apart = figures.unevenness(events / exposed, error) * exposed * self._several
        times = (apart * np.abs(events + lost)).sum(axis=-1) / known.pairs
        worth = np.maximum(np.abs(known.value - 1 / 2), WORTH)
        return np.hypot(_worth_in_cells(known.value, self._same_risk), worth * times)

    @property
    def _later_error(self) -> Floats:
        """The standard error by noise of numbers at risk, shape (n,)."""
        return np.sqrt(self.variances[1] * (2.0 * np.arange(self.grid.cells, 0, -1) + 1))

    def _order(self, known: figures.Concordance) -> tuple[Floats, Floats]:
        """What the order of events in cells of time is worth, and what influences leave of it."""
        whole, left = figures.order_in_cells(self.pooled[1], self._later_error)
        return np.abs(whole) / known.pairs, left / known.pairs

    def _order_error(self, known: figures.Concordance, left: Floats) -> Floats:
        """The standard error by noise of what influences leave, from ``PROBES`` tables."""
        table, noise = self.pooled[1], self.variances[1]
        if not noise:
            return 0 * left
        shape = table.shape[-2:]
        # signs that look like chance, the same in every run
        turns = np.modf(np.arange(1.0, PROBES * math.prod(shape) + 1) * 9973 * math.sqrt(2))[0]
        signs = np.where(turns < 1 / 2, -1.0, 1.0).reshape(PROBES, *shape)
        tables = (table + math.sqrt(noise) * each for each in signs)
        moved = [figures.order_in_cells(each, self._later_error)[1] for each in tables]
        apart = np.array(moved) / known.pairs - left
        return np.asarray(np.sqrt(np.square(apart).mean(axis=0)))

    def _tied(self, known: figures.Concordance) -> tuple[Floats, Floats]:
        """How much pairs at one time raise the concordance, and the number of pairs with them.

        Two events are none, and a censored record is later than an event.
        """
        table, noise, cells = self.pooled[1], self.variances[1], self.grid.cells
        events, lost = table[..., :cells, :], table[..., cells:-1, :]
        equal, both = 1 - self._several, events.sum(axis=-1) * lost.sum(axis=-1)
        none = np.square(events.sum(axis=-1)) - noise * table.shape[-1]
        won = (events * (np.cumsum(lost, axis=-1) - lost / 2)).sum(axis=-1)
        more = won - known.value[..., np.newaxis] * both
        more = more + none * (known.value[..., np.newaxis] - 1 / 2)
        # P + sum_t q_t (E_t L_t - E_t^2) / 2, with q_t the part of pairs that are at one time
        pairs = np.maximum(known.pairs + ((both - none) * equal).sum(axis=-1) / 2, 1.0)
        return np.asarray((more * equal).sum(axis=-1) / 2 / pairs), pairs

    def _clustered(self, known: figures.Concordance) -> Floats:
        """What the order of pairs that share a cell of time and of risk may be worth, shape (...).

        Where they are more than independent times and risks give, their own order is not that of
        records that are spread evenly.
        """
        table, noise, cells = self.pooled[1], self.variances[1], self.grid.cells
        events, both = table[..., :cells, :], table[..., :cells, :] + table[..., cells:-1, :]
        shared = (events * both).sum(axis=(-2, -1)) - noise * known.events
        at_once = (events.sum(axis=-1) * both.sum(axis=-1)).sum(axis=-1) - noise * known.events
        expected = np.maximum(at_once, 1.0) * self._same_risk
        part = np.clip(shared / 2 / known.pairs, 0.0, 1.0)
        return np.asarray(part / 2 * np.clip(shared / expected - 1, 0.0, 1.0) ** 2)

    def _result(
        self,
        known: figures.Concordance,
        value: Floats,
        privacy: Floats,
        hidden: Floats,
        shared: Floats,
    ) -> ServerResult:
        """The concordance, of enough pairs of which at most ``MOST_SHARED`` share a cell."""
        risks, noise = self.pooled[1], self.variances[1]
        tied, pairs = self._tied(known)
        # what changes the sum over pairs changes its mean over fewer of them more
        more = np.maximum(known.pairs, 1.0) / pairs
        privacy, hidden = privacy * more, hidden * more
        hidden = np.hypot(hidden, self._clustered(known))
        value, hidden = value + tied, np.hypot(hidden, tied / 4)
        error = np.sqrt(noise * np.square(known.of_pairs).sum(axis=(-2, -1)))
        drawn = more * np.sqrt(np.maximum((risks * known.gradient**2).sum(axis=(-2, -1)), 0.0))
        none = (pairs <= 1) | (pairs < CLEAR * error)
        few, none = none, none | (shared > MOST_SHARED)
        value, privacy = np.where(none, np.nan, value), np.where(none, np.nan, privacy)
        result = ServerResult(value, privacy, drawn, approximation_error=hidden, limits=(0.0, 1.0))
        if value.ndim or not none:
            return result
        estimated = f"{float(pairs):.0f} pairs of an event and a later record"
        sentence = f"{estimated} are estimated with a standard error of {float(error):.0f}"
        return replace(result, withheld=f"not enough signal: {sentence if few else SHARED}")

    @property
    def horizons(self) -> Sequence[float]:
        """The agreed ones; else the middle of the grid."""
        return self.protocol.times(float(self.grid.edges[-1]))

    @property
    def left(self) -> tuple[Floats, Floats]:
        """The numbers at risk after each cell of the table of times, and their standard errors."""
        events, lost, at_risk = figures.life_table(self.pooled[0])
        later = 2.0 * np.arange(self.grid.ends.size - 1, -1, -1) + 1
        return at_risk - events - lost, np.sqrt(self.variances[0] * later)

    @property
    def clear(self) -> int:
        """After how many cells of the table of times clearly some records are at risk."""
        left, error = self.left
        return int(np.logical_and.accumulate(left >= np.maximum(AT_RISK * error, 1.0)).sum())

    def breakdown(self) -> Breakdown:
        """Everything but the concordance of all records."""
        names = self.protocol.group_names
        overall, curves = self._survival("")
        for horizon in self.horizons:
            more, lines = self._at(horizon)
            overall |= more
            curves |= lines
        parts = []
        for group, name in enumerate(names):
            own = self.of(group)
            by_time, lines = own._survival(f", {name}")
            made = own.concordance()
            estimates = {CONCORDANCE: made.estimates()[0], **by_time}
            parts.append(Part(name, math.nan, math.nan, estimates, made.withheld))
            curves |= lines
        by = "group" if names else ""
        return Breakdown(by, tuple(parts), overall, tuple(self._apart()), curves)

    def _survival(self, named: str) -> tuple[dict[str, Estimate], dict[str, BandedCurve]]:
        """The survival curve with the numbers at risk, and it and its area at the horizons."""
        table, noise, ends = self.pooled[0], self.variances[0], self.grid.ends
        early, left_after = self.grid.spread(self.protocol.step, fine=True)
        widths = np.diff(ends, prepend=0.0)

        def listed(counts: Floats) -> Floats:
            alive = figures.survival(counts, early)
            before = np.append(1.0, alive[:-1])
            both, gone = before + alive, before - alive
            # what is left after events is lost, and what constant hazards take off
            lost = left_after * gone + 2 * early * gone**2 / (6 * both + LEAST)
            return np.concatenate([alive, np.cumsum(widths * (before - lost))])

        hidden = np.concatenate(figures.cell_errors(table, early, widths, noise)).tolist()
        known = [
            replace(each, approximation_error=error)
            for each, error in zip(figures.estimated(listed, [table], [noise]), hidden, strict=True)
        ]
        (left, error), clear = self.left, self.clear
        found = {}
        for horizon in self.horizons:
            place = int(np.searchsorted(ends, horizon))
            reason = TOO_LATE if place < ends.size else BEYOND
            given = mean = Estimate.absent(reason)
            if place < clear:
                given, mean = known[place :: ends.size]
                given, mean = given.within((0.0, 1.0)), mean.within((0.0, horizon))
            found[f"survival at {horizon:g}"] = given
            found[f"restricted mean survival time at {horizon:g}"] = mean
        if not clear:
            return found, {}
        places = np.append(0.0, ends[:clear])
        numbers = np.append(table.sum(), left[:clear])
        reach = REACH * np.append(math.sqrt(noise * table.size), error[:clear])
        band = np.maximum(numbers - reach, 0.0), numbers + reach
        first = Estimate(1.0, 0.0, 0.0)
        return found, {
            f"survival{named}": banded(
                TIME, "Survival", places, [first, *known[:clear]], (0.0, 1.0)
            ),
            f"numbers at risk{named}": BandedCurve(TIME, "Records at risk", places, numbers, *band),
        }

    def _at(self, horizon: float) -> tuple[dict[str, Estimate], dict[str, BandedCurve]]:
        """What risks tell of events by a horizon."""
        end = int(np.searchsorted(self.grid.edges, horizon))
        edges = np.linspace(*self.protocol.bounds, self.risks.shape[-1] + 1)
        if end > self.grid.cells:
            return {f"AUC at {horizon:g}": Estimate.absent(BEYOND)}, {}
        thresholds, middles = edges[1:-1], (edges[1:] + edges[:-1]) / 2
        early = self.grid.spread(self.protocol.step, fine=True)[0]

        def listed(times: Floats, risks: Floats) -> Floats:
            parts = figures.by_then(times, risks, end, early)
            happened, chosen = parts.sum(axis=-1)[0], np.cumsum(parts[:, :0:-1], axis=-1)[:, ::-1]
            apart = happened - (parts.sum(axis=0) * middles).sum()
            benefit = chosen[0] - chosen[1] * thresholds / (1 - thresholds)
            return np.array(
                [happened, figures.area(parts), figures.brier(parts, edges), apart, *benefit]
            )

        happened, area, *of_risks = figures.estimated(listed, self.pooled, self.variances)
        reason = "" if happened.value > CLEAR * happened.privacy_error else TOO_EARLY
        if self.clear < self.grid.split * end:
            reason = TOO_LATE
        if self._same_risk > MOST_SHARED:
            reason = SHARED
        by_risk = self.pooled[1].sum(axis=0) / self.pooled[1].sum()
        hidden = float(_worth_in_cells(area.value, self._same_risk))
        area = replace(area, approximation_error=hidden)
        given = {f"AUC at {horizon:g}": area.within((0.0, 1.0))}
        curves = dict[str, BandedCurve]()
        if self.protocol.bounds == tp.UNIT_INTERVAL:
            # about how far the risks of a cell lie from its middle, in the cell with most of them
            hidden = float(by_risk.max() * (edges[1] - edges[0]) / 2)
            of_risks = [replace(each, approximation_error=hidden) for each in of_risks]
            given[f"Brier score at {horizon:g}"] = of_risks[0].within((0.0, 1.0))
            given[f"observed less predicted at {horizon:g}"] = of_risks[1]
            curves[f"net benefit at {horizon:g}"] = banded(
                "Risk threshold", "Net benefit", thresholds, of_risks[2:]
            )
            curves |= self._calibration(horizon, end, middles)
        if reason:
            return {name: Estimate.absent(reason) for name in given}, {}
        return given, curves

    def _calibration(self, horizon: float, end: int, middles: Floats) -> dict[str, BandedCurve]:
        """Events by a horizon in groups of risks, by Kaplan-Meier, and those predicted."""
        groups = list[tuple[float, Estimate]]()
        early = self.grid.spread(self.protocol.step, False)[0]
        for cells in np.array_split(np.arange(middles.size), RISK_GROUPS):
            table = self.pooled[1][:, cells]
            left = np.concatenate([table[end : self.grid.cells], table[self.grid.cells + end :]])
            if left.sum() < max(AT_RISK * math.sqrt(self.variances[1] * left.size), 1.0):
                continue
            predicted = float((table * middles[cells]).sum() / table.sum())
            (alive,) = figures.estimated(
                lambda counts: figures.survival(counts.sum(axis=-1), early)[[end - 1]],
                [table],
                [self.variances[1]],
            )
            groups.append((predicted, replace(alive, value=1 - alive.value)))
        if len(groups) < 2:
            return {}
        groups.sort(key=lambda each: each[0])
        places, observed = np.array([each for each, _ in groups]), [each for _, each in groups]
        return {
            f"calibration at {horizon:g}": banded(
                "Predicted risk", "Observed risk", places, observed, (0.0, 1.0)
            )
        }

    def _apart(self) -> Iterator[Difference]:
        """The log hazard ratio of every other group to the first, by the log-rank test."""
        names, early = self.protocol.group_names, self.grid.spread(self.protocol.step, True)[0]
        happened = figures.life_table(self.times)[0]
        error = math.sqrt(self.of_times * happened.shape[-1])
        lacking = happened.sum(axis=-1) < max(AT_RISK * error, 1.0)
        for group, name in list(enumerate(names))[1:]:
            both = [0, group]
            (found,) = figures.estimated(
                lambda counts: figures.log_rank(counts, early), [self.times[both]], [self.of_times]
            )
            if lacking[both].any():
                found = Estimate.absent(NO_EVENTS)
            yield Difference(HAZARDS, name, names[0], found, HAZARDS)
