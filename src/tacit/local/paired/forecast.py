"""Predictions for PairedUStatistic, from the variance of means over matched pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.local.paired.estimate import area_shared_covariance, matching_variance
from tacit.local.paired.kernels import Area
from tacit.local.paired.noise import RESPONSE, count_variance
from tacit.local.paired.protocol import PairedUStatistic
from tacit.protocol import fields, forecast
from tacit.protocol.scenario import measured_rounds

PAIR_SECONDS, PAIR_BYTES = 3.3e-5, 340
"""Seconds and bytes of a pair between two clients in an open session; measured."""

MAX_CLIENTS = 2**12
"""Largest number of clients whose sizes are computed; the others have as many records."""


def paired_forecast(
    protocol: PairedUStatistic, scenario: tp.Scenario, shape: tp.Shape
) -> forecast.Forecast:
    """The server's variance of the AUC at its expected mean over pairs (docs, section 4c).

    A pair of both classes that the positive wins counts 1: ``2 A P N / (n (n - 1))`` of all. With
    several clients a pair is between two of them with probability ``1 - 1/K``.

    Raises
    ------
    ValueError : for another kernel than the AUC's.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 10, 2.0)
    >>> forecast = paired_forecast(PairedUStatistic("auc", 2.0), scenario, tp.Shape(0.8))
    >>> round(forecast.standard_error, 3)
    0.021
    """
    if not isinstance(protocol.kernel, Area):
        raise ValueError(f"plans are for the kernel 'auc', got {protocol.function!r}")
    n, (sizes, weight) = scenario.records, client_sizes(scenario)
    count_epsilon = protocol.class_epsilon(sizes)
    counted = weight * count_variance(sizes, count_epsilon)
    noise = protocol.pair_noise(protocol.epsilon - count_epsilon).variance(1 - 1 / scenario.clients)
    positives, negatives = float(scenario.positives), float(scenario.negatives)
    pair_fraction = 2 * positives * negatives / (n * (n - 1))
    mean = shape.auc * pair_fraction
    area = np.array(shape.auc)
    shared = area_shared_covariance(area, np.array(positives), n)
    shared = np.minimum(shared, mean * (1 - mean) / 2)
    matchings = protocol.pairs_a_record
    matching_term = float(matching_variance(mean * (1 - mean), shared, n, matchings))
    of_pairs = (matching_term + noise / (matchings * (n // 2))) / pair_fraction**2
    of_counts = (shape.auc * (negatives - positives) / (positives * negatives)) ** 2 * counted
    return forecast.Forecast(
        math.sqrt(of_pairs + of_counts),
        0.0,
        min(positives, negatives),
        math.sqrt(counted),
    )


def paired_families(scenario: tp.Scenario) -> list[forecast.Family]:
    """One family, which chooses its settings."""
    return [
        forecast.Family(
            (PairedUStatistic("auc", scenario.epsilon),),
            (tp.Trust.MPC,),
            "every pair of clients needs a session under cryptography, the guarantee is "
            "computational, and there is no curve",
        )
    ]


def paired_traffic(protocol: PairedUStatistic, scenario: tp.Scenario) -> tp.Traffic:
    """A dry run of the queries and the first replies; pairs cost what was measured.

    The values of all pairs count as sent by all clients in equal parts, rounded up.
    """
    *first_rounds, mpc = measured_rounds(protocol, scenario)
    matchings, half = protocol.pairs_a_record, scenario.records // 2
    kind = np.uint8 if protocol.kind == RESPONSE else np.int64
    values = len(fields.encode({"values": np.zeros((matchings, 0), dtype=kind)}))
    values += matchings * half * np.dtype(kind).itemsize
    rounds = [*first_rounds, replace(mpc, sent=-(-values // scenario.clients))]
    traffic = tp.traffic_of_rounds(rounds, scenario)
    pairs = matchings * scenario.records_per_client * (1 - 1 / scenario.clients)
    return replace(
        traffic,
        seconds=traffic.seconds + PAIR_SECONDS * pairs,
        beyond=round(PAIR_BYTES * pairs),
    )


def client_sizes(scenario: tp.Scenario) -> tuple[NDArray[np.int64], float]:
    """The numbers of records of up to ``MAX_CLIENTS`` clients, and how many each represents.

    The best part of epsilon for class sizes is the same for any number of clients of the same
    sizes.
    """
    few = min(scenario.clients, MAX_CLIENTS)
    more = scenario.clients / few
    ends = np.rint(np.arange(few + 1) * scenario.records / (few * more)).astype(np.int64)
    return np.diff(ends), more


PLANNING = forecast.Planning.of_figure(paired_families, paired_forecast, paired_traffic)
