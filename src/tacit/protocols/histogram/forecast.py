"""Predictions for ScoreHistogram: the server's own conclusions from the expected tree."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.counts import noisy_areas, tree_budget, tree_results, zoomed_cells
from tacit.counts.tree_budget import CHOICE_UNITS, FIRST_CELLS
from tacit.local import turns
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import PROBABILITY, EvenScale, ScoreScale, named_scale
from tacit.protocol import fields, forecast, releases
from tacit.protocol.scenario import GUESSES, answered_rounds, dry_run, planned_scale
from tacit.protocols.histogram import figure_forecast
from tacit.protocols.histogram.histogram_rounds import expected_rounds
from tacit.protocols.histogram.local_rounds import early_slots, expected_borders, report_bytes
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.protocols.histogram.steps import SUM, query_scale, round_height, summed_influences
from tacit.protocols.shared import counting
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.measures import smooth_calibration

PLANNED_HEIGHTS, RATE_HEIGHTS = (8, 9), (6, 8, 10)
"""Heights that a plan compares for noisy sums in one round: for the AUC, and for other metrics."""

LOCAL_HEIGHTS = (4, 5, 6, 7, 8)
"""Heights that a plan compares for private reports."""

PLACING_SCALE, PLACING_CELLS = PROBABILITY, 2**12
"""The scale and the number of cells in which a plan expects the scores that reports place."""

DRY_RUN_RECORDS, DRY_RUN_CLIENTS = 2**17, 2**8
"""Largest numbers of records and of clients of a dry run where the server sees each client."""

PLANNED_HEIGHT = 12
"""The height that a plan takes for exact sums: deeper trees change no forecast's digits."""


def tree_forecast(
    protocol: ScoreHistogram,
    scenario: tp.Scenario,
    shape: tp.Shape,
    metric: forecast.Metric | None = None,
) -> forecast.Forecast:
    """What the server would conclude from the expected tree, with the noise that it assumes.

    Source: docs/protocols/score-histogram.md. For the AUC of one tree the bias is what the expected
    cells miss of the shape's AUC; the one number after rounds has none. For precision the error
    holds the cell that the threshold cuts; the expected calibration error is about the
    population's, so its error holds sampling as well. A measure is linearised at the expected
    counts, as the result's own errors are.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 10, 1.0)
    >>> protocol = ScoreHistogram("secure-sum", 1.0, 8, scale="even")
    >>> made = tree_forecast(protocol, scenario, tp.Shape(0.8))
    >>> round(made.standard_error, 5)
    0.00088
    """
    target_metric, smaller = metric or forecast.AUC, min(scenario.positives, scenario.negatives)
    clients = scenario.clients
    height_for = protocol.first_height if protocol.counts_in_rounds else protocol.tree_height
    height = height_for(clients)
    scale = planned_scale(protocol.scale)
    leaves = np.concatenate(scenario.counts(shape, 1 << height, scale))
    axis = ScoreAxis(named_scale(scale))
    if protocol.counts_in_rounds:
        pool, result = expected_rounds(protocol, scenario.clients, leaves.reshape(2, -1))
        if target_metric == forecast.AUC:
            return _rounds_forecast(result, smaller)
        leaves, noise, axis = pool.leaves[0], pool.noise, replace(axis, scale=pool.scale)
    else:
        if protocol.places_cells:
            leaves, axis = _placed(scenario, shape, height, axis)
        noise = planned_noise(protocol, scenario, height)
    if target_metric.name in smooth_calibration.NAMES:
        expected = tp.Histogram(leaves.reshape(2, -1), noise, 1, 1, axis)
        pair = partial(_imitated, protocol, scenario, shape, expected)
        return figure_forecast.distance_forecast(expected, pair, target_metric, smaller)
    if target_metric != forecast.AUC:
        return figure_forecast.figure_forecast(leaves, noise, axis, scenario, shape, target_metric)
    return _area_forecast(leaves, noise, axis, shape.auc, smaller)


def _imitated(
    protocol: ScoreHistogram,
    scenario: tp.Scenario,
    shape: tp.Shape,
    expected: tp.Histogram,
    source: np.random.Generator,
) -> figure_forecast.Pair:
    """A result as it would be stated, and the exact counts of its records, which are drawn.

    Parameters
    ----------
    expected : the expected counts, with the noise of a result.
    source : of the records, as Poisson counts in fine cells, and of the noise.
    """
    base = ScoreAxis(named_scale(planned_scale(protocol.scale)))
    fine = np.stack(
        scenario.counts(shape, figure_forecast.MEASURED_CELLS, planned_scale(protocol.scale))
    )
    records = source.poisson(fine).astype(np.float64)
    exact = trees.TreeNoise(np.zeros(figure_forecast.MEASURED_CELLS.bit_length() + 1))
    own = tp.Histogram(records, exact, 1, 1, base)
    if protocol.counts_in_rounds:
        pool, _ = expected_rounds(protocol, scenario.clients, records, source)
        placed = replace(base, scale=pool.scale)
        return tp.Histogram(pool.both_classes[0], pool.noise, 1, 1, placed), own
    cells, counts = expected.counts.shape[-1], records
    if expected.axis.scale is not base.scale:
        counts = zoomed_cells.recounted(records, base.scale, expected.axis.scale)
    noise = expected.noise.drawn(source, 1).reshape(2, -1)
    return replace(expected, counts=counts.reshape(2, cells, -1).sum(axis=-1) + noise), own


