"""Predictions for EncryptedAUC."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tacit.metrics import curves
from tacit.protocol import fields
from tacit.protocol.conversation import Protocol
from tacit.protocol.declarations import traffic
from tacit.protocol.declarations.forecast import Family, Forecast, Planning, accepted, placement
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.encrypted.confirming import TAG_BYTES
from tacit.protocols.encrypted.hidden import HiddenAUC
from tacit.protocols.encrypted.masked.steps import session_bytes
from tacit.protocols.encrypted.protocol import EncryptedAUC

POINTS = (25, 50, 100, 200, 400)
"""Numbers of thresholds that a plan compares."""

REPORT_BYTES = 41
"""A client's last reply: the AUC and its half-range."""


def encrypted_forecast(protocol: EncryptedAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """That of hidden counts, where the scheme takes so many records."""
    is_accepted = protocol.masked_scheme.accepts(scenario.positives * scenario.negatives)
    return hidden_forecast(protocol, scenario, shape) if is_accepted else Forecast(math.inf)


def hidden_forecast(protocol: HiddenAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """No noise: straight lines between thresholds, and unknown positions of records between them.

    This is the error that the shape predicts. The interval of a result assumes no shape and is the
    certain range, ``sum p n / (2 P N)`` on either side.
    """
    cells = scenario.counts(shape, protocol.threshold_count - 1, protocol.scale)
    return Forecast(math.sqrt(placement(cells)), float(curves.cell_area(*cells)) - shape.auc)


def hidden_family(make: Callable[..., Protocol], scenario: Scenario) -> list[Family]:
    """One, over numbers of thresholds.

    Parameters
    ----------
    make : the protocol of a number of thresholds and ``most_records``.
    """
    candidates = (partial(make, points, most_records=scenario.records) for points in POINTS)
    return [
        Family(
            accepted(candidates),
            (Trust.ENCRYPTED,),
            "there is no differential privacy: the AUC is released as it is, epsilon is not kept, "
            "and an aggregator that colludes with a client learns everything; its interval is the "
            "certain range of its thresholds, many times as wide as this error",
            rough=lambda protocol, scenario: replace(protocol, most_records=scenario.records),
        )
    ]


def encrypted_traffic(protocol: EncryptedAUC, scenario: Scenario) -> traffic.Traffic:
    """Masked values by their sizes.

    Examples
    --------
    >>> protocol = EncryptedAUC(100, most_records=1000)
    >>> encrypted_traffic(protocol, Scenario(1000, 300, 10, 1.0)).bytes_per_client
    1952
    """
    rounds = 5 if protocol.checked else 4
    sent = session_bytes(scenario.clients, protocol.masked_scheme.upload_bytes) + REPORT_BYTES
    sent += fields.message_size(tag=TAG_BYTES) if protocol.checked else 0
    return traffic.Traffic(round(sent), rounds, traffic.round_seconds(rounds, scenario))


PLANNING = Planning.of_auc(
    partial(hidden_family, EncryptedAUC), encrypted_forecast, encrypted_traffic
)
"""Of an aggregator that follows the protocol: the check of another one is experimental."""
