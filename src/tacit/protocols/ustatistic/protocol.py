"""UStatistic: means over pairs of records in the local model (Bell et al. 2020, Alg. 1; docs,
section 4a).

Every record reports one symbol by k-ary randomised response, and nothing else is sent. The server
estimates a U-statistic of degree 2 from the counts of the reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.clients import Clients
from tacit.data.scaling.units import PERCENT, REAL
from tacit.metrics.cells.score_scale import EVEN, SCALES
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.privacy.local.symbols import SymbolResponse
from tacit.protocol.conversation import Conversation, Protocol, Query
from tacit.protocol.devices import DeviceReports
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import UNIT_OF
from tacit.protocols.shared.reports.numbers import count_records, reporting_records
from tacit.protocols.shared.reports.pair_kernels import (
    KERNELS,
    PairKernel,
    PairTables,
    opposite_classes,
    user_kernel,
)
from tacit.protocols.shared.reports.symbols import Axis, Column, SymbolSpace
from tacit.protocols.ustatistic.declared import UStatisticDeclarations
from tacit.protocols.ustatistic.domain import (
    UNIT,
    finite_domain,
    second_uncut_axis,
    uncut_axis,
)
from tacit.protocols.ustatistic.estimate import area_result, mean_result
from tacit.protocols.ustatistic.steps import MAX_SYMBOLS, random_symbols, symbol_counts
from tacit.results.server_result import ServerResult

MIN_BINS = 2

HIDDEN_UNEVEN = 2.0
"""Ratio of the variance that bins hide where records are uneven over them to where they are even;
measured on click scores."""

MIN_INFORMATIVE_BINS = 4
"""With fewer, halving them says little about the error that they leave."""


def _axis_of(column: Column, protocol: UStatistic) -> Axis | None:
    """How a column is cut; None where the kernel does not read it."""
    return next((axis for axis in protocol.axes if axis.column == column), None)


def _has_range(column: Column, protocol: UStatistic) -> bool:
    axis = _axis_of(column, protocol)
    return axis is not None and not axis.grid and axis.scale == EVEN


def _takes_scale(protocol: UStatistic) -> bool:
    return protocol.pair_kernel.ordinal and protocol.values is None and protocol.domain == UNIT


def _has_grid(column: Column, protocol: UStatistic) -> bool:
    axis = _axis_of(column, protocol)
    return axis is not None and bool(axis.grid)


def _ends(column: Column, protocol: UStatistic) -> list[float]:
    """A column's public values, or the ends of its range."""
    axis = _axis_of(column, protocol)
    return [] if axis is None else list(axis.grid or (axis.low, axis.high))


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
    bins = np.arange(MIN_BINS, max(most, MIN_BINS) + 1, dtype=np.float64)
    inverse_gain = 1 + 2 * bins / math.expm1(epsilon)
    by_report = inverse_gain**2 / max(records, 1)
    variances = by_report / 3 + 2 * by_report**2 + HIDDEN_UNEVEN / (12 * bins**3)
    return int(bins[np.argmin(variances)])


