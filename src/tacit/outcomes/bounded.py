"""The mean of a bounded value of every record, with its quantiles, by two rounds of noisy sums.

The first round counts values in a few equal cells of the bounds. It tells the number of records,
the distribution with its quantiles, and about where the mean lies: the origin o. The second asks
for one number a group, the sum of all values less o, so that the figure is ``o + S / N``.

Why this is accurate. Let u be a value scaled to [-1, 1], m its mean over n records. A record moves
S by at most ``1 + |o|``; with the part ``b`` of epsilon its noise adds ``sqrt(2) (1 + |o|) / (b
epsilon n)`` to m. The error dN of the count adds ``(m - o) dN / n``, a product of two errors of the
first round, each of which falls as ``1 / (epsilon n)``: with a fixed origin it would be ``(m - o)``
times an error of the first order, and more than the noise of S for most means. In the value's units
the error is then ``sqrt(2) (high - low) (1 + |o|) / (2 b epsilon n)`` besides that product. With
1,000 values in [0, 1], a mean of 0.5 and epsilon 1 the parts below give 8.8e-4.

That product has a mean, too. With B cells of variance v, ``o - m`` is ``sum (u_k - m) d_k / n`` of
the counts' errors ``d_k``, and dN is their sum, so that o N is ``-m B v / n`` too small on average
and the quotient ``-m B v / n^2``; with groups, by the same expansion, the sum over g of ``o_g /
(N_g N) + (o_g - m) / N^2`` times ``B v``. This is added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.data.categories import check_names
from tacit.outcomes import clipping, value_reports
from tacit.protocol import declared, releases
from tacit.protocols.shared import counting
from tacit.results.estimate import REACH, Estimate, Interval
from tacit.results.parts import BandedCurve, Breakdown, Part, SiteFigure, Sites
from tacit.results.server_result import ServerResult

CELLS, COUNTED = 10, 0.16
"""Cells, and the fraction of epsilon that counts in them. For n = 1,000, epsilon 1 and a mean in
the middle these have about the least error of all cells and fractions; it changes little."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""The quantiles that are given."""

MEAN, ORIGIN = "mean", "origin"


def _cells(query: tp.Query) -> dict[str, releases.Released]:
    """The counts of each group's cells."""
    protocol: BoundedMean = query.protocol
    return {"cells": protocol.released[0]}


def _sums(query: tp.Query) -> dict[str, releases.Released]:
    """One sum a group, if the origins are such."""
    protocol: BoundedMean = query.protocol
    origins: Any = query.broadcast.get(ORIGIN)
    groups = protocol.shape[:1]
    known = isinstance(origins, np.ndarray) and origins.dtype == np.float64
    if not known or origins.shape[-1:] != groups or not np.all(np.abs(origins) <= 1):
        raise ValueError(f"origins must be {groups[0]} 64-bit floats from -1 to 1 for each run")
    return {"sums": protocol.released[1]}


