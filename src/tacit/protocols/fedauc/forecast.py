"""Predictions for FedAUC, from the geometry of ranks that are assigned to clients at random."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from tacit.data.ragged import Ragged
from tacit.protocol import forecast
from tacit.protocol.scenario import (
    DRY_CLIENTS,
    GUESSES,
    Scenario,
    Shape,
    Traffic,
    measured_rounds,
    measured_traffic,
    traffic_of_rounds,
)
from tacit.protocol.trust import Each, Local, SecureSum, Trust
from tacit.protocols.fedauc.allocation import (
    Allocation,
    PriorEstimate,
    RankGeometry,
    first_round_fraction,
    influence_allocation,
    influence_centre,
    predicted_variance,
    prior_from,
    vague_prior,
)
from tacit.protocols.fedauc.estimate import result_from_pairs
from tacit.protocols.fedauc.protocol import FedAUC, HiddenRanks
from tacit.protocols.fedauc.secure_sums import divided, expected_rounds

MAX_DRAWN = 2**19
"""Largest number of ranks drawn for a plan."""

MAX_SUMMED_CLIENTS = 100
"""Largest number of clients for which a plan tries a secure sum of ranks. All of them have to stay
to the end: where each leaves in one run of a hundred, 0.99**100 = 37 % of runs are completed."""

MAX_CLIENTS = 2**9
"""Largest number of clients in a prediction; they represent the others."""


def fedauc_forecast(protocol: FedAUC, scenario: Scenario, shape: Shape) -> forecast.Forecast:
    """The protocol's allocation and variance formulas at the ranks' expected geometry.

    Source: docs, sections 1a to 1e. The first round, if one pays, is taken to estimate the true AUC
    and class size; its error of the influence centre c is added to the variance as ``error(c)^2
    Var(count)``.

    Raises
    ------
    ValueError : for hidden ranks, which are not planned.

    Examples
    --------
    >>> forecast = fedauc_forecast(FedAUC(1.0), Scenario(40_000, 4_000, 10, 1.0), Shape(0.8))
    >>> round(forecast.standard_error, 4)
    0.0011
    """
    if isinstance(protocol.trust, SecureSum):
        return _summed_forecast(protocol, scenario, shape)
    if isinstance(protocol.trust, HiddenRanks):
        raise ValueError(f"plans are for ranks that the server knows, got trust {protocol.trust}")
    geometry = expected_geometry(scenario.records, scenario.clients)
    records, positives = scenario.records, np.array(float(scenario.positives))
    area, noise, centre_variance = np.array(shape.auc), protocol.rank_noise, 0.0
    sample, weight = geometry.thinned(MAX_CLIENTS)
    if isinstance(protocol.trust, Local):
        allocation = Allocation.alike(sample, respond=True)
    else:
        fraction = planned_first_round(protocol, scenario)
        prior = vague_prior(records)
        if isinstance(protocol, _KnownCentre):
            prior = PriorEstimate(float(scenario.positives), GUESSES[1], 0.0)
        if fraction:
            prior = prior_from(geometry, noise.part(fraction), positives, area)
            centre_variance = float(prior.centre_error) ** 2
        noise = noise.rest(fraction)
        allocation = influence_allocation(sample, noise, prior)
    weight *= scenario.clients / geometry.sizes.size
    centre = influence_centre(records, positives, area)
    numerator, count, _ = predicted_variance(sample, noise, allocation, centre)
    counted = weight * count.sum(axis=-1)
    summed = weight * numerator.sum(axis=-1) + centre_variance * counted
    result = result_from_pairs(records, positives, area, summed, counted)
    smaller = min(scenario.positives, scenario.negatives)
    return forecast.Forecast(float(result.privacy_error), 0.0, smaller, float(np.sqrt(counted)))


def _summed_forecast(protocol: FedAUC, scenario: Scenario, shape: Shape) -> forecast.Forecast:
    """The variance formulas of sums, after a first round that finds the true sizes and AUC."""
    records, positives = scenario.records, np.array(float(scenario.positives))
    area, parts = np.array(shape.auc), divided(records, protocol.epsilon)
    first, numerator = expected_rounds(records, positives, area, protocol.epsilon, parts)
    counted = np.asarray(first.count_variance)
    result = result_from_pairs(records, positives, area, numerator, counted)
    smaller = min(scenario.positives, scenario.negatives)
    return forecast.Forecast(float(result.privacy_error), 0.0, smaller, float(np.sqrt(counted)))


def fedauc_families(scenario: Scenario) -> list[forecast.Family]:
    """Staircase noise, randomised response, and sums over all clients where they are few."""
    summed = forecast.Family(
        (FedAUC(scenario.epsilon, SecureSum()),),
        (Trust.SERVER_SEES_SCORES,),
        "every score is shown to the server, every client must stay to the end, and every "
        "further evaluation costs epsilon again",
    )
    return [
        forecast.Family(
            (FedAUC(scenario.epsilon),),
            (Trust.SERVER_SEES_SCORES,),
            "every score is shown to the server, and every further evaluation costs epsilon again",
            rough=lambda protocol, scenario: _KnownCentre(protocol.epsilon),
        ),
        forecast.Family(
            (FedAUC(scenario.epsilon, Local()),),
            (Trust.SERVER_SEES_SCORES,),
            "every score is shown to the server, while the flipped labels serve later evaluations "
            "at no further cost",
        ),
        *([summed] if scenario.clients <= MAX_SUMMED_CLIENTS else []),
    ]


class _KnownCentre(FedAUC):
    """The protocol with its influence centre known, so that no first round is chosen."""


def fedauc_traffic(protocol: FedAUC, scenario: Scenario) -> Traffic:
    """A dry run, in which a first round's query and reply are those of the main round again.

    Examples
    --------
    >>> fedauc_traffic(FedAUC(1.0), Scenario(40_000, 4_000, 10, 1.0)).rounds
    3
    """
    if isinstance(protocol.trust, SecureSum):
        # all clients that are ranked have to answer, so that few are asked
        few = min(scenario.clients, DRY_CLIENTS)
        drawn = replace(scenario.scaled(few / scenario.clients), clients=few)
        return measured_traffic(protocol, drawn)
    rounds = measured_rounds(protocol, scenario)
    if isinstance(protocol.trust, Each):
        first = rounds[-1:] if planned_first_round(protocol, scenario) > 0 else []
        rounds = [rounds[0], rounds[-1], *first]
    return traffic_of_rounds(rounds, scenario)


@lru_cache(maxsize=16)
def expected_geometry(records: int, clients: int) -> RankGeometry:
    """The geometry of ranks in random order; where there are many, of a sample of them.

    Some hundreds of a client's ranks have the same distribution as all of them.

    Examples
    --------
    >>> expected_geometry(100, 4).sizes.tolist()
    [25.0, 25.0, 25.0, 25.0]
    """
    rng = np.random.default_rng(0)
    if records <= MAX_DRAWN:
        ranks = rng.permutation(records)
        offsets = (np.arange(clients + 1, dtype=np.int64) * records) // clients
        return RankGeometry.of(Ragged(2 * ranks.astype(np.int64), offsets))
    sampled_clients = min(clients, MAX_CLIENTS)
    per_client = max(1, round(records / clients))
    drawn = min(per_client, MAX_DRAWN // sampled_clients)
    ranks = rng.integers(records, size=sampled_clients * drawn, dtype=np.int64)
    sampled = RankGeometry.of(
        Ragged(2 * ranks, np.arange(sampled_clients + 1, dtype=np.int64) * drawn)
    )
    scale = per_client / drawn
    scatter, sizes = scale * sampled.scatter, scale * sampled.sizes
    return replace(sampled, records=records, scatter=scatter, sizes=sizes)


def planned_first_round(protocol: FedAUC, scenario: Scenario) -> float:
    """The fraction of epsilon that the influence allocation spends on a first round; 0 for none."""
    if isinstance(protocol, _KnownCentre):
        return 0.0
    geometry = expected_geometry(scenario.records, scenario.clients)
    return first_round_fraction(geometry, protocol.rank_noise)


PLANNING = forecast.Planning.of_figure(fedauc_families, fedauc_forecast, fedauc_traffic)
