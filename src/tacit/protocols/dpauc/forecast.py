"""Predictions for DPAUC, whose server sees noisy counts in score cells."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY, named_scale
from tacit.protocol.declarations import forecast, traffic
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.dpauc.choices import expected_way, outlook_of
from tacit.protocols.dpauc.looks import Counts
from tacit.protocols.dpauc.protocol import DPAUC
from tacit.protocols.shared.cells import exchange_variance, independent_variance
from tacit.protocols.shared.trees.levels import CellNoise, Levels

CELLS = (10, 20, 50, 100, 200, 400)
"""Numbers of cells that a plan compares."""

DRY_RUN_RECORDS, DRY_RUN_CLIENTS = 2**17, 2**10
"""Largest numbers of records and of clients of a dry run where the server chooses by the counts."""


def dpauc_forecast(protocol: DPAUC, scenario: Scenario, shape: Shape) -> forecast.Forecast:
    """The variance formulas of noisy histograms, at the expected counts of the shape.

    Source: docs, sections 2b to 2d. The bias of one round is what the area of expected counts, with
    densities linear inside cells, misses of the shape's AUC. Two rounds divide epsilon as they
    would at the expected counts.

    Examples
    --------
    >>> scenario = Scenario(40_000, 4_000, 10, 1.0)
    >>> round(dpauc_forecast(DPAUC(1.0), scenario, Shape(0.8)).standard_error, 4)
    0.0013
    """
    if protocol.asks_again:
        return _two_rounds_forecast(protocol, scenario, shape)
    return _one_round_forecast(protocol, protocol.levels, scenario, shape)


def _one_round_forecast(
    protocol: DPAUC, levels: Levels, scenario: Scenario, shape: Shape
) -> forecast.Forecast:
    edges = np.arange(levels.cells) / levels.cells
    cells = expected_counts(protocol.scale, scenario, shape, edges)
    noise = levels.noise(scenario.clients, protocol.record_distance)
    return cells_forecast(cells, noise, protocol.adjacency, scenario, shape)


def cells_forecast(
    cells: tuple[Floats, Floats], noise: CellNoise, adjacency: str, scenario: Scenario, shape: Shape
) -> forecast.Forecast:
    """The error of the area of expected positives and negatives in cells with this noise."""
    variance_of = independent_variance if adjacency != "label" else exchange_variance
    value = float(curves.cell_area(*cells) + curves.density_correction(*cells))
    return forecast.Forecast(
        math.sqrt(float(variance_of(*cells, noise)) + forecast.placement(cells, corrected=True)),
        value - shape.auc,
        min(scenario.positives, scenario.negatives),
        math.sqrt(noise.total),
    )


def expected_counts(
    scale: str, scenario: Scenario, shape: Shape, edges: Floats
) -> tuple[Floats, Floats]:
    """The expected positives and negatives in cells with these lower edges, as positions.

    Scores that are no probabilities are taken to lie on their scale as the log-odds of the shape's
    do on that of log-odds.
    """
    on = named_scale(EVEN if scale == EVEN else PROBABILITY)
    reached = np.array(
        [shape.reaching(float(edge), scenario.positive_fraction) for edge in on.scores(edges)]
    )
    fractions: Floats = -np.diff(reached, axis=0, append=0.0)
    return scenario.positives * fractions[:, 0], scenario.negatives * fractions[:, 1]


def _two_rounds_forecast(protocol: DPAUC, scenario: Scenario, shape: Shape) -> forecast.Forecast:
    """Errors where epsilon is divided as at the expected counts, and what cells hide."""
    clients = scenario.clients
    part, place = protocol.first_look(clients)
    positions = protocol.score_scale.positions(place.edges)
    expected = np.array(expected_counts(protocol.scale, scenario, shape, positions))
    noise = protocol.levels_for(part, place.count).noise(clients, protocol.record_distance)
    counts = Counts(expected, expected.sum(axis=-1, keepdims=True), noise, place)
    ahead = outlook_of(protocol, counts, clients, (part,))
    ahead, choice = expected_way(ahead)
    if not choice.number:
        levels = protocol.levels_for(choice.look, protocol.cells_for(clients))
        return _one_round_forecast(protocol, levels, scenario, shape)
    return forecast.Forecast(
        math.sqrt(ahead.total),
        0.0,
        min(scenario.positives, scenario.negatives),
        math.sqrt(ahead.noise.total),
    )


def dpauc_families(scenario: Scenario) -> list[forecast.Family]:
    """Noisy cells at every adjacency."""
    noise = "every client adds noise of its own, so the error grows with the number of clients"
    return [
        _noisy_cells(scenario, "record", noise),
        _noisy_cells(scenario, "replace", noise),
        _noisy_cells(scenario, "label", "a record's score is not hidden"),
    ]


def _noisy_cells(scenario: Scenario, adjacency: Any, given_up: str) -> forecast.Family:
    kind = partial(DPAUC, scenario.epsilon, adjacency=adjacency)
    made = [partial(kind, cells) for cells in CELLS]
    if adjacency != "label":
        made.append(kind)
    return forecast.Family(forecast.accepted(made), (Trust.EACH,), given_up)


def dpauc_traffic(protocol: DPAUC, scenario: Scenario) -> traffic.Traffic:
    """A dry run; where the server chooses by the counts, in one with the same relative noise.

    Choices follow the noise, so a run may have a look more or less.

    Examples
    --------
    >>> dpauc_traffic(DPAUC(1.0), Scenario(40_000, 4_000, 10, 1.0)).rounds
    3
    """
    if not protocol.asks_again:
        return traffic.measured_traffic(protocol, scenario)
    few = min(scenario.clients, DRY_RUN_CLIENTS)
    like_noise = scenario.records * math.sqrt(few / scenario.clients)
    rounds = traffic.dry_run(protocol, scenario, min(like_noise, DRY_RUN_RECORDS) / few, few)
    return traffic.traffic_of_rounds(rounds, scenario)


PLANNING = forecast.Planning.of_auc(dpauc_families, dpauc_forecast, dpauc_traffic)
