"""Strategies of a lying server: none breaks the whole rule, and each part left out is missed."""

from __future__ import annotations

import numpy as np
import pytest

from tacit_studies.secure_sums import scopes, weakened
from tacit_studies.secure_sums.attacks import short_delivery
from tacit_studies.secure_sums.clients import HonestClients
from tacit_studies.secure_sums.exhausting import Scope, exhaust
from tacit_studies.secure_sums.searching import determined, search
from tacit_studies.secure_sums.setting import Part, Setting, complete
from tacit_studies.secure_sums.strategy import Story, truthful

KNOWN = list(weakened.known_attacks())


def named(setting: Setting) -> str:
    """By the clients and what they lack."""
    parts = "+".join(sorted(part.name.lower() for part in setting.without))
    return f"{setting.clients}-{parts or 'whole'}"


@pytest.mark.parametrize("attack", KNOWN, ids=lambda attack: named(attack.setting))
def test_a_known_attack_opens_what_it_opened(attack: weakened.Attack) -> None:
    least, _ = determined(HonestClients(attack.setting), attack.attempts)
    assert least == attack.vectors < attack.setting.allowed


@pytest.mark.parametrize("attack", KNOWN, ids=lambda attack: named(attack.setting))
def test_the_whole_rule_withstands_a_known_attack(attack: weakened.Attack) -> None:
    least, refused = determined(HonestClients(attack.whole), attack.attempts)
    assert least == 0 or least >= attack.setting.allowed
    assert refused


def test_a_sum_without_lies_is_determined_and_nothing_else() -> None:
    setting = complete(10, colluders=2, min_clients=7)
    answers = HonestClients(setting).answer(truthful(Story.of(setting, range(10)), [0, 1]))
    assert np.flatnonzero(answers.labels >= 0).tolist() == [2, 3, 4, 5, 6, 7]


def test_the_threshold_of_the_complete_graph_alone_stops_a_shortened_delivery_to_one() -> None:
    """Where tau shares open a secret, colluders and leavers are too few to hold a victim's."""
    lacking = complete(20, colluders=4, min_clients=14).lacking(Part.ANNOUNCED)
    story = Story.of(lacking, range(20))
    attempt = short_delivery(lacking, story, victims=[0], leavers=range(1, 7))
    assert determined(HonestClients(lacking), [attempt])[0] == 0


@pytest.mark.parametrize("setting", weakened.broken_without_hint(), ids=named)
def test_a_search_without_hints_breaks_a_weakened_rule(setting: Setting) -> None:
    result = search(setting, 12_000, seed=20, until_broken=True)
    assert result.is_broken(setting)
    assert determined(HonestClients(setting), result.example)[0] == result.least


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(scope, marks=pytest.mark.thorough) if place == 0 else scope
        for place, scope in enumerate(weakened.exhausted())
    ],
    ids=lambda scope: named(scope.setting),
)
def test_an_exhaustive_search_breaks_a_weakened_rule(scope: Scope) -> None:
    result = exhaust(scope, until_broken=True)
    assert 0 < result.least < scope.setting.allowed


@pytest.mark.parametrize("clients", [2, 3, 4])
def test_no_strategy_at_all_breaks_the_whole_rule_of_few_clients(clients: int) -> None:
    tried = list(scopes.complete_scopes(clients))
    if clients > 2:
        tried += scopes.ring_scopes(clients) if clients == 4 else scopes.many_lists_scopes(clients)
    for scope in tried:
        found = exhaust(scope)
        assert found.least == 0 or found.least >= scope.setting.allowed, scope.setting.describe()
        assert not found.continued, "an attempt that was given up revealed a sum"
    assert any(exhaust(scope).disclosing for scope in tried), "no strategy revealed any sum"


def test_renamed_assignments_are_tried_once_and_counted_all() -> None:
    """Three clients, each silent or told one of three sets that contain it and somebody else."""
    (scope,) = [one for one in scopes.complete_scopes(3) if one.setting.rule.min_clients == 2]
    result = exhaust(scope)
    assert (result.assignments, result.classes) == (4**3, 16)


@pytest.mark.parametrize("setting", [one for one, _ in scopes.many_clients()], ids=Setting.describe)
def test_no_searched_strategy_breaks_the_whole_rule(setting: Setting) -> None:
    """The audit tries 100,000 strategies; here 500 of 10 clients, and as many calls of more."""
    agreements = sum(one.clients == setting.clients for one, _ in scopes.many_clients())
    strategies = 5_000 // setting.clients
    result = search(setting, -(-strategies // agreements), seed=7, starts=weakened.hints(setting))
    assert not result.is_broken(setting)
    assert result.least >= setting.allowed, "no strategy revealed any sum"
    assert result.refusals > 0.5 * result.strategies


def test_a_plan_of_100000_strategies_at_every_size() -> None:
    assert sum(number for _, number in scopes.many_clients()) == 100_000
    assert {setting.clients for setting, _ in scopes.many_clients()} == {10, 64, 100, 200}
    assert scopes.agreed(10).threshold == scopes.agreed(10).rule.certificate


def test_more_colluders_than_the_rule_bears_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 2 clients may collude, got 3"):
        Setting(complete(10, 2, 7).rule, 7, frozenset({7, 8, 9}))


def test_an_exhaustive_search_needs_clients_that_check_deliveries() -> None:
    setting = complete(3, 0, 2).lacking(Part.DELIVERY)
    with pytest.raises(ValueError, match="needs clients that check deliveries"):
        Scope(setting, (Story.of(setting, range(3)),))
