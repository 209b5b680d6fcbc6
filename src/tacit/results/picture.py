"""Pictures of results, with matplotlib (an extra)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.results.bands import Band
from tacit.results.curve import Curve
from tacit.results.estimate import RECORDS_INTERVAL

RECORDS_BAND = "95 % band (these records)"


def new_axes() -> Any:
    """Fresh matplotlib axes that need no screen.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install 'tacit[plot]'"
        ) from None
    return Figure(figsize=(6, 6), layout="constrained").subplots()


def draw_evaluation(evaluation: Any, axes: Any = None) -> Any:
    """The ROC curve with its band where there is one, else the AUC with its interval."""
    chosen = new_axes() if axes is None else axes
    if evaluation.roc is not None:
        draw_roc(evaluation.roc, chosen)
    elif evaluation.has_signal:
        _draw_interval(evaluation, chosen)
    value = f"{evaluation.estimate.value:.4f}" if evaluation.has_signal else "not enough signal"
    chosen.set_title(f"{evaluation.protocol['name']}: {evaluation.figure} {value}")
    return chosen


def draw_roc(curve: Curve, axes: Any) -> None:
    """The curve, and the band of the true-positive rate about these records, within [0, 1]."""
    order = np.argsort(curve.false_positive_rate, kind="stable")
    across = curve.false_positive_rate[order]
    up = curve.true_positive_rate[order]
    noise = Band(curve.true_positive_rate, curve.true_positive_error, np.zeros_like(up))
    low, high = (edge[order] for edge in noise.limits(0.95))
    axes.fill_between(across, low, high, alpha=0.25, linewidth=0, label=RECORDS_BAND)
    axes.plot(across, up, label="estimate")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
    axes.legend(loc="lower right")


def draw_interval(bounds: tuple[float, float], axes: Any) -> None:
    """An interval about these records, as a bar with ends."""
    middle, reach = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    axes.errorbar([0], [middle], yerr=[reach], fmt="none", capsize=6, label=RECORDS_INTERVAL)


def _draw_interval(evaluation: Any, axes: Any) -> None:
    """The value as a point, and its interval about these records."""
    value = evaluation.estimate.value
    axes.plot([0], [value], "o", label="estimate")
    if math.isfinite(evaluation.estimate.standard_error):
        low, high = evaluation.estimate.interval(0.95)
        draw_interval((low, high), axes)
    if evaluation.exact is not None:
        axes.axhline(evaluation.exact, color="grey", linestyle="--", label="exact (not private)")
    axes.set_xticks([])
    axes.set_ylabel(evaluation.figure)
    axes.legend()
