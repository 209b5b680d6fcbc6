"""An estimated figure with its errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, SupportsFloat

import numpy as np

from tacit.metrics import errors
from tacit.privacy.cost import check_fraction
from tacit.results.figure import EVERYWHERE


class Interval(NamedTuple):
    """A confidence interval; a number is in it from its low to its high end.

    Examples
    --------
    >>> 0.8 in Interval(0.79, 0.81), 0.7 in Interval(0.79, 0.81)
    (True, False)
    """

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, SupportsFloat) and self.low <= float(value) <= self.high


About = Literal["data", "population"]

LEVEL = 0.95
"""The level of intervals that texts and files show."""

REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""Half the width of such an interval in standard errors."""

RECORDS_INTERVAL = "95 % interval (these records)"
"""What an interval about the exact figure of the evaluated records is called, everywhere."""

POPULATION_INTERVAL = "95 % interval (population)"
"""What an interval is called that adds the sampling error, everywhere."""

CERTAIN_RANGE = "certain range (these records)"
"""What an interval is called that holds the exact figure for certain, everywhere."""

RECORDS_ERROR = "standard error (these records)"

MEANING = "noise alone; the population adds sampling"
"""What both intervals are about, in their rows."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A figure with its errors, each a standard deviation.

    Parameters
    ----------
    value : the estimate; NaN when the noise left no signal.
    privacy_error : the error that the privacy noise causes, about this data set's figure.
    sampling_error : the error of this data set's own figure about its population's.
    approximation_error : the error of measuring on thresholds or buckets instead of every score.
    bias : how far the value is expected to lie above the exact figure; intervals are centred on
        ``value - bias``.
    half_range : the largest distance of these records' exact figure from ``value - bias``, where it
        is known for certain; the interval is then of this half-width at every level. None
        elsewhere.
    limits : the least and the largest value that the figure can have. Intervals are cut to them,
        which changes no coverage, as the figure lies within.
    laplace_error : the part of ``privacy_error`` that is one draw of Laplace noise. Intervals are
        quantiles of its sum with all other errors, which are taken as normal.
    law : of the part of ``privacy_error`` that is a sum of few draws, which are not normal either;
        None for none.
    intervals : at the level 0.95 about these records and about the population, of a figure whose
        intervals do not follow from its errors, such as a quotient; None where they do.
    threshold : the score from which a record counts as positive, where the figure depends on it.
    reason : why there is no figure; empty where there is one, or nothing is said.
    placement_error : the part of ``approximation_error`` by records' places in their cells, without
        what the cells' width adds; NaN where the two are not distinguished. No file holds it.

    Examples
    --------
    >>> estimate = Estimate(0.75, privacy_error=0.003, sampling_error=0.004)
    >>> estimate.standard_error
    0.003
    >>> tuple(round(bound, 4) for bound in estimate.interval(0.95))
    (0.7441, 0.7559)
    >>> tuple(round(bound, 4) for bound in estimate.interval(0.95, about="population"))
    (0.7402, 0.7598)
    >>> Estimate(0.99, 0.01, 0.0, limits=(0.0, 1.0)).interval(0.95).high
    1.0
    >>> once = Estimate(0.75, privacy_error=0.003, sampling_error=0.004, laplace_error=0.003)
    >>> tuple(round(bound, 4) for bound in once.interval(0.95))
    (0.7436, 0.7564)
    >>> f"{estimate:.3f}", float(estimate), round(estimate, 1), estimate > 0.7
    ('0.750', 0.75, 0.8, True)
    >>> print(estimate)
    0.750 (0.744 to 0.756)
    """

    value: float
    privacy_error: float
    sampling_error: float
    approximation_error: float = 0.0
    bias: float = 0.0
    half_range: float | None = None
    limits: tuple[float, float] = EVERYWHERE
    laplace_error: float = 0.0
    law: errors.ErrorLaw | None = field(default=None, repr=False, compare=False)
    intervals: tuple[Interval, Interval] | None = None
    threshold: float | None = None
    reason: str = ""
    placement_error: float = field(default=math.nan, repr=False, compare=False)

    @classmethod
    def absent(cls, reason: str, threshold: float | None = None) -> Estimate:
        """No figure, and why."""
        nothing = math.nan
        return cls(nothing, nothing, nothing, nothing, threshold=threshold, reason=reason)

    def __eq__(self, other: object) -> bool:
        """Whether both state the same of a figure; what is not known on both sides is the same."""
        return isinstance(other, Estimate) and is_same(self, other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __float__(self) -> float:
        """The value; NaN where the noise left no signal."""
        return float(self.value)

    def __format__(self, form: str) -> str:
        """The value in a format of numbers; without one as ``print`` shows the estimate."""
        return format(self.value, form) if form else str(self)

    def __str__(self) -> str:
        """The value with its 95 % interval about these records."""
        if not self.given:
            return self.missing
        bounds = self.interval(LEVEL)
        if not self.has_interval:
            return f"{self.value:.{decimals(bounds)}f} (without an interval)"
        return f"{self.value:.{decimals(bounds)}f} ({bounds_line(bounds)})"

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __lt__(self, other: SupportsFloat) -> bool:
        return self.value < float(other)

    def __le__(self, other: SupportsFloat) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: SupportsFloat) -> bool:
        return self.value > float(other)

    def __ge__(self, other: SupportsFloat) -> bool:
        return self.value >= float(other)

    @property
    def given(self) -> bool:
        """Whether there is a figure."""
        return math.isfinite(self.value)

    @property
    def centre(self) -> float:
        """The value less its known bias, in the middle of intervals that are not cut."""
        return self.value - self.bias

    @property
    def has_interval(self) -> bool:
        """Whether its error is known."""
        return all(map(math.isfinite, self.interval(LEVEL)))

    @property
    def certain(self) -> bool:
        """Whether the interval about these records holds their figure without fail."""
        return self.half_range is not None

    @property
    def interval_name(self) -> str:
        """What a line with the interval about these records is called."""
        return CERTAIN_RANGE if self.certain else RECORDS_INTERVAL

    @property
    def missing(self) -> str:
        """What texts say in the place of a figure that there is not."""
        return f"none: {self.reason}" if self.reason else "not enough signal"

    @property
    def standard_error(self) -> float:
        """The error about this data set's figure: privacy noise and approximation together."""
        return math.hypot(self.privacy_error, self.approximation_error)

    def interval(self, level: float = 0.95, about: About = "data") -> Interval:
        """The interval that covers the figure with probability ``level``, or a certain one.

        ``about="data"`` asks about the exact figure of the data that was evaluated: only privacy
        noise and approximation count. ``about="population"`` adds the sampling error.

        Raises
        ------
        ValueError : for a level outside (0, 1) or an unknown ``about``, and for another level than
            0.95 where intervals do not follow from the errors.
        """
        checked_level(level)
        if about not in ("data", "population"):
            raise ValueError(f"an interval is about 'data' or 'population', got {about!r}")
        if self.intervals is not None:
            if level != LEVEL:
                raise ValueError(f"this figure's intervals are known at {LEVEL} only, got {level}")
            return Interval(*map(self._cut, self.intervals[about == "population"]))
        reach = self._reach(level, about == "population")
        return Interval(self._cut(self.centre - reach), self._cut(self.centre + reach))

    def within(self, limits: tuple[float, float]) -> Estimate:
        """The estimate less its known bias, and the nearest value that the figure can have.

        What was added to the value is the bias of the result, so that intervals stay centred where
        they were, and hold the value unless they miss the limits altogether.

        Examples
        --------
        >>> estimate = Estimate(1.02, 0.03, 0.0).within((0.0, 1.0))
        >>> estimate.value, round(estimate.bias, 2), round(estimate.interval(0.95).low, 4)
        (1.0, -0.02, 0.9612)
        """
        cut = replace(self, limits=limits)
        if math.isnan(self.value):
            return cut
        value = cut._cut(self.centre)
        return replace(cut, value=value, bias=value - self.centre)

    def _cut(self, value: float) -> float:
        """The nearest value within the limits; NaN stays."""
        low, high = self.limits
        return value if math.isnan(value) else min(max(value, low), high)

    def _reach(self, level: float, population: bool) -> float:
        """Half the width of an interval of this level.

        A certain range adds to the population's interval at its full width: nothing is known of
        where in it the figure lies.
        """
        sampling = self.sampling_error if population else 0.0
        if self.half_range is not None:
            beyond = errors.reach(0.0, sampling, 0.0, None, level) if population else 0.0
            return self.half_range + float(beyond)
        hidden = math.hypot(self.approximation_error, sampling)
        known = self.privacy_error, hidden, self.laplace_error, self.law
        return float(errors.reach(*known, level))

    def to_rows(self) -> list[tuple[str, str]]:
        """The intervals and the error, each named for what it is about."""
        # ends of a certain range have at most seven decimals: none is rounded inwards
        digits = 7 if self.certain else None
        named = (
            (self.interval_name, self.interval(), digits),
            (POPULATION_INTERVAL, self.interval(about="population"), None),
        )
        rows = [
            (name, bounds_line(bounds, digits=digits))
            for name, bounds, digits in named
            if all(map(math.isfinite, bounds))
        ]
        if math.isfinite(self.standard_error) and not self.certain:
            rows.append((RECORDS_ERROR, f"{self.standard_error:.2e}; {MEANING}"))
        return rows

    @property
    def shape(self) -> dict[str, Any]:
        """What a file needs besides the errors, so that intervals follow from it."""
        known: dict[str, Any] = {}
        if self.half_range is not None:
            known["half_range"] = finite(self.half_range)
        if self.laplace_error:
            known["laplace_error"] = finite(self.laplace_error)
        if self.law is not None and math.isfinite(self.value):
            known["draws"] = self.law.to_dict()
        return known

    def to_dict(self) -> dict[str, Any]:
        """The ``auc`` entry of a result; figures that do not exist are null."""
        errors = ("standard_error", "privacy_error", "sampling_error", "approximation_error")
        known = entry_of(self, ("value", *errors, "bias", "limits"))
        return {**known, **self.shape, "interval": numbers(self.interval(0.95))}


