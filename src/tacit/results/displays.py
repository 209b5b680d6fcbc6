"""Pictures of results in one style, and display objects in the manner of scikit-learn.

They need matplotlib (the extra ``plot``). The colours are those of the report's page.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from tacit.arrays import Floats
from tacit.extras import matplotlib_figure
from tacit.privacy.cost import Cost
from tacit.results import estimate as est
from tacit.results.curves.curve import Band, Curve, Reliability
from tacit.results.evaluation import Evaluation
from tacit.results.several import Comparison, GroupedEvaluation

CARD, INK, SOFT, EDGE = "#ffffff", "#1b1f24", "#4c5561", "#d5dae1"
ACCENT, BAND, MARK = "#17568f", "#bcd6ee", "#b3470a"
"""The colours of the light page of a report (``reporting/templates/page.css``)."""


SMALL = 4.0, 0.9
"""Inches that axes with a legend and a caption are wide and high."""


def new_axes(width: float = 6.0, height: float = 6.6) -> Any:
    """Fresh matplotlib axes that need no screen.

    Parameters
    ----------
    width, height : of the figure, in inches.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    size = width, height
    figure = matplotlib_figure().Figure(figsize=size, layout="constrained", facecolor=CARD)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    return figure.subplots()


def styled(axes: Any) -> None:
    """Pale grid lines behind the figures, grey numbers, no frame."""
    axes.set_facecolor(CARD)
    axes.grid(True, color=EDGE, linewidth=0.8)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(colors=SOFT, length=0, labelsize=9)
    for name in (axes.xaxis.label, axes.yaxis.label):
        name.set_color(INK)


def is_small(axes: Any) -> bool:
    """Whether a legend and a caption would not fit into axes, as of several in one figure."""
    extent = axes.get_window_extent()
    return min(extent.width / SMALL[0], extent.height / SMALL[1]) < float(axes.figure.dpi)


def titled(axes: Any, title: str, caption: str) -> None:
    """A title at the left, and below it what a reader must know to use the picture alone.

    Small axes have a small title alone.
    """
    if is_small(axes):
        axes.set_title(title, loc="left", color=INK, fontsize=9)
        return
    lines = caption.count("\n") + 1
    axes.set_title(title, loc="left", color=INK, fontsize=13, fontweight="bold", pad=8 + 13 * lines)
    place = {"xy": (0, 1), "xytext": (0, 5), "textcoords": "offset points"}
    axes.annotate(
        caption, xycoords="axes fraction", ha="left", va="bottom", color=SOFT, fontsize=9, **place
    )


def legend(axes: Any, below: bool = False) -> None:
    """A legend without a frame, where anything is named: in the corner or below the figure.

    Small axes have none.
    """
    if is_small(axes):
        return
    handles, labels = axes.get_legend_handles_labels()
    form = {"frameon": False, "fontsize": 9, "labelcolor": INK}
    if handles and below and axes.figure.get_layout_engine() is not None:
        axes.figure.legend(handles, labels, loc="outside lower left", ncols=2, **form)
    elif handles:
        axes.legend(loc="best" if below else "lower right", **form)


def cost_words(spent: Cost) -> str:
    """What a picture says of privacy.

    Examples
    --------
    >>> cost_words(Cost(1.0)), cost_words(Cost(math.inf))
    ('epsilon 1', 'not private')
    """
    if not math.isfinite(spent.epsilon):
        return "not private"
    named = "" if spent.adjacency is None else f" ({spent.adjacency.value})"
    return f"epsilon {spent.epsilon:g}{named}"


MAX_BARS = 40
"""More bars than this are not legible in one picture; the first are shown."""


class Bar(NamedTuple):
    """One estimate of several below each other.

    Parameters
    ----------
    label : what it is called; empty for one alone.
    estimate : its intervals are drawn where they are finite, and nothing where it is absent.
    exact : the exact figure; None where it is unknown.
    """

    label: str
    estimate: est.Estimate
    exact: float | None = None


