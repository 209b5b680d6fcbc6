"""Evaluations whose unit of privacy is a person."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
import pytest

import tacit
from tacit.privacy import composition, noise
from tacit.results.saved.reading import check_result
from tacit.running import simulation, spending
from tacit.testing.checks import check_persons
from tests import known
from tests.laws import PROTOCOLS

PRIVATE = {
    name: protocol
    for name, protocol in PROTOCOLS.items()
    if np.isfinite(protocol.guarantee.epsilon)
    and "epsilon" in protocol.settings
    and not protocol.counts_missing
}


def visits(records: int = 4000, clients: int = 4) -> tacit.Clients:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, records)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    persons = rng.integers(0, records // 4, records)
    return tacit.Clients.from_arrays(scores, labels, persons % clients, persons=persons)


class TestPerRecord:
    """The budget of one of a person's records."""

    def test_a_count_of_incomplete_records_protects_no_person(self) -> None:
        with pytest.raises(ValueError, match="of which a person may have any number"):
            spending.per_record(tacit.MissingRecords(1.0), 2)

    @pytest.mark.parametrize("per_person", [1, 2, 7])
    @pytest.mark.parametrize("name", PRIVATE)
    def test_the_parts_make_the_named_budget(self, name: str, per_person: int) -> None:
        protocol = PRIVATE[name]
        divided = spending.per_record(protocol, per_person)
        whole, named = composition.of_person(divided.guarantee, per_person), protocol.guarantee
        assert whole.epsilon == pytest.approx(named.epsilon)
        assert whole.delta == pytest.approx(named.delta)
        assert divided.guarantee.adjacency is named.adjacency
        same = {each.name for each in fields(cast(Any, protocol))} - {"epsilon", "delta"}
        with_delta = {key for key in same if hasattr(getattr(protocol, key), "delta")}
        same -= with_delta
        assert all(getattr(divided, key) == getattr(protocol, key) for key in same)
        for key in with_delta:
            kept = replace(getattr(divided, key), delta=getattr(protocol, key).delta)
            assert kept == getattr(protocol, key)

    @pytest.mark.parametrize("name", sorted(set(PROTOCOLS) - set(PRIVATE)))
    def test_what_protects_no_record_protects_no_person(self, name: str) -> None:
        with pytest.raises(ValueError, match="protects no person"):
            spending.per_record(PROTOCOLS[name], 2)
        assert spending.per_record(PROTOCOLS[name], 0) is PROTOCOLS[name]

    def test_too_little_for_a_record_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"epsilon must be at least 0\.02 where 20 records"):
            spending.per_record(tacit.DPAUC(0.01), 20)


