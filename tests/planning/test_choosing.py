"""The protocol that is chosen where nobody names one: from public numbers, and never too little."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.planning.choosing import choose, rounded_up
from tacit.planning.planner import plan
from tacit.privacy.cost import Adjacency
from tacit.protocol.registry import options_of, protocol_of


@given(st.integers(1, 10**12))
def test_a_rounded_number_is_at_most_two_and_a_half_times_as_large(records: int) -> None:
    rounded = rounded_up(records)
    assert records <= rounded <= max(2, 2.5 * records)
    assert str(rounded).rstrip("0") in ("1", "2", "5")


def test_the_choice_depends_on_the_rounded_number_alone() -> None:
    assert choose(10, 20_001, 1.0) == choose(10, 50_000, 1.0)


def test_the_choice_is_that_of_the_plan_with_the_same_public_numbers() -> None:
    planned = plan(50_000, 5_000, 10, 1.0, "secure-sum").recommended
    assert planned is not None
    assert choose(10, 40_000, 1.0).protocol == planned.protocol


def test_few_clients_are_summed_and_many_answer_by_themselves() -> None:
    assert "trust secure-sum" in choose(1_000, 100_000, 1.0).reason
    assert "trust local" in choose(100_000, 100_000, 5.0).reason


@pytest.mark.parametrize(
    ("trust", "epsilon"),
    [("each", 8.0), ("local", 8.0), ("secure-sum", 0.1), ("mpc", 1.0)],
)
def test_whole_records_are_hidden_or_there_is_no_choice(trust: str, epsilon: float) -> None:
    try:
        chosen = choose(50, 2_000, epsilon, trust)
    except ValueError as error:
        assert "is predicted to give an AUC" in str(error)
        return
    assert chosen.protocol.guarantee.adjacency in (Adjacency.RECORD, Adjacency.REPLACE)
    assert chosen.protocol.guarantee.epsilon == epsilon


def test_what_hides_less_has_to_be_named() -> None:
    with pytest.raises(ValueError, match="hides only a record's score, and has to be named"):
        choose(2_000, 2_000, 1.0)


def test_an_exact_sum_is_never_chosen_for_an_epsilon() -> None:
    with pytest.raises(ValueError, match="for at most 10 records of 3 clients") as refused:
        choose(3, 9, 1.0)
    assert "exact" not in str(refused.value)


@pytest.mark.parametrize("trust", ["exact-sum", "encrypted"])
def test_an_epsilon_that_would_not_be_kept_is_refused(trust: str) -> None:
    with pytest.raises(ValueError, match="would not be kept"):
        choose(3, 4_000, 1.0, trust)
    assert choose(3, 4_000, None, trust).protocol.guarantee.adjacency is None


def test_a_missing_epsilon_is_named() -> None:
    with pytest.raises(ValueError, match="epsilon is needed with trust secure-sum"):
        choose(3, 4_000, None)


def test_a_person_has_the_named_budget() -> None:
    assert choose(10, 40_000, 1.0, None, 4).protocol.settings["epsilon"] == 1.0


def test_options_are_quoted_for_a_shell() -> None:
    protocol = protocol_of("multiclass-histogram", {"classes": ("big cat", "dog"), "epsilon": 1.0})
    assert options_of(protocol).endswith("--classes 'big cat,dog'")


def test_a_plan_is_a_table_in_a_notebook() -> None:
    planned = plan(40_000, 4_000, 10, 1.0, "secure-sum")
    page = planned._repr_html_()
    assert page.count("<tr>") == 1 + len(planned.candidates)
    assert "Run it: tacit evaluate FILES --protocol score-histogram --epsilon 1" in page
