"""Protocols end to end on one started server: three nodes over TLS with authentication.

What is exact must equal what is computed from the same records in one process. What is noisy must
say what it spent, and come from all three parties. ``pytest -s`` shows seconds and bytes by round.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit import Adjacency, Cost, Ledger
from tacit.results.saved.reading import check_result
from tacit.running.deployment.server import conduct_run
from tacit.running.session.plan_file import Plan
from tests.running.deployment.conftest import DEADLINE, PARTIES, PLANS, Federation
from tests.running.deployment.processes import HOSPITALS

pytest.importorskip("flwr")
pytestmark = pytest.mark.slow

ROUND = re.compile(
    r"round (\d+)\.(\d+): 3 of 3 parties answered in [\d.]+ s, [\d,]+ bytes down, ([\d,]+) up"
)


def run_of(federation: Federation, name: str, rounds: int) -> dict[str, Any]:
    """The checked result of a run: of all three parties, in so many rounds, its bytes counted."""
    said: list[str] = []
    before = entries(federation)
    done = conduct_run(federation.coordinator, federation.plan(name), DEADLINE, said.append)
    result = done.content
    sent = {who["name"]: who["bytes_sent"] for who in result["participants"]}
    print(f"\n{name}:", *said, f"bytes by party: {sent}", sep="\n  ")
    check_result(result)
    results = [match for line in said if (match := ROUND.match(line))]
    places = [(int(match[1]), int(match[2])) for match in results]
    assert len(places) == rounds
    # the next exchange of a query, or the first of the next query
    later = [{(query, exchange + 1), (query + 1, 1)} for query, exchange in [(0, 0), *places]]
    assert all(place in expected for place, expected in zip(places, later, strict=False))
    assert sum(sent.values()) == result["traffic"]["bytes_sent"]
    assert f"{result['traffic']['bytes_sent']:,}" == results[-1][3]
    assert list(sent) == list(PARTIES)
    assert min(sent.values()) > 0
    assert result["noise"] == "system"
    assert not result["simulation"]
    assert all(after > once for after, once in zip(entries(federation), before, strict=True))
    return result


def verified(book: Path) -> int:
    """How many entries a ledger holds, none of them changed."""
    with Ledger.open_readonly(book) as pages:
        return pages.verify()


def entries(federation: Federation) -> list[int]:
    """How many entries every party's ledger holds, after it was verified."""
    books = [federation.folder / name / "ledger.db" for name in PARTIES]
    return [verified(book) if book.exists() else 0 for book in books]


def test_an_encrypted_auc_is_exact(federation: Federation) -> None:
    result = run_of(federation, "encrypted", 4)
    protocol = Plan.read(federation.plan("encrypted")).protocol
    clients = tacit.read([HOSPITALS / part / "records.csv" for part in PARTIES])
    alone = json.loads(json.dumps(tacit.evaluate(clients, protocol, exact=True).to_dict()))
    assert result["auc"] == alone["auc"]
    assert result["auc"]["value"] == pytest.approx(alone["exact"], abs=0.01)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "adjacency"), [("hidden-ranks", "label"), ("pairs", "replace")])
def test_parties_compute_together(federation: Federation, name: str, adjacency: str) -> None:
    """In four rounds: numbers of records (or class sizes), announcements, outputs, noisy sums."""
    pytest.importorskip("spu.libspu", reason="computations between parties need SPU")
    result = run_of(federation, name, 4)
    epsilon = PLANS[name]["epsilon"]
    assert result["spent"] == Cost(epsilon, adjacency=Adjacency(adjacency)).to_dict()
    assert not [line for line in result["warnings"] if "trusted party" in line]
