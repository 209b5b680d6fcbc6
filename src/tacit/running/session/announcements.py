"""What parties announce before they compute together, signed by each for one query of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from tacit.crypto.identities import Identity
from tacit.protocol.encoding.fields import MessageError
from tacit.protocol.encoding.values import encode_values, named_values
from tacit.running.session.messages import Agreement, is_signed

NAME_BYTES = 16

Announced = tuple[bytes, bytes]
"""An announcement and its signature."""


def query_name(agreement: Agreement, session: bytes, query: bytes) -> bytes:
    """What names one query of one run: all that parties who compute together must agree on.

    Parameters
    ----------
    agreement : what was agreed.
    session : the run.
    query : the body of the message that asks; it names the members and holds the whole query.
    """
    whole = b"tacit computation 1" + agreement.digest + session + sha256(query).digest()
    return sha256(whole).digest()


def announced(
    name: bytes, party: int, identity: Identity, public: Mapping[str, Any], offer: Mapping[str, Any]
) -> Announced:
    """A party's announcement for one query, as bytes, with its signature."""
    content = encode_values({"public": dict(public), "offer": dict(offer)})
    return content, identity.sign(_signed(name, party, content))


def read_announcement(
    agreement: Agreement, name: bytes, party: int, announcement: Announced
) -> dict[str, Any]:
    """What a party announced: how it is reached, and what its program offered.

    Raises
    ------
    MessageError : for bytes that the party did not sign for this query.
    """
    content, signature = announcement
    if not is_signed(agreement.parties[party], signature, _signed(name, party, content)):
        raise MessageError(f"the announcement of party {party} is not signed by it for this query")
    return named_values(content, public=dict, offer=dict)


def read_members(body: bytes, parties: int) -> tuple[bytes, tuple[int, ...]]:
    """The query and the members of a message that begins a computation.

    Raises
    ------
    MessageError : for other bytes, fewer than two members, or members out of order.
    """
    content = named_values(body, ask=bytes, members=tuple)
    members = content["members"]
    known = all(type(member) is int and 0 <= member < parties for member in members)
    if not known or len(members) < 2 or list(members) != sorted(set(members)):
        raise MessageError(f"members of a computation must be ascending, got {members!r:.60}")
    return content["ask"], members


def computation_name(name: bytes) -> str:
    """A query's name as text, short enough for a path."""
    return name[:NAME_BYTES].hex()


def read_all(
    agreement: Agreement, name: bytes, members: Sequence[int], body: bytes
) -> list[dict[str, Any]]:
    """All members' announcements, in order.

    Raises
    ------
    MessageError : for another number of them, or one that its party did not sign for this query.
    """
    announcements = named_values(body, announcements=list)["announcements"]
    if len(announcements) != len(members):
        raise MessageError(f"{len(members)} announcements are needed, got {len(announcements)}")
    for each in announcements:
        if not (isinstance(each, tuple) and [type(part) for part in each] == [bytes, bytes]):
            raise MessageError("an announcement comes with its signature")
    return [
        read_announcement(agreement, name, member, each)
        for member, each in zip(members, announcements, strict=True)
    ]


def _signed(name: bytes, party: int, content: bytes) -> bytes:
    return name + party.to_bytes(4, "little") + sha256(content).digest()
