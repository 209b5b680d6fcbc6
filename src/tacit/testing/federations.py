"""Small federations for tests; ``federations`` needs Hypothesis."""

from __future__ import annotations

from typing import Literal

import numpy as np
from hypothesis import strategies as st

from tacit.data.batches.splitting import binormal_scores
from tacit.data.clients import Clients


def binormal_clients(
    positives: int,
    negatives: int,
    clients: int,
    auc: float = 0.8,
    by: Literal["uniform", "score"] = "uniform",
    seed: int = 0,
) -> Clients:
    """Records of a binormal model with this AUC, dealt out to clients."""
    scores, labels = binormal_scores(positives, negatives, auc, seed=seed)
    return Clients.split(scores, labels, clients=clients, by=by, seed=seed)


@st.composite
def federations(draw: st.DrawFn) -> Clients:
    """One to five clients of one to seven records, tied scores among them, both classes present."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=5).filter(lambda s: sum(s) > 1))
    records = sum(sizes)
    scores = draw(
        st.lists(st.integers(0, 8).map(lambda v: v / 8), min_size=records, max_size=records)
    )
    labels = draw(
        st.lists(st.integers(0, 1), min_size=records, max_size=records).filter(
            lambda chosen: 0 < sum(chosen) < len(chosen)
        )
    )
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Clients(np.array(scores), np.array(labels, dtype=np.int8), offsets)
