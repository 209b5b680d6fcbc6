"""Predictions for FheAUC, which adds no noise."""

from __future__ import annotations

import math
from functools import partial

from tacit.protocol.declarations.forecast import Forecast, Planning
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.traffic import Traffic, round_seconds
from tacit.protocols.encrypted.forecast import hidden_family, hidden_forecast
from tacit.protocols.encrypted.hidden import MALICIOUS
from tacit.protocols.published.fhe.packing import Scale
from tacit.protocols.published.fhe.protocol import Bfv, FheAUC

CIPHERTEXT_BYTES = 197_000
"""What a client sends of one encrypted polynomial with keys and introductions; measured."""
CIPHERTEXT_SECONDS, KEY_SECONDS = 0.001, 0.6
"""The aggregator's time for a client's ciphertext, and making keys once; measured."""


def fhe_forecast(protocol: FheAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """That of exact figures, where there are enough pairs for the agreed bound of records."""
    is_small = 2 * scenario.positives * scenario.negatives < protocol.most_records**2 / 1024
    if is_small and Scale.fitting(protocol.most_records).width > 1:
        return Forecast(math.inf)
    return hidden_forecast(protocol, scenario, shape)


def fhe_traffic(protocol: FheAUC, scenario: Scenario) -> Traffic:
    """One or two ciphertexts a client by measured sizes: a dry run would need TenSEAL and keys."""
    rounds = 5 if protocol.checked else 4
    runs = 1 if Scale.fitting(protocol.most_records).moduli == 1 and not protocol.checked else 2
    computing = KEY_SECONDS + runs * CIPHERTEXT_SECONDS * scenario.clients
    return Traffic(runs * CIPHERTEXT_BYTES, rounds, round_seconds(rounds, scenario) + computing)


PLANNING = Planning.of_auc(
    partial(hidden_family, partial(FheAUC, scheme=Bfv(MALICIOUS))), fhe_forecast, fhe_traffic
)
"""Of a malicious aggregator; for another one ``EncryptedAUC`` takes a hundredth of the bytes."""
