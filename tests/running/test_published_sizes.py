"""What a result says beside its noisy figures does not depend on whether a record is there.

Every reply of a first run is given again in a run on a neighbouring data set. Whatever is computed
from noisy replies is then the same, so that any difference left is an exact figure that got past
the noise: a size, a list of clients, a refusal, a default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import main
from tacit.running import simulation
from tacit.running.spending import Payment, most_spent

PROTOCOLS: tuple[tacit.Protocol, ...] = (
    tacit.DPAUC(1.0, 8),
    tacit.PublishedDPAUC(1.0, 8),
    tacit.PublishedDPAUC(1.0, 8, "gaussian(delta=0.01)"),
    tacit.ScoreHistogram(epsilon=1.0, height=3),
    tacit.PublishedHistogram("secure-sum(budget=sample)", epsilon=1.0, height=3),
)
AGREED = ("large", "lone", "pair", "nobody")


@contextmanager
def replies_of(first: list[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs that note their replies in an empty list, or give those of the list again."""
    answer = simulation._answer
    replaying, index = bool(first), iter(range(10**6))

    def answered(*requested: Any) -> Any:
        reply, payment = answer(*requested)
        if not replaying:
            first.append(reply)
            return reply, payment
        return first[next(index)], payment

    with monkeypatch.context() as patched:
        patched.setattr(simulation, "_answer", answered)
        yield


def told(run: Callable[[int], dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what a run publishes of a data set with what it publishes of its neighbour."""
    replies: list[Any] = []
    published = []
    for neighbour in (0, 1):
        with replies_of(replies, monkeypatch):
            published.append(json.dumps(run(neighbour), sort_keys=True))
    assert replies
    assert published[0] == published[1]


def grouped(removed: int | None) -> tuple[tacit.Clients, tacit.Groups]:
    """Three clients with a large group, one of a lone record and one of a pair, at client b."""
    ids = np.array(["a"] * 20 + ["b"] * 23 + ["c"] * 20)
    values = np.array(["large"] * 63)
    values[[20, 21, 22]] = ["lone", "pair", "pair"]
    remaining = np.arange(63) != removed
    rng = np.random.default_rng(0)
    scores, labels = rng.random(63)[remaining], rng.integers(0, 2, 63)[remaining]
    clients = tacit.Clients.from_arrays(scores, labels, ids[remaining])
    return clients, tacit.Groups.from_arrays(values[remaining], ids[remaining], names=AGREED)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
@pytest.mark.parametrize("removed", [20, 21, 30], ids=["the lone one", "of a pair", "of many"])
def test_groups_of_neighbouring_data_differ_by_noisy_figures_only(
    protocol: tacit.Protocol, removed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(neighbour: int) -> dict[str, Any]:
        clients, groups = grouped(removed if neighbour else None)
        result = tacit.evaluate_groups(clients, groups, protocol, seed=4, federation="wards")
        return {"json": result.to_dict(), "text": result.to_rows()}

    told(run, monkeypatch)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
@pytest.mark.parametrize("records", [3, 2], ids=["three to two", "two to one"])
def test_an_evaluation_of_few_records_does_not_tell_how_many(
    protocol: tacit.Protocol, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal of a single record would."""

    def run(neighbour: int) -> dict[str, Any]:
        remaining = records - neighbour
        clients = tacit.Clients.from_arrays([0.2, 0.9, 0.4][:remaining], [0, 1, 1][:remaining])
        evaluation = tacit.evaluate(clients, protocol, seed=4)
        return {"json": evaluation.to_dict(), "text": evaluation.to_rows()}

    told(run, monkeypatch)


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_the_command_prints_nothing_else_of_neighbouring_data(
    form: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default, the exact figure is not printed either."""

    def run(neighbour: int) -> dict[str, Any]:
        rows = [f"{i / 60},{i % 2},{'lone' if i == 7 else 'many'}" for i in range(60)]
        folder = tmp_path / str(neighbour)
        folder.mkdir()
        remaining = [row for i, row in enumerate(rows) if not (neighbour and i == 7)]
        (folder / "north.csv").write_text("score,label,ward\n" + "\n".join(remaining))
        monkeypatch.chdir(folder)
        words = "evaluate north.csv --protocol dpauc --epsilon 1 --seed 3 --groups ward"
        agreed = ("--group-name", "lone", "--group-name", "many")
        result = CliRunner().invoke(main, [*words.split(), *agreed, *form])
        assert result.exit_code in (0, 3), result.output
        return {"output": result.output, "status": result.exit_code}

    told(run, monkeypatch)


@pytest.mark.parametrize(
    ("protocol", "agreed", "said"),
    [
        (tacit.DPAUC(1.0, 8), False, True),
        (tacit.DPAUC(1.0, 8), True, False),
        (tacit.FedAUC(1.0), False, False),
    ],
)
def test_groups_read_off_records_warn(protocol: tacit.Protocol, agreed: bool, said: bool) -> None:
    clients, groups = grouped(None)
    listed = groups if agreed else tacit.Groups(groups.names, groups.of_record)
    warnings = tacit.evaluate_groups(clients, listed, protocol, seed=4).warnings
    assert any("the list of groups was read off the records" in each for each in warnings) is said


def test_where_no_record_is_the_budget_is_spent_all_the_same() -> None:
    one = tacit.Cost(1.0, adjacency=tacit.Adjacency.RECORD)
    nobody = np.zeros(0, dtype=np.bool_)
    assert most_spent([Payment(one, nobody), Payment(one, nobody)]).epsilon == 2.0
