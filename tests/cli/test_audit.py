"""``tacit audit`` as it is typed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import Result

from tacit.auditing import protocol_audit
from tacit.auditing.steps import audit_target
from tacit.protocol.registry import kind_of
from tests import terminal


def run(*arguments: object) -> Result:
    return terminal.run("audit", *arguments)


def test_a_protocol_is_attacked_in_all_its_forms() -> None:
    result = terminal.succeeded(run("--protocol", "dpauc", "--epsilon", 1, "--quick"))
    for words in ("noisy_histograms", "adjacency replace", "holds"):
        assert words in result.stdout
    assert result.stdout.rstrip().splitlines()[-1].startswith("None of 4 attacks on steps refutes")
    assert "EXCEEDED" not in result.stdout
    assert "six labels, from a ROC curve and all others" in result.stdout


def test_the_same_seed_gives_the_same_json() -> None:
    requested = ("--protocol", "ustatistic", "--epsilon", 2, "--quick", "--json", "--seed")
    first, again, other = (run(*requested, seed) for seed in (7, 7, 8))
    content: dict[str, Any] = json.loads(first.stdout)
    assert first.stdout == again.stdout != other.stdout
    assert (content["passed"], content["epsilon"], content["seed"]) == (True, 2.0, 7)
    assert len(content["cases"]) == len(kind_of("ustatistic").audit_cases())
    counted, step = content["cases"][0]["steps"]
    assert counted["step"] == "count_records"
    assert counted["declared"]["epsilon"] == 0
    assert step["epsilon_bound"] <= step["declared"]["epsilon"] == 2.0
    assert step["share"] >= 0.6
    assert all(one["advantage_low"] <= one["advantage_high"] for one in content["exposures"])


def test_chosen_settings_are_attacked_alone() -> None:
    settings = "--epsilon 1 --mechanism laplace --thresholds 3"
    made = terminal.content_of(
        "audit", "--protocol", "published-dpauc", *settings.split(), "--quick"
    )
    (case,) = made["cases"]
    assert case["settings"] == {"mechanism": "laplace", "thresholds": 3}


def test_a_protocol_without_a_guarantee_claims_nothing() -> None:
    result = terminal.succeeded(run("--protocol", "exact", "--quick"))
    assert result.stdout.count("claims nothing") == 1


def test_the_self_test_says_what_it_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one mechanism of each kind; ``tests/auditing/test_self_test.py`` tries all."""
    some = list({trial.broken: trial for trial in protocol_audit.trials()}.values())
    monkeypatch.setattr(protocol_audit, "trials", lambda: some)
    result = terminal.succeeded(run("--self-test", "--quick"))
    assert result.stdout.count("caught") == 1
    assert "MISSED" not in result.stdout
    assert result.stdout.rstrip().splitlines()[-1].startswith("2 of 2 mechanisms came out")


def test_a_refuted_guarantee_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(target: Any, **settings: Any) -> Any:
        cost = target.declared
        return audit_target(
            replace(target, declared=replace(cost, epsilon=cost.epsilon / 2)), **settings
        )

    monkeypatch.setattr(protocol_audit, "audit_target", halved)
    result = run("--protocol", "published-noisy-scores", "--epsilon", 1, "--quick")
    assert result.exit_code == 1
    assert "EXCEEDED" in result.stdout
    assert "1 of 2 bounds EXCEED what is declared" in result.stdout


@pytest.mark.parametrize("trust", ["each", "secure-sum"])
def test_without_an_epsilon_one_is_audited(trust: str) -> None:
    result = terminal.succeeded(
        run("--protocol", "score-histogram", "--trust", trust, "--height", 2, "--quick")
    )
    assert "summed_trees  record  1 " in result.stdout
