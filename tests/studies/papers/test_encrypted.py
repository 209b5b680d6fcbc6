"""Tables I to III and figures 2 and 3 of Baykara et al. 2024."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.clients import Clients
from tacit_studies import TABLES
from tacit_studies.measuring import Bench
from tacit_studies.papers import encrypted
from tacit_studies.papers.encrypted import encrypted_area, plain_area
from tacit_studies.references import encrypted as paper
from tacit_studies.rows import Measured, Row, Target
from tacit_studies.sources import Scores
from tests.studies.sources import check_rows, few, real_clients

pytest.importorskip("tenseal")


def measured(name: str, real: Clients | None = None, repeats: int = 3) -> list[Measured]:
    rows = TABLES[name].measure(few(real), repeats, seed=1)
    check_rows(rows, name)
    return rows


@pytest.fixture(autouse=True)
def _few_parties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "PARTIES", 2)


@pytest.mark.parametrize(("name", "encrypted_too"), [("fhe-table-1", True), ("fhe-table-2", False)])
def test_encryption_moves_no_printed_digit(
    name: str, encrypted_too: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables differ in what is printed; one of them is measured under encryption."""
    if not encrypted_too:
        without_encryption(monkeypatch)
    rows = measured(name)
    targets = [row for row in rows if isinstance(row, Target)]
    assert len(targets) == 2 * 3
    assert all(target.met for target in targets)
    values = {(row.row, row.column): row for row in rows if isinstance(row, Row)}
    for (row, column), computed in values.items():
        if column.startswith("ours"):
            assert abs(computed.ours - values[row, "plain, same thresholds"].ours) < 1e-6
            assert computed.paper is not None
    for records in (100, 1000):
        exact = values[f"M={records}", "exact"]
        assert exact.paper == pytest.approx(exact.ours, abs=1e-3)


def without_encryption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        encrypted, "encrypted_area", lambda clients, points, _: plain_area(clients, points)
    )


def test_real_scores_of_a_printed_size_are_taken_as_they_are() -> None:
    real = real_clients(positives=480, negatives=520)
    block = paper.TABLE_1[1]
    assert block.records == real.records == 1000
    dealt = encrypted._dealt(block, Bench(Scores(real), 1, 0))
    assert dealt.count == paper.PARTIES
    assert np.array_equal(np.sort(dealt.scores), np.sort(real.scores))
    other = encrypted._dealt(paper.TABLE_1[0], Bench(Scores(real), 1, 0))
    assert other.records == 100


def test_the_plain_sum_is_the_trapezoid_rule() -> None:
    clients = Clients.split(*few().draw(few().small, 0, 0), 3, seed=0)
    area, last = 0.0, (0, 0)
    for threshold in np.linspace(0, 1, 25)[::-1]:
        called = clients.scores >= threshold
        point = (
            int((called & (clients.labels == 0)).sum()),
            int((called & (clients.labels == 1)).sum()),
        )
        area += (point[0] - last[0]) * (point[1] + last[1])
        last = point
    assert plain_area(clients, 25) == pytest.approx(area / (2 * last[0] * last[1]), rel=1e-12)
    for variant in encrypted.VARIANTS:
        assert encrypted_area(clients, 25, variant) == pytest.approx(
            plain_area(clients, 25), rel=2e-6
        )


def test_table_3_counts_all_bytes_of_a_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the fewest and the most clients that the paper has."""
    monkeypatch.setattr(paper, "TABLE_3_CLIENTS", (5, 15))
    rows = measured("fhe-table-3")
    values = {(row.row, row.column): row.ours for row in rows}
    for adversary, clients in (("semi-honest", 5), ("malicious", 15)):
        row = f"{adversary} K={clients}"
        first = values[row, "the client that makes the keys, MB"]
        usual = values[row, "a client, MB"]
        assert first + (clients - 1) * usual == pytest.approx(
            values[row, "server side, MB"], rel=1e-2
        )
        assert first - usual == pytest.approx(1.14, abs=0.1)
    assert values["masked K=15", "a client, MB"] < 0.0035
    assert values["masked, malicious K=15", "a client, MB"] < 0.007
    assert values["malicious K=5", "a client, MB"] == pytest.approx(
        2 * values["semi-honest K=5", "a client, MB"], rel=1e-2
    )
    assert all(row.met for row in rows if isinstance(row, Target))


def test_figures_have_a_point_for_every_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encrypted, "PARTIES", (2, 100))
    monkeypatch.setattr(encrypted, "POINTS", (25, 50))
    asked = []

    def pretended(parties: int, points: int, adversary: str) -> float:
        asked.append((parties, points, adversary))
        return parties * points * (2.0 if adversary == "malicious" else 1.0)

    monkeypatch.setattr(encrypted, "aggregator_seconds", pretended)
    by_points = {(row.row, row.column): row for row in measured("fhe-figure-2")}
    assert by_points["malicious N=50", "seconds"].ours == paper.PARTIES * 50 * 2
    assert by_points["semi-honest", "claim: grows with log N, N=50 / N=25"].ours == 2
    by_parties = {(row.row, row.column): row for row in measured("fhe-figure-3")}
    last = by_parties["semi-honest K=100", "seconds"]
    assert isinstance(last, Row)
    assert last.paper == 0.68
    assert by_parties["malicious", "claim: linear in K, correlation"].ours == pytest.approx(1)
    assert by_parties["K=100", "claim: almost double, malicious / semi-honest"].ours == 2
    assert len(asked) == len(set(asked)) == 2 * 2 + 2 * 2