@releases.release(_cells)
def count_values(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send how many values of each group lie in each cell of the bounds, with noise.

    A record counts in one cell of one group: adding or removing it changes one count by 1.

    The server learns the noisy counts over all clients, and how many clients answered.
    """
    protocol: BoundedMean = query.protocol
    counts = clients.added(partial(_counts, protocol))
    return {"cells": releases.by_view(query, counts)}


@releases.release(_sums)
def sum_values(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send each group's sum of scaled values less its origin, with noise.

    The query names the origins, o from -1 to 1. A scaled value u lies in [-1, 1] whatever the
    record is, so a record moves the sum of ``u - o`` of its group by at most ``1 + |o|``, and no
    other. The client rounds each sum once to units of ``(1 + |o|) / R``, R whole, after which a
    record moves it by at most R (``influence.whole_units``); noise of scale ``R / epsilon_2``
    hides that. The costs of both steps add up to epsilon.

    The server learns the noisy sums over all clients, and how many clients answered.

    Raises
    ------
    DataError : for a client with too many records (``clipping.check_sizes``).
    """
    protocol: BoundedMean = query.protocol
    clipping.check_sizes(clients, protocol.one, query)
    field = _sums(query)["sums"]
    origins = protocol.whole(query.broadcast[ORIGIN])[..., np.newaxis]
    totals, records = clients.added(partial(_totals, protocol))
    moved = clipping.units_of(
        totals - origins * records, protocol.one + np.abs(origins), field, query
    )
    return {"sums": moved}


def _counts(protocol: BoundedMean, clients: tp.Clients) -> Integers:
    """Each client's counts, shape (G, cells, K)."""
    cells = protocol.cells
    cell = (protocol.values(clients) + 1) * (cells / 2)
    group = clipping.group_of(clients, protocol.group_names)
    place = group * cells + np.minimum(cell.astype(np.int64), cells - 1)
    return clipping.in_cells(place, protocol.shape, clients)


def _totals(protocol: BoundedMean, clients: tp.Clients) -> Integers:
    """Each client's sums and numbers of records by group, shape (2, G, K)."""
    group = clipping.group_of(clients, protocol.group_names)
    inside = group == np.arange(protocol.shape[0])[:, np.newaxis]
    whole = protocol.whole(protocol.values(clients))
    return np.stack([clipping.by_client(inside * each, clients) for each in (whole, np.int64(1))])


REPORTED = tp.ThreatModel(
    declared.LOCAL,
    "Exactly: each client's number of records. With noise: of every record about where its value "
    "lies in the bounds.",
    "Nothing.",
    "Numbers of records.",
    declared.LOCAL_PAGE,
)


class Means(NamedTuple):
    """Means of scaled values with what else the sums tell of them, shape (...) each.

    Parameters
    ----------
    value, privacy, sampling : the mean and its errors.
    laplace : the error by one number's noise.
    records, records_error : how many there are.
    """

    value: Floats
    privacy: Floats
    sampling: Floats
    laplace: Floats
    records: Floats
    records_error: Floats

    @classmethod
    def of(cls, cells: Floats, sums: Floats, origins: Floats, noise: Noise) -> Means:
        """The mean over all groups: ``(sum of o_g N_g + S_g) / N``, with its errors by gradient.

        Its derivative by ``N_g`` is ``(o_g - m) / N``, and by ``S_g`` it is ``1 / N``.

        Parameters
        ----------
        cells : shape (..., G, B).
        sums, origins : shape (..., G).
        noise : of these.
        """
        by_group = cells.sum(axis=-1)
        records = by_group.sum(axis=-1)
        error = np.full(records.shape, math.sqrt(noise.cells * math.prod(cells.shape[-2:])))
        few = clipping.too_few(records, error)
        whole = np.where(few, np.nan, records)
        value = (origins * by_group + sums).sum(axis=-1) / whole
        # origins and counts come from the same noise: what that adds to the mean on average
        shared = origins / np.maximum(by_group, error[..., np.newaxis])
        shared = shared + (origins - value[..., np.newaxis]) / whole[..., np.newaxis]
        value = value + noise.cells * cells.shape[-1] * shared.sum(axis=-1) / whole
        laplace = np.sqrt(np.sum(noise.sums(origins), axis=-1)) / whole
        moved = np.square(origins - value[..., np.newaxis]).sum(axis=-1)
        counted = np.sqrt(noise.cells * cells.shape[-1] * moved) / whole
        # wins and marks are at the bounds, where middles would take them for less apart
        places = np.concatenate([[-1.0], middles(cells.shape[-1])[1:-1], [1.0]])
        apart = np.square(places - value[..., np.newaxis, np.newaxis])
        spread = (cells * apart).sum(axis=(-2, -1)) / whole
        sampling = np.sqrt(np.where(spread > 0, spread, np.nan) / whole)
        return cls(value, np.hypot(laplace, counted), sampling, laplace, records, error)


class Noise(NamedTuple):
    """The variances of what was received.

    Parameters
    ----------
    cells : of a count.
    units : of a sum, for an origin of 0.
    """

    cells: float
    units: float

    def sums(self, origins: Floats) -> Floats:
        """Of sums with these origins."""
        return np.asarray(self.units * (1 + np.abs(origins)) ** 2)


class Received(NamedTuple):
    """The noisy counts, shape (..., G, B), and scaled sums, shape (..., G)."""

    cells: Floats
    sums: Floats

    def of(self, group: int) -> Received:
        """Those of one group."""
        return Received(self.cells[..., [group], :], self.sums[..., [group]])


class Distribution(NamedTuple):
    """The parts of the records below edges of cells, with their errors, shape (B + 1,) each."""

    edges: Floats
    part: Floats
    privacy: Floats
    sampling: Floats

    @property
    def curve(self) -> BandedCurve:
        """The distribution function."""
        reach = REACH * np.hypot(self.privacy, self.sampling)
        low, high = (np.clip(self.part + sign * reach, 0.0, 1.0) for sign in (-1, 1))
        return BandedCurve("Value", "Part of the records below", self.edges, self.part, low, high)


def middles(cells: int) -> Floats:
    """The middles of equal cells of [-1, 1]."""
    return (2 * np.arange(cells) + 1.0) / cells - 1


def origins_of(cells: Floats, variance: float) -> Floats:
    """Each group's mean as its noisy counts have it, shape (..., G); 0 where these say little."""
    records = cells.sum(axis=-1)
    few = clipping.too_few(records, np.sqrt(variance * cells.shape[-1]))
    means = (cells * middles(cells.shape[-1])).sum(axis=-1) / np.where(few, 1.0, records)
    return np.where(few, 0.0, np.clip(means, -1.0, 1.0))


@dataclass(frozen=True)
class BoundedMean(clipping.BoundedValues):
    """The mean of a value of every record in public bounds, with quantiles and the distribution.

    Such values are NDCG, Dice, wins, marks of a rubric or absolute errors.

    Parameters
    ----------
    bounds, epsilon, trust : as ``BoundedValues`` has them.
    difference : whether it is about the value less the second value of each record, as of two
        models on the same records.
    group_names : the agreed names of private groups; empty for none.
    cells : in how many equal cells values are counted.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> import tacit
    >>> values = tacit.Clients.from_values(np.linspace(0.2, 0.8, 5000))
    >>> result = tacit.evaluate(values, BoundedMean(bounds=(0, 1), epsilon=1.0), seed=0)
    >>> round(result.estimate.value, 2)
    0.5
    """

    difference: bool = tp.setting(
        default=False, help="the value less the second value of each record"
    )
    group_names: tuple[str, ...] = tp.setting(default=(), help="the agreed names of private groups")
    cells: int = tp.setting(default=CELLS, help="cells in which values are counted")

    name = "bounded-mean"
    figure = tp.Figure(MEAN)
    trusts = (tp.Trust.SECURE_SUM, tp.Trust.EACH, tp.Trust.EXACT_SUM, tp.Trust.LOCAL)
    record_columns: ClassVar[Mapping[str, str]] = {"value": "score"}
    replicated_fields = (ORIGIN,)
    categories_setting = "group_names"
    law_settings = clipping.law_settings("bounded", 200.0, bounds=(0.0, 1.0)) | {
        "bounded-local": {"bounds": (0.0, 1.0), "trust": tp.Local.word}
    }
    audit_settings = (
        {"bounds": (0.0, 1.0), "cells": 2},
        {"bounds": (0.0, 1.0), "cells": 2, "trust": tp.Each.word},
        {"bounds": (0.0, 1.0), "trust": tp.Local.word},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_names:
            check_names("group_names", self.group_names, least=1)
        if not 2 <= self.cells <= 1 << 12:
            raise ValueError(f"cells must be from 2 to {1 << 12}, got {self.cells}")
        if self.lone_records and self.group_names:
            raise ValueError(f"private groups need sums, got trust {self.trust}")

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """Counts and a sum, or reports of single records."""
        return (value_reports.report_values,) if self.lone_records else (count_values, sum_values)

    @property
    def lone_records(self) -> bool:
        """Whether records send reports of their own."""
        return isinstance(self.trust, tp.Local)

    @property
    def guarantee(self) -> tp.Cost:
        """What one evaluation costs a record; that it reports is not hidden."""
        whole = super().guarantee
        return replace(whole, adjacency=tp.Adjacency.REPLACE) if self.lone_records else whole

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> tp.AuditCase:
        """Clients of one record where records send reports of their own."""
        local = tp.Trust.of(str(settings.get("trust", tp.SecureSum.word))) is tp.Trust.LOCAL
        return tp.AuditCase(cls.name, settings, cls.audit_records, apart=local, tight=False)

    @property
    def law_traits(self) -> tp.LawTraits:
        """Sums are rounded once to units."""
        if not self.lone_records:
            return tp.LawTraits(tolerance=1e-6)
        return tp.LawTraits(
            inexact="reports are debiased all the same", unmeasured_loss=declared.NO_REPORTS
        )

    @property
    def needs_second_values(self) -> bool:
        """Of a difference."""
        return self.difference

    @property
    def shape(self) -> tuple[int, int]:
        """Of the counts: groups and cells."""
        return max(len(self.group_names), 1), self.cells

    @property
    def released(self) -> tuple[releases.Released, releases.Released]:
        """The counts, and the sums."""
        counts = releases.Released(self.shape, epsilon=COUNTED * self.budget)
        return counts, self.sum_field(self.shape[:1], (1 - COUNTED) * self.budget)

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest mean."""
        return (-2 * self.half, 2 * self.half) if self.difference else self.bounds

    def values(self, clients: tp.Clients) -> Floats:
        """Every record's scaled value, from -1 to 1, shape (M,)."""
        scaled = self.scaled(clients.scores)
        if not self.difference:
            return scaled
        if clients.second is None:
            raise tp.DataError("a difference needs a second value of every record")
        return (scaled - self.scaled(clients.second)) / 2

    def on_scale(self, scaled: Floats) -> Floats:
        """Scaled values in the figure's own units."""
        low, high = self.limits
        return np.asarray(low + (high - low) * (scaled + 1) / 2)

    def exact(self, clients: tp.Clients) -> float:
        """The exact mean of the clipped values, which is not private."""
        return float(self.on_scale(self.values(clients).mean(keepdims=True))[0])

    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        """The error by noise of values of this shape in the bounds, with the module's product."""
        shares = clipping.expected_shares(scenario, shape)
        width = (self.limits[1] - self.limits[0]) / 2
        if self.lone_records:
            return tp.Forecast(
                2 * width * value_reports.stated_error(self, shares, scenario.records)
            )
        mean = np.array([float(shares @ middles(shares.size))])
        noises = float(releases.noises_of(self.trust, scenario.clients, scenario.clients))
        cells, sums = self.released
        unit = float(np.max(clipping.unit_of(sums, 1.0, self.one)))
        noise = Noise(cells.variance(noises), sums.variance(noises) * unit**2)
        cell = np.arange(shares.size) * self.cells // shares.size
        counts = scenario.records * np.bincount(cell, shares, self.cells).astype(np.float64)
        known = Means.of(counts[np.newaxis], np.zeros(1), mean, noise)
        by_origin = noise.cells * np.sum((middles(self.cells) - mean) ** 2)
        product = math.sqrt(by_origin) * float(known.records_error) / scenario.records**2
        return clipping.forecast_of(width * math.hypot(float(known.privacy), product))

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> tp.ThreatModel:
        """Who sees what."""
        if tp.Trust.of(str(settings.get("trust", tp.SecureSum.word))) is tp.Trust.LOCAL:
            return REPORTED
        counted = "how many values lie in each cell of the bounds, and the sum of all values"
        published = "About where the mean of all values lies, as noisy counts tell."
        return clipping.summed_model(settings, counted, published)

    def conversation(self, clients: int) -> tp.Conversation:
        """Counts up, origins down, sums up; or reports up."""
        if self.lone_records:
            return (yield from value_reports.mean_of_reports(self, clients))
        counts = yield from tp.ask(count_values, self, clients)
        rough = origins_of(counts["cells"], counts.variance("cells"))
        origins = self.whole(rough) / self.one
        numbers = yield from tp.ask(sum_values, self, clients, {ORIGIN: origins})
        counting.check_the_same_number(counts.answered, numbers.answered)
        protection = releases.total_protection((counts, numbers))
        made, noise = self._received(counts, numbers, origins)
        result = self._concluded(made, noise, origins, numbers)
        sites = self._sites(counts, numbers, origins) if not result.value.ndim else None
        return replace(result, protection=protection, sites=sites)

    def _received(
        self, counts: releases.Sums, numbers: releases.Sums, origins: Floats
    ) -> tuple[Received, Noise]:
        """What came, scaled, with its noise."""
        cells, sums = self.shape[1], numbers.fields["sums"]
        by_group = counts["cells"].reshape(*counts["cells"].shape[:-2], -1, cells)
        unit = clipping.unit_of(sums, 1 + np.abs(origins), self.one)
        at_zero = float(np.max(clipping.unit_of(sums, 1.0, self.one)))
        noise = Noise(counts.variance("cells"), numbers.variance("sums") * at_zero**2)
        return Received(by_group, numbers["sums"] * unit), noise

    def _concluded(
        self, made: Received, noise: Noise, origins: Floats, numbers: releases.Sums
    ) -> ServerResult:
        """The mean, and in a single run what else follows."""
        one_draw = origins.shape[-1] == 1 and numbers.noises <= 1
        result = self._result(Means.of(made.cells, made.sums, origins, noise), one_draw)
        if result.value.ndim or result.withheld:
            return result
        return replace(result, breakdown=self._breakdown(made, noise, origins))

    def _result(self, means: Means, one_draw: bool = False) -> ServerResult:
        """Means in the figure's own units, or why there is no single one.

        Parameters
        ----------
        means : of scaled values.
        one_draw : whether one draw of noise is in their sum.
        """
        width, few = (self.limits[1] - self.limits[0]) / 2, ""
        if not means.value.ndim and math.isnan(means.value):
            few = clipping.few_records(float(means.records), float(means.records_error))
        return ServerResult(
            self.on_scale(means.value),
            width * means.privacy,
            width * means.sampling,
            limits=self.limits,
            withheld=few,
            laplace_error=width * means.laplace if one_draw else 0.0,
        )

    def _sites(
        self, counts: releases.Sums, numbers: releases.Sums, origins: Floats
    ) -> Sites | None:
        """The mean of every client that released its own numbers."""
        if not isinstance(self.trust, tp.Each):
            return None
        made, noise = self._received(counts.by_client(), numbers.by_client(), origins)
        each = self._result(Means.of(made.cells, made.sums, origins, noise)).estimates()
        return Sites(lambda: (SiteFigure.of(MEAN, "as it is", each),))

    def _breakdown(self, made: Received, noise: Noise, origins: Floats) -> Breakdown:
        """Quantiles of all records, and every group's mean with their differences."""
        known = self._distribution(made, noise)
        overall = {
            "median" if share == 0.5 else f"quantile {share:g}": self._quantile(known, share)
            for share in QUANTILES
        }
        parts = tuple(
            self._part(name, made.of(group), noise, origins[[group]])
            for group, name in enumerate(self.group_names)
        )
        apart = (self.limits[0] - self.limits[1], self.limits[1] - self.limits[0])
        curves = {"distribution": known.curve}
        whole = Breakdown("group" if parts else "", parts, overall, curves=curves)
        return whole.with_differences({MEAN: ""}, apart)

    def _part(self, name: str, made: Received, noise: Noise, origins: Floats) -> Part:
        """One group's mean; none where too few records are in it."""
        result = self._result(Means.of(made.cells, made.sums, origins, noise))
        figures = {} if result.withheld else {MEAN: result.estimate()}
        return Part(name, math.nan, math.nan, figures, result.withheld)

    def _quantile(self, known: Distribution, share: float) -> Estimate:
        """The value below which this part of the records lies, with intervals by inversion.

        Edges at which the distribution function is within 1.96 of its errors of the share are the
        interval. Where in a cell values lie is not known, so an interval ends at edges.
        """
        edges, last = known.edges, known.edges.size - 1
        around = [
            Interval(
                float(edges[max(int(np.sum(known.part + REACH * error < share)) - 1, 0)]),
                float(edges[min(last + 1 - int(np.sum(known.part - REACH * error > share)), last)]),
            )
            for error in (known.privacy, np.hypot(known.privacy, known.sampling))
        ]
        halves = [(each.high - each.low) / (2 * REACH) for each in around]
        hidden = float(edges[1] - edges[0]) / math.sqrt(12)
        return Estimate(
            float(np.interp(share, known.part, edges)),
            math.sqrt(max(halves[0] ** 2 - hidden**2, 0.0)),
            math.sqrt(max(halves[1] ** 2 - halves[0] ** 2, 0.0)),
            hidden,
            limits=self.limits,
            intervals=(around[0], around[1]),
        )

    def _distribution(self, made: Received, noise: Noise) -> Distribution:
        """The part F of the records below each edge of cells, with the errors of that quotient.

        Its derivative by the count of a cell below the edge is ``(1 - F) / N``, of others -F / N.
        """
        counts = made.cells.sum(axis=-2)
        cells, records = counts.size, float(counts.sum())
        below = np.maximum.accumulate(np.append(0.0, np.cumsum(counts))).clip(0.0, records)
        part, above = below / records, np.arange(cells + 1)
        by_noise = above * (1 - part) ** 2 + (cells - above) * part**2
        return Distribution(
            self.on_scale(2 * above / cells - 1.0),
            part,
            np.sqrt(noise.cells * made.cells.shape[-2] * by_noise) / records,
            np.sqrt(part * (1 - part) / records),
        )
