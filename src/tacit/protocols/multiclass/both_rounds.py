"""The AUCs of several classes by both rounds, and the errors that are left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import curves, trees
from tacit.metrics.cells.score_distribution import rising_fractions
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.protocols.multiclass import second_round
from tacit.protocols.multiclass.forests import ClassForests
from tacit.protocols.shared.influence_sum import FIXED_POINT

DRAWS = 32
"""Imitated first rounds by which the products of their errors are measured; all replicates have the
same."""


def refined(
    first: ClassForests,
    fields: Mapping[str, Floats],
    sums: Floats,
    cost: Cost,
    noises: float,
) -> ClassForests:
    """The AUCs of all classes by both rounds, with errors of which none is linear in the counts.

    Parameters
    ----------
    first : the first round.
    fields : what was published of it.
    sums : the noisy sums in units, shape (..., C).
    cost : of the second round.
    noises : the noise that arrived, as a multiple of what its epsilon needs.
    """
    influences, classes = second_round.ClassInfluences.of(fields), sums.shape[-1]
    smaller, units = (
        fields[second_round.SIZES].min(axis=-1),
        second_round.number_units(cost.epsilon, classes),
    )
    reach = influences.sensitivity(Adjacency(cost.adjacency))[..., np.newaxis] / FIXED_POINT
    # A_c + S_c / m_c, with S_c in units of D / (R - C)
    unit = reach / ((units - classes) * smaller)
    by_noise = noises * float(discrete_laplace_variance(units / cost.epsilon)) * unit**2
    bias, remaining = remaining_errors(fields, first)
    areas = replace(
        first.areas,
        value=influences.areas + sums * unit - bias,
        other_variance=by_noise + remaining,
        one_draw=by_noise,
        cell_variance=_hidden_variance(fields, first),
        weights=np.zeros_like(first.areas.weights),
    )
    return replace(first, areas=areas)


def remaining_errors(fields: Mapping[str, Floats], first: ClassForests) -> tuple[Floats, Floats]:
    """The mean and the mean square of what products of two errors leave, shape (..., C) each.

    Functions that rise and stay within [0, 1] err to one side on average, and so do their products.
    Mean and mean square are measured (a parametric bootstrap, Efron and Tibshirani 1993): noise as
    that of the first round is added once more to what came out of it, and functions and sizes
    follow as they did. With true F+ and F- of P and N records, the first round's own f+, f-, p and
    n, and a = A(f+, f-), both rounds state

        a + (A(F+, f-) - a) P/p + (A(f+, F-) - a) N/n

    for A(F+, F-). This is arithmetic of what was published, and costs nothing. The mean is taken
    off the AUC; its square still counts as an error, as it is itself about another truth.
    """
    cells, random = fields[second_round.OWN_BELOW].shape[-1] + 1, np.random.default_rng(0)
    noises = [
        each.noise.drawn(random, DRAWS).reshape(DRAWS, cells, -1).sum(axis=-1)
        for each in (first.positives, first.negatives)
    ]
    errors, (_, variances) = random.normal(size=(DRAWS, 2)), first.sizes()
    left = np.stack(
        [
            _left_of(
                [
                    fields[name][..., number, :]
                    for name in (second_round.OWN_BELOW, second_round.OTHER_BELOW)
                ],
                fields[second_round.SIZES][..., number, :],
                noises,
                errors * np.sqrt(variances[..., number, np.newaxis, :]),
            )
            for number in range(fields[second_round.SIZES].shape[-2])
        ],
        axis=-2,
    )
    return left.mean(axis=-1), np.mean(left**2, axis=-1)


def _left_of(
    below: list[Floats], sizes: Floats, noises: list[Floats], size_errors: Floats
) -> Floats:
    """What ``remaining_errors`` leaves of one class, shape (..., draws)."""
    true, seen, ratios = [], [], []
    for row in (0, 1):
        counts = _shares(below[row]) * sizes[..., row, np.newaxis]
        noisy = counts[..., np.newaxis, :] + noises[row]
        size = sizes[..., row, np.newaxis]
        true.append(_reached(below[row])[..., np.newaxis, :])
        seen.append(rising_fractions(noisy))
        ratios.append(size / np.maximum(size + size_errors[..., row], 1.0))
    area = _line_area(seen[0], seen[1])
    return np.asarray(
        area
        + (_line_area(true[0], seen[1]) - area) * ratios[0]
        + (_line_area(seen[0], true[1]) - area) * ratios[1]
        - _line_area(true[0], true[1])
    )


def _line_area(positives: Floats, negatives: Floats) -> Floats:
    """The AUC of two functions that are straight between equal edges, given at all of these."""
    middles = (negatives[..., 1:] + negatives[..., :-1]) / 2
    return np.asarray(np.sum(np.diff(positives, axis=-1) * middles, axis=-1))


def _hidden_variance(fields: Mapping[str, Floats], first: ClassForests) -> Floats:
    """What straight lines inside cells hide from an AUC, as a variance, shape (..., C).

    Of a pair of records in one cell at the parts u and v, both rounds state ``u - v + 1/2`` for
    ``1[u > v]``. That has the variance 1/12 where both are uniform, and no part that one record
    explains: of p P and q N records of a cell, placed at random, the variances of all pairs add up
    to ``p q / (12 P N)`` of the AUC. A crowd that stands clear of the noise counts as one record of
    either kind.
    """
    counts, errors = [], []
    for row, (name, forest) in enumerate(
        ((second_round.OWN_BELOW, first.positives), (second_round.OTHER_BELOW, first.negatives))
    ):
        counts.append(_shares(fields[name]) * fields[second_round.SIZES][..., row, np.newaxis])
        depth = counts[-1].shape[-1].bit_length() - 1
        errors.append(math.sqrt(float(trees.node_variances(forest.noise.weighting)[depth])))
    pairs = np.prod(fields[second_round.SIZES], axis=-1)
    placed = np.sum(counts[0] * counts[1], axis=-1) / 12 / pairs**2
    return placed + curves.lone_crowd_variance(counts[0], counts[1], (errors[0], errors[1]))


def _shares(below: Floats) -> Floats:
    """The share of a class in every cell."""
    return np.diff(_reached(below), axis=-1)


def _reached(below: Floats) -> Floats:
    """A distribution function at all edges, those at the ends too."""
    end = np.zeros_like(below[..., :1])
    return np.concatenate([end, below, end + 1], axis=-1)
