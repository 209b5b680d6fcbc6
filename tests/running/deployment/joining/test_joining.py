"""The two sides of joining on disk: what an attacker in the mail or at the centre can do.

Keys are written into a plan's text, and nothing else in it changes.
"""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from tacit.crypto.identities import Identity
from tacit.running.deployment import inviting, keys, letters
from tacit.running.deployment import site as site_side
from tacit.running.deployment.door import ROSTER_FILE
from tacit.running.deployment.keys import stored_identity, stored_node_key
from tacit.running.session import party_file, plan_file
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk
from tacit.running.session.toml_source import PlanError
from tests.running.deployment.joining.studies import Study, quick_codes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_codes(monkeypatch)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.new(tmp_path)


def joined(study: Study, site: str, content: bytes) -> None:
    key = invitation_of(study, site).coordinator
    site_side.take_roster(content, taken(study, site, content), study.folder / site, key)


def taken(study: Study, site: str, content: bytes) -> str:
    return site_side.checked_roster(content, invitation_of(study, site), study.folder / site)


def invitation_of(study: Study, site: str) -> letters.Invitation:
    """The invitation that a site accepted."""
    invitation = site_side.invitation_in(study.folder / site)
    assert invitation is not None
    return invitation


def test_three_sites_end_with_one_plan_and_one_code(study: Study) -> None:
    for site in "abc":
        assert not inviting.publish_roster(study.plan, study.coordinator)
        study.admitted(site)
    content = study.complete()
    for site in "abc":
        joined(study, site, content)
    plans = [Plan.read(study.folder / site / "plan.toml") for site in "abc"]
    assert len({letters.roster_code(plan) for plan in [Plan.read(study.plan), *plans]}) == 1
    for site, party in zip("abc", plans[0].parties, strict=True):
        home = study.folder / site
        public = stored_identity(home / "identity.key").public
        assert (party.name, party.key) == (site, public)
        node_key = (study.coordinator.nodes / f"{site}.pub").read_text()
        assert node_key == (home / "node.key.pub").read_text()


def test_a_late_site_joins_in_the_same_way(study: Study) -> None:
    old = taken(study, "a", study.complete())
    study.admitted("d")
    new = taken(study, "a", study.complete())
    names = [[party.name for party in Plan.parsed(text, "roster").parties] for text in (old, new)]
    assert names == [["a", "b", "c"], ["a", "b", "c", "d"]]
    assert site_side.is_agreed(old, old.replace("deadline = 120.0  ", "deadline = 300.0  # longer"))
    assert not site_side.is_agreed(new, old)
    assert not site_side.is_agreed(new, (study.folder / "a" / "plan.toml").read_text())


def test_an_older_roster_is_refused(study: Study) -> None:
    """Signed by the right key, and with the site's own key; the same one is taken again."""
    first = study.complete()
    joined(study, "a", first)
    study.admitted("d")
    second = study.complete()
    joined(study, "a", second)
    before = (study.folder / "a" / "plan.toml").read_bytes()
    with pytest.raises(letters.LetterError, match="older than the last that this site took"):
        taken(study, "a", first)
    joined(study, "a", second)
    assert (study.folder / "a" / "plan.toml").read_bytes() == before == study.plan.read_bytes()
    joined(study, "b", first)


def test_certificates_are_renewed_by_the_roster(study: Study) -> None:
    """Without a code, from the date at the latest without the old authority, and never back."""
    tls, now, home = study.coordinator.certificates, datetime.now(UTC), study.folder / "a"
    first, old = study.complete(), tls.authority.read_text()
    joined(study, "a", first)
    for begins in (now, tls.served.not_valid_after_utc):
        with pytest.raises(keys.KeyFileError, match="the new certificates are used from"):
            keys.renew(tls, begins, now)
    begins = keys.renew(tls, None, now)
    assert begins == now + keys.OVERLAP
    with pytest.raises(keys.KeyFileError, match="wait already"):
        keys.renew(tls, None, now)
    second = study.complete()
    assert site_side.is_agreed(taken(study, "a", second), (home / "plan.toml").read_text())
    joined(study, "a", second)
    new = tls.renewed.authority.read_text()
    assert (home / "ca.crt").read_text() == old + new == study.invited("d").authority
    assert keys.trusted(old + new, begins) == keys.trusted(new + old, begins) == new
    assert keys.names_of(tls.renewed.served) == keys.names_of(tls.served)
    with pytest.raises(letters.LetterError, match="older than the last"):
        taken(study, "a", first)
    keys.use_renewed(tls, begins - timedelta(seconds=2))
    assert tls.authority.read_text() == old
    keys.use_renewed(tls, begins + timedelta(seconds=2))
    assert tls.exist and not tls.renewed.exist and tls.key.stat().st_mode & 0o077 == 0
    joined(study, "a", study.complete())
    assert (home / "ca.crt").read_text() == new == tls.authority.read_text()
    with pytest.raises(letters.LetterError, match="older than the last"):
        taken(study, "a", second)


