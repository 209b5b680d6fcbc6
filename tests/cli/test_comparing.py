"""``tacit compare`` and ``tacit evaluate --groups``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from click.testing import Result

from tests.terminal import refusal_of, run

FILES = ("north.csv", "south.csv")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    for name in FILES:
        labels = rng.integers(0, 2, 1500)
        truth = rng.normal(labels * 1.2, 1.0)
        table = {
            "new": 1 / (1 + np.exp(-truth)),
            "old": 1 / (1 + np.exp(-truth - rng.normal(0, 1.0, 1500))),
            "label": labels,
            "ward": rng.choice(["east", "west"], 1500),
            "site": rng.choice([f"{name[0]}1", f"{name[0]}2"], 1500),
        }
        pa_csv.write_csv(pa.table(table), folder / name)
    return folder


@pytest.fixture
def folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


def with_defaults(defaults: dict[str, object], words: tuple[object, ...]) -> list[object]:
    """The words, after those options that they do not give themselves."""
    left = {name: value for name, value in defaults.items() if name not in words}
    return [*(part for pair in left.items() for part in pair), *words]


def compare(*words: object) -> Result:
    return run("compare", *FILES, *with_defaults({"--score": "new", "--versus": "old"}, words))


def by_group(*words: object) -> Result:
    chosen = {"--score": "new", "--protocol": "fedauc", "--epsilon": 1, "--groups": "ward"}
    return run("evaluate", *FILES, *with_defaults(chosen, words))


def test_two_models_are_compared(folder: Path) -> None:
    result = compare("--epsilon", 2)
    assert result.exit_code == 0
    assert "new less old" in result.output
    assert "epsilon 2 a client, label adjacency" in result.output
    lines = dict(line.split("  ", 1) for line in result.output.splitlines())
    assert lines["noise"].strip() == "system"
    assert lines["better"].strip().startswith("new, on these records")


def test_the_json_of_a_comparison_is_repeatable_with_a_seed(folder: Path) -> None:
    words = ("--epsilon", 1, "--client", "site", "--seed", 4, "--json", "--no-exact", "--no-names")
    one, two = compare(*words), compare(*words)
    assert one.output == two.output
    content = json.loads(one.output)
    assert content["schema"] == "tacit-comparison/1"
    assert content["clients"] == 4
    assert "exact" not in content["first"]
    assert all("name" not in part for part in content["participants"])


def test_the_exact_aucs_of_real_clients_are_for_those_who_ask(folder: Path) -> None:
    for options, shown in (((), False), (("--exact",), True), (("--split", 3), True)):
        content = json.loads(compare("--epsilon", 1, "--json", *options).output)
        assert ("exact" in content["first"]) is shown
        if "--split" not in options:
            groups = json.loads(by_group("--json", *options).output)["groups"]
            assert {"exact" in part["result"] for part in groups} == {shown}
    assert "exact" not in compare("--epsilon", 1).output


def test_a_comparison_can_be_simulated_and_tuned(folder: Path) -> None:
    simulated = ("--epsilon", 1, "--split", 10, "--seed", 1, "--json")
    content = json.loads(compare(*simulated, "--trust", "each(emphasis=0.5)").output)
    assert content["protocol"]["trust"] == "each(emphasis=0.5)"
    assert (content["simulation"], content["clients"]) == (True, 10)


def test_a_comparison_without_signal_ends_with_3(folder: Path) -> None:
    results = [compare("--epsilon", 0.001, "--seed", seed) for seed in range(6)]
    assert {result.exit_code for result in results} <= {0, 3}
    silent = [result for result in results if result.exit_code == 3]
    assert silent
    assert "not enough signal" in silent[0].output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--epsilon", 0), "epsilon must be positive and finite, got 0.0"),
        (("--trust", "each(emphasis=2)"), "emphasis must be from 0.1 to 0.99, got 2.0"),
        (("--trust", "local(emphasis=0.5)"), "trust: local has no parameter 'emphasis'"),
        (("--versus", "new"), "--versus names the same column as --score, 'new'"),
        (("--versus", "older"), "has no column 'older'"),
        (("--split", 3, "--client", "site"), "--client cannot be used with --split"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    folder: Path, words: tuple[object, ...], sentence: str
) -> None:
    assert sentence in refusal_of(compare(*with_defaults({"--epsilon": 1}, words)))


def test_groups_are_evaluated_at_one_cost(folder: Path) -> None:
    result = by_group("--client", "site")
    assert result.exit_code == 0
    lines = dict(line.split("  ", 1) for line in result.output.splitlines() if "  " in line)
    assert {"east", "west", "spread"} <= lines.keys()
    assert "epsilon 1 in all, label adjacency" in lines["privacy spent"]


def test_the_json_of_groups(folder: Path) -> None:
    content = json.loads(by_group("--seed", 2, "--json", "--no-names", "--no-exact").output)
    assert content["schema"] == "tacit-groups/1"
    assert [part["name"] for part in content["groups"]] == ["east", "west"]
    assert sum(part["records"] for part in content["groups"]) == 3000
    assert all("name" not in one for one in content["groups"][0]["result"]["participants"])
    assert all("exact" not in part["result"] for part in content["groups"])


def test_groups_are_rescaled_like_all_records(folder: Path) -> None:
    chosen = ("--score", "new", "--protocol", "dpauc", "--epsilon", 4, "--groups", "ward")
    result = run("evaluate", *FILES, *chosen, "--rescale", -1, 1, "--seed", 1)
    assert result.exit_code == 0
    wrong = run("evaluate", *FILES, *chosen, "--rescale", 0.4, 0.6, "--seed", 1)
    assert wrong.exit_code == 2
    assert "scores must be from 0.4 to 0.6" in wrong.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--split", 4), "--split cannot be used with --groups"),
        (("--groups", "old"), "groups must be 0 to 200 names that differ, got 3000"),
        (("--groups", "bed"), "has no column 'bed'"),
    ],
)
def test_what_groups_cannot_do_is_one_sentence(
    folder: Path, words: tuple[object, ...], sentence: str
) -> None:
    assert sentence in refusal_of(by_group(*words))


def test_groups_without_any_signal_end_with_3(folder: Path) -> None:
    results = [by_group("--epsilon", 0.001, "--seed", seed) for seed in range(8)]
    assert 3 in {result.exit_code for result in results}
    assert {result.exit_code for result in results} <= {0, 3}