def _area_forecast(
    leaves: Floats, noise: trees.TreeNoise, axis: ScoreAxis, auc: float, smaller: int
) -> forecast.Forecast:
    """The error of the AUC of expected cells."""
    result = tree_results.result_from_tree(leaves[np.newaxis], noise, None, axis=axis)
    error, value, counted = (
        float(field[0])
        for field in (result.privacy_error, result.value, np.asarray(result.positives_error))
    )
    cells = leaves.reshape(2, -1)
    even = isinstance(axis.scale, EvenScale)
    coarse = noisy_areas.at_depth(
        cells, noisy_areas.area_depth(cells, tree_results.tree_products(noise), even)
    )
    variance = error**2 + forecast.placement((coarse[0], coarse[1]), corrected=True)
    return forecast.Forecast(math.sqrt(variance), value - auc, smaller, counted)


def _placed(
    scenario: tp.Scenario, shape: tp.Shape, height: int, axis: ScoreAxis
) -> tuple[Floats, ScoreAxis]:
    """The expected leaves, and their axis, where first reports show where scores lie."""
    fine = np.stack(scenario.counts(shape, PLACING_CELLS, PLACING_SCALE))
    borders = expected_borders(axis.scale, fine.sum(axis=0), height)
    placed = replace(axis, scale=ScoreScale(borders, axis.scale.low, axis.scale.high))
    places = axis.scale.positions(placed.edges(1 << height))
    even = np.linspace(0.0, 1.0, PLACING_CELLS + 1)
    below = [np.interp(places, even, np.append(0.0, np.cumsum(each))) for each in fine]
    return np.concatenate([np.diff(each) for each in below]), placed


DROPOUTS = "clients that vanish weaken the guarantee unless dropouts is set"


def tree_families(scenario: tp.Scenario, metric: forecast.Metric) -> list[forecast.Family]:
    """Sums and clients' counts in several rounds or one, exact sums, private reports."""
    for_auc, adjacencies = metric == forecast.AUC, ("record", "replace")
    aims: tuple[str, ...] = ("report", "auc") if for_auc else ("report",)
    heights: tuple[int, ...] = PLANNED_HEIGHTS if for_auc else RATE_HEIGHTS
    made: Any = partial(ScoreHistogram, epsilon=scenario.epsilon)
    divided = partial(made, aim=aims[-1])  # what a tree's division of epsilon serves

    def family(
        trusts: tuple[tp.Trust, ...], given_up: str, *forms: Any, tuned: bool = False
    ) -> forecast.Family:
        return forecast.Family(forecast.accepted(forms), trusts, given_up, metric, tuned=tuned)

    in_rounds = [
        family(
            (tp.Trust.of(trust.word),),
            _given_up(trust, aim),
            partial(made, trust, adjacency=adjacency, aim=aim),
        )
        for trust in (tp.SecureSum(), tp.Each())
        for adjacency in adjacencies
        for aim in aims
    ]
    sums = [
        family(
            (tp.Trust.SECURE_SUM,),
            f"no party sees a single client's figures, and {DROPOUTS}",
            *(partial(divided, tp.SecureSum(), height=each, adjacency=adj) for each in heights),
        )
        for adj in adjacencies
    ]
    exact = family(
        (tp.Trust.EXACT_SUM, tp.Trust.SECURE_SUM),
        "there is no differential privacy: the sum is exact, and epsilon is not kept",
        partial(ScoreHistogram, tp.ExactSum(), height=PLANNED_HEIGHT),
    )
    private = family(
        (tp.Trust.LOCAL, tp.Trust.EACH),
        "its AUC is less accurate than one that is asked for alone, since the same reports give "
        "the curve, rates and calibration as well",
        *(partial(divided, tp.Local(), height=height) for height in LOCAL_HEIGHTS),
        tuned=True,
    )
    return [*in_rounds, *sums, exact, private]


