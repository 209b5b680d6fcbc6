"""What a protocol's server concludes: one estimate, or one a replicate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.scales import ScaleDifference
from tacit.metrics import errors
from tacit.privacy.cost import Cost
from tacit.results import figure
from tacit.results.curves.curve import Curve
from tacit.results.curves.histogram import Histogram
from tacit.results.estimate import Estimate
from tacit.results.parts import Breakdown, Sites


@dataclass(frozen=True, eq=False)
class ServerResult:
    """The server's conclusions; every array has the replicate axis, or none.

    Parameters
    ----------
    value : the estimated AUC, shape () or (R,); NaN where the noise left no signal.
    privacy_error, sampling_error, approximation_error : standard deviations, same shape.
    positives, negatives : the estimated class sizes, same shape; one NaN where there are none.
    positives_error : the standard deviation of ``positives`` by privacy noise.
    bias : how far the value is expected to lie above the exact figure, same shape.
    half_range : the largest distance of the exact figure from the value, where it is known for
        certain, same shape; NaN elsewhere.
    roc : the ROC curve, where the server's view allows one.
    histogram : both classes' score histograms, where the server has them.
    protection : what the noise that arrived supports, where that is less than what clients spent.
    warnings : sentences about this result; only written when there is no replicate axis.
    scales : clients whose scores are evidently of another scale, where the server saw scores.
    limits : the least and the largest value that the figure can have; a run sets those that the
        protocol's figure has, where there are none.
    breakdown : figures of classes or of private groups; None where there are none.
    sites : the figures of every client that released its own counts; None where none did.
    withheld : why no figure may be given, where class sizes alone do not say it; empty for nothing.
    laplace_error : the part of ``privacy_error`` that is one draw of Laplace noise, same shape.
    division : how epsilon was divided by what was seen, and why, in a line; None where it was
        settled before.
    law : of the part of ``privacy_error`` that is a sum of few draws; None where errors are normal.
    """

    value: Floats
    privacy_error: Floats
    sampling_error: Floats
    positives: Floats | float = np.nan
    negatives: Floats | float = np.nan
    positives_error: Floats | float = 0.0
    approximation_error: Floats | float = 0.0
    bias: Floats | float = 0.0
    half_range: Floats | float = np.nan
    roc: Curve | None = None
    histogram: Histogram | None = None
    protection: Cost | None = None
    warnings: tuple[str, ...] = ()
    scales: ScaleDifference | None = None
    limits: tuple[float, float] = figure.EVERYWHERE
    breakdown: Breakdown | None = None
    sites: Sites | None = None
    withheld: str = ""
    laplace_error: Floats | float = 0.0
    law: errors.ErrorLaw | None = None
    division: str | None = None

    def warnings_to(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """All that a reader must know, with the clients called by these names.

        Parameters
        ----------
        names : one a client, in the order of their replies; where empty they are numbered.
        """
        if self.scales is None:
            return self.warnings
        sentence = (
            f"{self.scales.sentence(names)}; then the figure is wrong: name each client's unit"
        )
        return (sentence, *self.warnings)

    def estimate(self) -> Estimate:
        """The result of a single run as one estimate, less its known bias and within limits."""
        return self._raw_estimate().within(self.limits)

    def within(self, limits: tuple[float, float]) -> Self:
        """The result with the figure's limits, unless it has limits of its own."""
        return replace(self, limits=limits) if self.limits == figure.EVERYWHERE else self

    def published(self) -> ServerResult:
        """The result of a single run as it is published: a figure, or the reason for none.

        No figure is given where its 95 % interval about these records holds all possible values, or
        none of them; nor where the smaller class is estimated at fewer than
        ``MIN_CLASS_SIZE_IN_ERRORS`` of its standard errors. A figure with a class that is hardly
        larger has a warning.
        """
        raw = self._raw_estimate()
        if not math.isfinite(raw.value) and not self.withheld:
            return self
        reason = self._withheld_for(raw)
        if reason is not None:
            value = np.full_like(self.value, np.nan)
            warnings = (*self.warnings, reason)
            return replace(self, value=value, roc=None, histogram=None, warnings=warnings)
        said = tuple(self._cautions(raw.value - raw.bias))
        return replace(self, warnings=(*self.warnings, *said)) if said else self

    def _cautions(self, centre: float) -> Iterator[str]:
        """What a reader must know about a figure that is given."""
        warning = figure.class_size_warning(self._smaller_class, float(self.positives_error))
        if warning is not None:
            yield warning
        if not self.limits[0] <= centre <= self.limits[1]:
            yield f"the estimate came out as {centre:.4f}; the nearest {self._kind} is given"

    @property
    def _smaller_class(self) -> float:
        return min(float(self.positives), float(self.negatives))

    @property
    def _kind(self) -> str:
        return f"value in [{self.limits[0]:g}, {self.limits[1]:g}]"

    def _withheld_for(self, raw: Estimate) -> str | None:
        """Why no figure is given; None where one is given."""
        if self.withheld:
            return self.withheld
        smaller, error = self._smaller_class, float(self.positives_error)
        if figure.is_class_too_small(smaller, error):
            return figure.class_too_small(smaller, error)
        if self.limits[0] == self.limits[1]:
            return None
        low, high = raw.interval(0.95)
        if low <= self.limits[0] and high >= self.limits[1]:
            return f"no figure: the 95 % interval (these records) holds every {self._kind}"
        if low > self.limits[1] or high < self.limits[0]:
            bounds = f"{low:.2f} to {high:.2f}"
            return f"no figure: the 95 % interval (these records), {bounds}, holds no {self._kind}"
        return None

    def estimates(self) -> list[Estimate]:
        """The figures of several parties, shape (K,), each cut to what it can be."""
        columns = self.value, self.privacy_error, self.sampling_error, self.approximation_error
        rows = zip(
            *(np.ravel(each).tolist() for each in np.broadcast_arrays(*columns)), strict=True
        )
        return [Estimate(*row).within(self.limits) for row in rows]

    def _raw_estimate(self) -> Estimate:
        """The estimate as it came."""
        return Estimate(
            float(self.value),
            float(self.privacy_error),
            float(self.sampling_error),
            float(self.approximation_error),
            float(self.bias),
            half_range=None if np.isnan(self.half_range) else float(self.half_range),
            laplace_error=float(self.laplace_error),
            law=self.law,
        )

    @property
    def standard_error(self) -> Floats:
        """Privacy and approximation error together, as in ``Estimate``."""
        return np.hypot(self.privacy_error, self.approximation_error)

    def reach(self, level: float = 0.95) -> Floats:
        """Half the width of each interval of this level, about the data, shape of ``value``."""
        known = self.privacy_error, self.approximation_error, self.laplace_error, self.law
        widths = errors.reach(*known, level)
        return np.where(np.isnan(self.half_range), widths, self.half_range)

    def covers(self, exact: float, level: float = 0.95) -> NDArray[np.bool_]:
        """Whether each interval of this level holds the exact figure."""
        return np.asarray(np.abs(self.value - self.bias - exact) <= self.reach(level))


@dataclass(frozen=True, eq=False)
class ComparisonResult(ServerResult):
    """The server's result about a difference, with its results about both AUCs.

    Parameters
    ----------
    first, second : of the two models; None only where nothing was concluded about them.
    """

    first: ServerResult | None = None
    second: ServerResult | None = None

    def within(self, limits: tuple[float, float]) -> Self:
        """The result with the difference's limits, and those of an AUC for both models."""
        first, second = (
            each and each.within(figure.AUC_FIGURE.limits) for each in (self.first, self.second)
        )
        return replace(super().within(limits), first=first, second=second)
