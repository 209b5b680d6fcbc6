"""Maps scores by what is public: bounds, or names of units."""

from __future__ import annotations

import math

import numpy as np

from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.scaling.linear_map import LinearMap
from tacit.data.scaling.units import conversion, converted, is_exact


def rescale(clients: Clients, low: float, high: float) -> Clients:
    """The clients with every score mapped from [low, high] to [0, 1].

    The bounds must be public: chosen without looking at the data, since the data's own minimum and
    maximum are two records' scores.

    Raises
    ------
    DataError : for bounds that do not ascend or are too far apart, and for a score outside them,
        naming client and row.

    Examples
    --------
    >>> clients = Clients.from_arrays([-5.0, 0.0, 5.0], [0, 1, 1])
    >>> rescale(clients, -5.0, 5.0).scores.tolist()
    [0.0, 0.5, 1.0]
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise DataError(f"the bounds of scores must be finite and ascend, got {low} and {high}")
    if math.isinf(high - low):
        raise DataError(
            f"the bounds of scores must be less than 1.8e308 apart, got {low} and {high}"
        )
    wrong = clients.outlier(low, high)
    if wrong is not None:
        raise DataError(
            f"scores must be from {low} to {high}, the public bounds, got {wrong[0]} in {wrong[1]}"
            "; take wider bounds, or name the unit log-odds or real, which need no bounds"
        )
    return clients.rescored(LinearMap(low, high - low))


def in_unit(clients: Clients, target: str) -> Clients:
    """The clients with their scores converted from the unit that they name to another.

    Raises
    ------
    DataError : for clients that name no unit, or one that cannot be converted.

    Examples
    --------
    >>> hospital = Clients.from_arrays([20.0, 90.0], [0, 1], unit="percent")
    >>> in_unit(hospital, "probability").scores
    array([0.2, 0.9])
    """
    if clients.unit is None:
        raise DataError(f"scores without a named unit cannot be converted to {target}")
    unit = clients.unit
    try:
        converted(np.zeros(0), unit, target)
    except ValueError as error:
        raise DataError(str(error)) from None
    return clients.rescored(conversion(unit, target), target, is_exact(unit, target))
