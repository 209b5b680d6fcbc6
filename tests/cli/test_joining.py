"""`tacit invite`, `accept`, `admit` and the roster's code in `tacit join`, without a network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tacit.cli.federation import site as rosters
from tacit.running.joining import site as joining
from tacit.running.joining.invitations import ROSTER_FILE
from tacit.running.joining.site import Reached
from tacit.running.session.plan_file import Plan
from tests.running.joining.studies import quick_codes
from tests.terminal import run

CODE = re.compile(r"^code +(\S+)", re.MULTILINE)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_codes(monkeypatch)


def said(result: Result) -> str:
    return " ".join(result.output.split())


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    centre = tmp_path / "centre"
    assert run("init", "--coordinator", "--parties", "a,b,c", centre).exit_code == 0
    done = run("invite", centre / "plan.toml", "--server", "localhost:18443")
    assert done.exit_code == 0, done.output
    return centre / "plan.toml"


def accepted(plan: Path, site: str) -> str:
    """The code that a site shows when it has accepted its invitation."""
    letter, home = plan.parent / "invitations" / f"{site}.json", plan.parents[1] / site
    (plan.parents[1] / "records.csv").write_text("score,label\n0.2,0\n0.8,1\n0.7,1\n")
    done = run("accept", letter, home, "--records", plan.parents[1] / "records.csv")
    assert done.exit_code == 0, done.output
    assert "epsilon 1; hides whether a record is there" in said(done)
    match = CODE.search(done.output)
    assert match is not None
    return match[1]


def admitted(plan: Path, sites: str = "abc") -> Result:
    codes = [f"--code={site}={accepted(plan, site)}" for site in sites]
    return run("admit", plan, *codes, *(plan.parents[1] / s / "answer.json" for s in sites))


def served(plan: Path) -> Callable[..., Reached]:
    """What the server answers to a site that asks for the roster."""
    roster = plan.parent / "server" / ROSTER_FILE
    return lambda *_: Reached(200, roster.read_bytes())


def test_three_sites_are_admitted(plan: Path) -> None:
    done = admitted(plan)
    assert done.exit_code == 0, done.output
    assert "all 3 sites are admitted; code of the roster: " in done.output
    assert len({party.key for party in Plan.read(plan).parties}) == 3


def test_a_wrong_code_admits_nobody_else(plan: Path) -> None:
    good, home = accepted(plan, "a"), plan.parents[1]
    accepted(plan, "b")
    answers = [home / site / "answer.json" for site in "ab"]
    done = run("admit", plan, f"--code=a={good}", "--code=b=0000-0000-0000", *answers)
    assert done.exit_code == 2
    assert "the code of b is not the one of this answer" in said(done)
    assert [party.key is None for party in Plan.read(plan).parties] == [False, True, True]


def test_codes_are_asked_for(plan: Path) -> None:
    accepted(plan, "a")
    answer = plan.parents[1] / "a" / "answer.json"
    assert "call a, and give the code that it reads" in said(run("admit", plan, answer))
    assert "as SITE=CODE, got 'x'" in said(run("admit", plan, answer, "--code", "x"))


def test_a_site_takes_a_roster_by_its_code_only(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = admitted(plan).output.partition("roster: ")[2].split()[0]
    monkeypatch.setattr(joining, "reach", served(plan))
    home = plan.parents[1] / "a"
    before = (home / "plan.toml").read_bytes()
    arguments = (home, "localhost:18443", home / "ca.crt")
    for code, reason in ((None, "give it as --code"), ("1" * 20, "different rosters")):
        with pytest.raises(ValueError, match=reason):
            rosters.newest_roster(*arguments, code, 1.0)
        assert (home / "plan.toml").read_bytes() == before
    assert "no roster yet" in said(run("join", "--check", home / "party.toml"))
    rosters.newest_roster(*arguments, shown.upper(), 1.0)
    assert (home / "plan.toml").read_bytes() == plan.read_bytes()
    rosters.newest_roster(*arguments, None, 1.0)
    assert "enough for" in said(run("join", "--check", home / "party.toml"))


def test_a_late_site_asks_the_others_for_a_new_code(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = admitted(plan).output.partition("roster: ")[2].split()[0]
    monkeypatch.setattr(joining, "reach", served(plan))
    home = plan.parents[1] / "a"
    arguments = (home, "localhost:18443", home / "ca.crt")
    rosters.newest_roster(*arguments, first, 1.0)
    assert run("invite", plan, "west").exit_code == 0
    second = run(
        "admit",
        plan,
        f"--code=west={accepted(plan, 'west')}",
        plan.parents[1] / "west" / "answer.json",
    )
    assert "all 4 sites are admitted" in second.output
    with pytest.raises(ValueError, match="the roster is new here"):
        rosters.newest_roster(*arguments, None, 1.0)
    with pytest.raises(ValueError, match="different rosters"):
        rosters.newest_roster(*arguments, first, 1.0)
    older, taken = (home / ROSTER_FILE).read_bytes(), second.output.partition("roster: ")[2]
    rosters.newest_roster(*arguments, taken.split()[0], 1.0)
    monkeypatch.setattr(joining, "reach", lambda *_: Reached(200, older))
    with pytest.raises(ValueError, match="older than the last that this site took"):
        rosters.newest_roster(*arguments, first, 1.0)


def test_an_invitation_that_was_replaced_is_said(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted(plan, "a")
    monkeypatch.setattr(joining, "reach", lambda *_: Reached(403, b""))
    home = plan.parents[1] / "a"
    with pytest.raises(ValueError, match="does not know this invitation"):
        rosters.newest_roster(home, "localhost:1", home / "ca.crt", None, 1.0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("x/y",), "got 'x/y'"),
        (("--server", "other.example:1"), "not for other.example"),
        (("--server", "nowhere"), "HOST:PORT, got 'nowhere'"),
    ],
)
def test_invite_refuses(plan: Path, arguments: tuple[str, ...], reason: str) -> None:
    done = run("invite", plan, *arguments)
    assert done.exit_code == 2
    assert reason in said(done)


def test_files_that_are_no_letters_are_named(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    for command in (("accept", tmp_path / "x"), ("admit", plan, tmp_path / "x")):
        done = run(*command)
        assert done.exit_code == 2
        assert f"{tmp_path / 'x'}: this file holds no" in said(done)
