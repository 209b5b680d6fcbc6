"""Both classes' distribution functions of an earlier release, which take a first round's place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_distribution import ScoreDistribution, StraightDistribution
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.metrics.ranking import plug_in_variance
from tacit.protocols.shared.sums.influence_sum import PUBLISHED
from tacit.results.class_sizes import MIN_CLASS_SIZE_IN_ERRORS
from tacit.results.curves.curve import Curve
from tacit.results.server_result import ServerResult


@dataclass(frozen=True)
class PriorCurves:
    """Both classes' distribution functions from an earlier release, in place of the first round.

    Parameters
    ----------
    scale : the scale of the positions, as in the release.
    positives_below, negatives_below : the part of each class below every inner edge of equal cells.
    positives, negatives : the class sizes.
    positives_error : the standard error of either size.
    function_errors : the largest standard errors of either function, positives first.
    knots : the scores at the inner edges where the release's cells were published ones, between
        which functions are straight; empty where they are equal cells of ``scale``.
    hidden_error : what the cells hide of the AUC, a standard deviation.
    """

    scale: str
    positives_below: tuple[float, ...]
    negatives_below: tuple[float, ...]
    positives: float
    negatives: float
    positives_error: float
    function_errors: tuple[float, float]
    knots: tuple[float, ...] = ()
    hidden_error: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.positives, self.negatives)
        if not all(np.isfinite(size) and size > 0 for size in sizes):
            raise ValueError(f"prior: class sizes must be above 0 and finite, got {sizes}")
        if not min(sizes) / max(sizes) > 0:
            raise ValueError(f"prior: class sizes must be of comparable size, got {sizes}")
        errors = (self.positives_error, *self.function_errors)
        if not all(np.isfinite(error) and error >= 0 for error in errors):
            raise ValueError(f"prior: errors must be at least 0 and finite, got {errors}")
        if min(sizes) <= MIN_CLASS_SIZE_IN_ERRORS * self.positives_error:
            raise ValueError(
                f"prior: the smaller class must exceed {MIN_CLASS_SIZE_IN_ERRORS:g} of its "
                f"standard errors of {self.positives_error:.3g}, got {min(sizes):.6g}"
            )
        if len(self.positives_below) != len(self.negatives_below):
            raise ValueError("prior: both functions must have the same edges")
        kind = StraightDistribution if self.straight else ScoreDistribution
        for values in self.functions:
            kind(np.arange(1, self.cells) / self.cells, values, 0.0, 1.0)
        if self.knots and len(self.knots) != self.cells - 1:
            raise ValueError(
                f"prior: there must be a knot at each of {self.cells - 1} inner edges, got "
                f"{len(self.knots)}"
            )
        if not (np.isfinite(self.hidden_error) and self.hidden_error >= 0):
            raise ValueError(
                f"prior: hidden_error must be at least 0 and finite, got {self.hidden_error}"
            )

    @property
    def straight(self) -> bool:
        """Whether functions are straight between edges."""
        return bool(self.knots)

    def zoomed(self, base: ScoreScale) -> ScoreScale | None:
        """The scale of the knots; None where the cells are those of the base.

        Raises
        ------
        ValueError : for knots that are no scale of these scores.
        """
        if not self.knots:
            return None
        try:
            return ScoreScale(np.array(self.knots), base.low, base.high)
        except ValueError as error:
            raise ValueError(f"prior: {error}") from None

    @property
    def functions(self) -> Floats:
        """Both functions at the inner edges, positives first, shape (2, B-1)."""
        return np.array([self.positives_below, self.negatives_below], dtype=np.float64)

    @property
    def fields(self) -> dict[str, Floats]:
        """What a first round would have published."""
        positives, negatives = self.functions
        return dict(zip(PUBLISHED, (positives, negatives, self.sizes), strict=True))

    @property
    def sizes(self) -> Floats:
        """P and N."""
        return np.array([self.positives, self.negatives], dtype=np.float64)

    @property
    def variance(self) -> float:
        """What the release's errors leave in the AUC: products of two of them.

        With e and e' the largest errors of the functions, which a bridge has in its middle, the
        product of both has the standard deviation ``4 e e' / sqrt(12)``, and the area of one about
        ``e / sqrt(3)``, times the relative error of a class size.
        """
        first, second = self.function_errors
        relative = (self.positives_error / min(self.sizes)) ** 2
        return (4 * first * second) ** 2 / 12 + relative * (first**2 + second**2) / 3

    @property
    def cells(self) -> int:
        """B."""
        return len(self.positives_below) + 1

    @classmethod
    def of(
        cls,
        scale: str,
        functions: Floats,
        result: ServerResult,
        curve: Curve,
        **more: Any,
    ) -> Self | None:
        """The curves of a result with these functions, shape (2, B-1); None where none may follow.

        Parameters
        ----------
        scale : the setting of the run.
        functions : of positives and negatives at the inner edges of equal cells.
        result : with the class sizes.
        curve : with the errors of both functions.
        more : further fields.
        """
        errors = curve.true_positive_error.max(), curve.false_positive_error.max()
        sizes = float(result.positives), float(result.negatives), float(result.positives_error)
        positives, negatives = (tuple(row.tolist()) for row in functions)
        try:
            return cls(
                scale, positives, negatives, *sizes, (float(errors[0]), float(errors[1])), **more
            )
        except ValueError:  # a class does not show
            return None

    def result(
        self, area: Floats, variance: Floats, hidden: float, one_draw: Floats
    ) -> ServerResult:
        """The AUC by the number alone, with the class sizes of the release.

        Parameters
        ----------
        area : the AUC by these functions and the number, shape (...).
        variance : by the number's noise, same shape.
        hidden : the variance by what cells hide of the product of both functions' errors.
        one_draw : the standard deviation by the part of the noise that is one draw, same shape.
        """
        value = np.asarray(area)
        sampling = np.vectorize(plug_in_variance)(np.clip(value, 0.0, 1.0), *self.sizes)
        return ServerResult(
            value=value,
            privacy_error=np.sqrt(variance + self.variance),
            sampling_error=np.sqrt(sampling),
            positives=np.full_like(value, self.positives),
            negatives=np.full_like(value, self.negatives),
            positives_error=self.positives_error,
            approximation_error=np.full_like(value, np.sqrt(hidden)),
            laplace_error=one_draw,
        )
