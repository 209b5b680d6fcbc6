"""Predictions for ScoreHistogram: the server's own conclusions from the expected tree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.metrics.rates import reaching
from tacit.metrics.tree_noise import TreeNoise
from tacit.planning.calibration_errors import ece_error, ece_of
from tacit.planning.forecast import Forecast, placement
from tacit.planning.scenario import Scenario, Shape
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.privacy.unary import unary_variance
from tacit.protocols.division import CHOICE_UNITS, Aim
from tacit.protocols.score_histogram import ScoreHistogram, sampled_noise
from tacit.protocols.tree_findings import (
    RankRound,
    best_depth,
    findings_from_tree,
    published_ranks,
)
from tacit.protocols.tree_steps import FIRST_CELLS
from tacit.results.histogram import Histogram

Floats = NDArray[np.float64]

AREA, ECE, PRECISION = "auc", "ece", "precision@"


@dataclass(frozen=True)
class Metric:
    """What is to be measured.

    Parameters
    ----------
    name : ``"auc"``, ``"ece"``, or ``"precision@t"`` with a threshold t in [0, 1].

    Raises
    ------
    ValueError : for another name, or a threshold outside [0, 1].

    Examples
    --------
    >>> Metric("precision@0.3").threshold
    0.3
    """

    name: str = AREA

    def __post_init__(self) -> None:
        if self.name not in (AREA, ECE):
            _ = self.threshold

    @property
    def threshold(self) -> float:
        """The t of ``precision@t``."""
        wrong = f"metric must be 'auc', 'ece' or 'precision@t', t from 0 to 1, got {self.name!r}"
        if not self.name.startswith(PRECISION):
            raise ValueError(wrong)
        try:
            found = float(self.name.removeprefix(PRECISION))
        except ValueError:
            raise ValueError(wrong) from None
        if not 0 <= found <= 1:
            raise ValueError(wrong)
        return found

    @property
    def aim(self) -> Aim:
        """What a tree's division of epsilon should serve."""
        return "auc" if self.name == AREA else "cdf"


def tree_forecast(
    protocol: ScoreHistogram, scenario: Scenario, shape: Shape, metric: Metric | None = None
) -> Forecast:
    """What the server would conclude from the expected tree, with the noise that it assumes.

    Source: docs, sections 5a to 5c. For the AUC the bias is what the expected cells miss of the
    shape's AUC. For precision the error holds the cell that the threshold cuts; the expected
    calibration error is about the population's, so its error holds sampling as well.

    Examples
    --------
    >>> scenario = Scenario(40_000, 4_000, 10, 1.0)
    >>> found = tree_forecast(ScoreHistogram("distributed-dp", 1.0, 6), scenario, Shape(0.8))
    >>> round(found.standard_error, 5)
    0.00057
    """
    wanted = metric or Metric()
    height = protocol.tree_height(scenario.clients)
    leaves = np.concatenate(scenario.counts(shape, 1 << height))
    noise = tree_noise(protocol, scenario, height)
    second = _second_round(protocol, leaves, noise) if protocol.second_round else None
    smaller = min(scenario.positives, scenario.negatives)
    if wanted.name == ECE:
        whole = findings_from_tree(leaves, noise, None)
        if whole.histogram is None:
            return Forecast(math.inf)
        error, bias = ece_error(whole.histogram, noise, ece_of(shape, scenario))
        return Forecast(error, bias, smaller, float(whole.positives_error))
    if wanted.name != AREA:
        histogram = Histogram(leaves.reshape(2, -1), noise, 1, 1)
        exact = precision_of(shape, scenario, wanted.threshold)
        return _precision_forecast(histogram, wanted.threshold, exact, smaller)
    found = findings_from_tree(leaves[np.newaxis], noise, None, second=second)
    error, value, counted = (
        float(field[0])
        for field in (found.privacy_error, found.value, np.asarray(found.positives_error))
    )
    cells = leaves.reshape(2, -1)
    depth = height if second is not None else best_depth(cells, noise)
    coarse = cells.reshape(2, 1 << depth, -1).sum(axis=-1)
    spread = error**2 + placement((coarse[0], coarse[1]), corrected=second is None)
    return Forecast(math.sqrt(spread), value - shape.auc, smaller, counted)


def tree_noise(protocol: ScoreHistogram, scenario: Scenario, height: int) -> TreeNoise:
    """The errors of the expected tree's observed counts."""
    if protocol.trust == "local-dp":
        return _local_noise(scenario.records, protocol.epsilon or math.inf, protocol.shares(height))
    variances = np.full(height + 2, np.inf)
    for level, scale in protocol.level_scales(height).items():
        variances[level] = float(discrete_laplace_variance(scale)) if scale else 0.0
    return TreeNoise(variances)


def even_division(protocol: ScoreHistogram) -> ScoreHistogram:
    """The same with epsilon divided evenly, which takes no time: for comparing heights."""
    return protocol if protocol.trust == "local-dp" else replace(protocol, aim="even")


def _local_noise(records: int, epsilon: float, shares: tuple[int, ...]) -> TreeNoise:
    """The errors of unary reports, as many on each level as are expected there."""
    height = len(shares)
    variances, factors = np.full(height + 2, np.inf), np.zeros(height + 2)
    variances[0] = 0.0
    factors[FIRST_CELLS:] = CHOICE_UNITS / np.array(shares, dtype=np.float64)
    variances[FIRST_CELLS:] = factors[FIRST_CELLS:] * records * unary_variance(epsilon)
    return sampled_noise(variances, factors, records, centred=True)


def _second_round(protocol: ScoreHistogram, leaves: Floats, noise: TreeNoise) -> RankRound:
    """The expected sums of the published ranks, and the variance of their noise."""
    ranks = published_ranks(leaves[np.newaxis], noise)
    weighted = (ranks.values * leaves).reshape(1, 2, -1).sum(axis=-1)
    spread = float(discrete_laplace_variance(protocol.rank_scale(ranks.pivot)))
    return RankRound(ranks, weighted, spread)


def precision_of(shape: Shape, scenario: Scenario, threshold: float) -> float:
    """The population's precision of calling scores from the threshold on positive.

    Examples
    --------
    >>> precision_of(Shape(0.8), Scenario(100, 30, 1, 1.0), 0.0)
    0.3
    """
    ours, theirs = shape.reaching(threshold, scenario.share)
    called = scenario.positives * ours, scenario.negatives * theirs
    return called[0] / max(sum(called), 1e-300)


def _precision_forecast(
    histogram: Histogram, threshold: float, exact: float, smaller: int
) -> Forecast:
    """Privacy noise, the records of the cell that the threshold cuts, and what it hides."""
    found = histogram.at(threshold)["precision"]
    above = reaching(histogram.edges, np.array([threshold]))[0]
    won, lost = (float(own @ above) for own in histogram.counts)
    cut = histogram.counts * above * (1 - above)
    placed = float(lost**2 * cut[0].sum() + won**2 * cut[1].sum()) / (won + lost) ** 4
    ours = np.zeros_like(histogram.counts)
    ours[0] = 1.0
    return Forecast(
        math.sqrt(found.privacy_error**2 + placed),
        found.value - exact,
        smaller,
        math.sqrt(float(histogram.variance(ours))),
    )
