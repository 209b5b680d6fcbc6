"""Client steps of DPAUC: noisy histograms, in one round or in looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.protocol.conversation import Query
from tacit.protocol.releases import Fields, Released, release
from tacit.protocols.dpauc.second_round import agreed_cells, agreed_part
from tacit.protocols.shared.cell_counts import true_cell_counts
from tacit.protocols.shared.published_knots import placed_on, published_scale
from tacit.protocols.shared.trees.levels import Levels

if TYPE_CHECKING:
    from tacit.protocols.dpauc.protocol import DPAUC


def _fields(settings: DPAUC, levels: Levels) -> Fields:
    """The counts of both levels; at label adjacency those of positives, and public records."""
    labelled, moved = settings.adjacency == "label", int(settings.record_distance)
    classes = () if labelled else (2,)
    fields = {"cells": Released((*classes, levels.cells), moved, levels.cell_epsilon)}
    if levels.groups:
        fields["groups"] = Released((*classes, levels.groups), moved, levels.group_epsilon)
    return fields | {"records": Released((levels.cells,), 0)} if labelled else fields


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


@release(lambda query: _fields(query.protocol, query.protocol.levels))
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


def _look_levels(query: Query) -> Levels:
    """The levels of a look, from the part and the number of cells that a query asks for."""
    settings: DPAUC = query.protocol
    return settings.levels_for(agreed_part(query, settings.look_menu), agreed_cells(query))


@release(lambda query: _fields(query.protocol, _look_levels(query)))
def noisy_looks(clients: Clients, query: Query) -> dict[str, NDArray[np.int64]]:
    """Send a histogram as ``noisy_histograms`` does, for a part of epsilon.

    The query says which part, and how many cells, both of those that the settings name, and perhaps
    the knots between which the cells lie; whatever these are, a record counts in one cell. From
    part and cells the levels follow: cells and class totals, or, for the part that ends the run
    after the first look, cells and the groups that suit them. Both levels together cost the part
    that the query says. All parts of a run add up to at most epsilon (``noisy_influences``).

    The server learns the noisy counts of each client's cells and groups.

    Raises
    ------
    DataError : for a score outside the range of its unit.
    ValueError : for a part or a number of cells that was not agreed, and for knots that do not
        bound so many cells.
    """
    settings: DPAUC = query.protocol
    levels = _look_levels(query)
    placed = placed_on(published_scale(query, levels.cells), settings, clients)
    return _counts(placed, settings, levels, np.arange(levels.cells) / levels.cells)
