"""A site's people approve a plan before it is answered, and attacks on that."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tacit.cli import main
from tacit.ledger.entries import ANSWERED, APPROVAL, DEBIT, REVOKED
from tacit.ledger.ledger import Ledger
from tacit.running.session.approval import NOT_APPROVED, Subject
from tacit.running.session.coordinator import Coordinator
from tacit.running.session.messages import COORDINATOR, Kind, verified
from tacit.running.session.service import PartyDesk, read_identity
from tacit.running.session.toml_source import PlanError
from tests.running import desks as disk

YEAR, PEOPLE = 365 * 86_400.0, ("ada", "bob", "cem")


class Site:
    """Site ``a`` of two, whose plan two of three people approve."""

    def __init__(self, home: Path) -> None:
        self.home, self.party = home, home / "a" / "party.toml"
        self.ledger = home / "a" / "ledger.db"
        self.centre = disk.federation(home, disk.HISTOGRAM, parties=2, limit="epsilon = 100.0")
        self.keys = {name: disk.write_identity(home / name / "identity.key") for name in PEOPLE}
        named = ", ".join(f'{name} = "{key.public.hex()}"' for name, key in self.keys.items())
        for desk in disk.desks_of(home):
            with (home / desk.party_file.name / "party.toml").open("a") as file:
                file.write(f"[approval]\nneeded = 2\nkeys = {{ {named} }}\n")

    @property
    def subject(self) -> Subject:
        desk = PartyDesk.open(self.party)
        return Subject(desk.party_file, desk.plan)

    def approve(self, runs: int, days: int = 30) -> None:
        with Ledger(self.ledger) as ledger:
            until = (ledger.now() + timedelta(days)).date()
        draft = self.subject.begin(runs, until)
        for name in ("ada", "bob"):
            draft = self.subject.sign(draft, self.keys[name])

    def asked(self, again: bool = False) -> bool:
        """Whether the first message of a new run is answered, or the last after its state is
        forgotten."""
        desk = PartyDesk.open(self.party)
        agreement = desk.plan.agreement()
        if again:
            shutil.rmtree(desk.party_file.state)
        else:
            self.message = Coordinator(agreement, self.centre).open()[desk.index]
        reply = desk.answer(self.message)
        kind = verified(reply, agreement, desk.index, COORDINATOR).kind
        assert (NOT_APPROVED.encode() in reply) == (kind is Kind.DECLINE)
        return kind is Kind.REPLY

    def lines(self, kind: str) -> list[Any]:
        with Ledger.open_readonly(self.party.with_name("ledger.db")) as pages:
            pages.verify()
            return [line for line in pages.lines() if line.kind == kind]

    def rewrite(self, **changes: Any) -> None:
        content = json.loads(self.subject.path.read_text())
        self.subject.path.write_text(json.dumps(content | changes))

    def copy(self, *names: str) -> None:
        """The signature of one, under these names."""
        signed = json.loads(self.subject.path.read_text())["signatures"]
        self.rewrite(signatures=dict.fromkeys(names, signed["ada"]))

    def edit(self, old: str, new: str, name: str = "a/party.toml") -> None:
        disk.edited(self.home / name, (old, new))

    def put_back_after(self, event: Callable[[], object]) -> None:
        old = self.subject.path.read_bytes()
        event()
        self.subject.path.write_bytes(old)

    def revoke(self) -> None:
        with Ledger(self.ledger) as ledger:
            self.subject.note(REVOKED, ledger, "cem")

    def jump(self) -> None:
        """An entry by a clock that is a year ahead; the clock is then right again."""
        with Ledger(self.ledger, clock=lambda: time.time() + YEAR) as ledger:
            ledger.limit("registry", 100.0)

    def move(self) -> None:
        """Ledger and approvals of the site, in the place of another's."""
        shutil.rmtree(self.home / "b" / "ledger-state", ignore_errors=True)
        for path in (self.home / "a").glob("ledger*"):
            there = self.home / "b" / path.name
            (shutil.copytree if path.is_dir() else shutil.copy)(path, there)
        self.party = self.home / "b" / "party.toml"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


