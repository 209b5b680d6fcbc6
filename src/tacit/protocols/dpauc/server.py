"""What the server of DPAUC asks for, in one round or two, and what it concludes.

What no client's records and noise can give: the server forms no figure of such numbers.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.errors import DataError
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.cost import Adjacency
from tacit.protocol import releases
from tacit.protocol.conversation import MAX_RECORDS, Conversation, Query, Reply
from tacit.protocols.dpauc import steps
from tacit.protocols.dpauc.choices import outlook_of
from tacit.protocols.dpauc.estimate import result_from_looks
from tacit.protocols.dpauc.looks import Cells, Counts, left_of
from tacit.protocols.shared.cells import (
    KNOTS,
    exchange_variance,
    independent_variance,
    result_from_cells,
)
from tacit.protocols.shared.influence_sum import units_for
from tacit.protocols.shared.site_figures import ClientCells, has_sites, sites_of
from tacit.protocols.shared.trees.levels import CellNoise, Levels
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.parts.sites import Sites
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocols.dpauc.protocol import DPAUC


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


def rounds(protocol: DPAUC, clients: int) -> Conversation:
    """Noisy counts up, in one round or several looks; then, in two rounds, numbers up."""
    if protocol.asks_again:
        return (yield from _two_rounds(protocol, clients))
    sums = yield from releases.ask(steps.noisy_histograms, protocol, clients)
    return _from_histogram(protocol, sums, protocol.levels, protocol.edge_scores)


def _two_rounds(protocol: DPAUC, clients: int) -> Conversation:
    """Looks at the histogram, and then the number; or a histogram for all the rest."""
    part, place = protocol.first_look(clients)
    counts, records = yield from _look(protocol, clients, part, place)
    spent: tuple[float, ...] = (part,)
    while True:
        choice = outlook_of(protocol, counts, clients, spent).choice()
        if not choice.number:
            return (yield from _closed(protocol, choice.look, clients))
        if not choice.look:
            break
        place = counts.place if choice.place is None else choice.place
        counts = counts.with_look((yield from _look(protocol, clients, choice.look, place))[0])
        spent = (*spent, choice.look)
    fields = steps.published(counts.consistent, counts.place.published)
    sent = fields | counts.place.fields
    second = yield from _number(protocol, fields, left_of(sum(spent)), sent, records)
    return result_from_looks(counts, second)


def _closed(protocol: DPAUC, part: float, clients: int) -> Conversation:
    """A histogram that ends the run."""
    place = protocol.coarse_place(clients)
    sums = yield from _asked(protocol, clients, part, place)
    levels = protocol.levels_for(part, place.count)
    return _from_histogram(protocol, sums, levels, place.edges)


def _asked(
    protocol: DPAUC, clients: int, part: float, place: Cells
) -> Generator[Query, Reply, releases.Sums]:
    broadcast = {steps.PART: part, steps.CELLS: place.count, **place.fields}
    return (yield from releases.ask(steps.noisy_looks, protocol, clients, broadcast))


def _look(
    protocol: DPAUC, clients: int, part: float, place: Cells
) -> Generator[Query, Reply, tuple[Counts, Floats]]:
    """The counts of a look, and the most records that each client has by its totals."""
    sums = yield from _asked(protocol, clients, part, place)
    levels = protocol.levels_for(part, place.count)
    check_counts(sums.reply, _largest_scale(protocol, levels))
    noise = levels.noise(sums.answered, protocol.record_distance)
    records = noisy_records(sums.reply, protocol.record_distance / levels.group_epsilon)
    return Counts(sums["cells"], sums["groups"], noise, place), records


def _largest_scale(protocol: DPAUC, levels: Levels) -> float:
    """The largest scale of the noise in a count."""
    parts = (levels.cell_epsilon, levels.group_epsilon)
    return max(protocol.record_distance / part for part in parts if part)


def _number(
    protocol: DPAUC,
    fields: dict[str, Floats],
    part: float,
    sent: dict[str, Floats],
    records: Floats,
) -> Generator[Query, Reply, steps.BothRounds]:
    """What the sums say, of clients with at most so many records."""
    reply = yield Query(steps.noisy_influences, protocol, broadcast={steps.PART: part, **sent})
    sums, epsilon = np.asarray(reply["sums"]), protocol.epsilon * part
    check_sums(sums, records, units_for(epsilon), units_for(epsilon) / epsilon)
    return steps.both_rounds(fields, sums, epsilon, Adjacency(protocol.adjacency), KNOTS in sent)


def _from_histogram(
    protocol: DPAUC, sums: releases.Sums, levels: Levels, edges: Floats
) -> ServerResult:
    """The area of the consistent cells, whose lower edges are these scores."""
    check_counts(sums.reply, _largest_scale(protocol, levels))
    clients = sums.answered
    drawn = levels.noise(clients, protocol.record_distance)
    groups = sums["groups"] if levels.groups else np.zeros(0)
    cells = drawn.reconciled(sums["cells"], groups)
    if protocol.adjacency == "label":
        return from_exchanged(protocol, cells, sums["records"], drawn)
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    variance = independent_variance(positives, negatives, drawn)
    result = result_from_cells(
        edges, (positives, negatives), variance, drawn, protocol.scale == EVEN
    )
    influences = tuple(map(np.nan_to_num, curves.cell_influences(positives, negatives)))
    normal = np.asarray(result.approximation_error)
    law = levels.law(influences, clients, protocol.record_distance, normal)
    result = replace(result, law=law)
    if cells.ndim > 2 or not has_sites(clients):
        return result
    return replace(result, sites=_sites(protocol, sums.by_client(), levels, edges))


def _sites(protocol: DPAUC, sums: releases.Sums, levels: Levels, edges: Floats) -> Sites:
    """The figures of every client, from the noisy counts that it sent."""
    noise = levels.noise(1, protocol.record_distance)
    cells = noise.reconciled(sums["cells"], sums["groups"] if levels.groups else np.zeros(0))
    classes = cells[:, 0], cells[:, 1]
    variance = independent_variance(*classes, noise)
    result = result_from_cells(edges, classes, variance, noise, protocol.scale == EVEN)
    by_client = ClientCells(*classes, lambda weights: float(noise.variance_of(weights)))
    return sites_of(result, by_client, ScoreAxis(protocol.score_scale, protocol.unit))


def from_exchanged(
    protocol: Any, positives: Floats, records: Floats, noise: CellNoise
) -> ServerResult:
    """Noise that moves a record from one class to the other; cell totals are exact."""
    cells = positives, records - positives
    variance = exchange_variance(*cells, noise)
    return result_from_cells(protocol.edge_scores, cells, variance, noise, protocol.scale == EVEN)
