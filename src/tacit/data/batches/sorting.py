"""All scores of a batch, ascending within each client."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.data.batches.ragged import Ragged
from tacit.data.batches.ranked import StoredScores
from tacit.data.clients import Clients


def sorted_scores(clients: Clients) -> Ragged[np.float64]:
    """All scores, ascending within each client: in memory, or where they are stored.

    Examples
    --------
    >>> from tacit.data.clients import Clients
    >>> sorted_scores(Clients.from_arrays([0.7, 0.2], [1, 0])).values
    array([0.2, 0.7])
    """

    def load() -> Floats:
        return clients.scores[clients.ascending]

    if clients.ranking is None:
        return clients.ragged(load())
    return StoredScores(clients.offsets, clients.ranking.ranked, load)
