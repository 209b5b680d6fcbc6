"""Identities sign; a roster knows whose signature it is."""

from __future__ import annotations

import pytest

from tacit.crypto.identities import ForgedError, Identity, Roster, UnknownClientError

ADA, BOB, EVE = (Identity.generate() for _ in range(3))
ROSTER = Roster((ADA.public, BOB.public))


def test_a_signature_is_verified_for_its_signer_and_message_only() -> None:
    signature = BOB.sign(b"message")
    ROSTER.verify(1, b"message", signature)
    for index, message, other in (
        (0, b"message", signature),
        (1, b"massage", signature),
        (1, b"message", EVE.sign(b"message")),
        (1, b"message", signature[:-1]),
        (1, b"message", b""),
    ):
        with pytest.raises(ForgedError, match=f"client {index}: no signature"):
            ROSTER.verify(index, message, other)


def test_a_roster_knows_its_members() -> None:
    assert [ROSTER.index_of(ADA), ROSTER.index_of(BOB), len(ROSTER)] == [0, 1, 2]
    with pytest.raises(UnknownClientError, match="not in the roster"):
        ROSTER.index_of(EVE)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ((ADA.public,), "from 2 to 65535 clients, got 1"),
        ((ADA.public, BOB.public[:-1]), "32 bytes, got 31 at 1"),
        ((ADA.public, BOB.public, ADA.public), "twice"),
    ],
)
def test_a_bad_roster_is_refused(keys: tuple[bytes, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Roster(keys)


def test_an_identity_is_read_back_and_never_printed() -> None:
    secret = ADA.to_bytes()
    assert Identity.from_bytes(secret).public == ADA.public
    assert secret.hex() not in repr(ADA)
    assert str(secret) not in repr(ADA)
    with pytest.raises(ValueError, match="32 secret bytes, got 31"):
        Identity.from_bytes(secret[:-1])
