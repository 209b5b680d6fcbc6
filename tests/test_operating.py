"""What operators read: lines of a log, and events of a node, quote no record."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from pathlib import Path

import pytest

from tacit.ledger.ledger import Ledger
from tacit.operating import logs
from tacit.running.deployment.site import LOST, REACHED
from tacit.running.deployment.watching import OTHER, NodeWatch
from tacit.running.session.party_file import PartyFile
from tacit.running.speaking import LOG_PREFIX
from tests.cli.test_federation import study  # noqa: F401
from tests.terminal import run


@pytest.fixture(autouse=True)
def own_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging as it was before, whatever a command makes of it."""
    for logger in (logs.LOG, logging.getLogger()):
        for name in ("handlers", "level", "propagate"):
            monkeypatch.setattr(logger, name, getattr(logger, name))


@pytest.mark.parametrize("form", [logs.TEXT, logs.JSON])
def test_a_line_has_time_and_level_and_no_text_of_an_exception(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.log_as(form)
    logging.getLogger("uvicorn.error").info("not said")
    try:
        raise ValueError("score 0.123")
    except ValueError:
        logging.getLogger("asyncio").exception("never retrieved\nfuture: score 0.123")
    (line,) = capsys.readouterr().err.splitlines()
    assert "0.123" not in line
    fields = json.loads(line) if form == logs.JSON else {"time": line.split()[0]}
    assert datetime.fromisoformat(fields.pop("time")).tzinfo is not None
    if form == logs.JSON:
        message = {"level": "error", "logger": "asyncio", "message": "never retrieved"}
        assert fields == {**message, "exception": "ValueError"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.8", "O.8", "its records do not fit the protocol"),
        ("0.8", "81.5", "node.key"),  # told as a doubt on a screen
    ],
)
def test_the_log_of_a_party_quotes_no_record(study: Path, old: str, new: str, said: str) -> None:  # noqa: F811
    records, party = study / "a" / "records.csv", study / "a" / "party.toml"
    (study / "a" / "node.key").unlink()
    (study / "a" / "ca.crt").touch()
    records.write_text(records.read_text().replace(old, new))
    shown = run("join", "--server", "localhost:1", party).output
    assert new in shown or "3 records" in shown
    result = run("join", "--log-format", "json", "--server", "localhost:1", party)
    assert (result.exit_code, result.stdout) == (2, "")
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert lines[-1]["level"] == "error" and said in lines[-1]["message"]
    assert not any(new in each["message"] or "3 records" in each["message"] for each in lines)


def test_a_node_tells_events_and_whether_its_ledger_is_well(study: Path) -> None:  # noqa: F811
    watch = NodeWatch(PartyFile.read(study / "a" / "party.toml"))
    lines = {
        f"{LOG_PREFIX}answered: AUC; enough for 3 more runs": "answered",
        f"{LOG_PREFIX}score 0.123 of record 17": OTHER,
        f"{LOG_PREFIX}this party failed: KeyError: 0.123": "this party failed",
        "INFO : Receiving: query.hello message": "a run begins",
        f"INFO : {REACHED}": "the server is reached again",
        "INFO : Flower's own": "",
        f"WARN : {LOST}": "the server cannot be reached",
    }
    for connected, (line, event) in zip((0, 0, 0, 0, 1, 1, 0), lines.items(), strict=True):
        assert (watch.event(line), watch.is_connected) == (event, bool(connected))
    told, ledger = watch.operated(), watch.party_file.ledger
    healthy = {"process": "ok", "disk": "ok", "ledger": "ok"}
    assert told.answer("/health") == (200, healthy)
    with Ledger(ledger):
        assert told.answer("/health") == (200, healthy)
    ledger.write_bytes(b"no ledger")
    assert told.answer("/health") == (503, {**healthy, "ledger": "failing"})
    pytest.importorskip("prometheus_client")
    samples = [sample for family in told.collect() for sample in family.samples]
    assert {each.labels.get("event") for each in samples} == {None, *filter(None, lines.values())}