def checked_level(level: float) -> float:
    """The level of an interval, refused outside (0, 1) with a ``ValueError``."""
    check_fraction("level", level)
    return level


LEAST_DECIMALS, MOST_DECIMALS = 2, 6
"""The fewest and most decimals that texts show of a figure."""


def decimals(bounds: tuple[float, float]) -> int:
    """How many decimals of a figure its interval supports: the last is a third of half its width.

    Examples
    --------
    >>> decimals((0.792, 0.8)), decimals((0.78, 0.81)), decimals((0.2, 0.9)), decimals((0.5, 0.5))
    (3, 3, 2, 6)
    """
    half = (bounds[1] - bounds[0]) / 2
    if not (math.isfinite(half) and half > 0):
        return 4 if math.isnan(half) else MOST_DECIMALS
    return min(max(math.ceil(-math.log10(half / 3)), LEAST_DECIMALS), MOST_DECIMALS)


def bounds_line(bounds: tuple[float, float], sign: str = "", digits: int | None = None) -> str:
    """The ends of an interval in words, with as many decimals as it supports.

    Parameters
    ----------
    sign : ``"+"`` for ends that both show their sign.
    digits : decimals, where they follow from something else.

    Examples
    --------
    >>> bounds_line((0.2512, 0.7534)), bounds_line((-0.0012, 0.0017), "+")
    ('0.25 to 0.75', '-0.0012 to +0.0017')
    """
    form = f"{sign}.{decimals(bounds) if digits is None else digits}f"
    return f"{bounds[0]:{form}} to {bounds[1]:{form}}"


