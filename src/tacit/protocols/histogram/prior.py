"""The curves of an earlier release from which a score histogram asks for one number only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.metrics.cells.score_distribution import rising_fractions
from tacit.metrics.cells.score_scale import EvenScale
from tacit.protocols.histogram.estimate import published_distributions
from tacit.protocols.histogram.looking.looks import MAX_LOOK_HEIGHT
from tacit.protocols.shared.prior_curves import PriorCurves
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocols.histogram.protocol import ScoreHistogram


def curves_of(protocol: ScoreHistogram, result: ServerResult) -> PriorCurves | None:
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
    same_knots = isinstance(scale, EvenScale) or np.array_equal(
        scale.knots, protocol.score_scale.knots
    )
    # functions of fewer cells have every so-manieth knot
    step = (scale.knots.size + 1) // (functions.shape[-1] + 1)
    knots = () if same_knots else tuple(scale.knots[step - 1 :: step].tolist())
    hidden = float(np.asarray(result.approximation_error))
    return PriorCurves.of(
        protocol.scale, functions, result, curve, knots=knots, hidden_error=hidden
    )
