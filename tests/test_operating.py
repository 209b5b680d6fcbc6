"""What operators read: lines of a log, and events of a node, quote no record."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from tacit import Ledger, operating
from tacit.running.deployment.site import LOST, OTHER, REACHED, NodeWatch
from tacit.running.session.party_file import PartyFile
from tests.cli.test_federation import study  # noqa: F401
from tests.terminal import run


@pytest.fixture(autouse=True)
def own_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging as it was before, whatever a command makes of it."""
    for logger in (operating.LOG, logging.getLogger()):
        for name in ("handlers", "level", "propagate"):
            monkeypatch.setattr(logger, name, getattr(logger, name))


@pytest.mark.parametrize("form", [operating.TEXT, operating.JSON])
def test_a_log_line_has_no_exceptions_text(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    operating.log_as(form)
    logging.getLogger("uvicorn.error").info("not said")
    error = ValueError("score 0.123")
    logging.getLogger("asyncio").error("never retrieved\nfuture: score 0.123", exc_info=error)
    (line,) = capsys.readouterr().err.splitlines()
    fields = list(json.loads(line).values()) if form == operating.JSON else line.split(" ", 3)
    assert re.fullmatch(r"[-\d]{10}T[:\d]{8}\.\d{3}\+00:00", fields[0])
    assert " ".join(fields[1:]) == "error asyncio never retrieved ValueError"


@pytest.mark.parametrize(
    ("new", "said"),
    [("O.8", "its records do not fit the protocol"), ("81.5", "node.key: No such file")],
)
def test_the_log_of_a_party_quotes_no_record(study: Path, new: str, said: str) -> None:  # noqa: F811
    """Whether a record is refused, or is a doubt that a screen shows with counts."""
    records, party = study / "a" / "records.csv", study / "a" / "party.toml"
    (study / "a" / "node.key").unlink()
    (study / "a" / "ca.crt").touch()
    records.write_text(records.read_text().replace("0.8", new))
    join = ("join", "--server", "localhost:1", party)
    shown, logged = run(*join).output, run(*join, "--log-format", "json")
    assert new in shown or "1 of 3 scores" in shown
    *before, last = [json.loads(line) for line in logged.stderr.splitlines()]
    assert (logged.exit_code, logged.stdout, last["level"]) == (2, "", "error")
    assert said in last["message"]
    assert not re.search(rf"{new}|3 (scores|records)", logged.stderr), before


def test_a_node_tells_events_and_whether_its_ledger_is_well(study: Path) -> None:  # noqa: F811
    watch = NodeWatch(PartyFile.read(study / "a" / "party.toml"))
    for line, event, connected in (
        ("tacit: answered: AUC; enough for 3 more runs", "answered", False),
        ("tacit: score 0.123 of record 17", OTHER, False),
        ("INFO : Receiving: query.hello message", "a run begins", False),
        (f"INFO : {REACHED}", "the server is reached again", True),
        ("INFO : Flower's own", "", True),
        (f"WARN : {LOST}", "the server cannot be reached", False),
    ):
        assert (watch.event(line), watch.is_connected) == (event, connected)
    assert (sorted(map(bool, watch.events)), watch.events[OTHER]) == ([True] * 5, 1)
    told, ledger = watch.operated(), watch.party_file.ledger
    healthy = {"process": "ok", "disk": "ok", "ledger": "ok"}
    assert told.answer("/health") == (200, healthy)
    with Ledger(ledger):
        assert told.answer("/health") == (200, healthy)
    ledger.write_bytes(b"no ledger")
    assert told.answer("/health") == (503, {**healthy, "ledger": "failing"})
