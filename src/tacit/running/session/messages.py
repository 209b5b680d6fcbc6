"""Messages between a coordinator and its parties: signed, of one session, in order.

A message's signature covers what all sides agreed on, so that a message under another protocol,
another epsilon or another list of parties is refused. The coordinator and every party pin each
other's public keys beforehand: a relay can lose the messages, and read them where the
way is not encrypted, but neither change nor make one.

What parties announce before they compute together, signed by each for one query of one run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from hashlib import sha256
from typing import Any

from tacit.crypto.identities import SIGNATURE_BYTES, Identity, Roster, is_signed
from tacit.crypto.secure_sum.graph import check_min_clients, default_colluders
from tacit.privacy import composition
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol import values
from tacit.protocol.conversation import Protocol
from tacit.protocol.fields import MessageError
from tacit.protocol.steps import MAX_RECORDS, View
from tacit.running.units import check_plan_unit, default_unit
from tacit.wire import Header

VERSION = 2
SESSION_BYTES = 16
MARK_BYTES = 8
COORDINATOR = 2**32 - 1
"""The coordinator's index, besides the parties' 0, 1, 2, ..."""
KIND_POSITION = 5
"""Position of the kind in a message's bytes."""
SESSION_POSITION = slice(6, 6 + SESSION_BYTES)
"""Position of the session in a message's bytes."""
MARK_POSITION = slice(6 + SESSION_BYTES, 6 + SESSION_BYTES + MARK_BYTES)
"""Position of the first bytes of the agreement's digest in a message's bytes."""
MAX_BYTES = 2**31
MAX_SUMMAND = 2**44
"""Largest number that a party adds to a secure sum, unless another bound was agreed."""


class SignedMessageError(ValueError):
    """A message that is not accepted; nothing was done because of it."""


class MalformedMessageError(SignedMessageError):
    """Bytes that are not a message of this version: of another kind, cut short."""


HEAD = Header(
    b"TLET", VERSION, f"B{SESSION_BYTES}s{MARK_BYTES}sIII", "a message", MalformedMessageError
)
"""Kind, session, the first bytes of the agreement's digest, round, sender and receiver."""


class ForeignMessageError(SignedMessageError):
    """A message of another session or agreement, or to another receiver."""


class ForgedMessageError(SignedMessageError):
    """A message that its sender did not sign."""


class StaleMessageError(SignedMessageError):
    """A message out of order: late, early, or a second and different one."""


class Kind(IntEnum):
    """What a message holds."""

    ASK = 1
    SUM = 2
    ROUND = 3
    REPLY = 4
    DECLINE = 5
    RESTART = 6
    MPC = 7
    COMPUTE = 8