def draw_bars(
    bars: Sequence[Bar], title: str, caption: str, figure: str, axes: Any = None, zero: bool = False
) -> Any:
    """Draw estimates below each other; the axes.

    Parameters
    ----------
    bars : the estimates, the first on top.
    title, caption : above the picture.
    figure : what the scale shows.
    axes : matplotlib axes to draw on; None makes a new figure.
    zero : whether a line marks zero, as for differences.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    shown = list(bars[:MAX_BARS])
    chosen = new_axes(6.4, 1.9 + 0.42 * len(shown)) if axes is None else axes
    styled(chosen)
    for height, bar in enumerate(shown):
        _draw(bar, height, chosen, named=height == 0)
    if zero:
        chosen.axvline(0, color=SOFT, linewidth=0.8, linestyle=(0, (4, 4)))
    chosen.set_yticks(range(len(shown)), [bar.label for bar in shown])
    chosen.set_ylim(len(shown) - 0.4, -0.6)
    chosen.grid(False, axis="y")
    more = f"\nthe first {len(shown)} of {len(bars)}" if len(bars) > len(shown) else ""
    chosen.set_xlabel(figure)
    titled(chosen, title, caption + more)
    legend(chosen, below=True)
    return chosen


def _draw(bar: Bar, height: int, axes: Any, named: bool) -> None:
    """A thin line for the population, a thick one for the records, a dot, a mark if exact."""
    estimate = bar.estimate

    def drawn(across: Sequence[float], label: str, form: str = "", **style: Any) -> None:
        if all(map(math.isfinite, across)):
            line = label if named else None
            axes.plot(across, [height] * len(across), form, label=line, **style)

    if estimate.given:
        population, records = estimate.interval(about="population"), estimate.interval()
        flat = {"solid_capstyle": "butt"}
        drawn(population, est.POPULATION_INTERVAL, color=SOFT, linewidth=2, **flat)
        drawn(records, est.RECORDS_INTERVAL, color=ACCENT, linewidth=8, alpha=0.55, **flat)
        drawn([estimate.value], "estimate", "o", color=ACCENT, markersize=6)
    if bar.exact is not None:
        drawn([bar.exact], "exact (not private)", "D", color=MARK, markersize=5)


RECORDS_BAND = "95 % band (these records)"
POPULATION_BAND = "95 % band (population)"
OPERATING = 0.5
"""The threshold of the point that a picture marks, where scores are from 0 to 1."""
NEAR = 0.05
"""Farther from it than this, no point is marked."""


def draw_evaluation(evaluation: Evaluation, axes: Any = None) -> Any:
    """The ROC curve with its band where there is one, else the figure with its intervals; the axes.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    estimate, figure = evaluation.estimate, evaluation.figure
    bounds = estimate.interval()
    title, caption = f"{figure}: not enough signal", ""
    if estimate.given:
        title = f"{figure} {estimate.value:.{est.decimals(bounds)}f}"
        if estimate.has_interval:
            caption = f"{est.RECORDS_INTERVAL}: {est.bounds_line(bounds)}\n"
    caption += f"{evaluation.protocol['name']}, {cost_words(evaluation.spent)}"
    if evaluation.roc is None:
        bar = Bar("", estimate, evaluation.exact)
        return draw_bars([bar], title, caption, figure, axes)
    chosen = new_axes() if axes is None else axes
    draw_roc(evaluation.roc, chosen)
    titled(chosen, title, caption)
    return chosen


def draw_roc(curve: Curve, axes: Any) -> None:
    """The curve from corner to corner, the band of its true-positive rate, and a marked point."""
    order = np.lexsort((curve.true_positive_rate, curve.false_positive_rate))
    across = curve.false_positive_rate[order].clip(0.0, 1.0)
    up = curve.true_positive_rate[order].clip(0.0, 1.0)
    noise = Band(curve.true_positive_rate, curve.true_positive_error, np.zeros_like(up))
    low, high = (edge[order].clip(0.0, 1.0) for edge in noise.limits(0.95))
    styled(axes)
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=0.8, linestyle=(0, (4, 4)))
    # at the ends no record, and every record, is called positive
    corners = [np.concatenate(([0.0], values, [1.0])) for values in (across, low, high, up)]
    axes.fill_between(*corners[:3], color=BAND, linewidth=0, label=RECORDS_BAND)
    axes.plot(corners[0], corners[3], color=ACCENT, linewidth=1.8, label="estimate")
    _mark(curve, axes)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
    legend(axes)


