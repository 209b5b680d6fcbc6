"""What a protocol estimates: its name in texts, and what follows from what it is.

How large a noisy class must be for a figure that divides by its size.
"""

from __future__ import annotations

import math

EVERYWHERE = (-math.inf, math.inf)

AUC_ERROR = 0.25
"""Largest error at which an AUC of 0.5 and one of 1 can be distinguished."""


class Figure(str):
    """What is estimated, a text that is shown; nothing follows from how it reads.

    Examples
    --------
    >>> print(Figure("Brier score", limits=(0.0, 1.0)))
    Brier score
    >>> AUC_FIGURE.is_auc, Figure("AUC").is_auc
    (True, False)
    """

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
        """The text with what is known of the figure.

        Parameters
        ----------
        title : as texts name it.
        key : under which documents hold it; figures that are not known to documents share one.
        limits : the least and the largest value that it can have.
        max_error : the error above which an estimate says nothing.
        """
        made = super().__new__(cls, title)
        made.key, made.limits, made.max_error = key, limits, max_error
        return made

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


MIN_CLASS_SIZE_IN_ERRORS = 6.0
"""Least size of each class, in the standard errors of its noisy size, at which a figure is given.

A figure divides by the class sizes. An empty class passes with a probability below 1e-9. At six
errors a size's relative error is a sixth, and its square, which errors of first order leave out, is
below 3 %. With smaller thresholds mostly runs that overestimate a class pass, and their intervals
miss."""

CLEAR_CLASS_SIZE_IN_ERRORS = MIN_CLASS_SIZE_IN_ERRORS + 2
"""Least size of each class, in the same standard errors, at which a figure has no warning.

A class of this size passes the threshold in 98 % of runs, and one of 4.5 errors in 7 %, with a size
below this one (normal probabilities of 2 and 1.5 errors). The intervals of runs that pass by chance
cover less often than they state."""


def is_class_too_small(smaller: float, error: float) -> bool:
    """Whether no figure is given for a smaller class of this estimated size and standard error.

    Examples
    --------
    >>> is_class_too_small(59.0, 10.0), is_class_too_small(60.0, 10.0)
    (True, False)
    """
    return smaller < MIN_CLASS_SIZE_IN_ERRORS * error


def class_too_small(smaller: float, error: float) -> str:
    """Why no figure is given.

    Examples
    --------
    >>> "estimated at 19 records with a standard error of 10" in class_too_small(19.0, 10.0)
    True
    """
    return (
        f"not enough signal at this epsilon: {_estimated(smaller, error)}, and a figure needs at "
        f"least {MIN_CLASS_SIZE_IN_ERRORS:g} standard errors; `tacit check` and "
        "tacit.check_files count a file's positives before anything is spent"
    )


def class_size_warning(smaller: float, error: float) -> str | None:
    """What a figure says whose smaller class hardly passed; None where it is clearly large enough.

    Examples
    --------
    >>> class_size_warning(80.0, 10.0) is None, class_size_warning(79.0, 10.0) is None
    (True, False)
    """
    if not smaller < CLEAR_CLASS_SIZE_IN_ERRORS * error:
        return None
    return (
        f"{_estimated(smaller, error)}, little more than the {MIN_CLASS_SIZE_IN_ERRORS:g} standard "
        "errors that a figure needs: if noise made the class that large, the interval is too narrow"
    )


def _estimated(smaller: float, error: float) -> str:
    return (
        f"the smaller class is estimated at {smaller:.0f} records with a standard error of "
        f"{error:.0f}"
    )
