"""Predictions for DPAUC, whose server sees noisy counts in score cells."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY, named_scale
from tacit.metrics.curves import cell_area, density_correction
from tacit.privacy.local.response import response_variance
from tacit.protocol.declarations.forecast import Family, Forecast, Planning, accepted, placement
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.traffic import (
    Traffic,
    dry_run,
    measured_traffic,
    traffic_of_rounds,
)
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.dpauc.choices import expected_way, outlook_of
from tacit.protocols.dpauc.looks import Counts
from tacit.protocols.dpauc.protocol import DPAUC
from tacit.protocols.shared.cells import exchange_variance, independent_variance
from tacit.protocols.shared.prior_curves import PriorCurves
from tacit.protocols.shared.sums.rank_noise import RESPONSE
from tacit.protocols.shared.trees.levels import CellNoise, Levels

CELLS = (10, 20, 50, 100, 200, 400)
"""Numbers of cells that a plan compares."""

FLIPPED_CELLS = 100
"""The number of cells that a plan takes for flipped labels."""

DRY_RUN_RECORDS, DRY_RUN_CLIENTS = 2**17, 2**10
"""Largest numbers of records and of clients of a dry run where the server chooses by the counts."""


def dpauc_forecast(protocol: DPAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """The variance formulas of noisy histograms, at the expected counts of the shape.

    Source: docs, sections 2b to 2d. The bias of one round is what the area of expected counts, with
    densities linear inside cells, misses of the shape's AUC. Two rounds divide epsilon as they
    would at the expected counts; with a prior its errors count.

    Raises
    ------
    ValueError : for the paper's noisy confusion counts, which are not planned.

    Examples
    --------
    >>> scenario = Scenario(40_000, 4_000, 10, 1.0)
    >>> round(dpauc_forecast(DPAUC(1.0), scenario, Shape(0.8)).standard_error, 4)
    0.0013
    """
    if protocol.mechanism not in ("histogram", RESPONSE):
        raise ValueError(f"plans are for histogram and {RESPONSE}, got {protocol.mechanism!r}")
    if protocol.prior is not None:
        return _after_prior(protocol, protocol.prior, scenario)
    if protocol.asks_again:
        return _two_rounds_forecast(protocol, scenario, shape)
    return _one_round_forecast(protocol, protocol.levels, scenario, shape)


def _one_round_forecast(
    protocol: DPAUC, levels: Levels, scenario: Scenario, shape: Shape
) -> Forecast:
    cells = expected_counts(protocol, scenario, shape, protocol.edges)
    if protocol.asks_again:
        cells = expected_counts(protocol, scenario, shape, np.arange(levels.cells) / levels.cells)
    if protocol.mechanism == RESPONSE:
        noise = CellNoise(response_variance(protocol.epsilon) * (cells[0] + cells[1]))
    else:
        noise = levels.noise(scenario.clients, protocol.record_distance)
    variance_of = independent_variance if protocol.adjacency != "label" else exchange_variance
    value = float(cell_area(*cells) + density_correction(*cells))
    return Forecast(
        math.sqrt(float(variance_of(*cells, noise)) + placement(cells, corrected=True)),
        value - shape.auc,
        min(scenario.positives, scenario.negatives),
        math.sqrt(noise.total),
    )


def expected_counts(
    protocol: DPAUC, scenario: Scenario, shape: Shape, edges: Floats
) -> tuple[Floats, Floats]:
    """The expected positives and negatives in cells with these lower edges, as positions.

    Scores that are no probabilities are taken to lie on their scale as the log-odds of the shape's
    do on that of log-odds.
    """
    scale = named_scale(EVEN if protocol.scale == EVEN else PROBABILITY)
    reached = np.array(
        [shape.reaching(float(edge), scenario.positive_fraction) for edge in scale.scores(edges)]
    )
    fractions: Floats = -np.diff(reached, axis=0, append=0.0)
    return scenario.positives * fractions[:, 0], scenario.negatives * fractions[:, 1]


def _two_rounds_forecast(protocol: DPAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """Errors where epsilon is divided as at the expected counts, and what cells hide."""
    clients = scenario.clients
    part, place = protocol.first_look(clients)
    positions = protocol.score_scale.positions(place.edges)
    expected = np.array(expected_counts(protocol, scenario, shape, positions))
    noise = protocol.levels_for(part, place.count).noise(clients, protocol.record_distance)
    counts = Counts(expected, expected.sum(axis=-1, keepdims=True), noise, place)
    ahead = outlook_of(protocol, counts, clients, (part,))
    if protocol.second_round is None:
        ahead, choice = expected_way(ahead)
        if not choice.number:
            levels = protocol.levels_for(choice.look, protocol.cells_for(clients))
            return _one_round_forecast(protocol, levels, scenario, shape)
    return Forecast(
        math.sqrt(ahead.total),
        0.0,
        min(scenario.positives, scenario.negatives),
        math.sqrt(ahead.noise.total),
    )


def _after_prior(protocol: DPAUC, prior: PriorCurves, scenario: Scenario) -> Forecast:
    """The number's error at the largest reach that there is, and what the prior's errors leave."""
    spent = protocol.epsilon * min(scenario.positives, scenario.negatives)
    variance = 2 * scenario.clients / spent**2 + prior.variance
    return Forecast(math.sqrt(variance + prior.hidden_error**2))


def dpauc_families(scenario: Scenario) -> list[Family]:
    """Noisy cells at every adjacency, and cells of flipped labels."""
    flipped = DPAUC(scenario.epsilon, FLIPPED_CELLS, RESPONSE, adjacency="label")
    reused = (
        "the server sees every client's score histogram exactly, while the flipped labels serve "
        "later evaluations at no further cost"
    )
    noise = "every client adds noise of its own, so the error grows with the number of clients"
    return [
        _noisy_cells(scenario, "record", noise),
        _noisy_cells(scenario, "replace", noise),
        _noisy_cells(scenario, "label", "a record's score is not hidden"),
        Family((flipped,), (Trust.EACH,), reused),
    ]


def _noisy_cells(scenario: Scenario, adjacency: Any, given_up: str) -> Family:
    once = partial(DPAUC, scenario.epsilon, adjacency=adjacency, second_round=0.0)
    made = [partial(once, cells) for cells in CELLS]
    if adjacency != "label":
        made.append(partial(DPAUC, scenario.epsilon, adjacency=adjacency))
    return Family(accepted(made), (Trust.EACH,), given_up)


def dpauc_traffic(protocol: DPAUC, scenario: Scenario) -> Traffic:
    """A dry run; where the server chooses by the counts, in one with the same relative noise.

    Choices follow the noise, so a run may have a look more or less.

    Examples
    --------
    >>> dpauc_traffic(DPAUC(1.0), Scenario(40_000, 4_000, 10, 1.0)).rounds
    3
    """
    if not protocol.asks_again:
        return measured_traffic(protocol, scenario)
    few = min(scenario.clients, DRY_RUN_CLIENTS)
    like_noise = scenario.records * math.sqrt(few / scenario.clients)
    rounds = dry_run(protocol, scenario, min(like_noise, DRY_RUN_RECORDS) / few, few)
    return traffic_of_rounds(rounds, scenario)


PLANNING = Planning.of_auc(dpauc_families, dpauc_forecast, dpauc_traffic)
