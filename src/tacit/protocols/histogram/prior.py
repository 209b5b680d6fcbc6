"""The curves of an earlier release from which a score histogram asks for one number only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.metrics.score_distribution import rising_fractions
from tacit.metrics.score_scale import EvenScale, ScoreScale
from tacit.protocols.histogram.estimate import published_distributions
from tacit.protocols.histogram.looking.looks import MAX_LOOK_HEIGHT
from tacit.protocols.shared.prior_curves import PriorCurves
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocols.histogram.protocol import ScoreHistogram


@dataclass(frozen=True)
class HistogramCurves(PriorCurves):
    """Both classes' distribution functions from an earlier release, in place of all looks.

    Parameters
    ----------
    knots : the scores at the inner edges where the release's cells were published ones, between
        which functions are straight; empty where they are equal cells of ``scale``.
    hidden_error : what the cells hide of the AUC, a standard deviation.
    """

    knots: tuple[float, ...] = ()
    hidden_error: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
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


def curves_of(protocol: ScoreHistogram, result: ServerResult) -> HistogramCurves | None:
    """The curves of a result with a histogram of noisy sums; None where it has none."""
    histogram, curve = result.histogram, result.roc
    if histogram is None or curve is None or not np.isfinite(result.value):
        return None
    if histogram.noise.exact:
        return None
    if histogram.counts.shape[-1] <= 1 << MAX_LOOK_HEIGHT:
        functions = rising_fractions(histogram.counts)[..., 1:-1]
    else:
        functions = np.stack(published_distributions(histogram.counts.ravel(), histogram.noise))
    scale = histogram.axis.scale
    own = isinstance(scale, EvenScale) or np.array_equal(scale.knots, protocol.score_scale.knots)
    knots = () if own else tuple(scale.knots.tolist())
    hidden = float(np.asarray(result.approximation_error))
    return HistogramCurves.of(
        protocol.scale, functions, result, curve, knots=knots, hidden_error=hidden
    )