def test_two_rosters_with_one_number_are_refused(study: Study) -> None:
    content, identity = study.complete(), stored_identity(study.coordinator.identity)
    joined(study, "a", content)
    said = letters.read_roster(content, identity.public)
    other = said._replace(plan=said.plan.replace("deadline = 120.0", "deadline = 300.0"))
    with pytest.raises(letters.LetterError, match="two rosters with the number"):
        taken(study, "a", letters.roster_of(other, identity))
    assert taken(study, "a", letters.roster_of(other._replace(number=other.number + 1), identity))


def test_a_rosters_number_rises_whatever_the_clock_says(study: Study) -> None:
    """Also over a backup: a plan that was signed after it is not numbered as another one was."""
    for site in "abc":
        study.admitted(site)
    public = stored_identity(study.coordinator.identity).public
    backup = shutil.copytree(study.plan.parent, study.folder / "backup")
    first = letters.read_roster(study.complete(lambda: 50.0), public)
    assert letters.read_roster(study.complete(lambda: 60.0), public) == first
    study.admitted("d")
    second = letters.read_roster(study.complete(lambda: 20.0), public)
    assert (first.number, second.number) == (50_000_000, 50_000_001)
    shutil.rmtree(study.plan.parent)
    shutil.copytree(backup, study.plan.parent)
    restored = letters.read_roster(study.complete(lambda: 70.0), public)
    assert restored.plan == first.plan
    assert restored.number == 70_000_000


def test_a_damaged_note_of_the_last_roster_is_named(study: Study) -> None:
    content = study.complete()
    joined(study, "a", content)
    note = study.folder / "a" / ROSTER_FILE
    assert note.stat().st_mode & 0o077 == 0
    note.write_bytes(content[:-20])
    with pytest.raises(letters.LetterError, match=r"roster\.json: .* put the file back"):
        taken(study, "a", content)


def test_secrets_are_for_their_owner_only(study: Study) -> None:
    study.admitted("a")
    private = [
        study.folder / "a" / "invitation.json",
        study.folder / "a" / "identity.key",
        study.coordinator.private / "invitations" / "a.json",
    ]
    assert {path.stat().st_mode & 0o077 for path in private} == {0}


def test_an_answer_serves_once(study: Study) -> None:
    """The same answer again changes nothing; one with other keys, also by the same invitation, is
    refused: whoever copied the invitation comes too late."""
    answer = study.admitted("a")
    before = study.plan.read_text()
    inviting.admit(study.plan, study.coordinator, answer)
    assert study.plan.read_text() == before
    second = site_side.accept(invitation_of(study, "a"), study.folder / "thief")
    with pytest.raises(letters.LetterError, match="serves once"):
        inviting.admit(study.plan, study.coordinator, second)
    assert study.plan.read_text() == before


def test_an_old_answer_is_refused_after_another_invitation(study: Study) -> None:
    old = study.accepted("a")
    study.invited("a")
    with pytest.raises(letters.LetterError, match="may be an older one"):
        inviting.check_open(study.coordinator, old)


def test_who_was_not_invited_is_not_admitted(study: Study) -> None:
    answer = study.accepted("a")
    with pytest.raises(letters.LetterError, match="no one invited 'x'"):
        inviting.check_open(study.coordinator, dataclasses.replace(answer, site="x"))


def test_a_site_with_keys_is_invited_again_on_demand_only(study: Study) -> None:
    study.admitted("a")
    with pytest.raises(letters.LetterError, match="--again"):
        study.invited("a")
    answer = site_side.accept(study.invited("a", again=True), study.folder / "new")
    inviting.admit(study.plan, study.coordinator, answer)
    assert answer.identity.hex() in study.plan.read_text()


def test_no_key_takes_two_places(study: Study) -> None:
    study.admitted("a")
    identity = stored_identity(study.folder / "a" / "identity.key")
    node_key = (study.folder / "a" / "node.key.pub").read_text().strip()
    before = study.plan.read_text()
    double = letters.Answer.to(study.invited("b"), identity, node_key)
    with pytest.raises(PlanError, match="two parties have the key"):
        inviting.admit(study.plan, study.coordinator, double)
    assert study.plan.read_text() == before


def test_an_answer_without_a_node_key_changes_nothing(study: Study) -> None:
    before = study.plan.read_text()
    answer = letters.Answer.to(study.invited("a"), Identity.generate(), "no key")
    with pytest.raises(ValueError, match="no public node key"):
        inviting.admit(study.plan, study.coordinator, answer)
    assert study.plan.read_text() == before
    assert not (study.coordinator.nodes / "a.pub").exists()


