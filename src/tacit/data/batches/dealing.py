"""Which of several simulated clients gets which record of one file."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.errors import DataError


def dealt(
    scores: NDArray[np.float64],
    clients: int,
    by: Literal["uniform", "score"] = "uniform",
    seed: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order of records client by client, shape (M,), and the clients' offsets, shape (K+1,).

    Client ``k`` gets the records ``order[offsets[k]:offsets[k+1]]``; sizes differ by at most one.

    Parameters
    ----------
    scores : the records' scores, shape (M,).
    clients : K, from 1 to M.
    by : ``"uniform"`` deals records out at random, ``"score"`` in ascending order of score.
    seed : of the random order.

    Raises
    ------
    DataError : when there are fewer records than clients, or ``by`` is unknown.

    Examples
    --------
    >>> dealt(np.array([0.3, 0.1, 0.2]), 2, "score")
    (array([1, 2, 0]), array([0, 1, 3]))
    """
    records = scores.size
    if not 1 <= clients <= records:
        raise DataError(f"the number of clients must be between 1 and {records}, got {clients}")
    if by == "uniform":
        order = np.random.default_rng(seed).permutation(records)
    elif by == "score":
        order = np.argsort(scores, kind="stable")
    else:
        raise DataError(f"records are split by 'uniform' or 'score', got {by!r}")
    return order, (np.arange(clients + 1, dtype=np.int64) * records) // clients
