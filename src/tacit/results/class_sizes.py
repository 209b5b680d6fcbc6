"""How large a noisy class must be for a figure that divides by its size."""

from __future__ import annotations

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
        f"least {MIN_CLASS_SIZE_IN_ERRORS:g} standard errors"
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
