"""``tacit plan``: what it prints, and what it refuses in one sentence."""

from __future__ import annotations

import json

import pytest
from click.testing import Result

import tacit
from tests import terminal

USUAL = {"records": 40000, "positives": 4000, "clients": 10, "epsilon": 1, "trust": "secure-sum"}


def run(*flags: str, **changed: object) -> Result:
    inputs = {**USUAL, **changed}
    arguments = [text for name, value in inputs.items() for text in (f"--{name}", str(value))]
    return terminal.run("plan", *arguments, *flags)


def test_a_plan_is_a_table_and_two_sentences() -> None:
    result = run("--want", "auc within 0.0196")
    assert result.exit_code == 0
    assert "40,000 records, 4,000 positive, 10 clients, epsilon 1" in result.stdout
    assert "epsilon hides" in result.stdout
    assert "Use score-histogram, secure-sum, record" in result.stdout
    assert "For an error of 0.01:" in result.stdout


def test_json_is_the_plan_of_the_library() -> None:
    result = run("--json", "--auc-guess", "0.8")
    made = tacit.plan(40_000, 4_000, 10, 1.0, "secure-sum", auc_guess=0.8)
    assert json.loads(result.stdout) == json.loads(json.dumps(made.to_dict()))


def test_what_is_not_feasible_has_a_status_of_its_own() -> None:
    result = run(records=500, positives=10, clients=500, epsilon=0.1, trust="local")
    assert result.exit_code == 3
    assert "Not feasible at epsilon 0.1" in result.stdout


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"positives": 50000}, "positives must be from 1 to 39999, fewer than the records"),
        ({"want": "charm"}, "metric must be 'auc', 'ece', 'precision@t'"),
        ({"want": "Brier score within 0.01"}, "got 'Brier score' (did you mean 'brier'?)"),
    ],
)
def test_impossible_plans_are_refused(changed: dict[str, object], said: str) -> None:
    assert said in terminal.refusal_of(run(**changed))


def test_without_a_trust_the_plan_has_that_of_an_evaluation() -> None:
    """As `tacit evaluate` chooses without one, so that the printed command gives the same."""
    usual = ["--records", "4000", "--positives", "400", "--epsilon", "1", "--want", "auc", "--json"]
    trusts = [
        json.loads(terminal.run("plan", *usual, "--clients", clients).stdout)["trust"]
        for clients in ("10", "4000")
    ]
    assert trusts == ["secure-sum", "local"]


def test_a_wish_names_a_figure_and_how_near_it_must_be() -> None:
    result = run("--auc-guess", "0.8", "--want", "net benefit at 0.2 within 0.002")
    assert result.exit_code == 0
    assert "errors about these records' own net benefit at probability 0.2;" in result.stdout
    assert "For an error of 0.00102" in result.stdout
    assert "--protocol score-histogram" in result.stdout