def test_a_site_refuses_what_the_centre_may_not_change(study: Study) -> None:
    """Another key under its name, other settings, a smaller result, another signer."""
    study.complete()
    text, identity = study.plan.read_text(), stored_identity(study.coordinator.identity)
    own = stored_identity(study.folder / "a" / "identity.key").public.hex()
    changed = {
        "another key under the name 'a'": text.replace(own, Identity.generate().public.hex()),
        "other settings": text.replace("epsilon = 1.0", "epsilon = 2.0"),
        "other settings now": text.replace('on_loss = "fail"', 'on_loss = "restart"'),
        "settings now than": text.replace("min_clients = 3", "min_clients = 2"),
    }
    for reason, each in changed.items():
        assert each != text
        with pytest.raises((letters.LetterError, PlanError), match=f"{reason}|min_clients"):
            taken(study, "a", letters.roster_of(letters.NumberedPlan(1, each), identity))
    with pytest.raises(letters.LetterError, match="not signed by the coordinator"):
        taken(study, "a", letters.roster_of(letters.NumberedPlan(1, text), Identity.generate()))
    assert taken(study, "a", letters.roster_of(letters.NumberedPlan(1, text), identity)) == text
    longer = text.replace("deadline = 120.0", "deadline = 300.0")
    assert taken(study, "a", letters.roster_of(letters.NumberedPlan(2, longer), identity)) == longer


def test_a_clone_of_the_coordinator_needs_its_key(study: Study, tmp_path: Path) -> None:
    """An invitation whose plan names another coordinator than the invitation is refused."""
    invitation = study.invited("a")
    clone = dataclasses.replace(invitation, coordinator=Identity.generate().public)
    with pytest.raises(letters.LetterError, match="names another coordinator"):
        site_side.accept(clone, tmp_path / "site")


@pytest.mark.parametrize("name", ["identity.key", "node.key"])
def test_keys_that_others_may_know_answer_no_invitation(study: Study, name: str) -> None:
    """Who knows a site's keys before he writes the invitation could prepare it for their code."""
    folder = study.folder / "a"
    {"identity.key": stored_identity, "node.key": stored_node_key}[name](folder / name)
    with pytest.raises(letters.LetterError, match="holds keys already"):
        site_side.accept(study.invited("a"), folder)
    assert site_side.invitation_in(folder) is None


