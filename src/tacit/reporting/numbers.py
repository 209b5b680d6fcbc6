"""Numbers of a report as they are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from tacit.privacy.cost import cost_line
from tacit.results.estimate import Estimate, bounds_line
from tacit.results.saved.reading import Bounds

LEAST_IN_DIGITS, MOST_IN_DIGITS = 1e-6, 1e7
"""The least size of a threshold that is written without an exponent, and that from which on it has
one."""
EXACT_DIGITS = 200
"""The number of digits in which an end is rounded outwards: enough for any number of a result."""


def decimal(value: float, digits: int = 4) -> str:
    """A number with so many decimals, in words where there is none."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "not known"


def threshold_text(value: float | None) -> str:
    """A threshold with four significant digits of its distance to 0, or above 1/2 to 1.

    Null in a result is the threshold that every score reaches, of scores without a least one.

    Examples
    --------
    >>> [threshold_text(value) for value in (0.25, 0.000123456, 0.999876544, -12.5, 0.0)]
    ['0.2500', '0.0001235', '0.9998765', '-12.50', '0']
    >>> threshold_text(2e-9), threshold_text(1 - 2.0**-30), threshold_text(None)
    ('2.000e-09', '1 - 9.313e-10', 'no threshold (below every score)')
    """
    if value is None or not math.isfinite(value):
        return "no threshold (below every score)"
    near_one = 0.5 < value < 1
    size = 1 - value if near_one else abs(value)
    if size == 0:
        return "0"
    if not LEAST_IN_DIGITS <= size < MOST_IN_DIGITS:
        return f"1 - {size:.3e}" if near_one else f"{value:.3e}"
    return f"{value:.{max(3 - math.floor(math.log10(size)), 0)}f}"


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign; a typographic minus is read out as one."""
    sign = "\u2212" if value < 0 else "+"
    return f"{sign}{abs(value):.{digits}f}" if math.isfinite(value) else "not known"


def between(bounds: Bounds, digits: int = 4) -> str:
    """An interval in words."""
    return bounds_line(bounds, digits=digits) if all(map(math.isfinite, bounds)) else "not known"


def shown_interval(estimate: Estimate, digits: int) -> tuple[str, str]:
    """Both ends of an estimate's interval; a certain one is rounded outwards, to stay certain."""
    low, high = estimate.interval()
    if not estimate.certain:
        return decimal(low, digits), decimal(high, digits)
    unit, exact = Decimal(1).scaleb(-digits), Context(prec=EXACT_DIGITS)
    down = Decimal(repr(low)).quantize(unit, ROUND_FLOOR, exact)
    return str(down), str(Decimal(repr(high)).quantize(unit, ROUND_CEILING, exact))


def cost_text(spent: Mapping[str, Any]) -> str:
    """A cost in words; one that protects nothing is without limit."""
    return cost_line(spent, unlimited="without limit")
