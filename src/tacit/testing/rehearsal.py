"""Runs a protocol through real messages on one machine, with a script of faults.

Every party is a separate object, with its own records, noise and keys; coordinator and parties
exchange signed bytes and nothing else, and sums are secure sums. What a deployment sends, this
sends; only the wires are missing, and the script says what happens on them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from tacit.crypto.identities import Identity
from tacit.data.clients import Clients
from tacit.privacy.noise import NoiseSource, SystemNoise
from tacit.protocol.conversation import Protocol
from tacit.protocol.steps import MAX_RECORDS, ClientState
from tacit.running.mpc.transport import Transport
from tacit.running.session import messages
from tacit.running.session.coordinator import Coordinator, LostPartyError, RunError
from tacit.running.session.debits import Guard, unrecorded
from tacit.running.session.party import Party
from tacit.running.simulation import Run
from tacit.running.spending import per_record
from tacit.running.units import chosen_settings, default_unit, suited
from tacit.testing.room import Room

Action = Literal["drop", "delay", "duplicate", "reorder", "truncate", "flip", "replay"]
ACTIONS: tuple[Action, ...] = get_args(Action)
COPIES: Mapping[Action, int] = {"drop": 0, "delay": 0, "duplicate": 2}
"""How often a message arrives at once under an action, if not once."""
Forge = Callable[[int, messages.Kind, bytes], bytes]
"""A dishonest coordinator: a function of the party's index, the kind of message and its honest
body; it returns the body that the coordinator signs and sends instead."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong on the way.

    Parameters
    ----------
    action : ``"drop"`` loses a message; ``"delay"`` delivers it after its round was closed;
        ``"duplicate"`` delivers it twice; ``"reorder"`` delivers the round's messages in reverse;
        ``"truncate"`` cuts its second half off; ``"flip"`` inverts one bit; ``"replay"`` delivers
        the message of the same round of an older rehearsal.
    party : whose message.
    round : of which round, from 0.
    way : ``"up"`` for replies to the coordinator, ``"down"`` for its messages.
    bit : which bit is inverted, counted from the message's first; it wraps around.
    times : how many attempts at delivery it meets.
    """

    action: Action
    party: int
    round: int
    way: Literal["up", "down"] = "up"
    bit: int = 600
    times: int = 1

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"action must be one of {ACTIONS}, got {self.action!r}")


@dataclass(frozen=True)
class Refusal:
    """A message that was not accepted.

    Parameters
    ----------
    round : of which round.
    party : the party that sent or should have received it.
    way : ``"up"`` when the coordinator refused it, ``"down"`` when the party did.
    reason : the error.
    """

    round: int
    party: int
    way: str
    reason: messages.SignedMessageError


@dataclass(frozen=True, eq=False, kw_only=True)
class Rehearsal(Run):
    """A run by messages.

    Parameters
    ----------
    members : the parties whose data are in the result.
    declined : parties that declined, with their public reasons.
    repeats : what was tried again at a cost, in sentences.
    refusals : messages that were not accepted, in order.
    messages : every message as it was sent, by way, round and party, for a replay.
    """

    members: tuple[int, ...]
    declined: dict[int, str]
    repeats: tuple[str, ...]
    refusals: tuple[Refusal, ...]
    messages: dict[tuple[str, int, int], bytes] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Keys:
    """The signing keys of the coordinator and all parties.

    Parameters
    ----------
    parties : one a client.
    coordinator : the coordinator's.
    """

    parties: tuple[Identity, ...]
    coordinator: Identity

    @classmethod
    def generate(cls, parties: int) -> Keys:
        """New keys for this number of parties."""
        return cls(tuple(Identity.generate() for _ in range(parties)), Identity.generate())

    def agreement(
        self, protocol: Protocol, min_clients: int = 0, per_person: int = 0, **terms: Any
    ) -> messages.Agreement:
        """What the owners of these keys agree on; other terms are those of an ``Agreement``."""
        public = tuple(identity.public for identity in self.parties)
        keys = public, self.coordinator.public
        terms |= {"per_person": per_person}
        return messages.Agreement(per_record(protocol, per_person), *keys, min_clients, **terms)


def rehearse(
    clients: Clients,
    protocol: Protocol,
    faults: Sequence[Fault] = (),
    *,
    noise: Callable[[int], NoiseSource] | None = None,
    state: Sequence[ClientState] | None = None,
    guards: Sequence[Guard] | None = None,
    forge: Forge | None = None,
    older: Rehearsal | None = None,
    keys: Keys | None = None,
    min_clients: int = 0,
    colluders: int | None = None,
    retries: int = 0,
    on_loss: Literal["fail", "restart"] = "fail",
    restarts: bool = False,
    unit: str = "",
    units: Sequence[str | None] | None = None,
    transport: Transport | None = None,
    per_person: int = 0,
    most_records: int = MAX_RECORDS,
) -> Rehearsal:
    """Run a protocol by messages between isolated parties.

    Parameters
    ----------
    clients : all clients; each becomes a party that holds its own records only.
    protocol : the protocol that all agree on.
    faults : what goes wrong.
    noise : the noise source of each party, by its index; exact noise from the system by default.
    state : the client state of each party, from earlier runs.
    guards : each party's ledger.
    forge : a dishonest coordinator.
    older : an earlier rehearsal, whose messages ``"replay"`` delivers; it needs the same ``keys``.
    keys : all signing keys; new ones by default.
    min_clients : parties without whom there is no result; 0 takes all of them.
    colluders : parties that may collude with the coordinator; None takes a fifth of them.
    retries : how often a message that went unanswered is sent again.
    on_loss : what happens when a party leaves after other answers have come to depend on it, or
        when too few parties are left for a sum. The run fails; or the run begins again without the
        party, or the sum among those who still answer. Every party's ledger records that cost.
    restarts : whether every party is stopped after each message, and resumes from its stored state.
    unit : in what the protocol takes scores, as a plan names it; empty for its default. This unit,
        or else the one that the clients name, decides where a protocol that counts scores in cells
        has them, unless a setting of the protocol does.
    units : what each party's own file says that its scores are; by default what the clients name,
        or else the plan's.
    transport : where parties meet that compute together; by default a room of this process.
    per_person : the most records of a person that count at a party, where the protocol's budget is
        a person's; the clients then say whose records they are.
    most_records : the records of a party for which sums have room.

    Raises
    ------
    RunError : when there is no result; ``refusals`` of the error says what was not accepted.

    Examples
    --------
    >>> import tacit
    >>> scores, labels = tacit.binormal_scores(300, 700, 0.8, seed=0)
    >>> clients = tacit.Clients.split(scores, labels, clients=4, seed=0)
    >>> lost = [Fault("drop", party=2, round=0)]
    >>> protocol = tacit.ScoreHistogram("secure-sum(dropouts=0.25)", 1.0)
    >>> rehearse(clients, protocol, lost, min_clients=3).members
    (0, 1, 3)
    """
    everyone = Keys.generate(clients.count) if keys is None else keys
    agreed = unit or clients.unit or default_unit(protocol)
    protocol = suited(protocol, agreed, chosen_settings(protocol))
    terms = {"colluders": colluders, "unit": unit, "most_records": most_records}
    agreement = everyone.agreement(protocol, min_clients, per_person, **terms)
    stage = _Stage(agreement, everyone, tuple(faults), forge, older, restarts)
    room = Room() if transport is None else transport
    sources = noise or (lambda _: SystemNoise())
    ledgers = [unrecorded] * clients.count if guards is None else guards
    kept = [None] * clients.count if state is None else state
    scored = [clients.unit or agreement.unit] * clients.count if units is None else units
    parties = {
        k: Party(k, key, agreement, clients.part(k, k + 1), sources(k), guard, notes, unit, room)
        for k, (key, guard, notes, unit) in enumerate(
            zip(everyone.parties, ledgers, kept, scored, strict=True)
        )
    }
    try:
        coordinator = _carried(stage, parties, retries, on_loss == "restart")
    except RunError as error:
        error.refusals = tuple(stage.refusals)
        raise
    return Rehearsal(
        coordinator.server_result,
        coordinator.most_spent,
        coordinator.queries,
        stage.sent,
        members=coordinator.active,
        declined=coordinator.declined,
        repeats=coordinator.repeats,
        refusals=tuple(stage.refusals),
        messages=stage.messages,
    )


def _carried(stage: _Stage, parties: dict[int, Party], retries: int, restart: bool) -> Coordinator:
    """The coordinator at the end of the run; where parties are lost, of the run without them."""
    coordinator = Coordinator(stage.agreement, stage.keys.coordinator, restarts=restart)
    while True:
        try:
            stage.carry(coordinator, parties, retries)
        except LostPartyError as error:
            coordinator = coordinator.without(error)
            parties = {index: parties[index].next_run() for index in coordinator.active}
            continue
        return coordinator


@dataclass(eq=False)
class _Stage:
    """The wires between a coordinator and parties, and what happens on them."""

    agreement: messages.Agreement
    keys: Keys
    faults: tuple[Fault, ...]
    forge: Forge | None
    older: Rehearsal | None
    restarts: bool

    def __post_init__(self) -> None:
        self._left = [fault.times for fault in self.faults]
        self._late: list[tuple[str, int, bytes]] = []
        self._round = 0
        self._wires = threading.Lock()
        self.refusals: list[Refusal] = []
        self.messages: dict[tuple[str, int, int], bytes] = {}
        self.sent = np.zeros(len(self.agreement.parties), dtype=np.int64)

    def carry(self, coordinator: Coordinator, parties: dict[int, Party], retries: int) -> None:
        """A whole run."""
        asked, self._round = coordinator.open(), 0
        while asked:
            for _ in range(1 + retries):
                self._deliver(coordinator, parties, asked)
            asked = coordinator.close()
            late, self._late = self._late, []
            for way, index, message in late:
                if way == "down" and index in parties:
                    self._down(coordinator, parties[index], index, message)
                elif way == "up":
                    self._up(coordinator, index, message)
            self._round += 1

    def _deliver(
        self, coordinator: Coordinator, parties: dict[int, Party], asked: dict[int, bytes]
    ) -> None:
        """Every message that has not been answered."""
        order = [index for index in asked if index in coordinator.waiting]
        if any(self._met(way, index, reorder=True) for way in ("up", "down") for index in order):
            order.reverse()
        signed = {index: self._forged(index, asked[index]) for index in order}

        def visit(index: int) -> None:
            with self._wires:
                arriving = self._on_the_way("down", index, signed[index])
            for arrived in arriving:
                self._down(coordinator, parties[index], index, arrived)
                if self.restarts:
                    parties[index] = parties[index].restarted()

        kinds = {message[messages.KIND_POSITION] for message in signed.values()}
        # parties that compute wait for each other
        at_once = len(order) if messages.Kind.COMPUTE in kinds else 1
        with ThreadPoolExecutor(max(at_once, 1)) as threads:
            list(threads.map(visit, order))

    def _down(self, coordinator: Coordinator, party: Party, index: int, message: bytes) -> None:
        try:
            reply = party.answer(message)
        except messages.SignedMessageError as error:
            with self._wires:
                self.refusals.append(Refusal(self._round, index, "down", error))
            return
        with self._wires:
            for arrived in self._on_the_way("up", index, reply):
                self._up(coordinator, index, arrived)

    def _up(self, coordinator: Coordinator, index: int, message: bytes) -> None:
        self.sent[index] += len(message)
        try:
            coordinator.receive(index, message)
        except messages.SignedMessageError as error:
            self.refusals.append(Refusal(self._round, index, "up", error))

    def _on_the_way(self, way: str, index: int, message: bytes) -> list[bytes]:
        """The copies of a message that arrive now."""
        self.messages[way, self._round, index] = message
        arrived = [message]
        for fault in self._met(way, index):
            if fault.action == "delay":
                self._late += [(way, index, delayed) for delayed in arrived]
            copies = arrived * COPIES.get(fault.action, 1)
            arrived = [self._damaged(fault, copied) for copied in copies]
        return arrived

    def _met(self, way: str, index: int, reorder: bool = False) -> list[Fault]:
        """The faults of the script that happen now; each loses one of its ``times``."""
        met = []
        for number, fault in enumerate(self.faults):
            here = (fault.way, fault.party, fault.round) == (way, index, self._round)
            if here and self._left[number] and (fault.action == "reorder") is reorder:
                self._left[number] -= 1
                met.append(fault)
        return met

    def _damaged(self, fault: Fault, message: bytes) -> bytes:
        if fault.action == "truncate":
            return message[: len(message) // 2]
        if fault.action == "flip":
            changed = bytearray(message)
            changed[fault.bit // 8 % len(message)] ^= 1 << fault.bit % 8
            return bytes(changed)
        if fault.action == "replay" and self.older is not None:
            return self.older.messages[fault.way, self._round, fault.party]
        return message

    def _forged(self, index: int, message: bytes) -> bytes:
        """What a dishonest coordinator sends and signs."""
        if self.forge is None:
            return message
        honest = messages.verified(message, self.agreement, messages.COORDINATOR, index)
        body = self.forge(index, honest.kind, honest.body)
        return replace(honest, body=body).signed(self.agreement, self.keys.coordinator)