def test_accepting_survives_an_interrupt(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    invitation = study.invited("a")

    def dying(path: Path) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(site_side, "stored_node_key", dying)
        with pytest.raises(KeyboardInterrupt):
            site_side.accept(invitation, study.folder / "a")
    inviting.admit(study.plan, study.coordinator, site_side.accept(invitation, study.folder / "a"))


def test_accepting_twice_gives_the_same_answer_and_touches_nothing(study: Study) -> None:
    first = study.accepted("a")
    assert site_side.accept(invitation_of(study, "a"), study.folder / "a") == first
    with pytest.raises(letters.LetterError, match="holds another invitation"):
        site_side.accept(study.invited("a"), study.folder / "a")
    with pytest.raises(letters.LetterError, match="holds a plan already"):
        site_side.accept(study.invited("b"), study.plan.parent)


KEY = b"\1" * 32


@pytest.mark.parametrize(
    ("text", "line", "there"),
    [
        ('[[party]]\nkey = "x"\nname = "a"\n[[party]]\nname = "b"\n', 1, True),
        ('[[party]] # one\nname = "a"\n  # key = "..."\n', 2, True),
        ('[[party]]\nname = "b"\n[[party]]\n"name" = """\na"""\n# more\n[x]\n', 3, False),
    ],
)
def test_a_key_is_replaced_or_put_after_the_header(text: str, line: int, there: bool) -> None:
    lines = text.splitlines()
    lines[line : line + there] = [f'key = "{KEY.hex()}"']
    assert inviting.with_party(text, "a", KEY).splitlines() == lines


@pytest.mark.parametrize("text", ['party = [{name = "a"}]\n', '[[ party ]]\nname = "a"\n'])
def test_lines_that_are_not_understood_are_left_to_a_person(text: str) -> None:
    with pytest.raises(PlanError, match="by hand"):
        inviting.with_party(text, "a", KEY)


def test_a_plan_needs_its_table() -> None:
    with pytest.raises(PlanError, match="by hand"):
        inviting.with_coordinator('plan = {name = "x"}\n', KEY)


def at(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    """Let every plan and identity be read at a time."""
    clock = SimpleNamespace(time=moment.timestamp)
    for module in (plan_file, party_file):
        monkeypatch.setattr(module, "time", clock)


def test_a_sites_key_is_renewed_by_the_key_before_it(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file goes to the coordinator; no code, no invitation; old until the time, then new."""
    now, homes = datetime.now(UTC), {name: study.folder / name for name in "ab"}
    begins, first = now + timedelta(days=3), study.complete()
    for site in "ab":
        joined(study, site, first)
    old = stored_identity(homes["a"] / "identity.key").public
    approved = Plan.read(homes["b"] / "plan.toml").digest
    letter, said = site_side.renew_identity(homes["a"] / "party.toml", begins, now)
    with pytest.raises(letters.LetterError, match="waits already"):
        site_side.renew_identity(homes["a"] / "party.toml", begins, now)
    for _ in range(2):
        assert inviting.take_renewal(study.plan, letter.read_text(), now) == ("a", said)
    for content, wrong in (("a \u00e9 1 2", "is no renewal"), (f"c d {said}", "party 'c d'")):
        with pytest.raises(PlanError, match=wrong):
            inviting.take_renewal(study.plan, content, now)
    second = study.complete()
    for site in "ab":
        local = (study.folder / site / "plan.toml").read_text()
        assert site_side.is_agreed(taken(study, site, second), local)
        joined(study, site, second)
    with pytest.raises(letters.LetterError, match="older than the last"):
        taken(study, "b", first)
    for moment, key in ((begins - timedelta(minutes=2), old), (begins, said.key)):
        at(monkeypatch, moment)
        plans = [Plan.read(study.folder / name / "plan.toml") for name in "ab"]
        assert {plan.parties[0].key for plan in plans} == {key}
        assert {plan.digest for plan in plans} == {approved}
        assert PartyDesk.open(homes["a"] / "party.toml").identity.public == key
        assert taken(study, "a", second) == taken(study, "b", second)
    joined_before = (homes["b"] / "plan.toml").read_text().replace("renewals", "# renewals")
    assert site_side.is_agreed(taken(study, "b", second), joined_before)
    again, _ = site_side.renew_identity(homes["a"] / "party.toml", None, begins)
    inviting.take_renewal(study.plan, again.read_text(), begins)
    assert len(Plan.read(study.plan).parties[0].keys) == 3
    replaced = inviting.with_party(study.plan.read_text(), "a", KEY)
    assert Plan.parsed(replaced, "plan").parties[0].keys == (KEY,)


@pytest.mark.parametrize("liar", ["coordinator", "thief", "other federation", "earlier"])
def test_who_may_not_announce_a_key(study: Study, liar: str) -> None:
    """The coordinator alone can make none, and move none; a thief's does not replace the owner's,
    and the owner refuses it; another federation's is none of this one."""
    now, home = datetime.now(UTC), study.folder / "a"
    first, thief = study.complete(), Identity.generate()
    new = thief.public
    for site in "ab":
        joined(study, site, first)
    plan, owner = Plan.read(study.plan), stored_identity(home / "identity.key")
    late = (now + timedelta(days=9)).strftime(plan_file.MINUTE)
    forged = plan_file.Renewal.made(plan, "a", owner, new, late)
    if liar == "coordinator":
        centre = stored_identity(study.coordinator.identity)
        forged = plan_file.Renewal.made(plan, "a", centre, new, late)
    elif liar == "other federation":
        forged = plan_file.Renewal.made(replace(plan, name="x"), "a", owner, new, late)
    elif liar == "earlier":
        sooner = (now + timedelta(days=1)).strftime(plan_file.MINUTE)
        forged = replace(forged, begins=sooner)
    content = f"a {forged}"
    if liar != "thief":
        with pytest.raises(PlanError, match="not signed by the key before"):
            inviting.take_renewal(study.plan, content, now)
        return
    letter, said = site_side.renew_identity(home / "party.toml", None, now)
    inviting.take_renewal(study.plan, letter.read_text(), now)
    joined(study, "b", study.complete())
    text = study.plan.read_text()
    lines = [line for line in text.splitlines() if not line.startswith("renewals")]
    study.plan.write_text(inviting.with_renewal("\n".join(lines), "a", str(forged)))
    third = study.complete()
    known = (study.folder / "b" / "plan.toml").read_text()
    assert not site_side.is_agreed(taken(study, "b", third), known)
    between = plan_file.Renewal.made(plan, "a", thief, said.key, said.begins)
    text = inviting.with_renewal(study.plan.read_text(), "a", str(between))
    study.plan.write_text(text)
    for roster in (third, study.complete()):  # the owner's own key at the end hides none before it
        with pytest.raises(letters.LetterError, match="was not made here"):
            taken(study, "a", roster)
