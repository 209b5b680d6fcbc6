"""Pictures of results, with matplotlib (an extra)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.results.findings import Curve


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
    """The curve, and a band of 1.96 standard errors of the true-positive rate."""
    order = np.argsort(curve.false_positive_rate, kind="stable")
    across = curve.false_positive_rate[order]
    up = curve.true_positive_rate[order]
    reach = 1.96 * curve.true_positive_error[order]
    axes.fill_between(across, up - reach, up + reach, alpha=0.25, linewidth=0, label="95 % band")
    axes.plot(across, up, label="estimate")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
    axes.legend(loc="lower right")


def _draw_interval(evaluation: Any, axes: Any) -> None:
    """The value as a point, and its interval, which a known bias may move off the point."""
    value = evaluation.estimate.value
    axes.plot([0], [value], "o", label="estimate")
    if math.isfinite(evaluation.estimate.standard_error):
        low, high = evaluation.estimate.interval(0.95)
        axes.errorbar([0], [(low + high) / 2], yerr=[(high - low) / 2], fmt="none", capsize=6)
    if evaluation.exact is not None:
        axes.axhline(evaluation.exact, color="grey", linestyle="--", label="exact (not private)")
    axes.set_xticks([])
    axes.set_ylabel(evaluation.figure)
    axes.legend()
