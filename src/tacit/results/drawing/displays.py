"""Display objects in the manner of scikit-learn: made from a result, drawn at once or later.

They need matplotlib (the extra ``plot``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.results.curves.bands import Reliability
from tacit.results.curves.curve import Curve
from tacit.results.drawing.picture import draw_evaluation, new_axes
from tacit.results.evaluation import Evaluation

POPULATION_BAND = "95 % band (population)"


@dataclass(eq=False)
class RocCurveDisplay:
    """The ROC curve of a result with its band.

    Parameters
    ----------
    result : the evaluation.
    curve : its ROC curve.

    Examples
    --------
    >>> import tacit
    >>> result = tacit.evaluate(tacit.binormal_scores(500, 1500, 0.8, seed=0), "dpauc", epsilon=1.0)
    >>> display = RocCurveDisplay.from_result(result)
    >>> display.ax_.get_xlabel(), display.fpr.shape == display.tpr.shape
    ('false-positive rate', True)
    """

    result: Evaluation
    curve: Curve
    ax_: Any = field(default=None, repr=False)

    @classmethod
    def from_result(cls, result: Evaluation, *, ax: Any = None) -> RocCurveDisplay:
        """Make the display and draw it.

        Parameters
        ----------
        result : an evaluation.
        ax : matplotlib axes to draw on; None makes a new figure.

        Raises
        ------
        ValueError : where the result has no ROC curve.
        ImportError : when matplotlib is not installed.
        """
        if result.roc is None:
            raise ValueError(f"{result.protocol['name']} gives no ROC curve")
        return cls(result, result.roc).plot(ax=ax)

    @property
    def fpr(self) -> Floats:
        """The false-positive rates, shape (T,)."""
        return self.curve.false_positive_rate

    @property
    def tpr(self) -> Floats:
        """The true-positive rates, shape (T,)."""
        return self.curve.true_positive_rate

    @property
    def roc_auc(self) -> float:
        """The estimated AUC."""
        return float(self.result.estimate)

    @property
    def figure_(self) -> Any:
        """The matplotlib figure; None before it is drawn."""
        return None if self.ax_ is None else self.ax_.figure

    def plot(self, *, ax: Any = None) -> RocCurveDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes to draw on; None makes a new figure.

        Raises
        ------
        ImportError : when matplotlib is not installed.
        """
        self.ax_ = draw_evaluation(self.result, ax)
        return self


@dataclass(eq=False)
class CalibrationDisplay:
    """The observed share of positives beside the predicted one, with bands about the population.

    Parameters
    ----------
    result : the evaluation.
    reliability : its buckets.
    """

    result: Evaluation
    reliability: Reliability
    ax_: Any = field(default=None, repr=False)

    @classmethod
    def from_result(cls, result: Evaluation, *, ax: Any = None) -> CalibrationDisplay:
        """Make the display and draw it.

        Parameters
        ----------
        result : an evaluation.
        ax : matplotlib axes to draw on; None makes a new figure.

        Raises
        ------
        ValueError : where the result has no histogram, or scores state no probability.
        ImportError : when matplotlib is not installed.
        """
        histogram = result.histogram
        if histogram is None or not histogram.states_probabilities:
            raise ValueError(f"{result.protocol['name']} gives no calibration of these scores")
        return cls(result, histogram.reliability()).plot(ax=ax)

    @property
    def prob_pred(self) -> Floats:
        """The mean predicted probability of each bucket, shape (T,)."""
        return self.reliability.predicted

    @property
    def prob_true(self) -> Floats:
        """The observed share of positives of each bucket, shape (T,)."""
        return self.reliability.observed.value

    @property
    def figure_(self) -> Any:
        """The matplotlib figure; None before it is drawn."""
        return None if self.ax_ is None else self.ax_.figure

    def plot(self, *, ax: Any = None) -> CalibrationDisplay:
        """Draw the buckets that have records.

        Parameters
        ----------
        ax : matplotlib axes to draw on; None makes a new figure.

        Raises
        ------
        ImportError : when matplotlib is not installed.
        """
        axes = new_axes() if ax is None else ax
        known = np.isfinite(self.prob_true) & np.isfinite(self.prob_pred)
        low, high = (edge[known] for edge in self.reliability.observed.limits())
        across, up = self.prob_pred[known], self.prob_true[known]
        axes.fill_between(across, low, high, alpha=0.25, linewidth=0, label=POPULATION_BAND)
        axes.plot(across, up, marker="o", markersize=3, label="estimate")
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle="--")
        axes.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
        axes.set(xlabel="predicted probability", ylabel="observed share of positives")
        axes.legend(loc="upper left")
        self.ax_ = axes
        return self
