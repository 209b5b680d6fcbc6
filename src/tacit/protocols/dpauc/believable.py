"""What no client's records and noise can give: the server forms no figure of such numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.errors import DataError
from tacit.protocol.conversation import MAX_RECORDS, Reply

FAR = 64.0
"""Largest noise that is taken for noise, in its scales: Laplace noise is larger by a chance of
``exp(-64)``, about ``2**-92``."""


def check_counts(reply: Reply, scale: float) -> None:
    """Refuse counts of a client beyond ``MAX_RECORDS`` and its noise.

    Parameters
    ----------
    reply : of cells and groups, shape (..., 2, B, K).
    scale : the largest scale of the noise in a count.

    Raises
    ------
    DataError : naming the client's number and its count.
    """
    for name in ("cells", "groups", "records"):
        if name in reply:
            counts = _by_client(reply[name])
            _check(name, counts, -FAR * scale, MAX_RECORDS + FAR * scale)


def noisy_records(reply: Reply, scale: float) -> Floats:
    """The most records that a client has by its noisy class totals, shape (K,).

    Parameters
    ----------
    reply : of the class totals as ``groups``, shape (..., 2, 1, K).
    scale : of the noise in a class total.
    """
    classes = np.asarray(reply["groups"]).sum(axis=(-3, -2), dtype=np.float64)
    largest = classes.reshape(-1, classes.shape[-1]).max(axis=0)
    return np.asarray(np.maximum(largest, 0.0) + 2 * FAR * scale)


def check_sums(sums: Any, records: Floats | float, units: int, scale: float) -> None:
    """Refuse a client's sum beyond what its records, each of at most ``units``, and noise give.

    Parameters
    ----------
    sums : shape (..., K).
    records : the most records of a client, shape (K,), or of every client.
    units : how far a record moves a sum.
    scale : the scale of the noise in a sum.

    Raises
    ------
    DataError : naming the client's number and its sum.
    """
    most = np.asarray(records, dtype=np.float64) * units + FAR * scale
    _check("sums", _by_client(sums), -most, most)


def _by_client(numbers: Any) -> NDArray[Any]:
    """Numbers as a table with a column for each client."""
    table = np.asarray(numbers)
    return table.reshape(-1, table.shape[-1])


def _check(name: str, numbers: NDArray[Any], least: Any, most: Any) -> None:
    beyond = ~((numbers >= least) & (numbers <= most))
    if beyond.any():
        row, client = np.argwhere(beyond)[0]
        ends = (float(np.broadcast_to(end, numbers.shape)[row, client]) for end in (least, most))
        raise DataError(
            "{} of client {} must be from {:.6g} to {:.6g}, as records and noise give, got "
            "{:.6g}".format(name, client, *ends, numbers[row, client])
        )
