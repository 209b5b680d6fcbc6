"""One number that clients sum in whole units, with its noise, and both rounds' clients."""

from __future__ import annotations

from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.counts import influence
from tacit.protocol import releases


def number_field(epsilon: float) -> releases.Released:
    """One number in units, which a neighbour moves by all of them."""
    units = influence.units_for(epsilon)
    return releases.Released((), units, epsilon, per_record=units)


def on_scale(
    sums: Any, released: releases.Released, reach: Floats | float, noises: float = 1.0
) -> tuple[Floats, Floats]:
    """The number that was released in units, and its variance by noise, shape (...) each.

    Parameters
    ----------
    sums : in units, shape (...).
    released : what was declared of them.
    reach : how far a neighbour moves the number, shape (...).
    noises : the noise that arrived, as a multiple of what epsilon needs.
    """
    unit = np.asarray(reach) / released.per_record
    return np.asarray(sums * unit), np.asarray(released.variance(noises) * unit**2)


def check_the_same_number(first: int, second: int) -> None:
    """Refuse a second sum over other clients than the first round's figures are about.

    Raises
    ------
    DataError : for another number of clients.
    """
    if first != second:
        raise tp.DataError(
            f"both rounds must have the same clients: {first} answered the first and {second} the "
            "second; evaluate the clients that are left again"
        )
