"""The probabilities of every mechanism's noise, which its variance and its loss follow from."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.privacy.distributions import staircase_inner_width
from tacit.privacy.mechanisms.gaussian import DiscreteGaussian
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace, PolyaShare, Staircase
from tacit.privacy.mechanisms.response import RandomisedResponse

Floats = NDArray[np.float64]


@singledispatch
def log_weight(mechanism: Any, values: ArrayLike) -> Floats:
    """The logarithm of the probability of each value, up to a constant."""
    raise TypeError(f"the probabilities of {mechanism} are not known")


@log_weight.register
def _(mechanism: Laplace | DiscreteLaplace, values: ArrayLike) -> Floats:
    return -np.abs(np.asarray(values, dtype=np.float64)) / mechanism.scale


@log_weight.register
def _(mechanism: PolyaShare, values: ArrayLike) -> Floats:
    """``b^z (r)_z / z! 2F1(r, r+z; z+1; b^2)`` with the share r and ``b = exp(-1/scale)``."""
    size = np.abs(np.asarray(values, dtype=np.float64))
    r, rate = float(mechanism.share), 1 / mechanism.scale
    ways = scipy.special.gammaln(size + r) - scipy.special.gammaln(size + 1)
    series = scipy.special.hyp2f1(r, r + size, size + 1, np.exp(-2 * rate))
    return np.asarray(ways + np.log(series) - size * rate)


@log_weight.register
def _(mechanism: Staircase, values: ArrayLike) -> Floats:
    """``-epsilon`` times the number of drops of the probability before ``|z|``."""
    width = np.asarray(mechanism.sensitivity, dtype=np.int64)
    inner = staircase_inner_width(width, mechanism.epsilon)
    drops = (np.abs(np.asarray(values, dtype=np.int64)) - inner) // width + 1
    return np.asarray(-np.asarray(mechanism.epsilon) * drops, dtype=np.float64)


@log_weight.register
def _(mechanism: DiscreteGaussian, values: ArrayLike) -> Floats:
    return -np.square(np.asarray(values, dtype=np.float64) / np.asarray(mechanism.sigma)) / 2


@log_weight.register
def _(mechanism: RandomisedResponse, values: ArrayLike) -> Floats:
    """Of a flip (odd) and of none (even): a bit is added modulo 2."""
    return np.where(np.asarray(values) % 2 != 0, -mechanism.epsilon, 0.0)
