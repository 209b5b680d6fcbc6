"""Counts on every level of two trees from one-bit reports, and the area made of them.

The classes are on the axis before the last: 0 negatives, 1 positives. Level l has ``2**l`` nodes.
The levels are made consistent by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.metrics import curves, trees
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.symbols import walsh_hadamard
from tacit.protocol import devices
from tacit.protocol.fields import ragged_of

MIN_CONCENTRATION = 4.0
"""Least ratio at which pairs within cells count as concentrated: the mean of their squared numbers
over the square of their mean. Smooth densities have a smaller ratio."""

CORRECTION_ERRORS = 2.0
"""Number of its standard errors that are added to the estimated bias of cells. In low trees noise
moves that estimate and the area in the same direction (correlation 0.9): where the area is too low,
the bias is underestimated."""

SMOOTH_HEIGHT = 5
"""Largest height at which the slopes of the densities are estimated: below it noise is small."""


def table_of(reply: tp.Reply, height: int) -> Integers:
    """How often each report came, shape (..., 2**(h+1), 2, 2): by node ``2**l + j``, label and bit.

    Raises
    ------
    TypeError : when the reports are not ragged.
    ValueError : for a report that no record of this height can send.

    Examples
    --------
    >>> from tacit.data.ragged import Ragged
    >>> sent = Ragged(np.array([12, 15, 15], dtype=np.uint32), np.array([0, 3]))
    >>> table_of({"reports": sent}, 1)[3].tolist()
    [[1, 0], [0, 2]]
    """
    size = 2 ** (height + 3)
    counts = devices.counts_in(reply)
    if counts is not None:
        return counts.reshape(size // 4, 2, 2)
    values = ragged_of(reply["reports"], "reports").values
    for extreme in (values.min(), values.max()):
        if not 8 <= extreme < size:
            raise ValueError(f"reports must be from 8 to {size - 1}, got {extreme}")
    drawn = devices.output_counts(values, size)
    return drawn.reshape(*values.shape[:-1], size // 4, 2, 2)


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
    fractions = trees.levels_of(leaves / levels.classes[:, np.newaxis])
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


def consistent_counts(levels: LevelCounts) -> Floats:
    """The lowest level's counts by weighted least squares over all levels, shape (..., 2, 2**h).

    The weights are those of the expected numbers of reports, so they are public, and the same for
    both classes; the root is exact.
    """
    return trees.consistent_leaves(levels.counts, levels.noise.record_variances)


def consistent_area(levels: LevelCounts, leaves: Floats) -> LevelArea:
    """The area of the leaves, pairs within a leaf counted one half."""
    negatives, positives = leaves[..., 0, :], leaves[..., 1, :]
    by_positive, by_negative = curves.cell_influences(positives, negatives)
    weights = np.stack([by_negative, by_positive], axis=-2)
    variances = levels.noise.record_variances
    value = curves.cell_area(positives, negatives)
    return LevelArea(
        value=value,
        influences=trees.observation_weights(weights, variances)[1:],
        product=np.full(value.shape, product_variance(variances) / levels.pairs),
        cell_variance=np.zeros(value.shape),
    )


def product_variance(variances: Floats) -> float:
    """The variance of the cell area's products of errors, times the number of pairs.

    A consistent tree's errors are independent differences between siblings, of variance
    ``D_a = 2 u_{a+1}`` below level a, with u the ``subtree_variances`` of one record. In
    the area the product of two differences, one above the other on levels a < b, has the weight
    ``2**(a-b) / 4``; all other products have the weight 0. There are ``2**b`` such pairs of nodes,
    with either class above: ``sum_{a<b} 2**(2a-b) D_a D_b / 8``.
    """
    differences = 2 * trees.subtree_variances(variances)[1:]
    depth = np.arange(differences.size)
    above, below = np.triu_indices(differences.size, 1)
    weights = 2.0 ** (2 * depth[above] - depth[below]) / 8
    return float(np.sum(weights * differences[above] * differences[below]))


def within_leaf_variance(levels: LevelCounts, leaves: Floats) -> Floats:
    """The error of counting pairs within a leaf one half, as a variance of the AUC.

    Densities that are linear inside cells change the area by ``density_correction``, in proportion
    to the squared width. It is estimated on at most ``2**SMOOTH_HEIGHT`` cells, where noise is
    small compared with it, and scaled to the leaves' width; ``CORRECTION_ERRORS`` of its standard
    errors are added. Scores that concentrate into few leaves, or leaves that are few, add a further
    error. The correction is not added to the estimate: at useful heights it adds more noise than it
    removes bias.
    """
    height = min(levels.noise.height, SMOOTH_HEIGHT)
    negatives, positives = np.moveaxis(trees.levels_of(leaves)[height], -2, 0)
    noise = levels.classes * leaf_variance(levels.noise.record_variances[: height + 1])
    error = np.sqrt(curves.density_correction_variance(positives, negatives, noise[1], noise[0]))
    correction = np.abs(curves.density_correction(positives, negatives)) + CORRECTION_ERRORS * error
    scale = 4.0 ** (height - levels.noise.height)
    shares = leaves / levels.classes[:, np.newaxis]
    hidden = np.maximum(concentrated_variance(levels, leaves), curves.coarse_variance(shares))
    return (scale * correction) ** 2 + hidden


def concentrated_variance(levels: LevelCounts, leaves: Floats) -> Floats:
    """The error of cells that hold far more pairs than others, as a variance of the AUC.

    The fraction of a cell's pairs that positives win is taken as uniform on [0, 1], of variance
    1/12, for squared numbers of pairs beyond ``MIN_CONCENTRATION`` times those of equal cells. A
    squared count is too large by its noise variance on average, which is subtracted first.
    """
    variance = levels.classes[:, np.newaxis] * leaf_variance(levels.noise.record_variances)
    squares = np.prod(leaves**2 - variance, axis=-2).sum(axis=-1)
    uniform = np.prod(leaves, axis=-2).sum(axis=-1) ** 2 / leaves.shape[-1]
    return np.maximum(squares - MIN_CONCENTRATION * uniform, 0.0) / 12 / levels.pairs**2


def leaf_variance(variances: Floats) -> float:
    """The variance of a consistent leaf by one record: a difference on level a enters it halved for
    every level from there down, ``sum_a D_a 4**(a-h)``."""
    differences = 2 * trees.subtree_variances(variances)[1:]
    return float(np.sum(differences * 4.0 ** (np.arange(differences.size) - differences.size)))


def planned_variance(noise: ReportNoise, records: int) -> float:
    """The AUC's variance for so many records, half of them positive, uniform.

    The influences then fall evenly from 1/2 to -1/2 over a class's n records: half the difference
    of the halves' means below a node of level a is ``2**-(a+2) / n``, and there are ``2**a`` such
    nodes. The variance of products of errors is added.
    """
    variances = noise.record_variances
    differences = 2 * trees.subtree_variances(variances)[1:]
    one_class = np.sum(differences * 2.0 ** -(np.arange(differences.size) + 4))
    return float(4 * one_class / records) + 4 * product_variance(variances) / records**2


def result_from_levels(levels: LevelCounts, leaves: Floats, area: LevelArea) -> tp.ServerResult:
    """The area of two trees of counts, with its errors and warnings."""
    error = np.sqrt(privacy_variance(levels, area, leaves))
    cell_variance = np.sqrt(area.cell_variance + within_leaf_variance(levels, leaves))
    value = np.where(error > 0.5, np.nan, area.value)
    negatives, positives = levels.classes
    like = np.zeros(value.shape)
    return tp.ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.sqrt(plug_in_variance(value, positives, negatives)),
        positives=like + positives,
        negatives=like + negatives,
        approximation_error=cell_variance,
        warnings=_warnings(float(error), float(cell_variance)) if value.ndim == 0 else (),
    )


def _warnings(error: float, cell_variance: float) -> tuple[str, ...]:
    if error > 0.5:
        return (
            "not enough signal at this epsilon for this number of records: "
            f"the predicted error of the AUC is {error:.2f}",
        )
    if cell_variance > error:
        return (
            "what the cells hide outweighs the privacy noise: use a larger height, or map the "
            "scores by an agreed public function so that they spread over their scale",
        )
    return ()
