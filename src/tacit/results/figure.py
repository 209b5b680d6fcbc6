"""What a protocol estimates: its name in texts, and what follows from what it is."""

from __future__ import annotations

import math
from typing import Any

EVERYWHERE = (-math.inf, math.inf)

AUC_ERROR = 0.25
"""Largest error at which an AUC of 0.5 and one of 1 can be distinguished."""


class Figure(str):
    """What is estimated, a text that is shown; nothing follows from how it reads.

    Parameters
    ----------
    title : as texts name it.
    key : under which documents hold it; figures that are not known to documents share one.
    limits : the least and the largest value that it can have.
    max_error : the error above which an estimate says nothing.

    Examples
    --------
    >>> print(Figure("Brier score", limits=(0.0, 1.0)))
    Brier score
    >>> AUC_FIGURE.is_auc, Figure("AUC").is_auc
    (True, False)
    """

    __slots__ = ("key", "limits", "max_error")
    key: str
    limits: tuple[float, float]
    max_error: float

    def __new__(
        cls,
        title: str,
        key: str = "estimate",
        limits: tuple[float, float] = EVERYWHERE,
        max_error: float = math.inf,
    ) -> Figure:
        """The text with what is known of the figure."""
        made = super().__new__(cls, title)
        made.key, made.limits, made.max_error = key, limits, max_error
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.key, self.limits, self.max_error

    @classmethod
    def of(cls, title: str) -> Figure:
        """A figure as it is; of a text, one of which nothing more is known."""
        return title if isinstance(title, Figure) else cls(title)

    @property
    def is_auc(self) -> bool:
        """Whether it is the AUC of two classes."""
        return self.key == AUC_FIGURE.key


AUC_FIGURE = Figure("AUC", "auc", (0.0, 1.0), AUC_ERROR)
MACRO_AUC = Figure("macro AUC", limits=(0.0, 1.0), max_error=AUC_ERROR)
