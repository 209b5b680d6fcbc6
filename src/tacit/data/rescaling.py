"""Maps scores into [0, 1] by public bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tacit.data.clients import Clients, DataError


def rescale(clients: Clients, low: float, high: float) -> Clients:
    """The clients with every score mapped from [low, high] to [0, 1].

    The bounds must be public: chosen without looking at the data, since the data's own minimum and
    maximum are two records' scores.

    Raises
    ------
    DataError : for bounds that do not ascend, and for a score outside them, naming client and row.

    Examples
    --------
    >>> clients = Clients.from_arrays([-5.0, 0.0, 5.0], [0, 1, 1])
    >>> rescale(clients, -5.0, 5.0).scores.tolist()
    [0.0, 0.5, 1.0]
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise DataError(f"the bounds of scores must be finite and ascend, got {low} and {high}")
    wrong = np.flatnonzero((clients.scores < low) | (clients.scores > high))
    if wrong.size:
        client = int(clients.client_of_record[wrong[0]])
        row = int(wrong[0] - clients.offsets[client]) + 1
        raise DataError(
            f"scores must be from {low} to {high}, the public bounds, "
            f"got {clients.scores[wrong[0]]} in {clients.name(client)}, row {row}"
        )
    return replace(clients, scores=(clients.scores - low) / (high - low))