def estimate_line(estimate: Estimate, sign: str = "", about: About = "data") -> str:
    """An estimate with an interval, as text puts them on one line.

    Parameters
    ----------
    estimate : the figure.
    sign : ``"+"`` where signs are shown, as of differences.
    about : the interval's, these records by default.

    Examples
    --------
    >>> estimate_line(Estimate(0.75, 0.001, 0.01))
    '0.7500, 95 % interval (these records) 0.7480 to 0.7520'
    """
    if not estimate.given:
        return estimate.missing
    bounds = estimate.interval(LEVEL, about)
    shown = f"{estimate.value:{sign}.{decimals(bounds)}f}"
    if not all(map(math.isfinite, bounds)):
        return f"{shown}, without an interval"
    name = estimate.interval_name if about == "data" else POPULATION_INTERVAL
    return f"{shown}, {name} {bounds_line(bounds, sign)}"


def measure_of(estimate: Estimate) -> dict[str, Any]:
    """An estimate as a ``measure`` of the JSON."""
    made = {
        **entry_of(estimate, ("value", "privacy_error")),
        "cell_error": finite(estimate.approximation_error),
        **entry_of(estimate, ("sampling_error", "bias", "limits")),
        **estimate.shape,
        "interval": numbers(estimate.interval(LEVEL)),
        "population_interval": numbers(estimate.interval(LEVEL, about="population")),
    }
    if estimate.threshold is not None:
        made["threshold"] = finite(estimate.threshold)
    if estimate.reason:
        made["reason"] = estimate.reason
    return made


def finite(value: float) -> float | None:
    """The number for JSON, None where it is not finite."""
    return float(value) if math.isfinite(value) else None


Numbers = list[float | None]


def numbers(values: Iterable[float]) -> Numbers:
    """A list for JSON; numbers that are not finite become None."""
    return [finite(value) for value in values]


def entry_of(record: object, names: Iterable[str]) -> dict[str, Any]:
    """Fields of a record for JSON: numbers, and tuples of them."""
    values = {name: getattr(record, name) for name in names}
    return {
        name: numbers(value) if isinstance(value, tuple) else finite(value)
        for name, value in values.items()
    }


def higher_of(names: tuple[str, str], difference: Interval) -> str:
    """The name with the higher figure, or nothing where the interval of the difference holds 0."""
    low, high = difference
    if not low <= high or low <= 0 <= high:
        return ""
    return names[0] if low > 0 else names[1]


def is_same(one: Any, other: Any) -> bool:  # noqa: PLR0911 -- a case for each kind of value
    """Whether two values are the same; NaN is itself, and arrays have one type and shape.

    Examples
    --------
    >>> is_same((1.0, float("nan")), (1.0, float("nan")))
    True
    >>> is_same(np.zeros(2), np.zeros(2, dtype=np.int64))
    False
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        exact = one.dtype == other.dtype and one.shape == other.shape
        return exact and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and _all_same((one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and _all_same(zip(one, other, strict=True))
    names = [item.name for item in fields(one) if item.compare] if is_dataclass(one) else []
    if names:
        return _all_same((getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124 -- NaN


def _all_same(pairs: Iterable[tuple[Any, Any]]) -> bool:
    return all(is_same(one, other) for one, other in pairs)
