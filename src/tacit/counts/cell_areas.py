"""Cells of one round in one level or two: their budget and noise, and the AUC that follows.

The AUC weighs a cell by the other class's distribution, which changes slowly from cell to cell. A
second, coarse histogram of groups of neighbouring cells therefore removes most of the noise, for a
part of the budget. With two noisy counts of a group its total is their inverse-variance mean, and
the difference is divided equally among its cells: the weighted least-squares solution (Hay et al.
2010).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.counts.noisy_areas import hidden_variance
from tacit.metrics import curves, errors
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.results.curves.curve import Curve
from tacit.results.server_result import ServerResult

GROUP_FRACTIONS = np.linspace(0.3, 0.9, 13)
"""Fractions of epsilon that are compared for the groups."""

MOST_DRAWS = 1024
"""Largest number of cells whose noise is not taken as normal."""

LEAST_KURTOSIS = 0.1
"""Excess kurtosis of an error below which it is taken as normal: at 95 % the quantile of a
symmetric error then lies within ``0.07`` of this part (Cornish and Fisher 1938)."""


@dataclass(frozen=True)
class Levels:
    """How epsilon is divided between cells and groups of cells.

    Parameters
    ----------
    cells : B, the number of cells.
    groups : G, the number of groups; 0 for one level.
    cell_epsilon, group_epsilon : what a record's cell and its group cost; they add up to epsilon.
    """

    cells: int
    groups: int
    cell_epsilon: float
    group_epsilon: float

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first cell of every group, shape (G,)."""
        return (np.arange(self.groups, dtype=np.int64) * self.cells) // max(self.groups, 1)

    def noise(self, clients: int, sensitivity: float) -> CellNoise:
        """The noise of both levels, summed over clients."""
        cell = clients * float(discrete_laplace_variance(sensitivity / self.cell_epsilon))
        if not self.groups:
            return CellNoise(np.full(self.cells, cell))
        group = clients * float(discrete_laplace_variance(sensitivity / self.group_epsilon))
        return CellNoise(np.full(self.cells, cell), group, self.starts)

    def law(
        self, weights: tuple[Floats, ...], clients: int, sensitivity: float, normal: Floats
    ) -> errors.ErrorLaw | None:
        """The law of a weighted sum of reconciled cells; None where it is as good as normal.

        Parameters
        ----------
        weights : of the cells of several histograms, shape (..., B) each.
        clients : how many draws each count sums.
        normal : the standard deviation of the errors besides, shape (...).
        """
        if sum(each.shape[-1] for each in weights) > MOST_DRAWS:
            return None
        noise = self.noise(clients, sensitivity)
        applied = [noise.weights_on_draws(each) for each in weights]
        cells = np.concatenate([each[0] for each in applied], axis=-1)
        draws = [errors.WholeLaplaceDraws(cells, sensitivity / self.cell_epsilon, clients)]
        if self.groups:
            groups = np.concatenate([each[1] for each in applied], axis=-1)
            draws.append(
                errors.WholeLaplaceDraws(groups, sensitivity / self.group_epsilon, clients)
            )
        law = errors.ErrorLaw(tuple(draws))
        fourth = sum(each.fourth_cumulant for each in draws)
        kurtosis = fourth / np.square(law.variance + np.square(normal))
        return law if np.mean(kurtosis) > LEAST_KURTOSIS else None


