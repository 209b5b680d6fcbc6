"""A ROC curve as a result writes it: at no more points than a picture needs."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from tacit.results.curves.bands import numbers
from tacit.results.curves.curve import Curve

DRAWN = 500
"""Largest number of points of a curve that are written; the result itself has them all."""


def roc_entry(curve: Curve) -> dict[str, list[float | None]]:
    """The curve with the bands of its true-positive rates."""
    low, high = curve.band.limits()
    bands = {"true_positive_rate_low": numbers(low), "true_positive_rate_high": numbers(high)}
    return curve.to_dict() | bands


def drawn(curve: Curve) -> Curve:
    """The curve at no more points than a picture needs, both ends among them."""
    size = curve.thresholds.size
    if size <= DRAWN:
        return curve
    indices = np.linspace(0, size - 1, DRAWN).round().astype(np.int64)
    named = [item.name for item in fields(curve) if getattr(curve, item.name) is not None]
    return replace(curve, **{name: getattr(curve, name)[..., indices] for name in named})
