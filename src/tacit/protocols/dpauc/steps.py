"""Client steps of DPAUC: noisy histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.protocol import releases
from tacit.protocol.conversation import Query
from tacit.protocols.shared.cells import true_cell_counts
from tacit.protocols.shared.trees.levels import Levels

if TYPE_CHECKING:
    from tacit.protocols.dpauc.protocol import DPAUC


def _fields(settings: DPAUC, levels: Levels) -> releases.Fields:
    """The counts of both levels; at label adjacency those of positives, and public records."""
    labelled, moved = settings.adjacency == "label", int(settings.record_distance)
    classes = () if labelled else (2,)
    fields = {"cells": releases.Released((*classes, levels.cells), moved, levels.cell_epsilon)}
    if levels.groups:
        fields["groups"] = releases.Released((*classes, levels.groups), moved, levels.group_epsilon)
    return fields | {"records": releases.Released((levels.cells,), 0)} if labelled else fields


def _counts(
    placed: Clients, settings: DPAUC, levels: Levels, edges: Floats
) -> dict[str, NDArray[np.int64]]:
    positives, records = true_cell_counts(placed, edges)
    labelled = settings.adjacency == "label"
    cells = positives if labelled else np.stack([positives, records - positives])
    counts = {"cells": cells, "records": records}
    if levels.groups:
        counts["groups"] = np.add.reduceat(cells, levels.starts, axis=-2)
    return counts


@releases.release(lambda query: _fields(query.protocol, query.protocol.levels))
def noisy_histograms(clients: Clients, query: Query) -> dict[str, NDArray[np.int64]]:
    """Send the numbers of positives and negatives in cells and groups of cells, with noise.

    A record sits in one cell, and its group, of one class: adding or removing it changes one count
    of each level by one, and replacing it at most two. Discrete Laplace noise of scale
    ``sensitivity / part`` on every count costs that level's part of epsilon, and both levels
    together epsilon (``tacit.protocol.releases``). At label adjacency the number of records in a
    cell is public and sent as it is; a label flip changes one positive count of each level by one.

    The server learns the noisy counts of each client's cells and groups.
    """
    settings: DPAUC = query.protocol
    return _counts(settings.on_scale(clients), settings, settings.levels, settings.edges)