@dataclass(frozen=True)
class Agreement:
    """What coordinator and parties agreed on before, by a way that no one of them controls alone.

    Parameters
    ----------
    protocol : the protocol with its settings.
    parties : every party's public identity key, 32 bytes each, all different.
    coordinator : the coordinator's public identity key.
    min_clients : the least number of parties in a result and in a sum; 0 for all of them. Sums over
        different parties show what a single party added.
    largest : the largest magnitude of a number that a party adds to a secure sum, with its noise.
    colluders : how many parties may collude with a coordinator that lies; None takes a fifth of
        them, rounded up, and none of two.
    unit : in what the protocol takes scores; empty for its default.
    per_person : the most records of a person that count at a party. The protocol then has the
        budget of one of them (``tacit.running.spending``), and costs are a person's; 0 where they
        are a record's.
    most_records : the records of a party for which sums have room. A party with more is counted as
        far as there is room; fewer mean shorter messages.

    Raises
    ------
    ValueError : for no party, a key of another size or that appears twice, a ``min_clients``
        that is not from 1 to the number of parties, ``colluders`` that leave no two others, a unit
        that does not suit the protocol, ``most_records`` out of range, or, where the protocol sums,
        fewer parties than must certify a sum.
    """

    protocol: Protocol
    parties: tuple[bytes, ...]
    coordinator: bytes
    min_clients: int = 0
    largest: int = MAX_SUMMAND
    colluders: int | None = None
    unit: str = ""
    per_person: int = 0
    most_records: int = MAX_RECORDS

    def __post_init__(self) -> None:
        if self.per_person != 0:
            composition.check_per_person(self.per_person)
        if self.min_clients == 0:
            object.__setattr__(self, "min_clients", len(self.parties))
        Roster.check_keys((*self.parties, self.coordinator), "agreement")
        if not 1 <= self.min_clients <= len(self.parties):
            raise ValueError(
                f"min_clients must be from 1 to {len(self.parties)}, got {self.min_clients}"
            )
        if not self.unit:
            object.__setattr__(self, "unit", default_unit(self.protocol))
        check_plan_unit(self.protocol, self.unit)
        most = max(len(self.parties) - 2, 0)
        if self.colluders is not None and not 0 <= self.colluders <= most:
            raise ValueError(f"colluders must be from 0 to {most}, got {self.colluders}")
        if not 1 <= self.most_records <= MAX_RECORDS:
            raise ValueError(
                f"most_records must be from 1 to {MAX_RECORDS}, got {self.most_records}"
            )
        check_certified(self.protocol, len(self.parties), self.bears, self.min_clients)

    @property
    def bears(self) -> int:
        """The number of parties that may collude with the coordinator."""
        return default_colluders(len(self.parties)) if self.colluders is None else self.colluders

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything agreed; some settings are among it where they are no default."""
        terms: dict[str, Any] = {
            "protocol": {"name": self.protocol.name, **self.protocol.settings},
            "parties": [key.hex() for key in self.parties],
            "coordinator": self.coordinator.hex(),
            "min_clients": self.min_clients,
            "largest": self.largest,
        }
        if self.bears != default_colluders(len(self.parties)):
            terms["colluders"] = self.bears
        if self.unit != default_unit(self.protocol):
            terms["unit"] = self.unit
        if self.per_person:
            terms["per_person"] = self.per_person
        if self.most_records != MAX_RECORDS:
            terms["most_records"] = self.most_records
        return sha256(json.dumps(terms, sort_keys=True, default=repr).encode()).digest()


def check_certified(protocol: Protocol, parties: int, colluders: int, min_clients: int) -> None:
    """Refuse a protocol of secure sums over fewer parties than must certify one.

    Raises
    ------
    ValueError : when ``min_clients`` is below ``certificate_size``.
    """
    if parties > 1 and any(step.view_under(protocol) is View.SUM for step in protocol.steps):
        check_min_clients(parties, colluders, min_clients)


@dataclass(frozen=True)
class SignedMessage:
    """One message of a session.

    Parameters
    ----------
    kind : what it holds.
    session : 16 bytes that name the run.
    round : its number in the run; a reply has the round of the message that it answers.
    sender : a party's index, or ``COORDINATOR``.
    receiver : likewise.
    body : what ``kind`` says.
    """

    kind: Kind
    session: bytes
    round: int
    sender: int
    receiver: int
    body: bytes

    def signed(self, agreement: Agreement, identity: Identity) -> bytes:
        """The message as signed bytes."""
        mark = agreement.digest[:MARK_BYTES]
        head = HEAD.pack(self.kind, self.session, mark, self.round, self.sender, self.receiver)
        return head + self.body + identity.sign(_bytes_to_sign(agreement, head, self.body))


def verified(message: bytes, agreement: Agreement, sender: int, receiver: int) -> SignedMessage:
    """The message in signed bytes.

    Parameters
    ----------
    message : what ``SignedMessage.signed`` gave.
    agreement : what the reader agreed to.
    sender : whom it must come from.
    receiver : who reads it.

    Raises
    ------
    MalformedMessageError : for bytes that are not a message of this version.
    ForeignMessageError : for a message under another agreement, of another sender or receiver.
    ForgedMessageError : for a message that the sender did not sign.

    Examples
    --------
    >>> from tacit import ExactAUC
    >>> ada, centre = Identity.generate(), Identity.generate()
    >>> agreement = Agreement(ExactAUC(), (ada.public,), centre.public)
    >>> reply = SignedMessage(Kind.REPLY, bytes(16), 0, 0, COORDINATOR, b"hello")
    >>> verified(reply.signed(agreement, ada), agreement, 0, COORDINATOR).body
    b'hello'
    >>> verified(reply.signed(agreement, centre), agreement, 0, COORDINATOR)
    Traceback (most recent call last):
    tacit.running.session.messages.ForgedMessageError: this message was not signed by party 0
    """
    if not HEAD.size + SIGNATURE_BYTES <= len(message) <= MAX_BYTES:
        raise MalformedMessageError(
            f"a message has from {HEAD.size + SIGNATURE_BYTES} to {MAX_BYTES} bytes, "
            f"got {len(message)}"
        )
    head, signature = message[: HEAD.size], message[-SIGNATURE_BYTES:]
    body = message[HEAD.size : -SIGNATURE_BYTES]
    kind, session, mark, number, named_sender, named_receiver = HEAD.unpack(head)
    if kind not in list(Kind):
        raise MalformedMessageError(f"unknown kind of message {kind}")
    if mark != agreement.digest[:MARK_BYTES]:
        raise ForeignMessageError(
            "this message belongs to another agreement: protocol, settings, parties and "
            "coordinator must be the same on all sides"
        )
    if (named_sender, named_receiver) != (sender, receiver):
        raise ForeignMessageError(
            f"this message is from {name_of(named_sender)} to {name_of(named_receiver)}"
        )
    signed = _bytes_to_sign(agreement, head, body)
    key = agreement.coordinator if sender == COORDINATOR else agreement.parties[sender]
    if not is_signed(key, signed, signature):
        raise ForgedMessageError(f"this message was not signed by {name_of(sender)}")
    return SignedMessage(Kind(kind), session, number, named_sender, named_receiver, body)


def name_of(index: int) -> str:
    """The name of a party or of the coordinator in errors."""
    return "the coordinator" if index == COORDINATOR else f"party {index}"


def _bytes_to_sign(agreement: Agreement, head: bytes, body: bytes) -> bytes:
    return b"tacit letter 1" + agreement.digest + head + sha256(body).digest()


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
    content = values.encode_values({"public": dict(public), "offer": dict(offer)})
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
    if not is_signed(agreement.parties[party], _signed(name, party, content), signature):
        raise MessageError(f"the announcement of party {party} is not signed by it for this query")
    return values.named_values(content, public=dict, offer=dict)


def read_members(body: bytes, parties: int) -> tuple[bytes, tuple[int, ...]]:
    """The query and the members of a message that begins a computation.

    Raises
    ------
    MessageError : for other bytes, fewer than two members, or members out of order.
    """
    content = values.named_values(body, ask=bytes, members=tuple)
    members = content["members"]
    known = all(type(member) is int and 0 <= member < parties for member in members)
    if not known or len(members) < 2 or list(members) != sorted(set(members)):
        raise MessageError(f"members of a computation must be ascending, got {members!r:.60}")
    return content["ask"], members


def read_all(
    agreement: Agreement, name: bytes, members: Sequence[int], body: bytes
) -> list[dict[str, Any]]:
    """All members' announcements, in order.

    Raises
    ------
    MessageError : for another number of them, or one that its party did not sign for this query.
    """
    announcements = values.named_values(body, announcements=list)["announcements"]
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


def cost_values(cost: Cost) -> dict[str, Any]:
    """A cost as values that can be sent."""
    adjacency = None if cost.adjacency is None else cost.adjacency.value
    return {"epsilon": cost.epsilon, "delta": cost.delta, "adjacency": adjacency, "rho": cost.rho}


def cost_of(values: dict[str, Any]) -> Cost:
    """The cost that ``cost_values`` gave.

    Raises
    ------
    MessageError : for values that are no cost.
    """
    try:
        adjacency = None if values["adjacency"] is None else Adjacency(values["adjacency"])
        rho = None if values["rho"] is None else float(values["rho"])
        return Cost(float(values["epsilon"]), float(values["delta"]), adjacency, rho)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise MessageError(f"not a cost: {error}") from None
