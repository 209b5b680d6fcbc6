"""What the server of a score histogram asks for, and what it concludes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol.conversation import Conversation, Query, Reply, View
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.histogram.estimate import dropout_warnings, result_from_tree
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
from tacit.protocols.histogram.second_round import (
    both_rounds,
    published,
    summed_influences,
)
from tacit.protocols.histogram.steps import summed_trees, unary_reports
from tacit.protocols.histogram.trees import local_tree, summed_tree
from tacit.protocols.shared.prior_curves import PriorCurves
from tacit.protocols.shared.reports.turns import each_turn, has_replicates, records_of
from tacit.protocols.shared.sums.noise_shares import (
    answered_clients,
    check_the_same_number,
    supported_cost,
)
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocols.histogram.protocol import ScoreHistogram


def rounds(protocol: ScoreHistogram, clients: int) -> Conversation:
    """One round: trees up; and a second for summed influences, if epsilon was kept for it."""
    if protocol.prior is not None:
        return (yield from _number(protocol, protocol.prior, clients))
    if protocol.looks:
        return (yield from looked(protocol, clients))
    if protocol.places_cells:
        return (yield from _placed_reports(protocol, clients))
    if protocol.trust == Trust.LOCAL.value:
        return (yield from _reports(protocol, clients))
    if protocol.places_trees:
        return (yield from _placed_sums(protocol, clients))
    return (yield from _sums(protocol, clients))


def _number(protocol: ScoreHistogram, prior: PriorCurves, clients: int) -> Conversation:
    """The number alone, by the functions of an earlier release."""
    reply = yield Query(summed_influences, protocol, {"clients": clients}, view=View.SUM)
    inflation = protocol.inflation(clients, answered_clients(reply, clients))
    sums: Floats = np.asarray(reply["sum"], dtype=np.float64)
    result = number_result(protocol, prior, sums, inflation)
    adjacency, epsilon = Adjacency(protocol.adjacency), protocol.influence_cost.epsilon
    protection = supported_cost(inflation, (), protocol.distance, epsilon, adjacency)
    return replace(result, protection=protection, warnings=dropout_warnings(protection))


def number_result(
    protocol: ScoreHistogram, prior: PriorCurves, sums: Floats, inflation: float = 1.0
) -> ServerResult:
    """The AUC by the functions of an earlier release and noisy sums in units, shape (...).

    Errors of the functions cancel to first order; their products are the prior's ``variance``, and
    what its cells hide is what they hid then.
    """
    adjacency, epsilon = Adjacency(protocol.adjacency), protocol.influence_cost.epsilon
    second = both_rounds(prior.fields, sums, epsilon, adjacency, inflation, prior.straight)
    error: Floats = np.sqrt(np.broadcast_to(second.variance, sums.shape))
    area = np.asarray(second.area, dtype=np.float64)
    return prior.result(area, error**2, prior.hidden_error**2, error)


def _reports(protocol: ScoreHistogram, clients: int) -> Conversation:
    """Unary reports up."""
    height = protocol.tree_height(clients)
    reply = yield Query(unary_reports, protocol, broadcast={"clients": clients, "height": height})
    leaves, noise = local_tree(protocol.known_epsilon, reply, height)
    return result_from_tree(leaves, noise, protocol.buckets, axis=protocol.score_axis)


def _sums(protocol: ScoreHistogram, clients: int) -> Conversation:
    """Summed trees up, and in two rounds summed influences."""
    height, buckets, axis = protocol.tree_height(clients), protocol.buckets, protocol.score_axis
    shared: dict[str, Any] = {"clients": clients, "height": height}
    reply = yield Query(summed_trees, protocol, broadcast=shared, view=View.SUM)
    answered = answered_clients(reply, clients)
    inflation = protocol.inflation(clients, answered)
    leaves, noise = summed_tree(protocol, reply, height, inflation)
    protection = _protection(protocol, height, inflation)
    if not protocol.second_round:
        return result_from_tree(leaves, noise, buckets, protection, axis=axis)
    fields = published(leaves, noise)
    reply = yield Query(summed_influences, protocol, broadcast={**shared, **fields}, view=View.SUM)
    check_the_same_number(answered, answered_clients(reply, clients))
    sums: Floats = np.asarray(reply["sum"], dtype=np.float64)
    adjacency, epsilon = Adjacency(protocol.adjacency), protocol.influence_cost.epsilon
    second = both_rounds(fields, sums, epsilon, adjacency, inflation)
    return result_from_tree(leaves, noise, buckets, protection, second, axis)


def _placed_sums(protocol: ScoreHistogram, clients: int) -> Conversation:
    """Counts up, cells down, and trees of these cells up."""
    height = protocol.tree_height(clients)
    first = Query(placing_counts, protocol, broadcast={"clients": clients}, view=View.SUM)
    reply = yield first
    answered = answered_clients(reply, clients)
    inflation = protocol.inflation(clients, answered)
    counts: Floats = np.asarray(reply["cells"], dtype=np.float64)
    rows = [knots_of(protocol, row, height, inflation) for row in np.atleast_2d(counts)]
    knots = np.stack(rows) if counts.ndim > 1 else rows[0]
    shared: dict[str, Any] = {"clients": clients, "height": height, KNOTS: knots}
    reply = yield Query(summed_trees, protocol, broadcast=shared, view=View.SUM)
    check_the_same_number(answered, answered_clients(reply, clients))
    leaves, noise = summed_tree(protocol, reply, height, inflation)
    base = protocol.score_scale
    axis = ScoreAxis(ScoreScale(rows[0], base.low, base.high), protocol.unit)
    protection = _protection(protocol, height, inflation)
    return result_from_tree(leaves, noise, protocol.buckets, protection, axis=axis)


def _protection(protocol: ScoreHistogram, height: int, inflation: float) -> Cost | None:
    """What the noise that arrived supports, where too many clients vanished with theirs."""
    if protocol.epsilon is None:
        return None
    scales = list(protocol.level_scales(height).values())
    if protocol.places_trees:
        scales.append(protocol.distance / protocol.placing_cost.epsilon)
    if protocol.budget == "sample":
        scales = scales[:1]
    number, adjacency = protocol.influence_cost.epsilon, Adjacency(protocol.adjacency)
    return supported_cost(inflation, scales, protocol.distance, number, adjacency)


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
    return result_from_tree(leaves, noise, protocol.buckets, axis=axis)


def _knots(protocol: ScoreHistogram, reply: Reply, height: int) -> Floats:
    """Where the cells lie by the reported positions, for every replicate."""
    epsilon = protocol.known_epsilon
    masses = position_masses(report_counts(reply, epsilon), epsilon)
    return np.stack([placed_knots(protocol.score_scale, row, height) for row in masses])
