"""Which protocols fit which trust, which settings are compared, and what each of them gives up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacit.planning.forecast import Forecast
from tacit.planning.local_reports import hierarchical_forecast, symbols_forecast
from tacit.planning.matched_pairs import paired_forecast
from tacit.planning.ranked_scores import fedauc_forecast
from tacit.planning.scenario import Scenario, Shape
from tacit.planning.summed_counts import dpauc_forecast, encrypted_forecast
from tacit.planning.trees import AREA, Metric, even_division, tree_forecast
from tacit.planning.two_rounds import two_round_forecast
from tacit.protocols.allocation import Release
from tacit.protocols.conversation import Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.encrypted_auc import EncryptedAUC
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.hierarchical_auc import HierarchicalAUC
from tacit.protocols.paired_ustatistic import PairedUStatistic
from tacit.protocols.rank_noise import RESPONSE
from tacit.protocols.score_histogram import ScoreHistogram
from tacit.protocols.two_round_auc import TwoRoundAUC
from tacit.protocols.ustatistic import UStatistic

TRUSTS = {
    "central": "the server may see every client's counts, to which the client added its own noise",
    "server-sees-scores": "the server may know all scores, not the labels",
    "local": "nobody is trusted: every record's report is private by itself",
    "secure-sum": "the server sees sums over the clients only, by secure aggregation",
    "encrypted": "the aggregator computes on encrypted counts; clients share a key",
    "two-party": "two holders of records compute together, by cryptography, and learn nothing",
}
"""Whom a plan may trust, and with what."""

CELLS = (10, 20, 50, 100, 200, 400)
TREE_HEIGHTS, RATE_HEIGHTS = (6, 8, 9), (6, 8, 10)
LOCAL_HEIGHTS = (4, 5, 6, 7, 8)
BIT_HEIGHTS = (3, 4, 5, 6, 7, 8)
BINS = (2, 4, 6, 8, 12, 16, 24, 32)
POINTS = (25, 50, 100, 200, 400)
EXACT_HEIGHT = 12
SECOND_ROUND = 0.5
"""Settings that are compared."""

Predict = Callable[[Any, Scenario, Shape], Forecast]


@dataclass(frozen=True)
class Family:
    """A protocol with what it hides, over the settings that are compared.

    Parameters
    ----------
    protocols : the settings to compare; one that the protocol refuses is left out.
    forecast : predicts the error of one of them.
    given_up : what is given up by using it, to end a sentence.
    rough : a protocol whose error stands in a fixed ratio to that of another, but is predicted
        faster: settings and targets are looked for with it.
    tuned : whether a target is looked for with the best settings of every epsilon and number of
        records, instead of those that are best for the scenario.
    """

    protocols: Sequence[Protocol]
    forecast: Predict
    given_up: str
    rough: Callable[[Any, Scenario], Any] = lambda protocol, scenario: protocol
    tuned: bool = False


def families(trust: str, scenario: Scenario, metric: Metric) -> list[Family]:
    """The families that give the metric under a trust.

    Raises
    ------
    ValueError : for an unknown trust.
    """
    if trust not in TRUSTS:
        raise ValueError(f"trust must be one of {tuple(TRUSTS)}, got {trust!r}")
    area = metric.name == AREA
    if trust == "secure-sum":
        return [*_sums(scenario, metric), *(_second_rounds(scenario) if area else [])]
    found = [_local_tree(scenario, metric)] if trust in ("local", "central") else []
    if not area:
        return found
    made = {
        "central": lambda: [*_noisy_counts(scenario), *_local_private(scenario)],
        "server-sees-scores": lambda: _ranked(scenario),
        "local": lambda: [*_local_private(scenario), *_local_public(scenario)],
        "encrypted": lambda: [_encrypted(scenario, way) for way in ("semi-honest", "malicious")],
        "two-party": lambda: [_paired(scenario)],
    }
    return [own for own in [*made[trust](), *found] if own.protocols]


def best_settings(family: Family, scenario: Scenario, shapes: tuple[Shape, ...]) -> Protocol:
    """The settings with the least geometric mean of the errors over the shapes."""
    return _best(family, family.protocols, scenario, shapes)


def settings_at(family: Family, scenario: Scenario, shapes: tuple[Shape, ...]) -> Protocol:
    """The best settings of a tuned family for another scenario than the one it was made for."""
    changed: Sequence[Any] = family.protocols
    others = [replace(own, epsilon=scenario.epsilon) for own in changed]
    return _best(family, others, scenario, shapes)


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


def _accepted(made: Iterator[Callable[[], Protocol]]) -> tuple[Protocol, ...]:
    """The protocols that can be made."""
    found = []
    for make in made:
        with suppress(ValueError):
            found.append(make())
    return tuple(found)


def _noisy_counts(scenario: Scenario) -> list[Family]:
    epsilon = scenario.epsilon

    def cells(adjacency: Any) -> Family:
        made = (partial(DPAUC, epsilon, cells, adjacency=adjacency) for cells in CELLS)
        hidden = (
            "a record's score is not hidden"
            if adjacency == "label"
            else (
                "every client adds noise of its own, so the error grows with the number of clients"
            )
        )
        return Family(_accepted(made), dpauc_forecast, hidden)

    flipped = DPAUC(epsilon, CELLS[3], RESPONSE, adjacency="label")
    reused = (
        "the server sees every client's score histogram exactly, while the flipped labels serve "
        "later evaluations at no further cost"
    )
    return [
        cells("record"),
        cells("replace"),
        cells("label"),
        Family((flipped,), dpauc_forecast, reused),
    ]


def _ranked(scenario: Scenario) -> list[Family]:
    def known(protocol: FedAUC, own: Scenario) -> FedAUC:
        """With the influence centre known beforehand, so that no first round is chosen."""
        return replace(protocol, previous=Release(float(own.positives), 0.775, 0.0, 0.0))

    return [
        Family(
            (FedAUC(scenario.epsilon),),
            fedauc_forecast,
            "every score is shown to the server, and every further evaluation costs epsilon again",
            known,
        ),
        Family(
            (FedAUC(scenario.epsilon, RESPONSE),),
            fedauc_forecast,
            "every score is shown to the server, while the flipped labels serve later evaluations "
            "at no further cost",
        ),
    ]


def _local_private(scenario: Scenario) -> list[Family]:
    epsilon = scenario.epsilon
    symbols = (partial(UStatistic, "auc", epsilon, bins=bins) for bins in BINS)
    return [
        Family(
            (TwoRoundAUC(epsilon),),
            two_round_forecast,
            "there is no curve, only the AUC, and every record must be reachable in three rounds",
        ),
        Family(_accepted(symbols), symbols_forecast, "there is no curve, only the AUC", tuned=True),
    ]


def _local_public(scenario: Scenario) -> list[Family]:
    epsilon = scenario.epsilon
    heights = (partial(HierarchicalAUC, epsilon, height) for height in BIT_HEIGHTS)
    return [
        Family(
            (TwoRoundAUC(epsilon, "public"),),
            two_round_forecast,
            "every record's label is shown to the server",
        ),
        Family(
            _accepted(heights),
            hierarchical_forecast,
            "every record's label is shown to the server",
            tuned=True,
        ),
    ]


def _local_tree(scenario: Scenario, metric: Metric) -> Family:
    made = (
        partial(ScoreHistogram, "local-dp", scenario.epsilon, height, aim=metric.aim)
        for height in LOCAL_HEIGHTS
    )
    return Family(
        _accepted(made),
        partial(tree_forecast, metric=metric),
        "its AUC is less accurate than one that is asked for alone, since the same reports give "
        "the curve, rates and calibration as well",
        tuned=True,
    )


def _sums(scenario: Scenario, metric: Metric) -> list[Family]:
    heights = TREE_HEIGHTS if metric.name == AREA else RATE_HEIGHTS

    def noisy(adjacency: Any) -> Family:
        made = (
            partial(
                ScoreHistogram, "distributed-dp", scenario.epsilon, height, adjacency=adjacency,
                aim=metric.aim,
            )
            for height in heights
        )  # fmt: skip
        return Family(
            _accepted(made),
            partial(tree_forecast, metric=metric),
            "nobody sees a single client's figures, and clients that vanish weaken the guarantee "
            "unless dropouts is set",
            lambda protocol, own: even_division(protocol),
        )

    exact = ScoreHistogram("secure-aggregation", height=EXACT_HEIGHT)
    unprotected = Family(
        (exact,),
        partial(tree_forecast, metric=metric),
        "there is no differential privacy: the sum is exact, and epsilon is not kept",
    )
    return [noisy("record"), noisy("replace"), unprotected]


def _second_rounds(scenario: Scenario) -> list[Family]:
    made = (
        partial(
            ScoreHistogram, "distributed-dp", scenario.epsilon, height, second_round=SECOND_ROUND
        )
        for height in TREE_HEIGHTS
    )
    return [
        Family(
            _accepted(made),
            tree_forecast,
            "half of epsilon goes to a second pass for the AUC alone, so the curve and all other "
            "figures have about twice the error, and clients that vanish weaken the guarantee "
            "unless dropouts is set",
            lambda protocol, own: even_division(protocol),
        )
    ]


def _encrypted(scenario: Scenario, adversary: Any) -> Family:
    made = (
        partial(EncryptedAUC, points, adversary, most_records=scenario.records) for points in POINTS
    )
    return Family(
        _accepted(made),
        encrypted_forecast,
        "there is no differential privacy: the AUC is released as it is, epsilon is not kept, and "
        "an aggregator that colludes with a client learns everything; its interval is the certain "
        "range of its thresholds, many times as wide as this error",
        lambda protocol, own: replace(protocol, most_records=own.records),
    )


def _paired(scenario: Scenario) -> Family:
    return Family(
        (PairedUStatistic("auc", scenario.epsilon),),
        paired_forecast,
        "every pair of clients needs a session under cryptography, the guarantee is computational, "
        "and there is no curve",
    )
