"""Predictions for EncryptedAUC, which adds no noise."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from tacit.crypto.homomorphic.keys import PACKED_BYTES
from tacit.metrics.curves import cell_area
from tacit.protocol.declarations.forecast import Family, Forecast, Planning, accepted, placement
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.traffic import Traffic, measured_traffic, round_seconds
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.encoding.fields import message_size
from tacit.protocols.encrypted.ciphertexts.packing import Scale
from tacit.protocols.encrypted.confirming import TAG_BYTES
from tacit.protocols.encrypted.masked.steps import BOX_BYTES
from tacit.protocols.encrypted.protocol import ADVERSARIES, MASKED, EncryptedAUC

POINTS = (25, 50, 100, 200, 400)
"""Numbers of thresholds that a plan compares."""

REPORT_BYTES = 41
"""A client's last reply: the AUC and its half-range."""

CIPHERTEXT_BYTES = 197_000
"""What a client sends of one encrypted polynomial with keys and introductions; measured."""

CIPHERTEXT_SECONDS, KEY_SECONDS = 0.001, 0.6
"""The aggregator's time for a client's ciphertext, and making keys once; measured."""


def encrypted_forecast(protocol: EncryptedAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """No noise: straight lines between thresholds, and unknown positions of records between them.

    This is the error that the shape predicts. The interval of a result assumes no shape and is the
    certain range, ``sum p n / (2 P N)`` on either side.

    Answers are refused where ``P N`` is below about a 2048th of the agreed number of records
    squared, or a 1024th on masked values (``packing.Scale``, ``masked.scheme.SMALLEST``).
    """
    if protocol.epsilon is not None:
        return _of_noisy_sums(protocol, scenario, shape)
    cells = scenario.counts(shape, protocol.threshold_count - 1, protocol.scale)
    if _is_refused(protocol, scenario.positives * scenario.negatives):
        return Forecast(math.inf)
    return Forecast(math.sqrt(placement(cells)), float(cell_area(*cells)) - shape.auc)


def _of_noisy_sums(protocol: EncryptedAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """With noise of which every party draws a share, in two rounds."""
    sums, sizes = protocol.private_sums, (scenario.positives, scenario.negatives)
    class_error = math.sqrt(2 / (1 - sums.colluding)) / sums.class_epsilon
    return Forecast(
        sums.predicted_error(shape.auc, sizes), smaller_class=min(sizes), class_error=class_error
    )


def _is_refused(protocol: EncryptedAUC, pairs: float) -> bool:
    """Whether there are too few pairs of the two classes for the agreed bound of records."""
    if protocol.scheme == MASKED:
        return not protocol.masked_scheme.accepts(int(pairs))
    small = 2 * pairs < protocol.most_records**2 / 1024
    return small and Scale.fitting(protocol.most_records).width > 1


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
    """Masked values, or one or two ciphertexts a client by measured sizes; noisy sums measured.

    A dry run of ciphertexts would need TenSEAL and keys.

    Examples
    --------
    >>> protocol = EncryptedAUC(100, most_records=1000)
    >>> encrypted_traffic(protocol, Scenario(1000, 300, 10, 1.0)).bytes_per_client
    1952
    """
    if protocol.epsilon is not None:
        return measured_traffic(protocol, scenario)
    checked = protocol.adversary == "malicious"
    rounds = 5 if checked else 4
    if protocol.scheme == MASKED:
        # the first party's boxes for all others, and the two numbers of the last reply
        boxes = BOX_BYTES * (scenario.clients - 1) / scenario.clients
        sent = (
            message_size(introduction=PACKED_BYTES)
            + message_size(boxes=boxes)
            + message_size(counts=protocol.masked_scheme.upload_bytes)
            + (message_size(tag=TAG_BYTES) if checked else 0)
            + REPORT_BYTES
        )
        return Traffic(round(sent), rounds, round_seconds(rounds, scenario))
    single = Scale.fitting(protocol.most_records).moduli == 1 and not checked
    runs = 1 if single else 2
    computing = KEY_SECONDS + runs * CIPHERTEXT_SECONDS * scenario.clients
    seconds = round_seconds(rounds, scenario) + computing
    return Traffic(runs * CIPHERTEXT_BYTES, rounds, seconds)


PLANNING = Planning.of_auc(encrypted_families, encrypted_forecast, encrypted_traffic)