ATTACKS: dict[str, tuple[Callable[[Site], object], str]] = {
    "one signature": (lambda s: s.copy("ada"), "signed by 1 of the 2"),
    "one signature twice": (lambda s: s.copy("ada", "bob"), "signatures unfit: bob"),
    "more runs, longer": (lambda s: s.rewrite(runs=9, until="2999-01-01"), "signed by 0"),
    "an end that no one signed": (lambda s: s.rewrite(until="2000-01-01"), "signed by 0"),
    "another plan": (lambda s: s.edit("= 1.0", "= 2.0", "plan.toml"), "no approval of this plan"),
    "another data set": (lambda s: s.edit('"registry"', '"ward"'), "plan for this data set"),
    "another site": (lambda s: s.move(), "signed by 0"),
    "fewer needed": (lambda s: s.edit("needed = 2", "needed = 1"), "signed by 0"),
    "after a revocation": (lambda s: s.put_back_after(s.revoke), "cem ended the approval"),
    "after a smaller one": (lambda s: s.put_back_after(lambda: s.approve(1)), "drafted last"),
    "a new ledger": (lambda s: shutil.move(s.ledger, s.home), "no approval of this plan"),
    "a clock that goes back": (lambda s: s.jump(), "the last day ended the approval"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_not_approved_is_declined_and_costs_nothing(site: Site, name: str) -> None:
    attack, reason = ATTACKS[name]
    site.approve(5)
    attack(site)
    assert not site.asked()
    with Ledger(site.party.with_name("ledger.db")) as pages:
        assert reason in site.subject.standing(pages).problem
    assert not site.lines(DEBIT)


def test_an_ended_approval_stays_ended_and_a_new_one_holds(site: Site) -> None:
    site.approve(5)
    site.jump()
    assert not site.asked()
    assert site.lines(APPROVAL)[-1].step == "the last day"
    written = len(site.lines(APPROVAL))
    assert not site.asked()
    assert len(site.lines(APPROVAL)) == written, "every request would fill the disk"
    site.approve(5)
    assert site.asked()


@pytest.mark.parametrize("again", [False, True])
def test_runs_are_counted_and_the_ledger_holds_who_approved(site: Site, again: bool) -> None:
    site.approve(2)
    assert [site.asked(), site.asked(again), site.asked()] == [True, True, False]
    answered = [line for line in site.lines(APPROVAL) if line.reason == ANSWERED]
    assert [line.step for line in answered] == ["ada, bob"] * 2
    assert {line.session for line in answered} == {line.session for line in site.lines(DEBIT)}
    with Ledger(site.ledger) as pages:
        problems = [site.subject.standing(pages, run).problem for run in (answered[0].session, "")]
    assert problems == ["", "all 2 approved runs were answered"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("needed = 2", "needed = 4", "needed must be from 1 to 3, got 4"),
        ("bob", "ada", "two names have one key"),
        ("bob", "a", "names the key of a site"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused(site: Site, old: str, new: str, reason: str) -> None:
    keys = {name: site.home / name / "identity.key" for name in ("ada", "bob", "a")}
    texts = (read_identity(keys[x]).public.hex() if x in keys else x for x in (old, new))
    site.edit(*texts)
    with pytest.raises(PlanError, match=reason):
        assert site.subject.rule


def test_the_command_shows_signs_and_revokes(site: Site) -> None:
    def said(*words: object) -> str:
        return CliRunner().invoke(main, [*map(str, words)], input="y\n").output

    def approve(*words: object) -> str:
        return said("approve", site.party, *words)

    assert "nothing is drafted" in approve()
    assert "must be today or later" in approve("--runs", 3, "--until", "2020-01-01")
    day = f"{datetime.now(UTC) + timedelta(9):%Y-%m-%d}"
    page = approve("--runs", 3, "--until", day)
    who = f"coordinator  {site.centre.public.hex()}"
    often = "3 runs at most, which cost at most epsilon 3 together"
    expected = (who, f"{often}\n", f"{day}, the whole day", "2 of ada, bob, cem", "no one yet")
    assert [words for words in expected if words not in page] == []
    keys = {name: site.home / name / "identity.key" for name in (*PEOPLE, "centre")}
    assert "does not name" in approve("--sign", keys["centre"])
    assert "signed by 1 of the 2" in approve("--sign", keys["ada"])
    assert "approved by ada, bob; 3 of 3 runs are left" in approve("--sign", keys["bob"])
    assert "approved by ada, bob" in said("join", "--check", site.party)
    assert "cem ended the approval" in approve("--revoke", keys["cem"])
    assert "cem ended" in said("join", site.party, "--server", "localhost:1")
    assert "revoked   cem" in said("ledger", "show", site.ledger)
    site.edit("[plan]", '[plan]\non_loss = "restart"', "plan.toml")
    assert f"{often}, and more where a sum starts" in approve("--runs", 3, "--until", day)
