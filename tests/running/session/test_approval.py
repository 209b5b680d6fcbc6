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

from tacit.crypto.identities import Identity
from tacit.ledger.entries import ANSWERED, APPROVAL, DEBIT, REVOKED
from tacit.ledger.ledger import Ledger
from tacit.running.session.approval import NOT_APPROVED, Subject
from tacit.running.session.coordinator import Coordinator
from tacit.running.session.messages import COORDINATOR, Kind, verified
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk
from tacit.running.session.toml_source import PlanError
from tests.running import desks as disk
from tests.terminal import run as command

DAY = 86_400.0
PEOPLE = ("ada", "bob", "cem")


class Site:
    """Site ``a`` of two, whose plan two of three people approve."""

    def __init__(self, home: Path) -> None:
        self.home, self.party = home, home / "a" / "party.toml"
        self.centre = disk.federation(home, disk.HISTOGRAM, parties=2, limit="epsilon = 100.0")
        self.keys = {name: disk.write_identity(home / name / "identity.key") for name in PEOPLE}
        for party in "ab":
            self.demand(party)
            disk.desk_of(home, "ab".index(party))

    def demand(self, party: str, needed: int = 2) -> None:
        named = ", ".join(f'{name} = "{key.public.hex()}"' for name, key in self.keys.items())
        with (self.home / party / "party.toml").open("a", encoding="utf-8") as file:
            file.write(f"[approval]\nneeded = {needed}\nkeys = {{ {named} }}\n")

    @property
    def subject(self) -> Subject:
        desk = PartyDesk.open(self.party)
        return Subject(desk.party_file, desk.plan)

    @property
    def ledger(self) -> Path:
        return self.subject.party_file.ledger

    def approve(self, runs: int, days: int = 30) -> Path:
        until = datetime.now(UTC).date() + timedelta(days=days)
        with Ledger(self.ledger) as ledger:
            draft = self.subject.begin(runs, until, ledger)
        for name in ("ada", "bob"):
            draft = self.subject.sign(draft, self.keys[name])
        return self.subject.path

    def asked(self, party: str = "a") -> bool:
        """Whether the first message of a new run that costs anything is answered."""
        plan, index = Plan.read(self.home / "plan.toml"), "ab".index(party)
        message = Coordinator(plan.agreement(), self.centre).open()[index]
        reply = PartyDesk.open(self.home / party / "party.toml").answer(message)
        kind = verified(reply, plan.agreement(), index, COORDINATOR).kind
        if kind is Kind.DECLINE:
            assert NOT_APPROVED.encode() in reply
        return kind is Kind.REPLY

    def lines(self, kind: str) -> list[Any]:
        with Ledger.open_readonly(self.ledger) as pages:
            pages.verify()
            return [line for line in pages.lines() if line.kind == kind]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def rewritten(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def to_the_other_site(site: Site) -> None:
    """Ledger and approvals of one site in the place of another's."""
    for path in (site.home / "a").glob("ledger*"):
        there = site.home / "b" / path.name
        shutil.rmtree(there, ignore_errors=True) if path.is_dir() else None
        (shutil.copytree if path.is_dir() else shutil.copy)(path, there)
    site.party = site.home / "b" / "party.toml"


def put_back_after(event: Callable[[Site], object]) -> Callable[[Site], object]:
    def attack(site: Site) -> None:
        path = site.subject.path
        old = path.read_bytes()
        event(site)
        path.write_bytes(old)

    return attack


def revoked(site: Site) -> None:
    with Ledger(site.ledger) as ledger:
        site.subject.note(REVOKED, ledger, "cem")


def later_then_back(site: Site) -> None:
    """An entry by a clock that is a year ahead; the clock is then right again."""
    with Ledger(site.ledger, clock=lambda: time.time() + 365 * DAY) as ledger:
        ledger.limit("registry", 100.0)


def one_signature_twice(held: dict[str, Any]) -> None:
    held["signatures"] = dict.fromkeys(("ada", "bob"), held["signatures"]["ada"])


ATTACKS: dict[str, tuple[Callable[[Site], object], str]] = {
    "one signature": (
        lambda site: rewritten(site.subject.path, lambda held: held["signatures"].pop("ada")),
        "signed by 1 of the 2",
    ),
    "one signature twice": (
        lambda site: rewritten(site.subject.path, one_signature_twice),
        "signed by 1 of the 2 that are needed; of other terms, or of none who may sign: bob",
    ),
    "more runs": (
        lambda site: rewritten(site.subject.path, lambda held: held.update(runs=100)),
        "signed by 0",
    ),
    "another day": (
        lambda site: rewritten(site.subject.path, lambda held: held.update(until="2999-01-01")),
        "signed by 0",
    ),
    "another plan": (
        lambda site: disk.edited(site.home / "plan.toml", ("epsilon = 1.0", "epsilon = 2.0")),
        "no approval of this plan",
    ),
    "another data set": (
        lambda site: disk.edited(site.party, ('"registry"', '"psychiatry"')),
        "no approval of this plan for this data set",
    ),
    "another site": (to_the_other_site, "signed by 0"),
    "fewer needed": (
        lambda site: disk.edited(site.party, ("needed = 2", "needed = 1")),
        "signed by 0",
    ),
    "put back after a revocation": (put_back_after(revoked), "cem ended the approval"),
    "put back after a smaller one": (
        put_back_after(lambda site: site.approve(1)),
        "is not the approval that was drafted last",
    ),
    "an earlier ledger": (
        lambda site: shutil.move(site.ledger, site.home),
        "no approval of this plan",
    ),
    "a clock that goes back": (later_then_back, "the approval ended on"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_not_approved_is_declined_before_anything_is_debited(site: Site, name: str) -> None:
    attack, reason = ATTACKS[name]
    site.approve(5)
    attack(site)
    if site.ledger.exists():
        with Ledger.open_readonly(site.ledger) as pages:
            assert reason in site.subject.standing(pages).problem
    assert not site.asked(site.party.parent.name)
    assert not site.lines(DEBIT)


def test_an_ended_approval_is_ended_for_good(site: Site) -> None:
    site.approve(5)
    later_then_back(site)
    assert not site.asked()
    assert [line.step for line in site.lines(APPROVAL)][-1] == "the last day"
    site.approve(5, days=400)
    assert site.asked()


def test_runs_are_counted_and_the_ledger_holds_who_approved(site: Site) -> None:
    site.approve(2)
    assert [site.asked() for _ in range(3)] == [True, True, False]
    answered = [line for line in site.lines(APPROVAL) if line.reason == ANSWERED]
    assert [line.step for line in answered] == ["ada, bob"] * 2
    assert {line.session for line in answered} == {line.session for line in site.lines(DEBIT)}
    shown = command("ledger", "show", site.ledger).output
    assert shown.count("answered  ada, bob") == 2


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("needed = 2", "needed = 4", "needed must be from 1 to 3, got 4"),
        ('ada = "', 'ada = "00', "ada must be 64 hexadecimal digits"),
        ("keys = {", "names = {", "unknown key 'names'"),
        ("BOB", "ADA", "two names have one key"),
        ("BOB", "SITE", "names the key of the site itself"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused(site: Site, old: str, new: str, reason: str) -> None:
    keys = {"BOB": site.keys["bob"], "ADA": site.keys["ada"]}
    own = (site.home / "a" / "identity.key").read_text()
    keys["SITE"] = Identity.from_bytes(bytes.fromhex(own))
    words = [keys[word].public.hex() if word in keys else word for word in (old, new)]
    disk.edited(site.party, (words[0], words[1]))
    with pytest.raises(PlanError, match=reason):
        assert site.subject.rule


def test_the_command_shows_signs_and_revokes(site: Site) -> None:
    key = {name: site.home / name / "identity.key" for name in PEOPLE}
    assert "nothing is drafted" in command("approve", site.party).stderr
    day = f"{datetime.now(UTC) + timedelta(days=9):%Y-%m-%d}"
    page = command("approve", site.party, "--runs", 3, "--until", day).output
    for words in (
        f"the coordinator with the key {site.centre.public.hex()}",
        "data set registry of a",
        "3 runs at most; together they cost at most epsilon 3",
        f"{day}, the whole day in UTC",
        "2 of ada, bob, cem",
        "no one yet",
    ):
        assert words in page, page
    assert "asks on a terminal" in command("approve", site.party, "--sign", key["ada"]).stderr
    stranger = site.home / "centre" / "identity.key"
    assert "does not name" in command("approve", site.party, "--sign", stranger, "--yes").stderr
    signed = [command("approve", site.party, "--sign", key[name], "--yes") for name in PEOPLE]
    assert "signed by 1 of the 2" in signed[0].output
    assert "signed by bob: approved by ada, bob; 3 of 3 runs are left" in signed[1].output
    assert "approved by ada, bob, cem" in command("join", "--check", site.party).output
    assert "revoked by cem" in command("approve", site.party, "--revoke", key["cem"]).output
    joined = command("join", site.party, "--server", "localhost:1")
    assert joined.exit_code == 2
    assert "not approved: cem ended the approval" in joined.stderr
