"""The errors of weighted sums of a noisy tree's leaves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.trees import levels_of, observation_weights, subtree_variances

WEIGHTS_AT_ONCE = 2**23
"""Number of weights that are processed at a time, about."""


@dataclass(frozen=True, eq=False)
class TreeNoise:
    """The errors of a tree's observed counts.

    Parameters
    ----------
    variances : the noise variance of a level's nodes, the root first, shape (h+1,); infinity where
        the level was not observed, 0 where it is exact.
    assumed : the variances with which the tree was made consistent, same shape; None takes
        ``variances``.
    factors : where every record was counted on one level only, the ratio of all records to those
        counted, by level, shape (h+1,), and 0 at levels that no record reported on; None where
        every record was counted on every level.
    extra : the variance that a counted record adds to the count of its node, as in unary encoding.
    centred : whether a level's counts were scaled by the known number of its reports, which removes
        the error of the total.
    """

    variances: Floats
    assumed: Floats | None = None
    factors: Floats | None = None
    extra: float = 0.0
    centred: bool = False

    @property
    def weighting(self) -> Floats:
        """The variances by which observed counts are averaged."""
        return self.variances if self.assumed is None else self.assumed

    @property
    def exact(self) -> bool:
        """Whether every observed count is exact and about all records."""
        return self.factors is None and not self.variances[np.isfinite(self.variances)].any()

    def variance_of(self, weights: Floats, leaves: Floats) -> Floats:
        """The variance of the sum of ``weights`` times the consistent leaves, shape (...).

        Parameters
        ----------
        weights : shape (..., 2**h).
        leaves : the estimated leaves, shape (2**h,), or (..., 2**h) with the weights' axes; needed
            where records were sampled. Negative ones are used as they are: the variance is linear
            in them, and noise clipped at zero would look like records.

        With ``g`` the weights of observed counts, ``c`` the expected ones, ``v`` a level's noise
        and ``f`` its factor: ``sum_l v sum g**2``, and where records are assigned to levels
        ``sum_l f ((1 + extra) sum c g**2 - m_g) - (sum c w**2 - m_w)``, the variance of the mean of
        a random partition's parts; ``m_g = (sum c g)**2 / M`` and ``m_w`` alike, both 0 unless
        centred.
        """
        if self.exact:
            return np.zeros(weights.shape[:-1])
        flat = weights.reshape(-1, weights.shape[-1])
        broad = np.broadcast_to(leaves, weights.shape).reshape(flat.shape)
        group = max(1, WEIGHTS_AT_ONCE // flat.shape[-1])
        variances_by_group = [
            self._variance(flat[start : start + group], broad[start : start + group])
            for start in range(0, flat.shape[0], group)
        ]
        return np.concatenate(variances_by_group).reshape(weights.shape[:-1])

    def covariance_of(self, weights: Floats, leaves: Floats) -> Floats:
        """The covariance of several such sums, shape (D, D).

        The bilinear form of ``variance_of``: each square of weights becomes a product of two rows.

        Parameters
        ----------
        weights : shape (D, 2**h).
        leaves : shape (2**h,), as for ``variance_of``.
        """
        made = np.zeros((weights.shape[0], weights.shape[0]))
        if self.exact:
            return made
        observed = observation_weights(weights, self.weighting)
        for level_weights, variance in zip(observed, self.variances, strict=True):
            if np.isfinite(variance) and variance > 0:
                made += variance * (level_weights @ level_weights.T)
        if self.factors is None:
            return made
        counts = levels_of(leaves)
        total = max(float(counts[0][0]), 1.0)
        for level_weights, count, factor in zip(observed, counts, self.factors, strict=True):
            if factor > 0:
                made += factor * (1 + self.extra) * ((level_weights * count) @ level_weights.T)
                made -= factor * self._of_means(level_weights @ count, total)
        made += self._of_means(weights @ leaves, total) - (weights * leaves) @ weights.T
        np.fill_diagonal(made, np.maximum(np.diag(made), 0.0))
        return made

    def _of_means(self, sums: Floats, total: float) -> Floats:
        """What the known total takes out of the products, 0 unless centred."""
        return np.outer(sums, sums) / total * float(self.centred)

    def _variance(self, weights: Floats, leaves: Floats) -> Floats:
        if self.factors is None and self.assumed is None:
            return self._by_contrasts(weights)
        total_variance = np.zeros(weights.shape[0])
        observed = observation_weights(weights, self.weighting)
        for level_weights, variance in zip(observed, self.variances, strict=True):
            if np.isfinite(variance) and variance > 0:
                total_variance += variance * np.sum(level_weights**2, axis=-1)
        if self.factors is None:
            return total_variance
        counts = levels_of(leaves)
        total = np.maximum(counts[0][..., 0], 1.0)
        for level_weights, count, factor in zip(observed, counts, self.factors, strict=True):
            if factor > 0:
                squares = np.sum(count * level_weights**2, axis=-1)
                squared_mean = (
                    np.sum(count * level_weights, axis=-1) ** 2 / total if self.centred else 0.0
                )
                total_variance += factor * ((1 + self.extra) * squares - squared_mean)
        squared_mean = np.sum(counts[-1] * weights, axis=-1) ** 2 / total if self.centred else 0.0
        return np.maximum(
            total_variance - np.sum(counts[-1] * weights**2, axis=-1) + squared_mean, 0.0
        )

    def _by_contrasts(self, weights: Floats) -> Floats:
        """The variance where counts were averaged by their own variances, shape (T,).

        The least-squares estimates of a node's count and of the differences of siblings below it
        are uncorrelated. With s the variance of a node's count from its subtree alone, and m the
        mean weight of a node's leaves, the root adds ``s m**2`` and two siblings
        ``s (m_left - m_right)**2 / 2``.
        """
        root, *below = self._subtrees.tolist()
        means, variance = weights, np.zeros(weights.shape[0])
        for subtree in reversed(below):
            left, right = means[:, 0::2], means[:, 1::2]
            apart = left - right
            variance += subtree / 2 * np.einsum("ij,ij->i", apart, apart)
            means = (left + right) / 2
        return np.asarray(variance + root * means[:, 0] ** 2)

    @cached_property
    def _subtrees(self) -> Floats:
        """The variance of a node's count from its subtree alone, by level."""
        return subtree_variances(self.variances)
