"""Display objects in the manner of scikit-learn: made from a result, drawn at once or later.

They need matplotlib (the extra ``plot``).

Pictures of comparisons and of groups, with matplotlib (an extra).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tacit.arrays import Floats
from tacit.results import drawing
from tacit.results.curves.curve import Curve, Reliability
from tacit.results.estimate import RECORDS_INTERVAL, bounds_line
from tacit.results.evaluation import Evaluation
from tacit.results.several import Comparison, GroupedEvaluation


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
        self.ax_ = drawing.draw_evaluation(self.result, ax)
        return self


@dataclass(eq=False)
class CalibrationDisplay:
    """The observed share of positives compared with the predicted one, with bands about the
    population.

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
        self.ax_ = drawing.new_axes() if ax is None else ax
        drawing.draw_reliability(self.reliability, self.ax_)
        return self


def draw_comparison(comparison: Comparison) -> Any:
    """Both models' figures and, below, their difference; the figure.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    upper = drawing.new_axes(6.4, 4.6)
    figure = upper.figure
    upper.remove()
    upper, lower = figure.subplots(2, 1, height_ratios=(2, 1))
    exact = comparison.exact or (None, None)
    bars = [
        drawing.Bar(name, estimate, known)
        for name, estimate, known in zip(
            comparison.names, (comparison.first, comparison.second), exact, strict=True
        )
    ]
    name = comparison.run.protocol["name"]
    origin = f"{name}, {drawing.cost_words(comparison.spent)} for all three figures"
    drawing.draw_bars(bars, "Two models", origin, "AUC", upper)
    difference = comparison.difference
    title = f"{comparison.names[0]} less {comparison.names[1]}"
    caption = "not enough signal"
    if comparison.has_signal:
        title += f": {difference.value:+.4f}"
        caption = f"{RECORDS_INTERVAL}: {bounds_line(difference.interval(0.95), '+')}"
    drawing.draw_bars([drawing.Bar("", difference)], title, caption, "difference", lower, zero=True)
    for legend in figure.legends[1:]:
        legend.remove()
    return figure


def draw_groups(grouped: GroupedEvaluation) -> Any:
    """Every group's figure below each other; the figure.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    bars = [
        drawing.Bar(group.name if group.has_signal else f"{group.name}: no figure", group.estimate)
        for group in grouped.groups
    ]
    names = {each.evaluation.protocol["name"] for each in grouped.groups if each.evaluation}
    origin = (
        f"{', '.join(sorted(names))}, {drawing.cost_words(grouped.spent)} over all groups together"
    )
    title = f"{grouped.figure} of {len(bars)} groups"
    return drawing.draw_bars(bars, title, origin, grouped.figure).figure
