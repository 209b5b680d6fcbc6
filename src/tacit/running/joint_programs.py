"""What parties compute on shares: kernels of pairs with noise, as programs of SPU.

All numbers are integers modulo 2**64, so that nothing is rounded and sums wrap around as shares do.
SPU (extra ``two-party``) and JAX are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.protocols.paired_kernels import gini_codes, ordered_codes

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Program = Callable[..., Any]

RING_BITS = 64

COIN_MODULUS = 2**30
"""Joint coins are drawn modulo this; a bit's probability is a multiple of its inverse."""

HALVINGS = 511
"""Numbers that are only compared are divided by two so often: that keeps their order and leaves
differences of codes within 64 bits."""

LEAST, MOST = 2.0 ** (HALVINGS - 1022), 2.0 ** (HALVINGS + 1)
"""Numbers that are only compared are 0, or from ``LEAST`` to below ``MOST`` in magnitude."""


class NotInstalledError(ImportError):
    """A joint computation was asked for and its library is not installed."""


def library(name: str) -> Any:
    """A module of SPU or JAX, imported where it is used.

    Raises
    ------
    NotInstalledError : without them.
    """
    try:
        return import_module(name)
    except ImportError:
        raise NotInstalledError(
            "a joint computation needs SPU, which runs on Python 3.11: "
            "pip install 'tacit[two-party]'"
        ) from None


def kernel_codes(kernel: str, rows: NDArray[np.float64], leading: NDArray[np.bool_]) -> Integers:
    """A party's own records as the integers that a kernel's program takes, shape (columns, n).

    Parameters
    ----------
    kernel : a name in ``COLUMNS``.
    rows : shape (2, n): the score or value, and the label or second value.
    leading : shape (n,), whether the record is the first of its pair: of equal scores it counts as
        the higher, so its code is one more than twice the score's, and the other's is twice.

    Raises
    ------
    ValueError : for scores outside [0, 1] where the kernel is the AUC, and for numbers so large or
        so small that they could not be compared exactly.

    Examples
    --------
    >>> kernel_codes("gini", np.array([[0.25, 1.0], [0.0, 0.0]]), np.array([True, True])).tolist()
    [[1024, 4096]]
    """
    if kernel == "gini":
        return gini_codes(rows[:1])
    if kernel == "auc":
        _check_scores(rows[0])
        return np.stack([2 * ordered_codes(rows[0]) + leading, rows[1].astype(np.int64)])
    return comparable_codes(rows[: COLUMNS[kernel]])


def comparable_codes(values: NDArray[np.float64]) -> Integers:
    """Integers between ``-2**62`` and ``2**62`` that compare exactly as these numbers do.

    Raises
    ------
    ValueError : for a number that is neither 0 nor from ``LEAST`` to below ``MOST`` in magnitude.

    Examples
    --------
    >>> codes = comparable_codes(np.array([-1e150, -5.0, 0.0, 1e-100, 4.0, 5.0]))
    >>> bool(np.all(np.diff(codes) > 0)), abs(codes).max() < 2**62
    (True, True)
    """
    size = np.abs(values)
    wrong = np.flatnonzero((size >= MOST) | ((size > 0) & (size < LEAST)))
    if wrong.size:
        raise ValueError(
            f"numbers to compare must be 0, or from {LEAST:.3g} to {MOST:.3g} in magnitude, "
            f"got {values.ravel()[wrong[0]]}"
        )
    return ordered_codes(np.ldexp(values, -HALVINGS))


def _check_scores(scores: NDArray[np.float64]) -> None:
    wrong = np.flatnonzero((scores < 0) | (scores > 1))
    if wrong.size:
        raise ValueError(
            f"scores to compare jointly must be in [0, 1], got {scores[wrong[0]]}; "
            "map them there by public bounds with rescale"
        )


def _auc(jnp: Any, ours: Any, theirs: Any) -> Any:
    """``y (1 - z) g + z (1 - y) (1 - g)``, where g says that our score is the higher."""
    y, z = ours[1], theirs[1]
    return jnp.where(ours[0] > theirs[0], y - z, 0) + z - y * z


def _collision(jnp: Any, ours: Any, theirs: Any) -> Any:
    return jnp.where(ours[0] == theirs[0], 1, 0)


def _kendall(jnp: Any, ours: Any, theirs: Any) -> Any:
    above = jnp.where(ours[1] > theirs[1], 1, 0) - jnp.where(theirs[1] > ours[1], 1, 0)
    return jnp.where(ours[0] > theirs[0], above, 0) - jnp.where(theirs[0] > ours[0], above, 0)


def _gini(jnp: Any, ours: Any, theirs: Any) -> Any:
    apart = ours[0] - theirs[0]
    return 2 * jnp.where(ours[0] > theirs[0], apart, 0) - apart


_KERNELS = {"auc": _auc, "collision": _collision, "kendall": _kendall, "gini": _gini}

COLUMNS = {"auc": 2, "collision": 1, "kendall": 2, "gini": 1}
"""How many numbers of a record each kernel reads."""


def noisy_kernel(kernel: str) -> Program:
    """The kernel plus one noise term of either party; inputs of shape (columns + 1, n) each."""
    jnp = library("jax.numpy")

    def program(ours: Any, theirs: Any) -> Any:
        return _KERNELS[kernel](jnp, ours, theirs) + ours[-1] + theirs[-1]

    return program


def responding_kernel(kernel: str, threshold: int) -> Program:
    """A 0/1 kernel whose value is flipped by a coin that neither party knows.

    Each party inputs a uniform number below ``2**30`` in its last row. Their sum modulo ``2**30``
    is uniform whatever one of the two does; the value is flipped where it is below ``threshold``.
    """
    jnp = library("jax.numpy")

    def program(ours: Any, theirs: Any) -> Any:
        value = _KERNELS[kernel](jnp, ours, theirs)
        drawn = ours[-1] + theirs[-1]
        coin = jnp.where(drawn < threshold, 1, 0)
        coin += jnp.where(drawn < COIN_MODULUS + threshold, 1, 0)
        coin -= jnp.where(drawn < COIN_MODULUS, 1, 0)
        return value + coin - 2 * value * coin

    return program


def compiled(program: Program, shapes: list[tuple[int, ...]]) -> Any:
    """A program for secret 64-bit inputs of these shapes, ready to run."""
    jax = library("jax")
    spu, frontend = library("spu.libspu"), library("spu.utils.frontend")
    jax.config.update("jax_enable_x64", True)
    inputs = [np.zeros(shape, dtype=np.int64) for shape in shapes]
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        program,
        inputs,
        {},
        [f"input {place}" for place in range(len(inputs))],
        [spu.Visibility.VIS_SECRET] * len(inputs),
        lambda outputs: [f"output {place}" for place in range(len(outputs))],
    )
    return executable
