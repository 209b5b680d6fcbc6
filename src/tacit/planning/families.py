"""Which families of protocols fit a trust model and a metric, and which settings are best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.protocol.conversation import Protocol
from tacit.protocol.declarations.forecast import Family
from tacit.protocol.declarations.metric import AUC, Metric
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.registry import kind_of, protocol_names


def registered() -> Iterator[type[Protocol]]:
    """The class of every registered protocol."""
    for name in protocol_names():
        yield kind_of(name)


def families(trust: str, scenario: Scenario, metric: Metric) -> list[Family]:
    """The families that give the metric under a trust model.

    Raises
    ------
    ValueError : for an unknown trust.
    """
    requested = Trust.of(trust)
    return [
        family
        for kind in registered()
        for family in kind.families(scenario, metric)
        if requested in family.trusts and family.protocols
    ]


def other_metrics() -> list[Metric]:
    """The figures of registered protocols that are not built-in metrics."""
    figures = dict.fromkeys(kind.figure for kind in registered())
    metrics = [Metric.of_figure(figure) for figure in figures]
    return [metric for metric in metrics if metric.declared]


def metric_by_class() -> Metric:
    """The figure that is planned of classifiers with more than two classes.

    Raises
    ------
    ValueError : where no registered protocol has scores by class.
    """
    for kind in registered():
        if kind.scores_by_class:
            return Metric.of_figure(kind.figure)
    raise ValueError("no registered protocol has scores by class")


def metric_named(name: str | None) -> Metric:
    """The metric of a name, which may be a protocol's figure; the AUC where there is none.

    Raises
    ------
    ValueError : for a name that is neither.
    """
    if name is None:
        return AUC
    declared = {metric.name.lower(): metric for metric in other_metrics()}
    if name.lower() in declared:
        return declared[name.lower()]
    try:
        return Metric(name)
    except ValueError as error:
        figures = ", ".join(repr(metric.name) for metric in declared.values())
        raise ValueError(f"{error}; protocols also give {figures}" if figures else error) from None


def trusts_by_protocol(scenario: Scenario, metric: Metric) -> dict[str, list[Trust]]:
    """The protocols that give a metric under any trust model, and under which."""
    trusts: dict[str, list[Trust]] = {}
    for kind in registered():
        fitting = {trust for family in kind.families(scenario, metric) for trust in family.trusts}
        if fitting:
            trusts[kind.name] = [trust for trust in Trust if trust in fitting]
    return trusts


def best_settings(family: Family, scenario: Scenario, shapes: tuple[Shape, ...]) -> Protocol:
    """The settings with the least geometric mean of the errors over the shapes."""
    return _best(family, family.protocols, scenario, shapes)


def settings_at(family: Family, scenario: Scenario, shapes: tuple[Shape, ...]) -> Protocol:
    """The best settings of a tuned family for another scenario than the one it was made for."""
    changed: Sequence[Any] = family.protocols
    protocols = [replace(protocol, epsilon=scenario.epsilon) for protocol in changed]
    return _best(family, protocols, scenario, shapes)


def _best(
    family: Family, protocols: Sequence[Protocol], scenario: Scenario, shapes: tuple[Shape, ...]
) -> Protocol:
    if len(protocols) == 1:
        return protocols[0]

    def loss(protocol: Protocol) -> float:
        rough = family.rough(protocol, scenario)
        errors = [family.forecast(rough, scenario, shape).error for shape in shapes]
        return float(np.mean(np.log(np.maximum(errors, 1e-300))))

    return min(protocols, key=loss)
