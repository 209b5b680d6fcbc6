"""UStatistic: means over pairs of records in the local model (Bell et al. 2020, Alg. 1; docs,
section 4a).

Every record reports one symbol by k-ary randomised response, and nothing else is sent. The server
estimates a U-statistic of degree 2 from the counts of the reports.

Predictions for UStatistic, whose records report randomised symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.data import units
from tacit.data.splitting import federation
from tacit.local import pair_kernels, turns
from tacit.local.ustatistic import kernels
from tacit.local.ustatistic.estimate import area_result, mean_result, symbol_counts
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.mechanisms.response import Bits
from tacit.privacy.symbols import SymbolResponse
from tacit.protocol import audits, devices, forecast
from tacit.protocol.declared import LOCAL, LOCAL_PAGE, NO_REPORTS, ReportDeclarations
from tacit.protocol.scaled import UNIT_OF
from tacit.results.curves.curve import UNIT

HIDDEN_UNEVEN = 2.0
"""Ratio of the variance that bins hide where records are uneven over them to where they are even;
measured on click scores."""

MIN_INFORMATIVE_BINS = 4
"""With fewer, halving them says little about the error that they leave."""

BYTE = 256
"""Up to so many symbols travel as one byte each."""

ONE_SYMBOL = tp.ThreatModel(
    LOCAL,
    "Exactly: each client's number of records. With noise: of every record in which bin it lies.",
    "Nothing.",
    "Numbers of records.",
    LOCAL_PAGE,
)


def planned_bins(records: int, epsilon: float, most: int) -> int:
    """The number of bins with the least planned variance of the AUC.

    Of n records, half of them positive and even over B bins, a report of one of ``k = 2 B`` symbols
    has the gain ``g = (e^epsilon - 1) / (k + e^epsilon - 1)``: influences that fall evenly from 1/2
    to -1/2 give ``1 / (3 n g^2)``, and products of two reports ``2 / (n g^2)^2``. What bins hide is
    ``1 / (12 B^3)`` with the fraction of a bin's pairs that positives win uniform on [0, 1], and
    ``HIDDEN_UNEVEN`` times it as records are not even.

    Examples
    --------
    >>> [planned_bins(records, 1.0, 100) for records in (1_000, 50_000)]
    [3, 8]
    """
    bins = np.arange(kernels.MIN_BINS, max(most, kernels.MIN_BINS) + 1, dtype=np.float64)
    inverse_gain = 1 + 2 * bins / math.expm1(epsilon)
    by_report = inverse_gain**2 / max(records, 1)
    variances = by_report / 3 + 2 * by_report**2 + HIDDEN_UNEVEN / (12 * bins**3)
    return int(bins[np.argmin(variances)])


@tp.step(cost=lambda clients, query, state: query.protocol.guarantee)
def random_symbols(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send one symbol a record, by k-ary randomised response (Bell et al. 2020, Alg. 1).

    A record's symbol is the cell of a public space in which its values lie (its class and score,
    for the AUC). Its report is that symbol with probability ``1 - beta + beta / k`` and any other
    with ``beta / k``, ``beta = k / (k + exp(epsilon) - 1)``: whatever the record was instead, a
    report is at most ``exp(epsilon)`` times as likely as under what it is. Reports are independent
    and a record has one, so replacing one record by any other costs epsilon. A client that holds
    several records sends its reports in ascending order, so that their positions reveal nothing.

    The server learns a randomised symbol of every record, and how many records a client holds.

    Raises
    ------
    DataError : naming client, row and value, for a value outside the public domain.
    """
    settings: UStatistic = query.protocol
    space = settings.space(query.broadcast["bins"])
    if space.symbols > kernels.MAX_SYMBOLS:
        raise ValueError(f"there may be {kernels.MAX_SYMBOLS} symbols at most, got {space.symbols}")
    response = SymbolResponse(space.symbols, settings.epsilon)
    reports = response.answers(space.of_records(clients), noise)
    if clients.count < clients.records:
        owner = clients.client_of_record * space.symbols
        reports = np.sort(reports + owner, axis=-1) - owner
    sent = np.uint8 if space.symbols <= BYTE else np.uint32
    return {"symbols": clients.ragged(reports.astype(sent))}


