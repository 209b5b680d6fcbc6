"""Predictions for FedAUC, from the geometry of ranks that are dealt out at random."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tacit.data.clients import Ragged
from tacit.planning.forecast import Forecast
from tacit.planning.scenario import Scenario, Shape
from tacit.protocols.allocation import (
    Allocation,
    RankGeometry,
    Release,
    adaptive_allocation,
    first_round_fraction,
    influence_allocation,
    influence_centre,
    predicted_variance,
    release_from,
    vague_release,
)
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.rank_findings import findings_from_pairs
from tacit.protocols.rank_noise import RESPONSE, RankNoise

MOST_DRAWN = 2**19
"""At most so many ranks are drawn for a plan."""

MOST_CLIENTS = 2**9
"""At most so many clients are looked at in each prediction; the others are like them."""


def fedauc_forecast(protocol: FedAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """The protocol's own allocation and variance formulas at the ranks' expected geometry.

    Source: docs, sections 1a to 1e. The first round, if one pays, is taken to find the true AUC and
    class size; its error of the influence centre c is added to the variance as ``error(c)^2
    Var(count)``.

    Raises
    ------
    ValueError : for the paper's allocations, which are not planned.

    Examples
    --------
    >>> found = fedauc_forecast(FedAUC(1.0), Scenario(40_000, 4_000, 10, 1.0), Shape(0.8))
    >>> round(found.standard_error, 4)
    0.0011
    """
    geometry = expected_geometry(scenario.records, scenario.clients)
    records, positives = scenario.records, np.array(float(scenario.positives))
    area = np.array(shape.auc)
    if protocol.mechanism == RESPONSE:
        few, weight = geometry.thinned(MOST_CLIENTS)
        noise = RankNoise(RESPONSE, protocol.epsilon)
        allocation, doubt = _everybody_responds(few), 0.0
    elif protocol.allocation == "influence":
        fraction = opening_share(protocol, scenario)
        release = vague_release(records) if protocol.previous is None else protocol.previous
        if fraction:
            first = RankNoise(protocol.mechanism, fraction * protocol.epsilon)
            opening = adaptive_allocation(geometry, first)
            release = release_from(geometry, first, opening, positives, area)
        few, weight = geometry.thinned(MOST_CLIENTS)
        noise = RankNoise(protocol.mechanism, (1 - fraction) * protocol.epsilon)
        allocation = influence_allocation(few, noise, _single(release))
        doubt = float(release.centre_error) ** 2 if fraction or protocol.previous else 0.0
    else:
        raise ValueError(f"plans are for the influence allocation, got {protocol.allocation!r}")
    weight *= scenario.clients / geometry.sizes.size
    centre = influence_centre(records, positives, area)
    numerator, count, _ = predicted_variance(few, noise, allocation, centre)
    counted = weight * count.sum(axis=-1)
    summed = weight * numerator.sum(axis=-1) + doubt * counted
    found = findings_from_pairs(records, positives, area, summed, counted)
    smaller = min(scenario.positives, scenario.negatives)
    return Forecast(float(found.privacy_error), 0.0, smaller, float(np.sqrt(counted)))


@lru_cache(maxsize=16)
def expected_geometry(records: int, clients: int) -> RankGeometry:
    """The geometry of ranks dealt out at random; of a sample of clients and ranks where many.

    A client's ranks spread alike whether all or some hundreds of them are looked at.

    Examples
    --------
    >>> expected_geometry(100, 4).sizes.tolist()
    [25.0, 25.0, 25.0, 25.0]
    """
    rng = np.random.default_rng(0)
    if records <= MOST_DRAWN:
        ranks = rng.permutation(records)
        offsets = (np.arange(clients + 1, dtype=np.int64) * records) // clients
        return RankGeometry.of(Ragged(2 * ranks.astype(np.int64), offsets))
    looked_at = min(clients, MOST_CLIENTS)
    own = max(1, round(records / clients))
    drawn = min(own, MOST_DRAWN // looked_at)
    ranks = rng.integers(records, size=looked_at * drawn, dtype=np.int64)
    sampled = RankGeometry.of(Ragged(2 * ranks, np.arange(looked_at + 1, dtype=np.int64) * drawn))
    more = own / drawn
    return RankGeometry(
        records,
        sampled.low,
        sampled.high,
        sampled.mean,
        more * sampled.scatter,
        more * sampled.sizes,
    )


def opening_share(protocol: FedAUC, scenario: Scenario) -> float:
    """The part of epsilon that the influence allocation spends on a first round; 0 for none."""
    if protocol.previous is not None:
        return 0.0
    return _fraction(scenario.records, scenario.clients, protocol.mechanism, protocol.epsilon)


@lru_cache(maxsize=64)
def _fraction(records: int, clients: int, mechanism: str, epsilon: float) -> float:
    geometry = expected_geometry(records, clients)
    return first_round_fraction(geometry, mechanism, epsilon, 0.0)


def _everybody_responds(geometry: RankGeometry) -> Allocation:
    clients = geometry.sizes.size
    return Allocation(
        np.zeros(clients, dtype=np.int64), np.ones(clients), np.ones(clients, dtype=np.bool_)
    )


def _single(release: Release) -> Release:
    """A release of plain numbers."""
    fields = (release.positives, release.auc, release.positives_error, release.centre_error)
    return Release(*(float(np.asarray(value)) for value in fields))
