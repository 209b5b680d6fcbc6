"""Predictions for EncryptedAUC, which adds no noise."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from tacit.metrics.curves import cell_area
from tacit.protocol.forecast import Family, Forecast, Planning, accepted, placement
from tacit.protocol.scenario import Scenario, Shape
from tacit.protocol.traffic import Traffic, round_seconds
from tacit.protocol.trust import Trust
from tacit.protocols.encrypted.packing import Scale
from tacit.protocols.encrypted.protocol import ADVERSARIES, EncryptedAUC

POINTS = (25, 50, 100, 200, 400)
"""Numbers of thresholds that a plan compares."""

CIPHERTEXT_BYTES = 197_000
"""What a client sends of one encrypted polynomial with keys and introductions; measured."""

CIPHERTEXT_SECONDS, KEY_SECONDS = 0.001, 0.6
"""The aggregator's time for a client's ciphertext, and making keys once; measured."""


def encrypted_forecast(protocol: EncryptedAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """No noise: straight lines between thresholds, and unknown positions of records between them.

    This is the error that the shape predicts. The interval of a result assumes no shape and is the
    certain range, ``sum p n / (2 P N)`` on either side.

    Answers are refused where ``2 P N`` is below a 1024th of the agreed number of records squared
    (``packing.Scale``).
    """
    cells = scenario.counts(shape, protocol.threshold_count - 1, protocol.scale)
    scale = Scale.fitting(protocol.most_records)
    small = 2 * scenario.positives * scenario.negatives < protocol.most_records**2 / 1024
    if small and scale.width > 1:
        return Forecast(math.inf)
    return Forecast(math.sqrt(placement(cells)), float(cell_area(*cells)) - shape.auc)


def encrypted_families(scenario: Scenario) -> list[Family]:
    """One for each adversary."""
    return [_against(adversary, scenario) for adversary in ADVERSARIES]


def _against(adversary: Any, scenario: Scenario) -> Family:
    candidates = (
        partial(EncryptedAUC, points, adversary, most_records=scenario.records) for points in POINTS
    )
    return Family(
        accepted(candidates),
        (Trust.ENCRYPTED,),
        "there is no differential privacy: the AUC is released as it is, epsilon is not kept, and "
        "an aggregator that colludes with a client learns everything; its interval is the certain "
        "range of its thresholds, many times as wide as this error",
        rough=lambda protocol, scenario: replace(protocol, most_records=scenario.records),
    )


def encrypted_traffic(protocol: EncryptedAUC, scenario: Scenario) -> Traffic:
    """One or two ciphertexts a client, by measured sizes: a dry run would need TenSEAL and keys.

    Examples
    --------
    >>> encrypted_traffic(EncryptedAUC(most_records=1000), Scenario(1000, 300, 10, 1.0)).rounds
    4
    """
    single = (
        Scale.fitting(protocol.most_records).moduli == 1 and protocol.adversary == "semi-honest"
    )
    runs = 1 if single else 2
    computing = KEY_SECONDS + runs * CIPHERTEXT_SECONDS * scenario.clients
    return Traffic(runs * CIPHERTEXT_BYTES, 4, round_seconds(4, scenario) + computing)


PLANNING = Planning.of_auc(encrypted_families, encrypted_forecast, encrypted_traffic)
