"""Invitations, answers and rosters as files: what fits, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.identities import Identity
from tacit.running.deployment import letters
from tacit.running.session.plan_file import Plan
from tacit.running.session.toml_source import PlanError
from tests.running.deployment.joining.studies import Study, quick_codes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_codes(monkeypatch)


def invited(secret: bytes = b"s" * 32) -> letters.Invitation:
    return letters.Invitation("a", "h.example:8443", "PEM", b"c" * 32, "[plan]\n", secret)


@pytest.fixture
def true() -> letters.Answer:
    return letters.Answer.to(invited(), Identity.generate(), "ecdsa-key")


def test_files_read_back_as_they_were(true: letters.Answer) -> None:
    assert letters.Invitation.of_bytes(invited().to_bytes()) == invited()
    assert letters.Answer.of_bytes(true.to_bytes()) == true
    true.check(invited())


@given(st.binary(max_size=200))
def test_no_bytes_make_an_invitation_by_chance(content: bytes) -> None:
    with pytest.raises(letters.LetterError):
        letters.Invitation.of_bytes(content)


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
def test_changed_invitations(change: Callable[[dict[str, object]], object], reason: str) -> None:
    fields = json.loads(invited().to_bytes())
    change(fields)
    with pytest.raises(letters.LetterError, match=reason):
        letters.Invitation.of_bytes(json.dumps(fields).encode())


@pytest.mark.parametrize("kind", [letters.Invitation, letters.Answer])
@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"kind":' * 30_000, b"[" * (2**20 + 1), b"", rb'{"kind": "tacit-\ud800"}'],
)
def test_a_file_that_is_no_letter_is_refused(
    kind: type[letters.Invitation] | type[letters.Answer], content: bytes
) -> None:
    """Also one that is nested so deeply that it cannot be read: it came by mail."""
    with pytest.raises(letters.LetterError, match=r"holds no (invitation|answer) of tacit"):
        kind.of_bytes(content)


def test_a_plan_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(PlanError, match="the invitation's plan: maximum recursion depth"):
        Plan.parsed(f"a = {'[' * 5000}", "the invitation's plan")


@pytest.mark.parametrize("field", ["identity", "node_key", "signature", "proof"])
def test_an_answer_that_was_changed_on_its_way_is_refused(true: letters.Answer, field: str) -> None:
    other = letters.Answer.to(invited(), Identity.generate(), "another-key")
    with pytest.raises(letters.LetterError):
        dataclasses.replace(true, **{field: getattr(other, field)}).check(invited())


def test_an_answer_needs_the_secret_of_its_invitation() -> None:
    """One who knows everything but the secret: the digest alone makes no proof."""
    true, guessed = invited(), invited(secret=b"g" * 32)
    identity = Identity.generate()
    forged = letters.Answer.to(guessed, identity, "ecdsa-key")
    with pytest.raises(letters.LetterError, match="not to the invitation"):
        forged.check(true)
    with pytest.raises(letters.LetterError, match="made without its file"):
        dataclasses.replace(forged, invitation=true.digest).check(true)


def test_the_code_covers_invitation_and_keys(true: letters.Answer) -> None:
    """A thief of the invitation, and an exchanged invitation: each shows in the code."""
    exchanged = dataclasses.replace(invited(), authority="another PEM").digest
    changes: dict[str, Any] = {
        "identity": Identity.generate().public,
        "invitation": exchanged,
        "node_key": "x",
    }
    others = [dataclasses.replace(true, **{field: value}) for field, value in changes.items()]
    assert len({each.code for each in (true, *others)}) == 4


def test_a_roster_is_the_coordinators(tmp_path: Path) -> None:
    identity = Identity.generate()
    content = letters.roster_of(letters.NumberedPlan(7, "[plan]\n", "PEM"), identity)
    assert letters.read_roster(content, identity.public) == (7, "[plan]\n", "PEM")
    with pytest.raises(letters.LetterError, match="not signed by the coordinator"):
        letters.read_roster(content, Identity.generate().public)
    for change in ({"plan": "[plan]\n# more\n"}, {"number": "8"}, {"authority": ""}):
        changed = json.dumps(json.loads(content) | change).encode()
        with pytest.raises(letters.LetterError, match="not signed by the coordinator"):
            letters.read_roster(changed, identity.public)
    for number in ("", "-1", "07", "1e3", "9" * 19):
        changed = json.dumps(json.loads(content) | {"number": number}).encode()
        with pytest.raises(letters.LetterError, match="number has 1 to 18 digits"):
            letters.read_roster(changed, identity.public)


def test_the_rosters_code_covers_names_keys_and_settings(tmp_path: Path) -> None:
    study = Study.new(tmp_path)
    study.complete()
    text = study.plan.read_text()
    a, b, _ = ((party.key or b"").hex() for party in Plan.read(study.plan).parties)
    texts = [
        text,
        text.replace('name = "a"', 'name = "d"'),
        text.replace("epsilon = 1.0", "epsilon = 2.0"),
        text.replace(a, Identity.generate().public.hex()),
        text.replace(a, "first").replace(b, a).replace("first", b),
    ]
    assert len({letters.roster_code(Plan.parsed(each, "plan")) for each in texts}) == len(texts)