@dataclass(frozen=True)
class UStatistic(ReportDeclarations, tp.Protocol):
    """The mean of a symmetric kernel over all pairs of records, whose values are private.

    Parameters
    ----------
    kernel : ``Gini()`` (``|x - x'|``), ``Collision(values)`` (``1[x = x']``), ``Kendall()``
        (``sign(x - x') sign(z - z')``), ``Area()`` (the AUC of scores, with private classes), or
        their words; or ``Own(function, values)``. Each brings the public domain of its values
        (``ustatistic.kernels``): a ``Range(low, high, bins)``, from 0 to 1 by default; ``Listed``
        values; or a scale of scores, ``Scaled(scale, bins)``, for ``Kendall`` and ``Area``, which
        an increasing map of the values does not change. A range suits values that fill it: the few
        bins that a report allows are then all in use; a scale suits values that concentrate,
        or have no bounds.

        Where a domain leaves its bins open, they are those of least planned error for the AUC
        (``planned_bins``), else ``n^(1/4) sqrt(epsilon)`` (Bell et al. 2020, Cor. 1, with L = 1 on
        the unit range), for Kendall's tau the square root of it along each axis, and at least 2,
        with n the number of records, which clients then send in a round of its own.
    epsilon : the privacy budget of every record.

    Raises
    ------
    ValueError : for a setting outside its range, a kernel that is not symmetric, or a domain of
        more than ``MAX_SYMBOLS`` symbols; the message names the bound and the value.

    Examples
    --------
    >>> UStatistic("gini", 1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.REPLACE: 'replace'>, rho=None)
    >>> half_square = UStatistic(kernels.Own(lambda x, y: (x - y) ** 2 / 2, range(1, 6)), 1.0)
    >>> half_square.exact(tp.Clients.from_values([1, 2, 5, 4]))
    3.3333333333333335
    """

    kernel: (
        kernels.Gini | kernels.Collision | kernels.Kendall | kernels.Area | kernels.Own | str
    ) = tp.setting(
        help="the function of two records, with the public domain of its values in brackets"
    )
    epsilon: float = tp.setting(help=tp.EPSILON)

    name = "ustatistic"
    adjacency = tp.Adjacency.REPLACE
    planning_module = __name__
    planned = tuple(
        {"kernel": kernels.Area(kernels.Range(bins=bins))} for bins in (2, 4, 6, 8, 12, 16, 24, 32)
    )
    trusts: ClassVar[tuple[tp.Trust, ...]] = (tp.Trust.LOCAL, tp.Trust.EACH)
    given_up = "there is no curve, only the AUC"
    steps = (turns.count_records, random_symbols)
    trials_divisor = 8
    threats = staticmethod(lambda settings: ONE_SYMBOL)
    audit_settings = ({"kernel": "auc"}, {"kernel": "gini(domain=range(bins=4))"})
    law_settings: ClassVar[audits.Configurations] = {
        "local-auc": {"kernel": "auc(domain=range(bins=4))"},
        "local-gini": {"kernel": "gini(domain=range(bins=4))"},
    }
    law_traits = audits.LawTraits(
        inexact="symbols are debiased all the same", unmeasured_loss=NO_REPORTS
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "figure", self.function.pair.figure)
        symbols = self.space(kernels.MIN_BINS).symbols
        if not 2 <= symbols <= kernels.MAX_SYMBOLS:
            raise ValueError(
                f"a domain must have 2 to {kernels.MAX_SYMBOLS} symbols, got {symbols}"
            )

    @property
    def function(self) -> kernels.Kernel:
        """The kernel, with its domain."""
        return cast(kernels.Kernel, self.kernel)

    @property
    def axes(self) -> tuple[pair_kernels.Axis, ...]:
        """How the columns that the kernel reads are cut."""
        return self.function.axes

    @property
    def values_axis(self) -> pair_kernels.Axis:
        """How the values are cut."""
        return next(axis for axis in self.axes if axis.column == "values")

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The public range of the values; None on a scale of numbers without bounds."""
        return self.values_axis.ends if self.values_axis.bounded else None

    @property
    def unit(self) -> str:
        """The unit in which values are taken."""
        scale = self.values_axis.scale
        return units.REAL if scale == EVEN and self.score_range != UNIT else UNIT_OF[scale]

    def for_unit(self, unit: str) -> UStatistic:
        """The same with the scale of a unit, where the kernel does not depend on distances."""
        scaled = self.function if unit in (self.unit, units.PERCENT) else self.function.scaled(unit)
        return self if scaled == self.kernel else replace(self, kernel=cast(Any, scaled))

    def fitted(self, clients: tp.Clients) -> tp.Clients:
        """The clients with every value moved to the nearest one of its public domain."""
        for axis in self.axes:
            if axis.column == "values":
                clients = clients.rescored(axis.nearest, clients.unit)
            elif axis.column == "second values" and clients.second is not None:
                clients = replace(clients, second=axis.nearest(clients.second))
        return clients

    @property
    def needs_labels(self) -> bool:
        """Whether the kernel reads labels."""
        return "labels" in self.function.pair.columns

    @property
    def needs_second_values(self) -> bool:
        """Whether the kernel reads second values."""
        return "second values" in self.function.pair.columns

    def exact(self, clients: tp.Clients) -> float:
        """The exact figure of all clients' records, which is not private."""
        return self.function.pair.exact(clients, self.space(kernels.MIN_BINS))

    def replicate_size(self, clients: tp.Clients) -> int:
        """Reports with their random draws, and the pairs of symbols."""
        return 5 * clients.records + 4 * self.space(self.bins_for(clients.records)).symbols ** 2

    def bins_for(self, records: int) -> int:
        """Into how many bins ranges are cut where so many records report.

        Examples
        --------
        >>> UStatistic("gini", 1.0).bins_for(10_000), UStatistic("kendall", 1.0).bins_for(10_000)
        (10, 3)
        """
        open_axes = [axis for axis in self.axes if not axis.cells]
        if not open_axes:
            return min((axis.bins for axis in self.axes if axis.bins), default=kernels.MIN_BINS)
        public_cells = math.prod(axis.cells for axis in self.axes if axis.cells)
        max_bins = int((kernels.MAX_SYMBOLS / public_cells) ** (1 / len(open_axes)))
        if isinstance(self.kernel, kernels.Area):
            return planned_bins(records, self.epsilon, max_bins)
        coordinates = sum(axis.column != "labels" for axis in self.axes)
        suited = (records**0.25 * math.sqrt(self.epsilon)) ** (1 / coordinates)
        return min(max(round(suited), kernels.MIN_BINS), max_bins)

    def space(self, bins: int) -> pair_kernels.SymbolSpace:
        """The symbols, where what the kernel leaves open is cut into so many bins."""
        return pair_kernels.SymbolSpace(
            tuple(axis if axis.cells else replace(axis, bins=bins) for axis in self.axes)
        )

    def device_reports(self, devices: int) -> devices.DeviceReports:
        """One symbol a device."""
        return SymbolDevices(self)

    def conversation(self, clients: int) -> tp.Conversation:
        """Randomised symbols up; before them numbers of records, where bins are to suit them."""
        reporting = clients
        if not all(axis.cells for axis in self.axes):
            reporting = yield from turns.reporting_records(self, clients)
        bins = self.bins_for(reporting)
        reply = yield tp.Query(random_symbols, self, broadcast={"bins": bins})
        counts = symbol_counts(reply, self.space(bins).symbols)
        result = self.result_of(counts, bins)
        return result if counts.ndim > 1 else self._warned(result, bins)

    def result_of(self, counts: NDArray[Any], bins: int) -> tp.ServerResult:
        """The estimate from how often every symbol was reported, shape (..., k)."""
        space = self.space(bins)
        response = SymbolResponse(space.symbols, self.epsilon)
        tables = self.tables(space)
        if isinstance(self.kernel, kernels.Area):
            return area_result(tables, pair_kernels.opposite_classes(space), response, counts)
        records = round(float(counts.sum(axis=-1).flat[0]))
        return mean_result(tables, response, counts, self.function.pair.limits(space, records))

    def tables(self, space: pair_kernels.SymbolSpace) -> pair_kernels.PairTables:
        """The kernel's values for every pair of symbols."""
        return pair_kernels.PairTables.of(self.function.pair, space)

    def _warned(self, result: tp.ServerResult, bins: int) -> tp.ServerResult:
        """The result of a single run, with a warning about few bins."""
        cuts = [axis.bins for axis in self.space(bins).axes if not axis.grid]
        if not cuts or min(cuts) >= MIN_INFORMATIVE_BINS:
            return result
        warning = (
            f"fewer than {MIN_INFORMATIVE_BINS} bins do not tell how values lie inside them, "
            f"got bins={min(cuts)}: the approximation error is a guess"
        )
        return replace(result, warnings=(*result.warnings, warning))

    def audit_federation(self, records: int, apart: bool) -> tp.Clients:
        """Records spread over the public range, or over the public values."""
        axis = self.values_axis
        return federation(records, apart, *axis.ends, axis.grid or None)