@dataclass(frozen=True, eq=False)
class CellNoise:
    """Independent noise in cells, and in groups of cells where there are two levels.

    Parameters
    ----------
    cells : the variance in each cell's count, shape (B,); the same in every cell with two levels.
    group : the variance in each group's count.
    starts : the first cell of every group, shape (G,); None for one level.
    """

    cells: Floats
    group: float = 0.0
    starts: NDArray[np.int64] | None = None

    def reconciled(self, cells: Floats, groups: Floats) -> Floats:
        """The consistent cells, from the cells' and the groups' counts, shape (..., B)."""
        if self.starts is None:
            return cells
        cell_sums = np.add.reduceat(cells, self.starts, axis=-1)
        cell_variance = self.cells[0] * self._sizes
        missing = (
            (groups - cell_sums) * (cell_variance / (cell_variance + self.group)) / self._sizes
        )
        return cells + np.repeat(missing, self._sizes, axis=-1)

    def variance_of(self, weights: Floats) -> Floats:
        """The variance of a weighted sum of reconciled cells, weights of shape (..., B).

        A group's total and the differences inside it are uncorrelated: the total has the variance
        of the inverse-variance mean, the differences that of the cells.
        """
        if self.starts is None:
            return np.sum(self.cells * weights**2, axis=-1)
        mean = np.add.reduceat(weights, self.starts, axis=-1) / self._sizes
        inside = weights - np.repeat(mean, self._sizes, axis=-1)
        between = np.sum(self._totals * mean**2, axis=-1)
        return between + self.cells[0] * np.sum(inside**2, axis=-1)

    def weights_on_draws(self, weights: Floats) -> tuple[Floats, Floats]:
        """The weights of the cells' own noise and of the groups', for weights of reconciled cells.

        Shapes (..., B) and (..., G); the second is empty with one level.
        """
        if self.starts is None:
            return weights, weights[..., :0]
        cell_variance = self.cells[0] * self._sizes
        part = cell_variance / (cell_variance + self.group)
        of_groups = part * np.add.reduceat(weights, self.starts, axis=-1) / self._sizes
        return weights - np.repeat(of_groups, self._sizes, axis=-1), of_groups

    @property
    def total(self) -> float:
        """The variance of the sum of all cells."""
        return float(self.cells.sum() if self.starts is None else self._totals.sum())

    def rate_variance(self, rate: Floats) -> Floats:
        """The variance of ``(1 - t) above - t below`` at every cell's lower edge, t its rate."""
        if self.starts is None:
            above = np.flip(np.cumsum(np.flip(self.cells)))
            below = np.cumsum(self.cells) - self.cells
            return (1 - rate) ** 2 * above + rate**2 * below
        group = np.repeat(np.arange(self.starts.size), self._sizes)
        size, within = self._sizes[group], self._totals[group]
        below = (np.cumsum(self._totals) - self._totals)[group]
        reached = size - (np.arange(self.cells.size) - self.starts[group])
        mean = ((1 - rate) * reached - rate * (size - reached)) / size
        between = (
            (1 - rate) ** 2 * (self.total - below - within) + rate**2 * below + within * mean**2
        )
        variance = between + self.cells[0] * reached * (size - reached) / size
        return np.maximum(variance, 0.0)

    @property
    def _sizes(self) -> NDArray[np.int64]:
        starts = np.zeros(1, dtype=np.int64) if self.starts is None else self.starts
        return np.diff(starts, append=self.cells.size)

    @property
    def _totals(self) -> Floats:
        return 1 / (1 / (self.cells[0] * self._sizes) + 1 / self.group)


