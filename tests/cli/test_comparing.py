"""``tacit compare`` and ``tacit evaluate --groups``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.terminal import refusal_of, run, succeeded


def compare(*words: object, epsilon: object = 1) -> Result:
    columns = ("--score", "new", "--versus", "old")
    return run("compare", "models.parquet", *columns, "--epsilon", epsilon, *words)


def by_group(*words: object, protocol: str = "fedauc", epsilon: object = 1) -> Result:
    chosen = ("--score", "new", "--protocol", protocol, "--epsilon", epsilon, "--groups", "ward")
    return run("evaluate", "models.parquet", *chosen, *words)


def test_two_models_are_compared(folder: Path) -> None:
    result = succeeded(compare(epsilon=2))
    assert "new less old" in result.output
    assert "epsilon 2 a client, label adjacency" in result.output
    lines = dict(line.split("  ", 1) for line in result.output.splitlines())
    assert lines["noise"].strip() == "system"
    assert lines["better"].strip().startswith("new, on these records")


def test_the_json_of_a_comparison_is_repeatable_with_a_seed(folder: Path) -> None:
    words = ("--client", "site", "--seed", 4, "--json", "--no-exact", "--no-names")
    one, two = compare(*words), compare(*words)
    assert one.output == two.output
    content = json.loads(one.output)
    assert content["schema"] == "tacit-comparison/1"
    assert content["clients"] == 5
    assert "exact" not in content["first"]
    assert all("name" not in part for part in content["participants"])


def test_the_exact_aucs_of_real_clients_are_for_those_who_ask(folder: Path) -> None:
    for options, shown in (((), False), (("--exact",), True), (("--split", 3), True)):
        assert ("exact" in json.loads(compare("--json", *options).output)["first"]) is shown
        if "--split" not in options:
            groups = json.loads(by_group("--json", *options).output)["groups"]
            assert {"exact" in part["result"] for part in groups} == {shown}
    assert "exact" not in compare().output


def test_a_comparison_can_be_simulated_and_tuned(folder: Path) -> None:
    simulated = ("--split", 10, "--seed", 1, "--json")
    content = json.loads(compare(*simulated, "--trust", "each(emphasis=0.5)").output)
    assert content["protocol"]["trust"] == "each(emphasis=0.5)"
    assert (content["simulation"], content["clients"]) == (True, 10)


def test_groups_are_evaluated_at_one_cost(folder: Path) -> None:
    result = succeeded(by_group("--client", "site"))
    lines = dict(line.split("  ", 1) for line in result.output.splitlines() if "  " in line)
    assert {"east", "west", "spread"} <= lines.keys()
    assert "epsilon 1 in all, label adjacency" in lines["privacy spent"]
    content = json.loads(by_group("--client", "site", "--json", "--no-names").output)
    assert content["schema"] == "tacit-groups/1"
    assert [part["name"] for part in content["groups"]] == ["east", "west"]
    assert sum(part["records"] for part in content["groups"]) == 5000
    assert all("name" not in one for one in content["groups"][0]["result"]["participants"])


def test_groups_are_rescaled_like_all_records(folder: Path) -> None:
    assert by_group("--rescale", -1, 1, protocol="dpauc").exit_code == 0
    wrong = by_group("--rescale", 0.4, 0.6, protocol="dpauc")
    assert "scores must be from 0.4 to 0.6" in refusal_of(wrong)


@pytest.mark.parametrize("command", [compare, by_group])
def test_without_signal_the_status_is_3(folder: Path, command: Callable[..., Result]) -> None:
    results = [command("--seed", seed, epsilon=0.001) for seed in range(8)]
    assert {result.exit_code for result in results} <= {0, 3}
    refused = [result for result in results if result.exit_code == 3]
    assert refused
    assert "not enough signal" in refused[0].output
