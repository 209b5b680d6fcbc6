"""Predictions for PairedUStatistic, from the variance of means over matched pairs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tacit.planning.forecast import Forecast
from tacit.planning.scenario import Scenario, Shape
from tacit.protocols.paired_counts import count_variance
from tacit.protocols.paired_estimates import area_shared_covariance, matching_variance
from tacit.protocols.paired_ustatistic import PairedUStatistic

MOST_CLIENTS = 2**12
"""At most so many clients are looked at; the others hold as many records."""


def paired_forecast(protocol: PairedUStatistic, scenario: Scenario, shape: Shape) -> Forecast:
    """The server's variance of the AUC at its expected mean over pairs (docs, section 4c).

    A pair of both classes that the positive wins counts 1: ``2 A P N / (n (n - 1))`` of all. With
    several clients a pair is between two of them with probability ``1 - 1/K``.

    Raises
    ------
    ValueError : for another kernel than the AUC's.

    Examples
    --------
    >>> scenario = Scenario(40_000, 4_000, 10, 2.0)
    >>> found = paired_forecast(PairedUStatistic("auc", 2.0), scenario, Shape(0.8))
    >>> round(found.standard_error, 3)
    0.021
    """
    if protocol.kernel != "auc":
        raise ValueError(f"plans are for the kernel 'auc', got {protocol.kernel!r}")
    n, (sizes, more) = scenario.records, client_sizes(scenario)
    own = protocol.class_epsilon(sizes)
    counted = more * count_variance(sizes, own)
    noise = protocol.pair_noise(protocol.epsilon - own).variance(1 - 1 / scenario.clients)
    positives, negatives = float(scenario.positives), float(scenario.negatives)
    share = 2 * positives * negatives / (n * (n - 1))
    mean = shape.auc * share
    area = np.array(shape.auc)
    shared = area_shared_covariance(area, np.array(positives), n)
    shared = np.minimum(shared, mean * (1 - mean) / 2)
    matchings = protocol.pairs_a_record
    drawn = float(matching_variance(mean * (1 - mean), shared, n, matchings))
    of_pairs = (drawn + noise / (matchings * (n // 2))) / share**2
    of_counts = (shape.auc * (negatives - positives) / (positives * negatives)) ** 2 * counted
    return Forecast(
        math.sqrt(of_pairs + of_counts),
        0.0,
        min(positives, negatives),
        math.sqrt(counted),
    )


def client_sizes(scenario: Scenario) -> tuple[NDArray[np.int64], float]:
    """The numbers of records of up to ``MOST_CLIENTS`` clients, and how many each stands for.

    Epsilon's best part for class sizes is the same for any number of clients of the same sizes.
    """
    few = min(scenario.clients, MOST_CLIENTS)
    more = scenario.clients / few
    ends = np.rint(np.arange(few + 1) * scenario.records / (few * more)).astype(np.int64)
    return np.diff(ends), more
