"""The picture of a result that is known as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.results.curves.curve import Curve
from tacit.results.drawing.bars import NONE
from tacit.results.drawing.picture import Pictured, draw_pictured
from tacit.results.drawing.style import cost_words
from tacit.results.saved.reading import Result, number

COLUMNS = (
    "thresholds",
    "false_positive_rate",
    "true_positive_rate",
    "false_positive_error",
    "true_positive_error",
)


def draw_result(result: Result) -> Any:
    """Matplotlib axes with the ROC curve and its band, or the figure with its intervals.

    Raises
    ------
    ImportError : when matplotlib is not installed.
    """
    estimate, spent = result.estimate, result.content["spent"]
    pictured = Pictured(
        result.content["protocol"]["name"],
        result.figure,
        estimate.value if estimate.has_signal else math.nan,
        estimate.interval if estimate.has_interval else NONE,
        estimate.population_interval,
        cost_words(number(spent["epsilon"]), spent["adjacency"]),
    )
    entry = result.content.get("roc")
    return draw_pictured(pictured, None if entry is None else _curve(entry))


def _curve(entry: Mapping[str, Sequence[float | None]]) -> Curve:
    return Curve(*(_array(entry[name]) for name in COLUMNS))


def _array(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
