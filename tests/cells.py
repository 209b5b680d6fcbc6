"""A protocol that counts scores in cells, for tests of what does not depend on a certain one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tacit.protocol as tp
from tacit.privacy.mechanisms import DiscreteLaplace

CELLS = 64
"""Equal cells of positions."""


@tp.step(cost=lambda clients, query, state: query.protocol.guarantee)
def cell_counts(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """A record adds one to one count of one class."""
    placed = query.protocol.on_scale(clients)
    cells = np.minimum((placed.scores * CELLS).astype(np.int64), CELLS - 1)
    counts = np.zeros((2, CELLS, clients.count), dtype=np.int64)
    np.add.at(counts, (clients.labels, cells, clients.client_of_record), 1)
    drawn = noise.draw(DiscreteLaplace(1, query.protocol.epsilon), counts.shape)
    return {"counts": counts + drawn}


@dataclass(frozen=True)
class CountedCells(tp.ScaledScores, tp.Protocol):
    """Noisy counts of both classes in cells of the scale."""

    epsilon: float = tp.setting(default=1.0, help=tp.EPSILON)
    scale: str = tp.scale_setting()

    name = "counted-cells"
    steps = (cell_counts,)

    def conversation(self, clients: int) -> tp.Conversation:
        reply = yield tp.Query(cell_counts, self)
        negatives, positives = np.moveaxis(np.asarray(reply["counts"]).sum(axis=-1), -2, 0)
        below = np.cumsum(negatives, axis=-1) - negatives / 2
        pairs = negatives.sum(axis=-1) * positives.sum(axis=-1)
        value = np.asarray((below * positives).sum(axis=-1) / pairs)
        unknown = np.full_like(value, np.nan)
        return tp.ServerResult(value, np.full_like(value, 0.01), unknown, unknown, unknown)
