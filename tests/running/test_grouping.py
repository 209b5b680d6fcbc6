"""evaluate_groups: a figure for each group, at the cost of one evaluation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.results.several import Group
from tacit.running.evaluating import exact_auc
from tests import known

AREAS = (0.7, 0.8, 0.85)


def three_groups(records: int = 2000, seed: int = 0) -> tuple[tacit.Clients, tacit.Groups]:
    """Groups of different AUCs, mixed at five clients."""
    parts = [
        tacit.binormal_scores(records // 3, records - records // 3, area, seed=seed + index)
        for index, area in enumerate(AREAS)
    ]
    scores = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    values = np.repeat(["a", "b", "c"], records)
    order = np.random.default_rng(seed).permutation(values.size)
    ids = np.random.default_rng(seed + 1).integers(0, 5, values.size)
    clients = tacit.Clients.from_arrays(scores[order], labels[order], ids)
    return clients, tacit.Groups.from_arrays(values[order], ids)


def test_every_group_is_evaluated_on_its_own_records() -> None:
    clients, groups = three_groups()
    grouped = tacit.evaluate_groups(clients, groups, tacit.ExactAUC())
    for index, name in enumerate(groups.names):
        expected = exact_auc(groups.members(clients, index))
        assert grouped[name].estimate.value == expected
        assert grouped[name].records == 2000
    spread = known(grouped.spread())
    values = [group.estimate.value for group in grouped.groups]
    assert spread.value == spread.low == spread.high == pytest.approx(max(values) - min(values))
    assert (spread.highest, spread.lowest) == ("c", "a")


@pytest.mark.parametrize(
    "protocol", [tacit.FedAUC(1.5), tacit.DPAUC(1.5), tacit.ScoreHistogram(epsilon=1.5)]
)
def test_all_groups_together_cost_what_one_evaluation_does(protocol: tacit.FedAUC) -> None:
    clients, groups = three_groups()
    grouped = tacit.evaluate_groups(clients, groups, protocol, seed=1)
    assert grouped.spent.epsilon == pytest.approx(1.5, rel=1e-12)
    assert grouped.spent.adjacency == protocol.guarantee.adjacency
    assert grouped.to_dict()["spent"]["epsilon"] == grouped.spent.epsilon


def test_groups_draw_independent_noise() -> None:
    """Twice the same records: with one stream of noise the estimates would agree."""
    scores, labels = tacit.binormal_scores(300, 700, 0.8, seed=1)
    twice = tacit.Clients.from_arrays(np.tile(scores, 2), np.tile(labels, 2))
    groups = tacit.Groups.from_arrays(np.repeat([0, 1], 1000))
    grouped = tacit.evaluate_groups(twice, groups, tacit.FedAUC(1.0), seed=5)
    assert grouped["0"].estimate.value != grouped["1"].estimate.value


def test_clients_without_a_group_are_not_asked() -> None:
    clients = tacit.Clients.from_arrays(np.arange(12) / 12, [0, 1] * 6, ["a"] * 6 + ["b"] * 6)
    groups = tacit.Groups.from_arrays(["x"] * 8 + ["y"] * 4)
    grouped = tacit.evaluate_groups(clients, groups, tacit.FedAUC(8.0), seed=1)
    evaluations = [group.evaluation for group in grouped.groups]
    assert [part.participants for part in evaluations if part is not None] == [("a", "b"), ("b",)]


def test_small_groups_are_silent_or_wide() -> None:
    """One record, one class, and four records beside a large group; nothing divides by zero."""
    scores, labels = tacit.binormal_scores(500, 1500, 0.8, seed=0)
    values = np.full(2000, "all", dtype="<U8")
    values[np.flatnonzero(labels == 0)[:3]] = "negative"
    values[np.flatnonzero(labels == 0)[3:4]] = "one"
    values[[*np.flatnonzero(labels == 0)[4:6], *np.flatnonzero(labels == 1)[:2]]] = "four"
    clients = tacit.Clients.from_arrays(scores, labels)
    for seed in range(20):
        grouped = tacit.evaluate_groups(
            clients, tacit.Groups.from_arrays(values), tacit.FedAUC(1.0), seed, exact=True
        )
        assert grouped["one"].evaluation is None
        assert "at least two records, got 1" in grouped["one"].reason
        for name in ("negative", "four"):
            low, high = grouped[name].estimate.interval()
            assert math.isnan(low) or high - low > 0.5
        assert grouped["all"].has_signal
        assert any(warning.startswith("one: ") for warning in grouped.warnings)


def test_an_absent_class_that_the_protocol_can_tell_is_a_reason() -> None:
    clients = tacit.Clients.from_arrays(np.arange(8) / 8, [0, 1] * 2 + [0] * 4)
    groups = tacit.Groups.from_arrays(["a"] * 4 + ["b"] * 4)
    for protocol in (tacit.ExactAUC(), tacit.HierarchicalAUC(2.0)):
        grouped = tacit.evaluate_groups(clients, groups, protocol, seed=1, exact=True)
        assert grouped["a"].evaluation is not None
        assert grouped["b"].evaluation is None
        assert grouped["b"].reason
        assert grouped.spent.epsilon == protocol.guarantee.epsilon


def test_records_that_the_protocol_refuses_are_an_error_of_all() -> None:
    clients, groups = three_groups(50)
    with pytest.raises(tacit.DataError, match=r"scores must be in \[0, 1\]"):
        tacit.evaluate_groups(
            replace(clients, scores=clients.scores + 1), groups, tacit.DPAUC(1.0), seed=1
        )


def test_spread_intervals_cover() -> None:
    """At least 72 of 80 simultaneous intervals; at 95 % fewer come with probability 2 %.

    They are conservative, so that in truth almost all cover; intervals a third as wide do not,
    which shows that the test can fail.
    """
    clients, groups = three_groups(700)
    exact = known(tacit.evaluate_groups(clients, groups, tacit.ExactAUC()).spread())
    inside, narrow = 0, 0
    for seed in range(80):
        spread = tacit.evaluate_groups(
            clients, groups, tacit.PublishedFedAUC(1.0, "staircase"), seed
        ).spread()
        assert spread is not None
        inside += spread.low <= exact.value <= spread.high
        centre, reach = (spread.low + spread.high) / 2, (spread.high - spread.low) / 6
        narrow += abs(exact.value - centre) <= reach
    assert inside >= 72
    assert narrow < 72


def test_equal_groups_have_a_spread_that_reaches_zero() -> None:
    clients, groups = three_groups()
    shuffled = np.random.default_rng(9).permutation(groups.of_record)
    alike = tacit.Groups(groups.names, shuffled)
    zero = 0
    for seed in range(40):
        spread = tacit.evaluate_groups(
            clients, alike, tacit.PublishedFedAUC(1.0, "staircase"), seed
        ).spread(about="population")
        assert spread is not None
        zero += spread.low == 0
    assert zero >= 35


def group(name: str, value: float, error: float, figure: str = "AUC") -> Group:
    clients = tacit.Clients.from_arrays(np.arange(4) / 4, [0, 1, 0, 1])
    evaluation = tacit.evaluate_groups(
        clients, tacit.Groups.from_arrays([0] * 4), tacit.ExactAUC()
    )["0"].evaluation
    assert evaluation is not None
    limits = (0.0, 1.0) if figure == "AUC" else (-np.inf, np.inf)
    estimate = tacit.Estimate(value, error, 0.0, limits=limits)
    return Group(name, 4, replace(evaluation, estimate=estimate, figure=figure))


def test_a_group_that_says_nothing_is_left_out_of_the_spread() -> None:
    groups = (group("a", 0.7, 0.01), group("b", 0.8, 0.01), group("c", 0.5, 2.0))
    result = tacit.GroupedEvaluation(groups, groups[0].evaluation.spent)  # type: ignore[union-attr]
    spread = known(result.spread())
    assert spread.among == ("a", "b")
    reach = 2 * 0.01 * 2.393980  # at 1 - 0.05 / 3, as all three groups count
    assert spread.high == pytest.approx(0.1 + reach, abs=1e-6)
    assert spread.low == pytest.approx(0.1 - reach, abs=1e-6)
    assert "without c" in dict(result.to_rows())["spread"]
    assert tacit.GroupedEvaluation(groups[1:], result.spent).spread() is None
    with pytest.raises(ValueError, match=r"level must be between 0 and 1, both excluded, got 1.0"):
        result.spread(1.0)


def test_every_groups_result_names_its_records() -> None:
    clients, groups = three_groups(300)
    grouped = tacit.evaluate_groups(clients, groups, tacit.FedAUC(2.0), seed=1, federation="trial")
    names = [part["result"]["federation"]["name"] for part in grouped.to_dict()["groups"]]
    assert names == ["trial, group a", "trial, group b", "trial, group c"]
    with pytest.raises(KeyError, match="there is no group 'd'"):
        grouped["d"]
