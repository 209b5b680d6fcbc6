"""Predictions for MulticlassHistogram: the server's own conclusions from the expected forest."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tacit.protocol.declarations import forecast
from tacit.protocol.declarations.scenario import Scenario, Shape, planned_scale
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.multiclass.forests import Forest, Forests
from tacit.protocols.multiclass.protocol import HITS, OTHER, OWN, MulticlassHistogram


def classes_forecast(
    protocol: MulticlassHistogram, scenario: Scenario, shape: Shape
) -> forecast.Forecast | None:
    """What the server would conclude from the expected forest; nothing for private reports.

    Noise adds the same to every class, independently. What cells hide is bounded by the mean of the
    classes' errors, as a result bounds it. With two rounds the second one's number has the area
    that cells miss; with one the bias is what cells miss of the shape's AUC.

    Examples
    --------
    >>> scenario = Scenario(30_000, 10_000, 10, 1.0, 3)
    >>> protocol = MulticlassHistogram(epsilon=1.0, classes=scenario.class_names)
    >>> forecast = classes_forecast(protocol, scenario, Shape(0.8))
    >>> 0 < forecast.error < 0.002
    True
    """
    if protocol.lone_records:
        return None
    first = protocol.first_round(expected_forests(protocol, scenario, shape))
    result = protocol.expected_result(first)
    if result.silence:
        return forecast.Forecast(math.inf)
    _, variances = first.sizes()
    return forecast.Forecast(
        math.hypot(float(result.privacy_error), float(result.approximation_error)),
        0.0 if protocol.number_part else float(result.value) - shape.auc,
        min(scenario.positives, scenario.negatives),
        math.sqrt(float(np.max(variances))),
    )


def expected_forests(protocol: MulticlassHistogram, scenario: Scenario, shape: Shape) -> Forests:
    """The expected counts of every block, with the noise of a run.

    How many of a class have their largest score at it changes no AUC: half of them are taken.
    """
    classes, scale = len(protocol.classes), planned_scale(protocol.scale)
    own, other = scenario.counts(shape, 1 << protocol.tree_height, scale)
    halves = np.full((2 * classes, 1), scenario.positives / 2)
    counts = {OWN: np.tile(own, (classes, 1)), OTHER: np.tile(other, (classes, 1)), HITS: halves}
    noise = protocol.expected_noise(scenario.clients)
    return {name: Forest(each, noise[name]) for name, each in counts.items()}


def classes_families(scenario: Scenario) -> list[forecast.Family]:
    """Noisy sums in two rounds, every client's own counts, and exact sums."""
    named = partial(MulticlassHistogram, classes=scenario.class_names)
    noisy = partial(named, epsilon=scenario.epsilon)
    sums, each, exact = Trust.SECURE_SUM, Trust.EACH, Trust.EXACT_SUM
    weaker = "clients that vanish weaken the guarantee unless dropouts is set"
    no_privacy = "there is no differential privacy: the sum is exact, and epsilon is not kept"
    tried = [
        (noisy, sums, f"there is no curve, and {weaker}"),
        (
            partial(noisy, adjacency="replace"),
            sums,
            f"the number of records is public, and {weaker}",
        ),
        (partial(noisy, trust=each.value), each, ""),
        (partial(named, trust=exact.value), exact, no_privacy),
    ]
    metric = forecast.Metric.of_figure(MulticlassHistogram.figure)
    return [
        forecast.Family(forecast.accepted([make]), (trust,), given_up, metric)
        for make, trust, given_up in tried
    ]


PLANNING = forecast.Planning.of_figure(
    classes_families, classes_forecast, figure=MulticlassHistogram.figure
)
