"""The kernels of U-statistics as choices, each with the public domain of the values that it reads.

A domain is a range that is cut into equal bins, a scale of scores that is, or finitely many values,
of which nothing is cut.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from numpy.typing import ArrayLike

from tacit.local import pair_kernels
from tacit.metrics.cells.score_scale import PROBABILITY, SCALES
from tacit.protocol.settings import Between, Choice
from tacit.results.curves.curve import UNIT

MIN_BINS = 2

MAX_SYMBOLS = 4096
"""A table of all pairs of symbols then holds 2**24 numbers."""


class Numbers(tuple[float, ...]):
    """Numbers, also from a text with spaces or commas between them, in brackets or not.

    Examples
    --------
    >>> str(Numbers("1 2.5")), Numbers("[1, 2.5]"), Numbers(range(2))
    ('1 2.5', (1.0, 2.5), (0.0, 1.0))
    """

    __slots__ = ()

    def __new__(cls, given: str | Iterable[float]) -> Self:
        """The numbers."""
        if isinstance(given, str):
            text = given.strip()
            is_enclosed = (text[:1], text[-1:]) in (("[", "]"), ("(", ")"))
            given = map(float, (text[1:-1] if is_enclosed else text).replace(",", " ").split())
        return super().__new__(cls, map(float, given))

    def __str__(self) -> str:
        return " ".join(str(int(each)) if each.is_integer() else repr(each) for each in self)


def _check_bins(bins: int) -> None:
    if bins != 0 and not (isinstance(bins, int) and bins >= MIN_BINS):
        raise ValueError(f"bins must be a number of at least {MIN_BINS}, got {bins}")


def _ascending(values: Iterable[float]) -> Numbers:
    """Finite values in their order."""
    grid = Numbers(values)
    if not grid:
        raise ValueError("values must be given, got none")
    if not all(map(math.isfinite, grid)):
        raise ValueError(f"values must be finite, got {tuple(grid)}")
    for low, high in pairwise(grid):
        if not low < high:
            raise ValueError(f"values must ascend, got {high:g} after {low:g}")
    return grid


@dataclass(frozen=True)
class Range(Between):
    """Values from a lower to a higher end, both included, that are cut into equal bins.

    Parameters
    ----------
    low, high : the ends.
    bins : how many; 0 for as many as suit the number of records.
    """

    bins: int = 0

    word = "range"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_bins(self.bins)

    def axis(self, column: pair_kernels.Column) -> pair_kernels.Axis:
        """How a column is cut."""
        return pair_kernels.Axis(column, low=self.low, high=self.high, bins=self.bins)


@dataclass(frozen=True)
class Scaled(Choice):
    """Values on a scale of scores, whose positions are cut into equal bins.

    Parameters
    ----------
    scale : ``"probability"``, ``"log-odds"`` or ``"real"`` (``metrics.cells.score_scale``).
    bins : as in ``Range``.
    """

    scale: str = PROBABILITY
    bins: int = 0

    word = "scaled"

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, got {self.scale!r}")
        _check_bins(self.bins)

    def axis(self, column: pair_kernels.Column) -> pair_kernels.Axis:
        """How a column is cut."""
        return pair_kernels.Axis(column, bins=self.bins, scale=self.scale)


@dataclass(frozen=True)
class Listed(Choice):
    """Finitely many values, ascending, of which nothing is cut.

    Parameters
    ----------
    values : the values.
    """

    values: Numbers | Sequence[float]

    word = "listed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _ascending(self.values))

    def axis(self, column: pair_kernels.Column) -> pair_kernels.Axis:
        """The values as the cells of a column."""
        return pair_kernels.Axis(column, grid=tuple(self.values))


@dataclass(frozen=True)
class Same(Choice):
    """Second values have the domain of the first."""

    word = "same"


class Kernel(Choice):
    """A symmetric function of two records, with the public domain of what it reads."""

    @property
    def pair(self) -> pair_kernels.PairKernel:
        """The function."""
        return pair_kernels.KERNELS[self.word]

    @property
    @abstractmethod
    def axes(self) -> tuple[pair_kernels.Axis, ...]:
        """How the columns that it reads are cut; an axis without bins takes those that suit."""

    def scaled(self, scale: str) -> Kernel:
        """The same on a scale of scores; as it is where distances of values matter."""
        return self


class Finite(Kernel):
    """A kernel on finitely many values, ascending."""

    values: Numbers | Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _ascending(self.values))

    @property
    def axes(self) -> tuple[pair_kernels.Axis, ...]:
        """Of the values."""
        return (pair_kernels.Axis("values", grid=tuple(self.values)),)


@dataclass(frozen=True)
class Gini(Kernel):
    """``|x - x'|``.

    Parameters
    ----------
    domain : of the values.
    """

    domain: Range | Listed = Range()

    word = "gini"

    @property
    def axes(self) -> tuple[pair_kernels.Axis, ...]:
        """Of the values."""
        return (self.domain.axis("values"),)


@dataclass(frozen=True)
class Collision(Finite):
    """``1[x = x']``.

    Parameters
    ----------
    values : that there are, ascending.
    """

    values: Numbers | Sequence[float]

    word = "collision"


@dataclass(frozen=True)
class Ordering(Kernel):
    """A kernel that an increasing map of the values does not change.

    Parameters
    ----------
    domain : of the values.
    """

    domain: Range | Scaled | Listed = Range()

    def scaled(self, scale: str) -> Kernel:
        """With as many bins on the scale; a range that is not from 0 to 1, and values, stay."""
        domain = self.domain
        if isinstance(domain, Listed) or (
            isinstance(domain, Range) and (domain.low, domain.high) != UNIT
        ):
            return self
        return replace(self, domain=Scaled(scale, domain.bins))


@dataclass(frozen=True)
class Kendall(Ordering):
    """``sign(x - x') sign(z - z')`` of records with second values z.

    Parameters
    ----------
    domain : of the values.
    second : the domain of the second values.
    """

    second: Same | Range | Listed = Same()

    word = "kendall"

    @property
    def axes(self) -> tuple[pair_kernels.Axis, ...]:
        """Of the values, and of the second values."""
        first = self.domain.axis("values")
        if isinstance(self.second, Same):
            return first, replace(first, column="second values")
        return first, self.second.axis("second values")


@dataclass(frozen=True)
class Area(Ordering):
    """The AUC: of scores, with private classes.

    Parameters
    ----------
    domain : of the scores.
    """

    word = "auc"

    @property
    def axes(self) -> tuple[pair_kernels.Axis, ...]:
        """Of the classes, and of the scores."""
        return pair_kernels.Axis("labels", grid=UNIT), self.domain.axis("values")


@dataclass(frozen=True, eq=False)
class Own(Finite):
    """Another symmetric kernel on finitely many values.

    Parameters
    ----------
    function : of two arrays, vectorised; or the matrix of its values.
    values : that there are, ascending.

    Raises
    ------
    ValueError : for a kernel that is not finite or not symmetric, or too many values.
    """

    function: Callable[[Any, Any], Any] | ArrayLike
    values: Numbers | Sequence[float]

    word = "own"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.values) > MAX_SYMBOLS:
            raise ValueError(
                f"a domain must have 2 to {MAX_SYMBOLS} symbols, got {len(self.values)}"
            )

    def __str__(self) -> str:
        return self.pair.called

    @cached_property
    def pair(self) -> pair_kernels.PairKernel:
        """The function, as a table."""
        return pair_kernels.user_kernel(self.function, tuple(self.values))