@lru_cache(maxsize=64)
def best_levels(cells: int, epsilon: float, sensitivity: float) -> Levels:
    """The division of epsilon with the least AUC variance, from public figures only.

    The cells' weights are taken as falling evenly from 1/2 to -1/2, as they do where cells hold
    equally many records.
    """
    weights = 0.5 - (np.arange(cells) + 0.5) / cells
    candidates = [Levels(cells, 0, epsilon, 0.0)]
    for groups in np.unique(np.geomspace(2, max(cells // 2, 2), 12).astype(int)):
        if 2 * groups <= cells:
            group_epsilons = GROUP_FRACTIONS * epsilon
            candidates += [
                Levels(cells, int(groups), float(epsilon - s), float(s)) for s in group_epsilons
            ]
    return min(
        candidates, key=lambda levels: float(levels.noise(1, sensitivity).variance_of(weights))
    )


COARSE_CELLS = (
    "what the cells hide outweighs the privacy noise: use more cells, or map the scores by an "
    "agreed public function so that they spread over [0, 1]"
)


def area_variance(adjacency: str, cells: tuple[Floats, Floats], noise: CellNoise) -> Floats:
    """The AUC's variance by what the noise hides: a label, or a record with its class and cell.

    Noise on labels moves records from one class to the other within a cell. Otherwise both classes'
    cells carry independent noise. The first order is the variance of the influences' weighted sums.
    Products of a positive and a negative cell's noise add half the product of the totals' variances
    over ``(P N)^2``: half of all pairs of cells count fully.
    """
    by_positive, by_negative = curves.cell_influences(*cells)
    if adjacency == "label":
        return noise.variance_of(by_positive - by_negative)
    variance = noise.variance_of(by_positive) + noise.variance_of(by_negative)
    pairs = cells[0].sum(axis=-1, dtype=np.float64) * cells[1].sum(axis=-1, dtype=np.float64)
    return variance + noise.total**2 / 2 / np.maximum(np.abs(pairs), 1.0) ** 2


def result_from_cells(
    edges: Floats,
    cells: tuple[Floats, Floats],
    variance: Floats,
    noise: CellNoise,
    even: bool = False,
) -> ServerResult:
    """The area of noisy cells, with densities that are linear inside a cell.

    Parameters
    ----------
    edges : the lower edges of the cells, shape (B,).
    cells : positives and negatives in each cell, summed over clients, shape (..., B).
    variance : the AUC's variance by privacy noise, shape (...).
    noise : the noise in each class's cells.
    even : as ``hidden_variance`` takes it.
    """
    value = curves.cell_area(*cells) + curves.density_correction(*cells)
    cell_variance = hidden_variance(*cells, even)
    classes = cells[0].sum(axis=-1, dtype=np.float64), cells[1].sum(axis=-1, dtype=np.float64)
    single = np.ndim(value) == 0
    warnings = signal_warnings(value, classes, math.sqrt(noise.total)) if single else ()
    if single and math.sqrt(cell_variance) > math.sqrt(variance):
        warnings += (COARSE_CELLS,)
    return ServerResult(
        value=value,
        privacy_error=np.sqrt(variance),
        sampling_error=np.sqrt(curves.noisy_sampling_variance(*cells, value)),
        positives=classes[0],
        negatives=classes[1],
        positives_error=math.sqrt(noise.total),
        approximation_error=np.sqrt(cell_variance),
        roc=_curve_of_cells(edges, cells, noise) if single and np.isfinite(value) else None,
        warnings=warnings,
    )


def _curve_of_cells(edges: Floats, cells: tuple[Floats, Floats], noise: CellNoise) -> Curve:
    """Rates made monotone, which post-processing may; errors are those of the raw rates."""
    rates = []
    for counts in cells:
        total = max(float(counts.sum()), 1.0)
        rate = curves.counts_from_thresholds(counts) / total
        rates.append((falling_rate(rate), np.sqrt(noise.rate_variance(rate)) / total))
    (up, up_error), (across, across_error) = rates
    return Curve(edges, across, up, across_error, up_error)


def falling(values: Floats) -> Floats:
    """The nearest values by least squares that never rise along the last axis."""
    fitted = [
        scipy.optimize.isotonic_regression(row, increasing=False).x
        for row in values.reshape(-1, values.shape[-1])
    ]
    return np.array(fitted).reshape(values.shape)


def falling_rate(rate: Floats) -> Floats:
    """The nearest rates that fall with the threshold and stay in [0, 1]."""
    return np.clip(falling(rate), 0.0, 1.0)


def signal_warnings(
    value: Floats, classes: tuple[Floats, Floats], total_error: float
) -> tuple[str, ...]:
    """The warning for noisy class totals without an AUC."""
    if np.isfinite(value):
        return ()
    return (
        "not enough signal at this epsilon: the noisy class totals are "
        f"{float(classes[0]):.1f} and {float(classes[1]):.1f}, with a standard error of "
        f"{total_error:.1f}; the predicted error of the AUC is above 0.5",
    )
