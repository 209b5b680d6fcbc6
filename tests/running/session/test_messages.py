"""Messages: signed, of one agreement, and nothing else is accepted."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import DPAUC, FedAUC, ScoreHistogram
from tacit.crypto.identities import Identity
from tacit.running.session import messages

ADA, BOB, CENTRE = (Identity.generate() for _ in range(3))
AGREED = messages.Agreement(DPAUC(1.0), (ADA.public, BOB.public), CENTRE.public, min_clients=2)
MESSAGE = messages.SignedMessage(
    messages.Kind.REPLY, bytes(16), 3, 0, messages.COORDINATOR, b"a body"
)
SIGNED = MESSAGE.signed(AGREED, ADA)


TEN = tuple(Identity.generate().public for _ in range(10))


def agreed(parties: tuple[bytes, ...] = AGREED.parties, **terms: Any) -> messages.Agreement:
    """An agreement of these parties, and of the usual terms but for those that are named."""
    usual: dict[str, Any] = {"protocol": DPAUC(1.0), "coordinator": CENTRE.public}
    return messages.Agreement(parties=parties, **(usual | terms))


@settings(max_examples=200)
@given(st.integers(0, len(SIGNED) - 1), st.integers(1, 255))
def test_every_changed_byte_is_noticed(index: int, change: int) -> None:
    message = bytearray(SIGNED)
    message[index] ^= change
    with pytest.raises(messages.SignedMessageError):
        messages.verified(bytes(message), AGREED, 0, messages.COORDINATOR)


@given(st.binary(max_size=300))
def test_random_bytes_are_no_letter(message: bytes) -> None:
    with pytest.raises(messages.SignedMessageError):
        messages.verified(message, AGREED, 0, messages.COORDINATOR)
    with pytest.raises(messages.SignedMessageError):
        messages.verified(SIGNED[: messages.HEAD.size] + message, AGREED, 0, messages.COORDINATOR)


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": DPAUC(1.1)},
        {"protocol": FedAUC(1.0)},
        {"min_clients": 1},
        {"largest": 5},
        {"parties": (BOB.public, ADA.public)},
    ],
)
def test_a_letter_under_other_terms_is_foreign(change: dict[str, Any]) -> None:
    with pytest.raises(messages.ForeignMessageError, match="another agreement"):
        terms = agreed(**({"min_clients": 2} | change))
        messages.verified(SIGNED, terms, 0, messages.COORDINATOR)


def test_a_letter_of_or_to_somebody_else_is_foreign() -> None:
    with pytest.raises(messages.ForeignMessageError, match="from party 0 to the coordinator"):
        messages.verified(SIGNED, AGREED, 1, messages.COORDINATOR)
    with pytest.raises(messages.ForeignMessageError):
        messages.verified(SIGNED, AGREED, 0, 1)


def test_a_letter_signed_by_somebody_else_is_forged() -> None:
    with pytest.raises(messages.ForgedMessageError, match="not signed by party 0"):
        messages.verified(MESSAGE.signed(AGREED, BOB), AGREED, 0, messages.COORDINATOR)


def test_another_version_and_an_unknown_kind_are_refused_by_name() -> None:
    with pytest.raises(messages.MalformedMessageError, match="version must be 2, got 1"):
        messages.verified(SIGNED[:4] + b"\x01" + SIGNED[5:], AGREED, 0, messages.COORDINATOR)
    with pytest.raises(messages.MalformedMessageError, match="unknown kind of message 99"):
        messages.verified(SIGNED[:5] + b"\x63" + SIGNED[6:], AGREED, 0, messages.COORDINATOR)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"parties": (ADA.public, ADA.public)}, "appears twice"),
        ({"parties": (b"short",)}, "32 bytes, got 5"),
        ({"min_clients": 3}, "min_clients must be from 1 to 2, got 3"),
        ({"min_clients": -1}, "min_clients must be from 1 to 2, got -1"),
        ({"colluders": 1}, "colluders must be from 0 to 0, got 1"),
        ({"colluders": -1}, "colluders must be from 0 to 0, got -1"),
    ],
)
def test_an_agreement_is_checked(change: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        agreed(**change)


@pytest.mark.parametrize(
    ("colluders", "needed"), [(None, 7), (0, 6), (2, 7), (3, 7), (4, 8), (8, 10)]
)
def test_sums_need_as_many_parties_as_certify_them(colluders: int | None, needed: int) -> None:
    """A protocol in which each party's reply is seen alone needs no certificate."""
    histogram = ScoreHistogram("secure-sum", 1.0)
    terms: dict[str, Any] = {"protocol": histogram, "colluders": colluders}
    assert agreed(TEN, **terms, min_clients=needed).min_clients == needed
    sentence = (
        f"min_clients must be at least {needed} of 10 clients of which "
        f"{2 if colluders is None else colluders} may collude, got {needed - 1}"
    )
    with pytest.raises(ValueError, match=sentence):
        agreed(TEN, **terms, min_clients=needed - 1)
    assert agreed(TEN, colluders=colluders, min_clients=1).min_clients == 1


def test_colluders_are_agreed_and_the_default_is_as_if_none_was_named() -> None:
    """So that what was agreed before there was a number keeps its name."""
    assert agreed(TEN).bears == 2
    assert agreed(TEN, colluders=2).digest == agreed(TEN).digest
    assert len({agreed(TEN, colluders=number).digest for number in range(9)}) == 9
    before = {
        "protocol": {"name": "dpauc", **DPAUC(1.0).settings},
        "parties": [key.hex() for key in TEN],
        "coordinator": CENTRE.public.hex(),
        "min_clients": 10,
        "largest": 2**44,
    }
    text = json.dumps(before, sort_keys=True, default=repr)
    assert agreed(TEN).digest == sha256(text.encode()).digest()
