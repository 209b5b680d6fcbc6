"""The picture of a result that is known as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.results.curve import Curve
from tacit.results.picture import draw_interval, draw_roc, new_axes
from tacit.results.reading import Result

COLUMNS = (
    "thresholds",
    "false_positive_rate",
    "true_positive_rate",
    "false_positive_error",
    "true_positive_error",
)


def draw_result(result: Result) -> Any:
    """Matplotlib axes with the ROC curve and its band, or the figure with its interval.

    Raises
    ------
    ImportError : when matplotlib is not installed.
    """
    axes, estimate = new_axes(), result.estimate
    if "roc" in result.content:
        draw_roc(_curve(result.content["roc"]), axes)
    elif estimate.has_signal:
        axes.plot([0], [estimate.value], "o", label="estimate")
        if estimate.has_interval:
            low, high = estimate.interval
            draw_interval((low, high), axes)
        axes.set_xticks([])
        axes.set_ylabel(result.figure)
    value = f"{estimate.value:.4f}" if estimate.has_signal else "not enough signal"
    axes.set_title(f"{result.content['protocol']['name']}: {result.figure} {value}")
    return axes


def _curve(entry: Mapping[str, Sequence[float | None]]) -> Curve:
    return Curve(*(_array(entry[name]) for name in COLUMNS))


def _array(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