def draw_reliability(reliability: Reliability, axes: Any) -> None:
    """The observed share of positives in the buckets that have records, with its band."""
    share, stated = reliability.observed, reliability.predicted
    known = np.isfinite(share.value) & np.isfinite(stated)
    low, high = (edge[known] for edge in share.limits())
    across, up = stated[known], share.value[known]
    axes.fill_between(across, low, high, alpha=0.25, linewidth=0, label=POPULATION_BAND)
    axes.plot(across, up, marker="o", markersize=3, label="estimate")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    axes.set(xlabel="predicted probability", ylabel="observed share of positives")
    axes.legend(loc="upper left")


def operating_point(curve: Curve) -> int | None:
    """The index of the threshold next to 0.5, where scores are from 0 to 1 and one is near it."""
    thresholds = curve.thresholds
    known = np.isfinite(thresholds)
    if not known.any() or thresholds[known].min() < 0 or thresholds[known].max() > 1:
        return None
    distance = np.where(known, np.abs(thresholds - OPERATING), np.inf)
    nearest = int(np.argmin(distance))
    return nearest if distance[nearest] <= NEAR else None


def _mark(curve: Curve, axes: Any) -> None:
    index = operating_point(curve)
    if index is None:
        return
    across, up = curve.false_positive_rate[index], curve.true_positive_rate[index]
    if not (math.isfinite(across) and math.isfinite(up)):
        return
    label = f"at threshold {curve.thresholds[index]:.2g}: {up:.2f} found, {across:.2f} false alarms"
    axes.plot([across], [up], "o", color=MARK, markersize=7, label=label, clip_on=False)


class _Display(ABC):
    """What displays share: axes once they are drawn, which may be given."""

    ax_: Any = None

    @property
    def figure_(self) -> Any:
        """The matplotlib figure; None before it is drawn."""
        return None if self.ax_ is None else self.ax_.figure

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes to draw on; None makes a new figure.

        Raises
        ------
        ImportError : when matplotlib is not installed.
        """
        self.ax_ = self._drawn(new_axes() if ax is None else ax)
        return self

    @abstractmethod
    def _drawn(self, ax: Any) -> Any:
        """Draw it on matplotlib axes, and return them."""


@dataclass(eq=False)
class RocCurveDisplay(_Display):
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

    def _drawn(self, ax: Any) -> Any:
        return draw_evaluation(self.result, ax)


@dataclass(eq=False)
class CalibrationDisplay(_Display):
    """The observed share of positives compared with the predicted one, with bands about the
    population.

    Parameters
    ----------
    result : the evaluation.
    reliability : its buckets.
    """

    result: Evaluation
    reliability: Reliability

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

    def _drawn(self, ax: Any) -> Any:
        draw_reliability(self.reliability, ax)
        return ax


def draw_comparison(comparison: Comparison) -> Any:
    """Both models' figures and, below, their difference; the figure.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    upper = new_axes(6.4, 4.6)
    figure = upper.figure
    upper.remove()
    upper, lower = figure.subplots(2, 1, height_ratios=(2, 1))
    exact = comparison.exact or (None, None)
    models = comparison.first, comparison.second
    bars = list(map(Bar, comparison.names, models, exact))
    name = comparison.run.protocol["name"]
    origin = f"{name}, {cost_words(comparison.spent)} for all three figures"
    draw_bars(bars, "Two models", origin, "AUC", upper)
    difference = comparison.difference
    title = f"{comparison.names[0]} less {comparison.names[1]}"
    caption = "not enough signal"
    if comparison.has_signal:
        title += f": {difference.value:+.4f}"
        caption = f"{est.RECORDS_INTERVAL}: {est.bounds_line(difference.interval(0.95), '+')}"
    draw_bars([Bar("", difference)], title, caption, "difference", lower, zero=True)
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
        Bar(group.name if group.has_signal else f"{group.name}: no figure", group.estimate)
        for group in grouped.groups
    ]
    names = {each.evaluation.protocol["name"] for each in grouped.groups if each.evaluation}
    origin = f"{', '.join(sorted(names))}, {cost_words(grouped.spent)} over all groups together"
    title = f"{grouped.figure} of {len(bars)} groups"
    return draw_bars(bars, title, origin, grouped.figure).figure
