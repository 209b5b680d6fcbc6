"""Figures of private groups: sensitivity, coverage, sites, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.metrics.ranking import auc
from tacit.results.estimate import Estimate
from tacit.results.server_result import ServerResult
from tests import known
from tests.classified import GROUPS, coverages, group_clients, worst_loss

RATES = ("true positive rate", "false positive rate", "positive predictive value")


@pytest.mark.parametrize("adjacency", ["record", "replace"])
@pytest.mark.parametrize("trust", ["secure-sum", "each"])
@pytest.mark.parametrize("height", [3, None], ids=["one round", "placed cells"])
def test_a_record_of_any_group_costs_epsilon_at_most_and_nearly_that(
    adjacency: str, trust: str, height: int | None
) -> None:
    """Exact: also where a record moves to another group, the cost does not grow with them."""
    settings: dict[str, Any] = {"trust": trust, "epsilon": 1.0, "adjacency": adjacency}
    protocol = tacit.GroupedHistogram(**settings, height=height, group_names=GROUPS)
    assert 0.6 < worst_loss(protocol, group_clients(9, 1)) <= 1.0 + 1e-9


def exact_figures(clients: tacit.Clients, group: int) -> dict[str, float]:
    inside = known(clients.categories).of_record == group
    scores, labels = clients.scores[inside], clients.labels[inside]
    called, true = scores >= 0.5, labels == 1
    values = (called[true].mean(), called[~true].mean(), true[called].mean())
    return {"AUC": auc(scores, labels)} | dict(zip(RATES, map(float, values), strict=True))


def test_exact_sums_give_exact_rates() -> None:
    clients = group_clients(3000)
    result = tacit.evaluate(
        clients, tacit.GroupedHistogram("exact-sum", group_names=GROUPS, height=12)
    )
    assert result.breakdown is not None
    for group, part in enumerate(result.breakdown.parts):
        exact = exact_figures(clients, group)
        assert part.figures["AUC"].value == pytest.approx(exact["AUC"], abs=1e-4)
        for name in RATES:
            assert part.figures[name].value == pytest.approx(exact[name], abs=1e-12)
    gap = next(each for each in result.breakdown.differences if each.called == "equal opportunity")
    found = exact_figures(clients, 1)[RATES[0]] - exact_figures(clients, 0)[RATES[0]]
    assert (gap.first, gap.second) == ("y", "x")
    assert gap.estimate.value == pytest.approx(found, abs=1e-12)


def figures(exact: list[dict[str, float]], result: ServerResult) -> Mapping[str, Any]:
    assert result.breakdown is not None
    found: dict[str, list[tuple[Estimate, float]]] = {
        name: [
            (part.figures[name], exact[group][name])
            for group, part in enumerate(result.breakdown.parts)
        ]
        for name in ("AUC", *RATES)
    }
    for each in result.breakdown.differences:
        first, second = (exact[GROUPS.index(name)] for name in (each.first, each.second))
        pair = (each.estimate, first[each.figure] - second[each.figure])
        found.setdefault("differences", []).append(pair)
    return found


def test_intervals_cover_and_notice_wrong_noise() -> None:
    """95 % intervals at 4,000 records of 10 clients, 360 of each figure by group.

    A coverage of 95 % is known to 1.2 %, and leaves 92 to 98 % with a probability of 1e-2 a figure.
    Noise 30 % off gives 83 or 99.4 %, of 240 differences: it passes for right in fewer than 2
    of 100.
    """
    clients, protocol = group_clients(4000), tacit.GroupedHistogram(epsilon=1.0, group_names=GROUPS)
    exact = [exact_figures(clients, group) for group in range(3)]

    def found(factor: float, runs: int) -> dict[str, float]:
        return coverages(clients, protocol, lambda r: figures(exact, r), runs, factor)

    right, small, large = found(1.0, 120), found(0.7, 30), found(1.3, 30)
    assert all(0.92 <= each <= 0.98 for each in right.values()), right
    assert small["differences"] > 0.98
    assert large["differences"] < 0.92


def test_clients_that_send_their_own_counts_are_compared() -> None:
    """One of ten sites has its scores turned round, which chance does with probability < 1e-6."""
    scores, labels = tacit.binormal_scores(6000, 14000, 0.8, seed=1)
    order = np.random.default_rng(2).permutation(scores.size)
    sites = np.arange(scores.size) % 10
    turned = np.where(sites == 4, 1 - scores[order], scores[order])
    clients = tacit.Clients.from_arrays(turned, labels[order], [f"s{site}" for site in sites])
    result = tacit.evaluate(clients, tacit.GroupedHistogram("each", 1.0), seed=3)
    aucs = known(result.sites)["AUC"]
    assert [site.index for site in aucs.sites if site.is_outlier] == [4]
    content = result.to_dict()
    assert content["sites"][4]["name"] == "s4"
    assert content["sites"][4]["measures"]["AUC"]["outlier"]
    assert content["between_sites"]["AUC"]["deviation"] > 0
    assert {"calibration intercept", "calibration slope"} < content["between_sites"].keys()
    tacit.evaluate(clients, tacit.GroupedHistogram("each", 1.0), seed=3).to_html()


def test_dpauc_of_one_round_compares_clients_and_two_clients_are_too_few() -> None:
    scores, labels = tacit.binormal_scores(1500, 3500, 0.8, seed=1)
    order = np.random.default_rng(2).permutation(scores.size)
    for count in (2, 5):
        ids = np.arange(scores.size) % count
        clients = tacit.Clients.from_arrays(scores[order], labels[order], ids)
        result = tacit.evaluate(clients, tacit.DPAUC(1.0, 100), seed=3)
        if count == 2:
            assert result.sites is None
            continue
        for site, own in zip(known(result.sites)["AUC"].sites, range(count), strict=True):
            part = clients.part(own, own + 1)
            exact = auc(part.scores, part.labels)
            assert abs(site.estimate.value - exact) < 5 * site.estimate.standard_error


@pytest.mark.parametrize("protocol", [tacit.ScoreHistogram("each", 1.0), tacit.DPAUC(1.0)])
def test_the_auc_of_a_client_that_noise_moves_beyond_1_is_1_and_the_result_is_read_again(
    protocol: tacit.Protocol, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 8000)
    scores = rng.uniform(0.0, 0.4, labels.size) + 0.6 * labels
    clients = tacit.Clients.from_arrays(scores, labels, np.arange(8000) % 4)
    result = tacit.evaluate(clients, protocol, seed=0)
    aucs = [site.estimate for site in known(result.sites)["AUC"].sites]
    moved = [estimate for estimate in aucs if estimate.bias < 0]
    assert moved
    assert {estimate.value for estimate in moved} == {1.0}
    result.save(tmp_path / "result.json")
    assert tacit.Evaluation.load(tmp_path / "result.json") == result


def test_clients_of_other_groups_are_refused() -> None:
    with pytest.raises(tacit.DataError, match="groups must be x, y, got x, y, z"):
        protocol = tacit.GroupedHistogram(epsilon=1.0, group_names=("x", "y"))
        tacit.evaluate(group_clients(40), protocol, seed=1)
    plain = tacit.Clients.from_arrays([0.1, 0.9], [0, 1])
    with pytest.raises(tacit.DataError, match="3 groups are agreed, but the records have none"):
        tacit.evaluate(plain, tacit.GroupedHistogram(epsilon=1.0, group_names=GROUPS), seed=1)
