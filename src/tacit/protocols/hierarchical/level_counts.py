"""Counts on every level of two trees from one-bit reports, and the errors of areas made of them.

The classes are on the axis before the last: 0 negatives, 1 positives. Level l has ``2**l`` nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.metrics.hadamard import walsh_hadamard
from tacit.metrics.trees import levels_of


@dataclass(frozen=True)
class ReportNoise:
    """How reports were drawn.

    Parameters
    ----------
    height : the number of levels below the root.
    gain : the factor on an answer that debiases its flips, ``(e^eps + 1) / (e^eps - 1)`` with
        the epsilon of one answer.
    sampled : whether a record reports on one level, drawn at random, or on every level.
    """

    height: int
    gain: float
    sampled: bool

    @property
    def record_variances(self) -> Floats:
        """The variance that a record adds to its level's counts, the root first, shape (h+1,).

        ``C h (1 - 2**-l)`` where levels are sampled, else ``C (1 - 2**-l)``, with C the squared
        gain. A level's errors are as those of independent counts of this variance from which the
        error of their known sum is removed: each row but the constant one is drawn with probability
        ``1 / (2**l - 1)``, and the rows are orthogonal.
        """
        depth = np.arange(self.height + 1, dtype=np.float64)
        answers = self.height if self.sampled else 1
        return answers * self.gain**2 * (1 - np.exp2(-depth))


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """Unbiased counts of both classes on every level.

    Parameters
    ----------
    classes : the exact numbers of negatives and positives, shape (2,).
    counts : by level, the root first, each of shape (..., 2, 2**l).
    reports : the number of reports on every level below the root, shape (..., 2, h).
    noise : how the reports were drawn.
    """

    classes: Floats
    counts: list[Floats]
    reports: Floats
    noise: ReportNoise

    @classmethod
    def of(cls, table: Integers, noise: ReportNoise) -> LevelCounts:
        """The counts that a table of reports gives.

        With d nodes, ``H`` orthogonal and the answer to the constant row known to be 1, an answer a
        to a row j drawn from the others gives ``(1 + (d-1) gain a H[j, v]) / d`` in node v, whose
        mean is 1 in the record's node and 0 elsewhere. The mean over a level's reports times the
        class size is the count; a level without reports halves the counts of the one above.
        Division by the realised number of reports, not by its expectation ``n / h``,
        reduces a count's variance by ``(h-1) count**2 / n``.

        Parameters
        ----------
        table : how often a node of the heap ``2**l + j`` was answered, by class and by answer, the
            unflipped sign first, shape (..., 2**(h+1), 2, 2).
        """
        reports = np.swapaxes(table[..., 0] + table[..., 1], -1, -2)
        answers = np.swapaxes(table[..., 0] - table[..., 1], -1, -2)
        edges = 2 ** np.arange(1, noise.height + 1)
        by_level = np.add.reduceat(reports, edges, axis=-1).astype(np.float64)
        class_sizes = by_level.sum(axis=-1) / (1 if noise.sampled else noise.height)
        classes = class_sizes.reshape(-1, 2)[0]
        scale = classes[:, np.newaxis] / np.maximum(by_level, 1.0)
        counts = [np.broadcast_to(class_sizes[..., np.newaxis], (*class_sizes.shape, 1))]
        for level, size in enumerate(edges):
            waves = walsh_hadamard(answers[..., size : 2 * size]) * (noise.gain * (size - 1))
            node_counts = (classes[:, np.newaxis] + scale[..., level, np.newaxis] * waves) / size
            unreported = by_level[..., level, np.newaxis] == 0
            counts.append(np.where(unreported, np.repeat(counts[-1], 2, axis=-1) / 2, node_counts))
        return cls(classes, counts, by_level, noise)

    @property
    def pairs(self) -> float:
        """The number of pairs of a positive and a negative."""
        return float(self.classes.prod())

    @property
    def variances(self) -> Floats:
        """The noise variance of the realised reports, by class and level, shape (..., 2, h)."""
        expected_reports = self.classes[:, np.newaxis] / (
            self.noise.height if self.noise.sampled else 1
        )
        expected = self.classes[:, np.newaxis] * self.noise.record_variances[1:]
        return expected * expected_reports / np.maximum(self.reports, 1.0)


@dataclass(frozen=True, eq=False)
class LevelArea:
    """An AUC that is bilinear in the two classes' level counts.

    Parameters
    ----------
    value : the AUC, shape (...).
    influences : how it changes with each count, by level below the root, shapes (..., 2, 2**l).
    product : the variance of the products of a positive and a negative count's error.
    cell_variance : the variance because positions within cells are unknown.
    """

    value: Floats
    influences: list[Floats]
    product: Floats
    cell_variance: Floats


def privacy_variance(levels: LevelCounts, area: LevelArea, leaves: Floats) -> Floats:
    """The AUC's variance about this data's AUC by drawing levels and rows and by flipped answers.

    Let g be a class's influences on a level less their mean, v the level's noise, m of the class's
    n records reporting there, and mean and variance of g over these n records. One report's
    ``sum g z`` has the second moment ``(m/n**2) v |g|**2`` and the mean ``mean(g)``. Where every
    record reports, only its own variance counts: a level gives ``v |g|**2 - n mean(g)**2 -
    n Var(g)``. Where records are assigned to the levels, without replacement, all levels give
    ``sum_l (v |g|**2 - (n**2/m) mean(g)**2) - n Var(sum_l g)``.

    Influences are themselves noisy: each class's squared ones are too large by ``product`` on
    average, so that both classes' sum less twice that is the first order, and ``product`` itself
    the second.

    Parameters
    ----------
    leaves : estimated counts of the lowest level for the records' fraction of each node, shape
        (..., 2, 2**h).
    """
    fractions = levels_of(leaves / levels.classes[:, np.newaxis])
    sizes = levels.classes[:, np.newaxis]
    first = np.zeros(area.value.shape)
    total: Floats = np.zeros(1)
    for level, influences in enumerate(area.influences):
        fraction = fractions[level + 1]
        centred = influences - influences.mean(axis=-1, keepdims=True)
        mean = np.sum(fraction * centred, axis=-1)
        scale = levels.classes**2 / np.maximum(levels.reports[..., level], 1.0)
        noise = levels.variances[..., level] * np.sum(centred**2, axis=-1) - scale * mean**2
        first = first + noise.sum(axis=-1)
        total = np.repeat(total, 2, axis=-1) + centred if levels.noise.sampled else centred
        if not levels.noise.sampled or level == levels.noise.height - 1:
            first = first - np.sum(sizes[:, 0] * _variance_over_records(fraction, total), axis=-1)
    return np.maximum(first - 2 * area.product, 0.0) + area.product


def _variance_over_records(fraction: Floats, values: Floats) -> Floats:
    """The variance of values over records with these fractions, which are noisy; at least 0."""
    mean = np.sum(fraction * values, axis=-1, keepdims=True)
    return np.maximum(np.sum(fraction * (values - mean) ** 2, axis=-1), 0.0)
