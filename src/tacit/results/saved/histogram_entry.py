"""A histogram in a result's JSON: the cells, the errors of their tree, and where they lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.metrics.tree_noise import TreeNoise
from tacit.results.curves.histogram import Histogram
from tacit.results.curves.score_axis import ScoreAxis

MAX_CELLS = 2**14
"""The most cells that are written; with more a file has the figures that follow from them."""


def histogram_entry(histogram: Histogram) -> dict[str, Any]:
    """The ``histogram`` entry, where there are not too many cells. It says nothing new: all was
    released.

    Parameters
    ----------
    histogram : of a result.
    """
    if histogram.counts.shape[-1] > MAX_CELLS:
        return {}
    noise, scale = histogram.noise, histogram.axis.scale
    return {
        "histogram": {
            "counts": histogram.counts.tolist(),
            "supported": histogram.supported,
            "buckets": histogram.buckets,
            "noise": {
                "variances": _listed(noise.variances),
                "assumed": _listed(noise.assumed),
                "factors": _listed(noise.factors),
                "extra": float(noise.extra),
                "centred": bool(noise.centred),
            },
            "axis": {
                "knots": scale.knots.tolist(),
                "low": scale.low,
                "high": scale.high,
                "unit": histogram.axis.unit,
            },
        }
    }


def histogram_of(entry: Mapping[str, Any]) -> Histogram:
    """The histogram of an entry.

    Raises
    ------
    ValueError : for an entry whose parts do not fit together.
    """
    noise, axis = entry["noise"], entry["axis"]
    positives, negatives = map(len, entry["counts"])
    if positives != negatives:
        raise ValueError(f"both classes must have as many cells, got {positives} and {negatives}")
    counts, variances = np.array(entry["counts"], dtype=np.float64), _array(noise["variances"])
    assumed, factors = (
        None if noise[name] is None else _array(noise[name]) for name in ("assumed", "factors")
    )
    # the root, both classes, and every level below them
    for levels in (variances, assumed, factors):
        if levels is not None and 2 ** (levels.size - 1) != counts.size:
            raise ValueError(f"{counts.size} cells cannot have {levels.size} levels")
    tree = TreeNoise(variances, assumed, factors, noise["extra"], noise["centred"])
    scale = ScoreScale(np.array(axis["knots"], dtype=np.float64), axis["low"], axis["high"])
    return Histogram(
        counts, tree, entry["supported"], entry["buckets"], ScoreAxis(scale, axis["unit"])
    )


def _listed(values: Floats | None) -> list[float | None] | None:
    """Numbers for JSON; infinity, which an unobserved level has, is null."""
    if values is None:
        return None
    return [float(value) if math.isfinite(value) else None for value in values]


def _array(values: list[float | None]) -> Floats:
    return np.array([math.inf if value is None else value for value in values])
