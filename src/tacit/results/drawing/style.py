"""One style for pictures: the colours of the report's page, and axes that use them."""

from __future__ import annotations

import math
from typing import Any

from tacit.extras import extra
from tacit.privacy.cost import Cost

CARD, INK, SOFT, EDGE = "#ffffff", "#1b1f24", "#4c5561", "#d5dae1"
ACCENT, BAND, MARK = "#17568f", "#bcd6ee", "#b3470a"
"""The colours of the light page of a report (``reporting/templates/page.css``)."""


def new_axes(width: float = 6.0, height: float = 6.6) -> Any:
    """Fresh matplotlib axes that need no screen.

    Parameters
    ----------
    width, height : of the figure, in inches.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    figure = extra("matplotlib.figure", "pictures need matplotlib", "'tacit[plot]'")
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    return figure.Figure(figsize=(width, height), layout=layout, facecolor=CARD).subplots()


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


def titled(axes: Any, title: str, caption: str) -> None:
    """A title at the left, and below it what a reader must know to use the picture alone."""
    lines = caption.count("\n") + 1
    axes.set_title(title, loc="left", color=INK, fontsize=13, fontweight="bold", pad=8 + 13 * lines)
    place = {"xy": (0, 1), "xytext": (0, 5), "textcoords": "offset points"}
    axes.annotate(
        caption, xycoords="axes fraction", ha="left", va="bottom", color=SOFT, fontsize=9, **place
    )


def legend(axes: Any, below: bool = False) -> None:
    """A legend without a frame, where anything is named: in the corner or below the figure."""
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
