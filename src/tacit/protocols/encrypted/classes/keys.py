"""The keys of each class of a session, and what parties know of one class."""

from __future__ import annotations

from functools import cache

from tacit.crypto.homomorphic.keys import derived
from tacit.crypto.masking.field import MaskedValueError
from tacit.protocols.encrypted.masked.party import MaskedParty

CLASS = b"tacit masked evaluation 1 class "


def class_key(key: bytes, session: bytes, number: int) -> bytes:
    """The key of a class from one of the session, of 32 bytes.

    Labels of classes differ, so their keys are independent (HKDF-SHA256, RFC 5869).

    Examples
    --------
    >>> keys = {class_key(bytes(16), bytes(16), number) for number in range(200)}
    >>> len(keys)
    200
    """
    return derived(key, session, CLASS + number.to_bytes(4, "little"), 32)


def class_party(party: MaskedParty, number: int) -> MaskedParty:
    """What the parties know of one class: as of the session, under keys of the class.

    Parameters
    ----------
    party : of the session.
    number : of the class.
    """

    @cache
    def pairing(first: int, second: int) -> bytes:
        return class_key(party.pairing(first, second), party.session, number)

    secret = class_key(party.secret, party.session, number)
    return MaskedParty(party.scheme, secret, party.session, party.parties, pairing)


def pieces(message: bytes, count: int) -> list[bytes]:
    """The equal parts of a message, one a class.

    Raises
    ------
    MaskedValueError : for no bytes, or such as cannot be divided so.
    """
    if not isinstance(message, bytes):
        raise MaskedValueError(f"masked values travel as bytes, got {message!r:.40}")
    size, rest = divmod(len(message), count)
    if rest or not size:
        raise MaskedValueError(f"{len(message)} bytes are not those of {count} classes")
    return [message[start : start + size] for start in range(0, len(message), size)]