def _given_up(trust: tp.SecureSum | tp.Each, aim: str) -> str:
    """What is given up for rounds in which the server counts scores."""
    noise = "every client adds noise of its own, so the error grows with their number"
    given_up = DROPOUTS if isinstance(trust, tp.SecureSum) else noise
    if aim == "report":
        return given_up
    return (
        "most of epsilon goes to the AUC as one number, so the curve and all other figures have "
        f"several times the error, and {given_up}"
    )


def tree_traffic(protocol: ScoreHistogram, scenario: tp.Scenario) -> tp.Traffic:
    """A dry run; where the server sees each client, in one with the same relative noise.

    The bytes of private reports, whose levels are random, are the expected ones.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 10, 1.0)
    >>> protocol = ScoreHistogram("secure-sum", 1.0, 8)
    >>> tree_traffic(protocol, scenario).bytes_per_client
    2607
    """
    if protocol.counts_in_rounds and isinstance(protocol.trust, tp.Each):
        few = min(scenario.clients, DRY_RUN_CLIENTS)
        like_noise = scenario.records * math.sqrt(few / scenario.clients)
        each = min(like_noise, DRY_RUN_RECORDS) / few
        return tp.traffic_of_rounds(dry_run(protocol, scenario, each, few), scenario)
    if protocol.counts_in_rounds:
        return tp.traffic_of_rounds(_expected_rounds(protocol, scenario), scenario)
    measured = tp.measured_traffic(protocol, scenario)
    if not isinstance(protocol.trust, tp.Local):
        return measured
    height, records = protocol.tree_height(scenario.clients), scenario.records_per_client
    early = _early_fraction(protocol, scenario)
    levels = np.arange(FIRST_CELLS, height + FIRST_CELLS)
    fractions = np.array(protocol.level_units(height), dtype=np.float64) / CHOICE_UNITS
    late = records * (1 - early)
    bits = late * float(fractions @ report_bytes(levels))
    sent = fields.message_size(levels=late, bits=bits)
    if protocol.places_cells:
        sent += fields.message_size(turns=records) + fields.message_size(reports=records * early)
    return replace(measured, bytes_per_client=round(sent))


def _expected_rounds(protocol: ScoreHistogram, scenario: tp.Scenario) -> list[tp.Round]:
    """The rounds of a run whose sums are the expected ones, from which the rounds follow.

    Noise makes a run take a round more or less where two divisions of epsilon are as good.
    """
    height, scale = protocol.first_height(scenario.clients), planned_scale(protocol.scale)
    counts = np.stack(scenario.counts(tp.Shape(GUESSES[1]), 1 << height, scale))
    return answered_rounds(
        protocol.conversation(scenario.clients),
        lambda query: _expected_sum(query, counts, scenario.clients),
        clients=1,
    )


def _expected_sum(query: tp.Query, counts: Floats, clients: int) -> tp.Reply:
    """What a sum would be without noise, where both classes have these counts in a first round."""
    counted = {releases.CLIENTS: np.asarray(clients)}
    if query.step is summed_influences:
        return {SUM: np.asarray(0)} | counted
    base, cells = query.protocol.score_scale, counts
    if counting.BORDERS in query.broadcast:
        cells = zoomed_cells.recounted(counts, base, query_scale(query, round_height(query)))
    levels = {
        name: np.rint(cells.reshape(*field.shape, -1).sum(axis=-1)).astype(np.int64)
        for name, field in query.step.fields(query).items()
    }
    return levels | counted


def _early_fraction(protocol: ScoreHistogram, scenario: tp.Scenario) -> float:
    """The part of the records that report where scores lie, and nothing else."""
    if not protocol.places_cells or protocol.epsilon is None:
        return 0.0
    return early_slots(protocol.epsilon, scenario.records) / turns.SLOTS


def planned_noise(protocol: ScoreHistogram, scenario: tp.Scenario, height: int) -> trees.TreeNoise:
    """The errors of the expected tree's observed counts."""
    if isinstance(protocol.trust, tp.Local):
        early = _early_fraction(protocol, scenario)
        units = protocol.level_units(height)
        return tree_budget.expected_noise(
            scenario.records, protocol.epsilon or math.inf, units, 1 - early
        )
    return protocol.summed_noise(height, scenario.clients)


def _rounds_forecast(result: tp.ServerResult, smaller: int) -> forecast.Forecast:
    """From the result of expected counts, which has one replicate."""
    error, hidden, counted = (
        float(np.ravel(field)[0])
        for field in (result.privacy_error, result.approximation_error, result.positives_error)
    )
    known = math.isfinite(error)
    return forecast.Forecast(
        math.hypot(error, hidden) if known else math.inf, 0.0, smaller, counted
    )


PLANNING = forecast.Planning(
    lambda scenario, metric: () if metric.declared else tree_families(scenario, metric),
    lambda protocol, scenario, shape, metric: (
        None if metric.declared else tree_forecast(protocol, scenario, shape, metric)
    ),
    tree_traffic,
)
