"""What the server of a score histogram asks for, and what it concludes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.protocol.conversation import Conversation, Query, Reply
from tacit.protocol.releases import ask, total_protection
from tacit.protocol.settings.trusts import Local
from tacit.protocols.histogram.estimate import result_from_tree
from tacit.protocols.histogram.local.rounds import (
    KNOTS,
    draw_report_turns,
    early_slots,
    placed_knots,
    position_masses,
    published_scale,
    report_counts,
    report_leaves,
    report_positions,
)
from tacit.protocols.histogram.looking.rounds import looked
from tacit.protocols.histogram.placing import knots_of, placing_counts
from tacit.protocols.histogram.steps import summed_trees, unary_reports
from tacit.protocols.histogram.trees import local_tree, summed_tree
from tacit.protocols.shared.reports.turns import each_turn, has_replicates, records_of
from tacit.protocols.shared.sums.noise_shares import check_the_same_number
from tacit.results.curves.score_axis import ScoreAxis

if TYPE_CHECKING:
    from tacit.protocols.histogram.protocol import ScoreHistogram


def rounds(protocol: ScoreHistogram, clients: int) -> Conversation:
    """Looks and one number, a tree in given or placed cells, or private reports."""
    if protocol.looks:
        return (yield from looked(protocol, clients))
    if protocol.places_cells:
        return (yield from _placed_reports(protocol, clients))
    if isinstance(protocol.trust, Local):
        return (yield from reported_tree(protocol, clients))
    if protocol.places_trees:
        return (yield from _placed_sums(protocol, clients))
    return (yield from one_tree(protocol, clients))


def reported_tree(
    protocol: ScoreHistogram, clients: int, buckets: int | None = None
) -> Conversation:
    """Unary reports up."""
    height = protocol.tree_height(clients)
    reply = yield Query(unary_reports, protocol, broadcast={"clients": clients, "height": height})
    leaves, noise = local_tree(protocol.known_epsilon, reply, height)
    return result_from_tree(leaves, noise, buckets, axis=protocol.score_axis)


def one_tree(protocol: ScoreHistogram, clients: int, buckets: int | None = None) -> Conversation:
    """Summed trees up."""
    height = protocol.tree_height(clients)
    sums = yield from ask(summed_trees, protocol, clients, {"height": height})
    leaves, noise = summed_tree(sums, height)
    return result_from_tree(
        leaves, noise, buckets, total_protection((sums,)), axis=protocol.score_axis
    )


def _placed_sums(protocol: ScoreHistogram, clients: int) -> Conversation:
    """Counts up, cells down, and trees of these cells up."""
    height = protocol.tree_height(clients)
    first = yield from ask(placing_counts, protocol, clients)
    counts, noises = first["cells"], float(first.noises)
    rows = [knots_of(protocol, row, height, noises) for row in np.atleast_2d(counts)]
    knots = np.stack(rows) if counts.ndim > 1 else rows[0]
    second = yield from ask(summed_trees, protocol, clients, {"height": height, KNOTS: knots})
    check_the_same_number(first.answered, second.answered)
    leaves, noise = summed_tree(second, height)
    base = protocol.score_scale
    axis = ScoreAxis(ScoreScale(rows[0], base.low, base.high), protocol.unit)
    return result_from_tree(leaves, noise, None, total_protection((second, first)), axis=axis)


def _placed_reports(protocol: ScoreHistogram, clients: int) -> Conversation:
    """Positions of a few records up, cells down, and all others' reports in them up."""
    epsilon, height = protocol.known_epsilon, protocol.tree_height(clients)
    turns = yield Query(draw_report_turns, protocol)
    records, each = records_of(turns), each_turn(turns)
    shared = {"clients": clients, "height": height, "first": early_slots(epsilon, records)}
    reply = yield Query(report_positions, protocol, shared, each)
    knots = _knots(protocol, reply, height)
    published_knots = knots if has_replicates(reply) else knots[0]
    reply = yield Query(report_leaves, protocol, {**shared, KNOTS: published_knots}, each)
    leaves, noise = local_tree(epsilon, reply, height, records)
    axis = ScoreAxis(published_scale(protocol, knots[0], height), protocol.unit)
    return result_from_tree(leaves, noise, None, axis=axis)


def _knots(protocol: ScoreHistogram, reply: Reply, height: int) -> Floats:
    """Where the cells lie by the reported positions, for every replicate."""
    epsilon = protocol.known_epsilon
    masses = position_masses(report_counts(reply, epsilon), epsilon)
    return np.stack([placed_knots(protocol.score_scale, row, height) for row in masses])
