"""The page on files shows what its command prints."""

import re
from pathlib import Path

import pytest

from tests.terminal import run

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "data.md"
NORTH = "score;label\n0,31;no\n0,78;yes\nNA;no\n0,11;no\n0,52;no\n"
SOUTH = "score,label\n0.2,0\n0.9,1\n0.4,0\n"


def test_the_page_shows_what_a_check_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("north.csv").write_text(NORTH)
    Path("south.csv").write_text(SOUTH)
    block = re.search(r"```console\n\$ tacit (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    said = run(*block[1].split())
    assert said.stdout + said.stderr == block[2]