@dataclass(frozen=True)
class UStatistic(UStatisticDeclarations, Protocol):
    """The mean of a symmetric kernel over all pairs of records, whose values are private.

    Parameters
    ----------
    kernel : ``"gini"`` (``|x - x'|``), ``"collision"`` (``1[x = x']``), ``"kendall"``
        (``sign(x - x') sign(z - z')`` with the records' second values z; ties count 0) or ``"auc"``
        (of scores, with private classes). Or another symmetric kernel on ``values``: a
        vectorised function of two arrays, or the matrix of its values.
    epsilon : the privacy budget of every record.
    bins : into how many equal bins a range is cut. By default those of the least planned error for
        the AUC (``planned_bins``), else ``n^(1/4) sqrt(epsilon)`` (Bell et al. 2020, Cor. 1, with
        L = 1 on the unit range), for Kendall's tau the square root of it along each axis, and at
        least 2, with n the number of records, which clients then send in a round of its own.
    domain : the public range of the values.
    values : the public values, ascending, where they are finite in number; nothing is
        then cut. ``"collision"`` and other kernels need them.
    second_domain, second_values : the same for second values; by default as for the first.
    scale : the map of values to positions that bins cut (``metrics.score_scale``), for the kernels
        ``"auc"`` and ``"kendall"``, which an increasing map does not change. ``"even"``, the
        default, cuts the values: the few bins that a report allows are then all in use where values
        fill their range. ``"probability"``, ``"log-odds"`` and ``"real"`` suit values that crowd,
        or have no bounds.

    Raises
    ------
    ValueError : for a setting outside its range, a kernel that is not symmetric, or a domain of
        more than ``MAX_SYMBOLS`` symbols; the message names the bound and the value.

    Examples
    --------
    >>> UStatistic("gini", 1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.REPLACE: 'replace'>, rho=None)
    >>> half_square = UStatistic(lambda x, y: (x - y) ** 2 / 2, 1.0, values=range(1, 6))
    >>> half_square.exact(Clients.from_values([1, 2, 5, 4]))
    3.3333333333333335
    """

    kernel: str | Callable[[Any, Any], Any] | ArrayLike | PairKernel = setting(
        choices=tuple(KERNELS),
        help="the function of two records",
        shown=lambda protocol: protocol.pair_kernel.called,
        objects="a function or a matrix",
    )
    epsilon: float = setting(help=EPSILON)
    bins: int | None = setting(
        default=None,
        help="into how many bins values are cut",
        used=lambda protocol: protocol.ranges > 0,
    )
    domain: tuple[float, float] = setting(
        default=UNIT,
        help="the public range of values, 0 1 by default",
        used=partial(_has_range, "values"),
        shown=partial(_ends, "values"),
    )
    values: Sequence[float] | NDArray[Any] | None = setting(
        default=None,
        help="the public values themselves, where they are few",
        used=partial(_has_grid, "values"),
        shown=partial(_ends, "values"),
    )
    second_domain: tuple[float, float] | None = setting(
        default=None,
        help="of --second",
        used=partial(_has_range, "second values"),
        shown=partial(_ends, "second values"),
    )
    second_values: Sequence[float] | NDArray[Any] | None = setting(
        default=None,
        help="of --second",
        used=partial(_has_grid, "second values"),
        shown=partial(_ends, "second values"),
    )

    scale: str = setting(
        default=EVEN,
        choices=SCALES,
        used=_takes_scale,
        help="where bins of auc and kendall lie; even by default",
    )

    name = "ustatistic"
    planning_module = f"{__package__}.forecast"
    steps = (count_records, random_symbols)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon)
        for name in ("values", "second_values"):
            object.__setattr__(self, name, finite_domain(name, getattr(self, name)))
        object.__setattr__(self, "figure", self.pair_kernel.figure)
        if not (isinstance(self.kernel, str) or callable(self.kernel)):
            object.__setattr__(self, "kernel", self.pair_kernel)
        self._check_scale()
        if self.bins is not None and not self.ranges:
            raise ValueError(f"bins cut a range, and these values are finite, got bins={self.bins}")
        if self.bins is not None and not (isinstance(self.bins, int) and self.bins >= MIN_BINS):
            raise ValueError(f"bins must be a number of at least {MIN_BINS}, got {self.bins}")
        symbols = self.space(self.bins or MIN_BINS).symbols
        if not 2 <= symbols <= MAX_SYMBOLS:
            raise ValueError(f"a domain must have 2 to {MAX_SYMBOLS} symbols, got {symbols}")

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The public range of the values; None on a scale of numbers without bounds."""
        values_axis = next(axis for axis in self.axes if axis.column == "values")
        return values_axis.ends if values_axis.bounded else None

    @property
    def unit(self) -> str:
        """The unit in which values are taken."""
        if self.scale == EVEN and self.score_range != UNIT:
            return REAL
        return UNIT_OF[self.scale]

    def for_unit(self, unit: str) -> UStatistic:
        """The same with the scale of a unit, where the kernel does not depend on distances."""
        if unit in (self.unit, PERCENT) or not _takes_scale(self):
            return self
        return replace(self, scale=unit)

    def fitted(self, clients: Clients) -> Clients:
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
        return "labels" in self.pair_kernel.columns

    @property
    def needs_second_values(self) -> bool:
        """Whether the kernel reads second values."""
        return "second values" in self.pair_kernel.columns

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        return Cost(self.epsilon, adjacency=Adjacency.REPLACE)

    def exact(self, clients: Clients) -> float:
        """The exact figure of all clients' records, which is not private."""
        return self.pair_kernel.exact(clients, self.space(MIN_BINS))

    def replicate_size(self, clients: Clients) -> int:
        """Reports with their random draws, and the pairs of symbols."""
        return 5 * clients.records + 4 * self.space(self.bins_for(clients.records)).symbols ** 2

    def bins_for(self, records: int) -> int:
        """Into how many bins ranges are cut where so many records report.

        Examples
        --------
        >>> UStatistic("gini", 1.0).bins_for(10_000), UStatistic("kendall", 1.0).bins_for(10_000)
        (10, 3)
        """
        if self.bins is not None or not self.ranges:
            return self.bins or MIN_BINS
        public_cells = math.prod(axis.cells for axis in self.axes if axis.grid)
        max_bins = int((MAX_SYMBOLS / public_cells) ** (1 / self.ranges))
        if self.pair_kernel is KERNELS["auc"]:
            return planned_bins(records, self.epsilon, max_bins)
        coordinates = sum(axis.column != "labels" for axis in self.axes)
        suited = (records**0.25 * math.sqrt(self.epsilon)) ** (1 / coordinates)
        return min(max(round(suited), MIN_BINS), max_bins)

    def space(self, bins: int) -> SymbolSpace:
        """The symbols, where ranges are cut into so many bins."""
        return SymbolSpace(
            tuple(axis if axis.grid else replace(axis, bins=bins) for axis in self.axes)
        )

    def device_reports(self, devices: int) -> DeviceReports:
        """One symbol a device."""
        from tacit.protocols.ustatistic.devices import SymbolDevices

        return SymbolDevices(self, devices)

    def conversation(self, clients: int) -> Conversation:
        """Randomised symbols up; before them numbers of records, where bins are to suit them."""
        reporting = clients
        if self.bins is None and self.ranges:
            reporting = yield from reporting_records(self, clients)
        bins = self.bins_for(reporting)
        reply = yield Query(random_symbols, self, broadcast={"bins": bins})
        counts = symbol_counts(reply, self.space(bins).symbols)[1]
        result = self.result_of(counts, bins)
        return result if counts.ndim > 1 else self._warned(result, bins)

    def result_of(self, counts: NDArray[Any], bins: int) -> ServerResult:
        """The estimate from how often every symbol was reported, shape (..., k)."""
        space = self.space(bins)
        response = SymbolResponse(space.symbols, self.epsilon)
        tables = PairTables.of(self.pair_kernel, space)
        if self.pair_kernel is KERNELS["auc"]:
            return area_result(tables, opposite_classes(space), response, counts)
        records = round(float(counts.sum(axis=-1).flat[0]))
        return mean_result(tables, response, counts, self.pair_kernel.limits(space, records))

    def _warned(self, result: ServerResult, bins: int) -> ServerResult:
        """The result of a single run, with a warning about few bins."""
        warnings = list(result.warnings)
        if self.ranges and bins < MIN_INFORMATIVE_BINS:
            warnings.append(
                f"fewer than {MIN_INFORMATIVE_BINS} bins do not tell how values lie inside them, "
                f"got bins={bins}: the approximation error is a guess"
            )
        return replace(result, warnings=tuple(warnings))

    @cached_property
    def pair_kernel(self) -> PairKernel:
        """The kernel, with the columns that it reads and the figure that it measures."""
        if isinstance(self.kernel, PairKernel):
            return self.kernel
        if isinstance(self.kernel, str):
            return KERNELS[self.kernel]
        if not isinstance(self.values, tuple):
            raise ValueError("a kernel of your own needs a finite domain: give its values")
        if len(self.values) > MAX_SYMBOLS:
            raise ValueError(
                f"a domain must have 2 to {MAX_SYMBOLS} symbols, got {len(self.values)}"
            )
        return user_kernel(self.kernel, self.values)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """How the columns that the kernel reads are cut."""
        if self.values is None and self.pair_kernel.variation is None:
            raise ValueError(
                f"the kernel {self.pair_kernel.called!r} needs a finite domain: give values"
            )
        first = replace(uncut_axis("values", self.domain, self.values), scale=self.scale)
        second = self.second_domain, self.second_values
        if "second values" in self.pair_kernel.columns:
            return first, second_uncut_axis(first, *second)
        if second != (None, None):
            raise ValueError(f"the kernel {self.pair_kernel.called!r} is not about second values")
        if "labels" in self.pair_kernel.columns:
            return Axis("labels", grid=UNIT), first
        return (first,)

    def _check_scale(self) -> None:
        """Refuse a scale where the figure depends on distances of values, or nothing is cut.

        Raises
        ------
        ValueError : for such a scale.
        """
        if self.scale == EVEN or _takes_scale(self):
            return
        if not self.pair_kernel.ordinal:
            raise ValueError(
                f"the kernel {self.pair_kernel.called!r} depends on the values themselves, which a "
                f"scale would change: scale must be {EVEN!r}, got {self.scale!r}"
            )
        raise ValueError(
            f"a domain or public values say where bins lie: scale must be {EVEN!r} with them, got "
            f"{self.scale!r}"
        )

    @property
    def ranges(self) -> int:
        """How many axes are cut into bins."""
        return sum(not axis.grid for axis in self.axes)