class TestTheLaw:
    """The law about persons notices what it is for."""

    def test_a_budget_that_is_not_divided_is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tacit.testing.checks.per_record", lambda protocol, most: protocol)
        with pytest.raises(AssertionError, match="cost more than was named"):
            check_persons(tacit.DPAUC(1.0), 0)

    def test_records_that_are_not_cut_are_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def uncut(clients: tacit.Clients, most: int, seed: bytes) -> Any:
            return replace(clients, persons=None), np.ones(clients.records, dtype=np.bool_)

        monkeypatch.setattr(tacit.Clients, "counted", uncut)
        with pytest.raises(AssertionError, match="a person costs too much"):
            check_persons(tacit.DPAUC(1.0), 0)

    def test_a_draw_that_others_change_is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One seed for all persons, by the position of a record in the file."""

        def by_position(clients: tacit.Clients, most: int, seed: bytes) -> Any:
            assert clients.persons is not None
            inside = np.zeros(clients.records, dtype=np.bool_)
            lots = np.random.default_rng(list(seed)).random(clients.records)
            for person in np.unique(clients.persons):
                theirs = np.flatnonzero(clients.persons == person)
                inside[theirs[np.argsort(lots[theirs])[:most]]] = True
            cut = tacit.Clients.from_arrays(clients.scores[inside], clients.labels[inside])
            return cut, inside

        monkeypatch.setattr(tacit.Clients, "counted", by_position)
        with pytest.raises(AssertionError, match="a person costs too much"):
            for seed in range(3):
                check_persons(tacit.DPAUC(1.0), seed)


class TestEvaluate:
    """``evaluate``, ``compare`` and ``evaluate_groups``."""

    def test_epsilon_is_a_persons(self) -> None:
        result = tacit.evaluate(visits(), tacit.DPAUC(1.0), seed=1, per_person=2)
        content = result.to_dict()
        assert (result.spent.epsilon, result.spent.adjacency) == (1.0, tacit.Adjacency.PERSON)
        assert content["protocol"]["epsilon"] == 1.0
        assert content["person"] == {"records": 2, "epsilon_of_a_record": 0.5}
        check_result(content)
        rows = dict(result.to_rows())
        assert "a person with records at two clients is not covered" in rows["unit of privacy"]
        assert any("records of one person" in sentence for sentence in result.warnings)
        page = result.to_html()
        assert "The unit is a person, of whom at most 2 records count at a client" in page
        assert "any one person" in page

    def test_one_record_counts_where_no_number_is_given(self) -> None:
        clients = visits()
        result = tacit.evaluate(clients, tacit.DPAUC(50.0), seed=1)
        assert result.per_person == 1
        persons = np.unique(known(clients.persons)).size
        assert result.positives + result.negatives == pytest.approx(persons, rel=0.02)
        assert not any("records of one person" in sentence for sentence in result.warnings)

    def test_a_number_without_persons_is_refused(self) -> None:
        clients = tacit.Clients.from_arrays([0.1, 0.7], [0, 1])
        with pytest.raises(tacit.DataError, match="per_person needs persons"):
            tacit.evaluate(clients, tacit.DPAUC(1.0), per_person=2)

    def test_no_run_begins_with_all_records_of_persons(self) -> None:
        with pytest.raises(tacit.DataError, match="begins with the records that count"):
            simulation.simulate(visits(), tacit.DPAUC(1.0), noise.SimulatedNoise(0))

    def test_a_seed_repeats_the_draw_and_a_state_keeps_it(self) -> None:
        clients, protocol = visits(), tacit.FedAUC(1.0, trust="local")
        first, again = (
            tacit.evaluate(clients, protocol, seed=4, exact=True, per_person=2) for _ in range(2)
        )
        assert first.exact == again.exact
        state = tacit.ClientState()
        released, reused = (
            tacit.evaluate(clients, protocol, state=state, per_person=2) for _ in range(2)
        )
        assert released.spent.epsilon == 1.0
        assert reused.spent.epsilon == 0.0
        assert released.estimate.value == reused.estimate.value

    def test_groups_share_the_records_that_count(self) -> None:
        clients = visits()
        groups = tacit.Groups.from_arrays(np.arange(clients.records) % 3, names=["0", "1", "2"])
        found = tacit.evaluate_groups(clients, groups, tacit.DPAUC(60.0), seed=1, per_person=1)
        assert (found.spent.epsilon, found.spent.adjacency) == (60.0, tacit.Adjacency.PERSON)
        counts = sum(group.estimated_records for group in found.groups)
        assert counts == pytest.approx(np.unique(known(clients.persons)).size, rel=0.02)
        assert "over all groups" in dict(found.to_rows())["privacy spent"]

    def test_two_models_are_compared_on_the_records_that_count(self) -> None:
        clients = visits()
        found = tacit.compare(clients, clients.scores**2, tacit.FedAUC(1.0), seed=1, per_person=2)
        assert found.spent.adjacency is tacit.Adjacency.PERSON_LABEL
        assert "unit of privacy" in dict(found.to_rows())


def test_a_plan_divides_epsilon() -> None:
    """A person's epsilon 2 with two records gives each what epsilon 1 gives a record."""
    alone = tacit.plan(40_000, 4_000, 10, 1.0, "secure-sum", auc_guess=0.8)
    person = tacit.plan(40_000, 4_000, 10, 2.0, "secure-sum", auc_guess=0.8, per_person=2)
    assert person.recommended is not None
    assert person.recommended.forecast.error == known(alone.recommended).forecast.error
    assert person.recommended.protocol.settings["epsilon"] == 2.0
    assert person.to_dict()["per_person"] == 2
    assert "the unit is a person, of whom at most 2 records count" in str(person)
