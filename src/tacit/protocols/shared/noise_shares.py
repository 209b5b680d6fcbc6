"""How the noise of a sum is divided over the clients that are asked for it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit.data.errors import DataError
from tacit.protocol.conversation import Query, Reply


def planned_clients(query: Query) -> int:
    """Among how many clients a query divides the noise."""
    planned: int = query.broadcast["clients"]
    return planned


def answered_clients(reply: Reply, planned: int) -> int:
    """How many clients a sum says that it is over; each adds one to its field ``clients``.

    A client may add another number. So this is refused where it cannot be true.

    Raises
    ------
    DataError : for a number that is not from 1 to ``planned``.
    """
    answered = int(np.asarray(reply["clients"]))
    if not 1 <= answered <= planned:
        raise DataError(f"a sum must be over 1 to {planned} clients, got {answered}")
    return answered


def noise_fraction(batch: int, planned: int, dropouts: float) -> Fraction:
    """The part of the noise that a batch draws, so that it suffices when some clients vanish.

    Parameters
    ----------
    batch : the number of clients that draw together.
    planned : the number of clients that are asked.
    dropouts : the fraction of these that may vanish, from 0 to below 1.

    Examples
    --------
    >>> noise_fraction(1, 10, 0.2)
    Fraction(1, 8)
    """
    needed = max(1, int(np.ceil(planned * (1 - dropouts) - 1e-9)))
    return Fraction(batch, needed)
