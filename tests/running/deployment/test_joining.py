"""Three sites join by one file each, line by line as the page has its reader type them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tacit.running.deployment.flower_programs.programs import free_port
from tests.running.deployment.processes import HOSPITALS, nothing_left
from tests.running.deployment.test_processes import Terminals, check_book, check_result

pytest.importorskip("flwr")
pytestmark = [pytest.mark.slow, pytest.mark.thorough]

DOCUMENT = Path(__file__).parents[3] / "docs" / "guides" / "federation.md"
MOST_COMMANDS = 11
SITE_CODE = re.compile(r"^code +(\S+)", re.MULTILINE)
ROSTER_CODE = re.compile(r"code of the roster: (\S+)")


def commands() -> list[str]:
    """The lines that the page has its reader type, in order."""
    blocks = re.findall(r"<!-- joining -->\n\n```console\n(.*?)```", DOCUMENT.read_text(), re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line[:2] == "$ "]


class Ceremony:
    """Puts the codes that were printed where a person types those that were read aloud."""

    def __init__(self) -> None:
        self._codes: dict[str, str] = {}

    def hear(self, line: str, said: str) -> None:
        if line.startswith("tacit accept"):
            match = SITE_CODE.search(said)
            assert match is not None
            site = line.partition("hospital-")[2][0]
            self._codes[f"CODE-{site.upper()}"] = match[1]
        if line.startswith("tacit admit"):
            match = ROSTER_CODE.search(said)
            assert match is not None
            self._codes["ROSTER-CODE"] = match[1]

    def typed(self, line: str) -> str:
        for name in sorted(self._codes, key=len, reverse=True):
            line = line.replace(name, self._codes[name])
        return line


def test_three_sites_join_by_one_file_each(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "examples").symlink_to(HOSPITALS.parent)
    port, lines, ceremony = str(free_port()), commands(), Ceremony()
    assert len(lines) == MOST_COMMANDS
    started, said = time.monotonic(), ""
    with ExitStack() as running:
        terminals = Terminals(tmp_path, running)
        for line in lines:
            said = terminals.type(ceremony.typed(line).replace("8443", port))
            ceremony.hear(line, said)
        record_property("seconds", time.monotonic() - started)
        shown = (tmp_path / "terminal-1.log").read_text()
    assert nothing_left(tmp_path)
    check_result(json.loads((tmp_path / "result.json").read_text()))
    for words in ("precision at 0.5", "calibration error", "sent by c"):
        assert words in said
    for words in ("roster of", "connected to localhost", "answered: AUC", "the ledger allows"):
        assert words in shown
    for name in "abc":
        check_book(tmp_path / f"hospital-{name}" / "ledger.db", "my-records")