ROUNDING_SLACK = 1 + 1e-12
"""Factor on expected counts: their sum is not below a whole number after rounding."""


def symbols_forecast(
    protocol: UStatistic, scenario: tp.Scenario, shape: tp.Shape
) -> forecast.Forecast:
    """The variance of the AUC as a quotient of U-statistics of randomised symbols (section 4a).

    With S the covariance of the debiased counts h and A the kernel of the quotient, ``4 h' A S A h
    + 2 tr(A S A S)`` over ``(n (n - 1))^2``, at the expected counts.

    Raises
    ------
    ValueError : for another kernel than the AUC's.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 40_000, 3.0)
    >>> symbols = UStatistic(kernels.Area(kernels.Range(bins=8)), 3.0)
    >>> forecast = symbols_forecast(symbols, scenario, tp.Shape(0.8))
    >>> round(forecast.standard_error, 3)
    0.014
    """
    if not isinstance(protocol.kernel, kernels.Area):
        raise ValueError(f"plans are for the kernel 'auc', got {str(protocol.kernel)!r}")
    space = protocol.space(protocol.bins_for(round(scenario.records)))
    response = SymbolResponse(space.symbols, protocol.epsilon)
    positives, negatives = scenario.counts(shape, space.symbols // 2, protocol.values_axis.scale)
    expected = np.concatenate([negatives, positives])
    replaced = response.replace_probability * scenario.records / response.symbols
    counts = (response.keep_probability * expected + replaced) * ROUNDING_SLACK
    tables, opposite = _tables(space.symbols // 2)
    result = area_result(tables, opposite, response, counts)
    # the mean of the kernel of opposite classes over pairs of records
    mixed = float(expected @ opposite @ expected / (expected.sum() * (expected.sum() - 1)))
    kernel = (tables.means - float(result.value) * opposite) / mixed
    diagonal, shared = response.covariance(counts)
    covariance = np.diag(diagonal) - shared[:, np.newaxis] - shared
    applied = kernel @ covariance
    pairs = scenario.records * (scenario.records - 1.0)
    gradient = kernel @ expected
    variance = 4 * gradient @ covariance @ gradient + 2 * float(np.sum(applied * applied.T))
    smaller = min(scenario.positives, scenario.negatives)
    return forecast.Forecast(
        math.sqrt(max(variance, 0.0) / pairs**2 + forecast.placement((positives, negatives))),
        float(result.value) - shape.auc,
        smaller,
        float(result.positives_error),
    )


@lru_cache(maxsize=64)
def _tables(bins: int) -> tuple[pair_kernels.PairTables, Floats]:
    """The kernel's values for pairs of symbols, and which pairs are of both classes."""
    space = UStatistic("auc", 1.0).space(bins)
    return pair_kernels.PairTables.of(kernels.Area().pair, space), pair_kernels.opposite_classes(
        space
    )


PLANNING = forecast.Planning.of_figure(None, symbols_forecast)


STEP = 1e-3
"""The fraction of reports that is replaced to find how the estimate changes."""

MAX_TRIED = 512
"""Largest number of symbols that are tried, evenly spread among all."""


class SymbolDevices(devices.NumberReports, devices.ReportsByInput):
    """One symbol a device.

    Parameters
    ----------
    protocol : a ``UStatistic``.
    """

    number_bytes = 2
    field = "symbols"

    def instructions(self, query: tp.Query) -> devices.Instructions:
        """The axes of the space, and how many of ``2**64`` words replace a symbol, or keep it."""
        space = self._protocol.space(query.broadcast["bins"])
        replaced = Bits(self._response(query).replaced_chance)
        return {
            "kind": "symbol",
            "axes": [asdict(axis) | {"grid": list(axis.grid)} for axis in space.axes],
            "other_words": str(replaced.threshold),
            "others_rarer": replaced.probability <= 0.5,
        }

    def numbers(self, query: tp.Query) -> int:
        """The symbols; there are 4096 at most."""
        return self._response(query).symbols

    def input_counts(
        self, query: tp.Query, clients: tp.Clients, rng: np.random.Generator
    ) -> Integers:
        """How many records have each symbol."""
        space = self._protocol.space(query.broadcast["bins"])
        return np.bincount(space.of_records(clients), minlength=space.symbols)

    def simulated_counts(
        self, query: tp.Query, held: Integers, rng: np.random.Generator
    ) -> Integers:
        """By ``SymbolResponse``."""
        return self._response(query).simulated_counts(held, rng)

    def influences(self, query: tp.Query, counts: Sequence[Integers]) -> Floats:
        """By how the estimate changes where a thousandth of the reports are one symbol."""
        symbols = self.numbers(query)
        came = counts[0].astype(np.float64)
        tried = np.unique(np.linspace(0, symbols - 1, min(symbols, MAX_TRIED)).astype(np.int64))
        replaced = np.tile((1 - STEP) * came, (tried.size + 1, 1))
        replaced[-1] = came
        replaced[np.arange(tried.size), tried] += STEP * came.sum()
        values = self._protocol.result_of(replaced, query.broadcast["bins"]).value
        return np.nan_to_num(values[:-1] - values[-1]) / STEP

    def _response(self, query: tp.Query) -> SymbolResponse:
        space = self._protocol.space(query.broadcast["bins"])
        return SymbolResponse(space.symbols, self._protocol.epsilon)
