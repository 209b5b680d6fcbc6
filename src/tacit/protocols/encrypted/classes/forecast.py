"""Predictions for EncryptedClassAUC, which adds no noise."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from tacit.crypto.homomorphic.keys import PACKED_BYTES
from tacit.metrics.curves import cell_area
from tacit.protocol.declarations.forecast import Family, Forecast, Planning, accepted, placement
from tacit.protocol.declarations.metric import Metric
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.traffic import Traffic, round_seconds
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.encoding.fields import message_size
from tacit.protocols.encrypted.classes.protocol import EncryptedClassAUC
from tacit.protocols.encrypted.masked.steps import BOX_BYTES

ROUNDS = 4
"""Introductions, the secret, masked counts, and the figures."""
FIGURES_BYTES, FIGURE_BYTES = 25, 16
"""Of a client's last reply: its fields, and an AUC with its half-range."""


def classes_forecast(protocol: EncryptedClassAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """No noise: straight lines between thresholds, and unknown positions of records between them.

    Positions of records in the scores of different classes are taken to be independent, so that the
    error of a mean of C AUCs is that of one over ``sqrt(C)``; the bias is the same in all. The
    interval of a result assumes neither and is the mean of the certain ranges.

    A class has no AUC where ``P (M - P)`` is too small beside the bound of records squared.
    """
    if not protocol.masked_scheme.accepts(scenario.positives * scenario.negatives):
        return Forecast(math.inf)
    cells = scenario.counts(shape, protocol.threshold_count - 1, protocol.scale)
    error = math.sqrt(placement(cells) / scenario.classes)
    return Forecast(error, float(cell_area(*cells)) - shape.auc)


def classes_families(scenario: Scenario, metric: Metric) -> list[Family]:
    """One: an aggregator that follows the protocol."""
    if metric != Metric.of_figure(EncryptedClassAUC.figure):
        return []
    sized = partial(EncryptedClassAUC, classes=scenario.class_names, most_records=scenario.records)
    return [
        Family(
            accepted([sized]),
            (Trust.ENCRYPTED,),
            "there is no differential privacy: the AUCs of all classes are released as they are, "
            "epsilon is not kept, and an aggregator that colludes with a client learns everything",
            metric,
            rough=lambda protocol, scenario: replace(protocol, most_records=scenario.records),
        )
    ]


def classes_traffic(protocol: EncryptedClassAUC, scenario: Scenario) -> Traffic:
    """Masked values of all classes, by their sizes.

    Examples
    --------
    >>> protocol = EncryptedClassAUC(("a", "b", "c"), 100, most_records=1000)
    >>> classes_traffic(protocol, Scenario(1000, 300, 10, 1.0, 3)).rounds
    4
    """
    classes = len(protocol.classes)
    # the first party's boxes for all others
    boxes = BOX_BYTES * (scenario.clients - 1) / scenario.clients
    sent = (
        message_size(introduction=PACKED_BYTES)
        + message_size(boxes=boxes)
        + message_size(counts=classes * protocol.masked_scheme.upload_bytes)
        + FIGURES_BYTES
        + FIGURE_BYTES * classes
    )
    return Traffic(round(sent), ROUNDS, round_seconds(ROUNDS, scenario))


PLANNING = Planning(
    classes_families,
    lambda protocol, scenario, shape, metric: (
        classes_forecast(protocol, scenario, shape)
        if metric == Metric.of_figure(protocol.figure)
        else None
    ),
    classes_traffic,
)
