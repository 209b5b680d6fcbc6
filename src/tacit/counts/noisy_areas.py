"""AUCs of noisy cells of both classes, at the depth that suits the noise, with their errors.

An area is a sum over the tree's nodes of the right child's positives times the left child's
negatives, and over the cells of half their pairs. Deeper cells have less bias and more noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from tacit.arrays import Flags, Floats
from tacit.metrics import curves

CELL_BIAS = 0.3
"""Assumed cell bias of an AUC, in units of ``4**-depth`` for cells of width ``2**-depth``: about
the bias of the uncorrected area of linear densities. The depth is chosen with it; no error is
stated by it."""

AREA_BIAS = (CELL_BIAS, 2)
"""What cells of the width w hide of an area: the first times w to the power of the second."""

CONCENTRATION_DEPTH = 6
"""Largest depth of the cells in which concentration is measured: noise hardly shows in so few."""


@dataclass(frozen=True, eq=False)
class Areas:
    """AUCs with their errors; all arrays of shape (...), one for each pair of trees.

    Parameters
    ----------
    value : the areas.
    other_variance : by noise, of what is not linear in the counts: products of both classes'
        noises, or a second round's noise and what it leaves.
    cell_variance : the variance by what cells hide (``hidden_variance``).
    sampling_variance : DeLong's, or where noise hides that, Hanley and McNeil's.
    weights : the derivative of an area by every count, shape (..., 2, B), positives first.
    one_draw : the part of ``other_variance`` that is one draw of Laplace noise.
    """

    value: Floats
    other_variance: Floats
    cell_variance: Floats
    sampling_variance: Floats
    weights: Floats
    one_draw: Floats | float = 0.0


NodeVariances = tuple[Floats, Floats]
"""The variances of a node's count by level, a class's total first, of positives and negatives."""


def areas(cells: Floats, variances: NodeVariances, even: bool, tied: Flags | None = None) -> Areas:
    """The AUC of every pair of trees, at the depth that suits the noise.

    Parameters
    ----------
    cells : both classes' counts, positives first, shape (..., 2, B).
    variances : of a node's count by noise, shape (h+1,) each; zeros for exact counts.
    even : whether scores are their own positions, so that a cell is concentrated if it has many
        times the pairs of the mean cell.
    tied : which cells hold one score only, shape (B,) or (..., B): one half of their pairs is won,
        so they hide nothing. For cells that earlier counts placed: the area is that of all of them.
    """
    products, placed = noise_products(*variances), tied is not None
    depth = products.size - 1 if placed else area_depth(cells, products, even)
    coarse, exact = at_depth(cells, depth), not products.any()
    pairs = np.maximum(np.abs(np.prod(coarse.sum(axis=-1), axis=-1)), 1.0)
    apart, part = _untied(coarse, tied)
    errors = sqrt(float(variances[0][depth])), sqrt(float(variances[1][depth]))
    hidden = hidden_variance(apart[..., 0, :], apart[..., 1, :], even, errors, placed)
    bent = _correction(apart[..., 0, :], apart[..., 1, :], exact)
    bent, hidden = (np.where(part > 0, each, 0.0) for each in (part * bent, part**2 * hidden))
    value = curves.cell_area(coarse[..., 0, :], coarse[..., 1, :]) + bent
    return Areas(
        value,
        products[depth] / pairs**2,
        hidden,
        sampling_variance(cells, value, exact),
        np.repeat(influence_weights(coarse, tied), cells.shape[-1] >> depth, axis=-1),
    )


def hidden_variance(
    positives: Floats,
    negatives: Floats,
    even: bool,
    errors: tuple[float, float] = (0.0, 0.0),
    placed: bool = False,
) -> Floats:
    """The variance of areas by what cells hide, of cells of shape (..., B) each.

    Three things in cells are unknown: the position of a record in its cell, the densities inside
    concentrated cells, and the curvature of the densities.

    Parameters
    ----------
    positives, negatives : counts.
    even : whether scores are their own positions, so that most cells are filled: then a
        concentration is compared with the mean of all cells, else with its neighbours.
    errors, placed : standard errors of a cell's positives and negatives by noise, and whether
        earlier counts placed the cells (``curves.lone_crowd_variance``).
    """
    if even:
        concentrations = curves.concentration_variance(positives, negatives)
    else:
        concentrations = curves.lone_concentration_variance(positives, negatives, errors, placed)
    return (
        curves.placement_variance(positives, negatives)
        + concentrations
        + curves.curvature_error(positives, negatives) ** 2
    )


def sampling_variance(cells: Floats, value: Floats, exact: bool) -> Floats:
    """The variance of areas by sampling, of cells of shape (..., 2, B)."""
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    if exact:
        return curves.cell_sampling_variance(positives, negatives)
    return curves.noisy_sampling_variance(positives, negatives, value)


def noise_products(positives: Floats, negatives: Floats) -> Floats:
    """The variance of pairs won by products of both classes' noises, at every depth, shape (h+1,).

    A level of n nodes adds ``n/2 v w``, the cells ``n/4 v w``, with v and w the variances of a
    node's consistent count.

    Parameters
    ----------
    positives, negatives : those variances by level, that of a class's total first, shape (h+1,).
    """
    by_level = positives * negatives * 2.0 ** np.arange(positives.size)
    return np.cumsum(by_level / 2) - by_level[0] / 2 + by_level / 4


def area_depth(
    cells: Floats, products: Floats, even: bool, bias: tuple[float, int] = AREA_BIAS
) -> int:
    """The depth with the least sum of the variance by products and the squared assumed bias.

    The first-order variance grows so slowly with the depth that it is left out. Of several trees
    and replicates the mean size counts.

    Parameters
    ----------
    cells, products, even : as ``areas`` takes them.
    bias : what cells of the width w hide of an AUC is taken as the first, times w to the power of
        the second; w is in units of the scores' spread.
    """
    depths = np.arange(products.size)
    if not products.any():
        return int(depths[-1])
    pairs = max(float(np.mean(np.prod(cells.sum(axis=-1), axis=-1))), 1.0)
    concentrated = 1.0 if even else concentration(cells)
    hidden = (bias[0] * (concentrated / 2.0**depths) ** bias[1]) ** 2
    return int(np.argmin(products / pairs**2 + hidden))


def concentration(cells: Floats) -> float:
    """How many times as concentrated the records are as if they filled all cells evenly, at least
    1.

    Both classes' share of pairs in one cell, ``sum p n / (P N)`` over ``2**CROWDING_DEPTH`` cells
    at most, times the number of cells; of several trees and replicates the mean counts.
    """
    depth = min(CONCENTRATION_DEPTH, cells.shape[-1].bit_length() - 1)
    coarse = at_depth(cells, depth)
    inside = float(np.mean(np.sum(np.prod(coarse, axis=-2), axis=-1)))
    pairs = max(float(np.mean(np.prod(coarse.sum(axis=-1), axis=-1))), 1.0)
    return float(np.clip(inside / pairs, 2.0**-depth, 1.0)) * 2.0**depth


def at_depth(cells: Floats, depth: int) -> Floats:
    """The counts in ``2**depth`` cells."""
    return cells.reshape(*cells.shape[:-1], 1 << depth, -1).sum(axis=-1)


def influence_weights(cells: Floats, tied: Flags | None = None) -> Floats:
    """How the area moves with every count, of the shape of the cells (..., 2, B).

    Parameters
    ----------
    cells : both classes' counts, positives first, shape (..., 2, B).
    tied : cells that the density correction leaves out, as ``areas`` takes them.
    """
    plain = np.stack(curves.cell_influences(cells[..., 0, :], cells[..., 1, :]), axis=-2)
    apart, part = _untied(cells, tied)
    bent = np.stack(curves.density_influences(apart[..., 0, :], apart[..., 1, :]), axis=-2)
    bent = part[..., np.newaxis, np.newaxis] * np.nan_to_num(bent)
    if tied is not None:
        bent = np.where(tied[..., np.newaxis, :], 0.0, bent)
    return np.where(np.isnan(plain), 0.0, plain + bent)


def _untied(cells: Floats, tied: Flags | None) -> tuple[Floats, Floats]:
    """The counts of cells that are not tied, 0 in the others, and their part of all pairs."""
    if tied is None:
        return cells, np.ones(())
    apart = np.where(tied[..., np.newaxis, :], 0.0, cells)
    pairs = np.maximum(np.abs(np.prod(cells.sum(axis=-1), axis=-1)), 1.0)
    return apart, np.prod(np.maximum(apart.sum(axis=-1), 0.0), axis=-1) / pairs


def _correction(positives: Floats, negatives: Floats, exact: bool) -> Floats:
    """The density correction; of exact counts, no more than all pairs inside cells could make."""
    correction = curves.density_correction(positives, negatives)
    if not exact:
        return correction
    inside = np.sum(positives * negatives, axis=-1) / 2
    reach = inside / np.maximum(positives.sum(axis=-1) * negatives.sum(axis=-1), 1.0)
    return np.clip(correction, -reach, reach)
