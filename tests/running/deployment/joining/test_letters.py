"""Invitations, answers and rosters as files: what fits, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.identities import Identity
from tacit.running.deployment.letters import (
    Answer,
    Invitation,
    LetterError,
    NumberedPlan,
    read_roster,
    roster_code,
    roster_of,
)
from tacit.running.session.plan_file import Plan
from tacit.running.session.toml_source import PlanError
from tests.running.deployment.joining.studies import Study, quick_codes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_codes(monkeypatch)


def invitation(site: str = "a", secret: bytes = b"s" * 32) -> Invitation:
    return Invitation(site, "h.example:8443", "PEM", b"c" * 32, "[plan]\n", secret)


def test_files_read_back_as_they_were() -> None:
    letter = invitation()
    answer = Answer.to(letter, Identity.generate(), "ecdsa-key")
    assert Invitation.of_bytes(letter.to_bytes()) == letter
    assert Answer.of_bytes(answer.to_bytes()) == answer
    answer.check(letter)


@given(st.binary(max_size=200))
def test_no_bytes_make_an_invitation_by_chance(content: bytes) -> None:
    with pytest.raises(LetterError):
        Invitation.of_bytes(content)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda fields: fields.pop("secret"), "does not hold"),
        (lambda fields: fields.update(more="x"), "does not hold"),
        (lambda fields: fields.update(plan=1), "each as a text"),
        (lambda fields: fields.update(kind="tacit-answer/1"), "is needed"),
        (lambda fields: fields.update(kind="tacit-invitation/2"), "is needed"),
        (lambda fields: fields.update(secret="00"), "secret must be 64"),  # noqa: S106
        (lambda fields: fields.update(site="../x"), "names a site, got '../x'"),
        (lambda fields: fields.update(server="h"), "HOST:PORT, got 'h'"),
    ],
)
def test_a_changed_invitation_says_what_is_wrong(
    change: Callable[[dict[str, object]], object], reason: str
) -> None:
    fields = json.loads(invitation().to_bytes())
    change(fields)
    with pytest.raises(LetterError, match=reason):
        Invitation.of_bytes(json.dumps(fields).encode())


@pytest.mark.parametrize("kind", [Invitation, Answer])
@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"kind":' * 30_000, b"[" * (2**20 + 1), b"", rb'{"kind": "tacit-\ud800"}'],
)
def test_a_file_that_is_no_letter_is_refused(
    kind: type[Invitation] | type[Answer], content: bytes
) -> None:
    """Also one that is nested so deeply that it cannot be read: it came by mail."""
    with pytest.raises(LetterError, match=r"this file holds no (invitation|answer) of tacit"):
        kind.of_bytes(content)


def test_a_plan_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(PlanError, match="the invitation's plan: maximum recursion depth"):
        Plan.parsed(f"a = {'[' * 5000}", "the invitation's plan")


@pytest.mark.parametrize("field", ["identity", "node_key", "signature", "proof"])
def test_an_answer_that_was_changed_on_its_way_is_refused(field: str) -> None:
    letter = invitation()
    answer = Answer.to(letter, Identity.generate(), "ecdsa-key")
    other = Answer.to(letter, Identity.generate(), "another-key")
    with pytest.raises(LetterError):
        dataclasses.replace(answer, **{field: getattr(other, field)}).check(letter)


def test_an_answer_needs_the_secret_of_its_invitation() -> None:
    """One who knows everything but the secret: the digest alone makes no proof."""
    true, guessed = invitation(), invitation(secret=b"g" * 32)
    identity = Identity.generate()
    forged = Answer.to(guessed, identity, "ecdsa-key")
    with pytest.raises(LetterError, match="not to the invitation"):
        forged.check(true)
    with pytest.raises(LetterError, match="made without its file"):
        dataclasses.replace(forged, invitation=true.digest).check(true)


def test_the_code_covers_invitation_and_keys() -> None:
    """A thief of the invitation, and an exchanged invitation: each shows in the code."""
    identity = Identity.generate()
    true = Answer.to(invitation(), identity, "ecdsa-key")
    thief = Answer.to(invitation(), Identity.generate(), "ecdsa-key")
    exchanged = dataclasses.replace(invitation(), authority="another PEM")
    deceived = Answer.to(exchanged, identity, "ecdsa-key")
    other_node = Answer.to(invitation(), identity, "another-key")
    codes = {each.code for each in (true, thief, deceived, other_node)}
    assert len(codes) == 4


def test_a_roster_is_the_coordinators(tmp_path: Path) -> None:
    identity = Identity.generate()
    content = roster_of(NumberedPlan(7, "[plan]\n"), identity)
    assert read_roster(content, identity.public) == (7, "[plan]\n")
    with pytest.raises(LetterError, match="not signed by the coordinator"):
        read_roster(content, Identity.generate().public)
    for change in ({"plan": "[plan]\n# more\n"}, {"number": "8"}):
        changed = json.dumps(json.loads(content) | change).encode()
        with pytest.raises(LetterError, match="not signed by the coordinator"):
            read_roster(changed, identity.public)
    for number in ("", "-1", "07", "1e3", "9" * 19):
        changed = json.dumps(json.loads(content) | {"number": number}).encode()
        with pytest.raises(LetterError, match="number has 1 to 18 digits"):
            read_roster(changed, identity.public)


def test_the_rosters_code_covers_names_keys_and_settings(tmp_path: Path) -> None:
    study = Study.new(tmp_path)
    for site in "abc":
        study.admitted(site)
    text = study.plan.read_text()
    keys = {party.name: party.key for party in Plan.read(study.plan).parties}
    a, b = ((keys[name] or b"").hex() for name in "ab")
    swapped = text.replace(a, "first").replace(b, a).replace("first", b)
    texts = [
        text,
        text.replace('name = "a"', 'name = "d"'),
        text.replace("epsilon = 1.0", "epsilon = 2.0"),
        text.replace(a, Identity.generate().public.hex()),
        swapped,
    ]
    codes = [roster_code(Plan.parsed(each, "plan")) for each in texts]
    assert len(set(codes)) == len(texts)
