"""Runs a protocol through real letters on one machine, with a script of faults.

Every party is an object of its own, with its own records, noise and keys; coordinator and parties
exchange signed bytes and nothing else, and sums are secure sums. What a deployment sends, this
sends; only the wires are missing, and the script says what happens on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tacit.crypto.identities import Identity
from tacit.data.clients import Clients
from tacit.privacy.cost import most
from tacit.privacy.noise import NoiseSource, SystemNoise
from tacit.protocols.conversation import Memory, Protocol
from tacit.running.coordinator import SUM_ATTEMPTS, Coordinator, LostPartyError, RunError
from tacit.running.debits import Guard, unrecorded
from tacit.running.letters import (
    COORDINATOR,
    Agreement,
    Kind,
    LetterError,
    opened,
)
from tacit.running.party import Party
from tacit.running.simulation import Run

Action = Literal["drop", "delay", "duplicate", "reorder", "truncate", "flip", "replay"]
ACTIONS: tuple[Action, ...] = (
    "drop",
    "delay",
    "duplicate",
    "reorder",
    "truncate",
    "flip",
    "replay",
)
Forge = Callable[[int, Kind, bytes], bytes]
"""What a dishonest coordinator sends a party instead: from the party's place, the kind of letter
and its honest body, the body that it signs."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong on the way.

    Parameters
    ----------
    action : ``"drop"`` loses a letter; ``"delay"`` delivers it after its leg was closed;
        ``"duplicate"`` delivers it twice; ``"reorder"`` delivers the leg's letters in reverse;
        ``"truncate"`` cuts its second half off; ``"flip"`` inverts one bit; ``"replay"`` delivers
        the letter of the same turn of an older rehearsal.
    party : whose letter.
    turn : of which leg, from 0.
    way : ``"up"`` for replies to the coordinator, ``"down"`` for its letters.
    bit : which bit is inverted, counted from the letter's first; it wraps around.
    times : how many attempts at delivery it meets.
    """

    action: Action
    party: int
    turn: int
    way: Literal["up", "down"] = "up"
    bit: int = 600
    times: int = 1

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"action must be one of {ACTIONS}, got {self.action!r}")


@dataclass(frozen=True)
class Refusal:
    """A letter that somebody did not accept.

    Parameters
    ----------
    turn : of which leg.
    party : the party that sent or should have received it.
    way : ``"up"`` when the coordinator refused it, ``"down"`` when the party did.
    reason : the error.
    """

    turn: int
    party: int
    way: str
    reason: LetterError


@dataclass(frozen=True, eq=False)
class Rehearsal(Run):
    """A run by letters.

    Parameters
    ----------
    members : the parties whose data are in the findings.
    declined : parties that declined, with their public reasons.
    refusals : letters that were not accepted, in order.
    bytes_received : the bytes that each party was sent, shape (K,).
    letters : every letter as it was sent, by way, turn and party, for a replay.
    """

    members: tuple[int, ...] = ()
    declined: dict[int, str] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    bytes_received: np.ndarray[tuple[int], np.dtype[np.int64]] = field(
        default_factory=lambda: np.zeros(0, dtype=np.int64)
    )
    letters: dict[tuple[str, int, int], bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, eq=False)
class Keys:
    """Everybody's signing keys.

    Parameters
    ----------
    parties : one a client.
    coordinator : the coordinator's.
    """

    parties: tuple[Identity, ...]
    coordinator: Identity

    @classmethod
    def generate(cls, parties: int) -> Keys:
        """New keys for so many parties."""
        return cls(tuple(Identity.generate() for _ in range(parties)), Identity.generate())

    def agreement(
        self,
        protocol: Protocol,
        fewest: int = 0,
        colluders: int | None = None,
        unit: str = "",
    ) -> Agreement:
        """What the holders of these keys agree on."""
        public = tuple(identity.public for identity in self.parties)
        coordinator = self.coordinator.public
        return Agreement(protocol, public, coordinator, fewest, colluders=colluders, unit=unit)


def rehearse(
    clients: Clients,
    protocol: Protocol,
    faults: Sequence[Fault] = (),
    *,
    noise: Callable[[int], NoiseSource] | None = None,
    memory: Sequence[Memory] | None = None,
    guards: Sequence[Guard] | None = None,
    forge: Forge | None = None,
    older: Rehearsal | None = None,
    keys: Keys | None = None,
    fewest: int = 0,
    colluders: int | None = None,
    retries: int = 0,
    on_loss: Literal["fail", "restart"] = "fail",
    restarts: bool = False,
    unit: str = "",
    units: Sequence[str | None] | None = None,
) -> Rehearsal:
    """Run a protocol by letters between isolated parties.

    Parameters
    ----------
    clients : all clients; each becomes a party that holds its own records only.
    protocol : the protocol that all agree on.
    faults : what goes wrong.
    noise : the noise source of each party, by its place; exact noise from the system by default.
    memory : the notebook of each party, from earlier runs.
    guards : each party's budget book.
    forge : a dishonest coordinator.
    older : an earlier rehearsal, whose letters ``"replay"`` delivers; it needs the same ``keys``.
    keys : everybody's signing keys; new ones by default.
    fewest : parties without whom there is no result; 0 takes all of them.
    colluders : parties that may collude with the coordinator; None takes a fifth of them.
    retries : how often a letter that went unanswered is sent again.
    on_loss : what happens when a party vanishes after others have answered with regard to it, or
        when too few parties are left for a sum: the run fails, or it is begun again without the
        party, or the sum among those who still answer, at the cost that every party's book records.
    restarts : whether every party is stopped after each letter, and goes on from what it kept.
    unit : in what the protocol takes scores, as a plan names it; empty for its default.
    units : what each party's own file says that its scores are; by default what the clients name.

    Raises
    ------
    RunError : when there is no result; ``refusals`` of the error says what was not accepted.

    Examples
    --------
    >>> import tacit
    >>> scores, labels = tacit.binormal_scores(300, 700, 0.8, seed=0)
    >>> clients = tacit.Clients.split(scores, labels, clients=4, seed=0)
    >>> lost = [Fault("drop", party=2, turn=0)]
    >>> protocol = tacit.ScoreHistogram("distributed-dp", 1.0, dropouts=0.25)
    >>> rehearse(clients, protocol, lost, fewest=3).members
    (0, 1, 3)
    """
    everyone = Keys.generate(clients.count) if keys is None else keys
    agreement = everyone.agreement(protocol, fewest, colluders, unit)
    stage = _Stage(agreement, everyone, tuple(faults), forge, older, restarts)
    sources = noise or (lambda _: SystemNoise())
    parties = {
        place: Party(
            place,
            everyone.parties[place],
            stage.agreement,
            clients.part(place, place + 1),
            sources(place),
            unrecorded if guards is None else guards[place],
            None if memory is None else memory[place],
            clients.unit if units is None else units[place],
        )
        for place in range(clients.count)
    }
    try:
        coordinator = _carried(stage, parties, retries, on_loss == "restart")
    except RunError as error:
        error.refusals = tuple(stage.refusals)
        raise
    if coordinator.findings is None:
        raise RunError("the conversation ended without findings")
    return Rehearsal(
        coordinator.findings,
        most(coordinator.spent[place] for place in coordinator.active),
        coordinator.asks,
        stage.sent,
        members=coordinator.active,
        declined=coordinator.declined,
        refusals=tuple(stage.refusals),
        bytes_received=stage.received,
        letters=stage.letters,
    )


def _carried(stage: _Stage, parties: dict[int, Party], retries: int, restart: bool) -> Coordinator:
    """The coordinator at the end of the run; where parties are lost, of the run without them."""
    active, attempts = tuple(parties), SUM_ATTEMPTS if restart else 1
    while True:
        coordinator = Coordinator(stage.agreement, stage.keys.coordinator, active, attempts)
        try:
            stage.carry(coordinator, parties, retries)
        except LostPartyError as error:
            active = tuple(place for place in coordinator.active if place not in error.lost)
            if not restart or len(active) < stage.agreement.fewest:
                raise
            parties = {place: parties[place].anew() for place in active}
            continue
        return coordinator


class _Stage:
    """The wires between a coordinator and parties, and what happens on them."""

    def __init__(
        self,
        agreement: Agreement,
        keys: Keys,
        faults: tuple[Fault, ...],
        forge: Forge | None,
        older: Rehearsal | None,
        restarts: bool,
    ) -> None:
        self.agreement, self.keys = agreement, keys
        self._faults, self._left = faults, [fault.times for fault in faults]
        self._forge, self._older, self._restarts = forge, older, restarts
        self._late: list[tuple[str, int, bytes]] = []
        self._turn = 0
        self.refusals: list[Refusal] = []
        self.letters: dict[tuple[str, int, int], bytes] = {}
        size = len(agreement.parties)
        self.sent, self.received = (np.zeros(size, dtype=np.int64) for _ in range(2))

    def carry(self, coordinator: Coordinator, parties: dict[int, Party], retries: int) -> None:
        """A whole run."""
        letters, self._turn = coordinator.open(), 0
        while letters:
            for _ in range(1 + retries):
                self._deliver(coordinator, parties, letters)
            letters = coordinator.close()
            late, self._late = self._late, []
            for way, place, message in late:
                if way == "down":
                    self._down(coordinator, parties[place], place, message)
                else:
                    self._up(coordinator, place, message)
            self._turn += 1

    def _deliver(
        self, coordinator: Coordinator, parties: dict[int, Party], letters: dict[int, bytes]
    ) -> None:
        """Every letter that has not been answered."""
        order = [place for place in letters if place in coordinator.waiting]
        if any(self._met(way, place, reorder=True) for way in ("up", "down") for place in order):
            order.reverse()
        for place in order:
            message = self._forged(place, letters[place])
            for arrived in self._on_the_way("down", place, message):
                self._down(coordinator, parties[place], place, arrived)
                if self._restarts:
                    parties[place] = parties[place].restarted()

    def _down(self, coordinator: Coordinator, party: Party, place: int, message: bytes) -> None:
        self.received[place] += len(message)
        try:
            reply = party.answer(message)
        except LetterError as error:
            self.refusals.append(Refusal(self._turn, place, "down", error))
            return
        for arrived in self._on_the_way("up", place, reply):
            self._up(coordinator, place, arrived)

    def _up(self, coordinator: Coordinator, place: int, message: bytes) -> None:
        self.sent[place] += len(message)
        try:
            coordinator.receive(place, message)
        except LetterError as error:
            self.refusals.append(Refusal(self._turn, place, "up", error))

    def _on_the_way(self, way: str, place: int, message: bytes) -> list[bytes]:
        """What arrives now of a letter."""
        self.letters[way, self._turn, place] = message
        arrived = [message]
        for fault in self._met(way, place):
            if fault.action == "delay":
                self._late += [(way, place, one) for one in arrived]
            arrived = [self._damaged(fault, one) for one in self._copies(fault, arrived)]
        return arrived

    def _met(self, way: str, place: int, reorder: bool = False) -> list[Fault]:
        """The faults of the script that happen now; each is then used up once."""
        met = []
        for index, fault in enumerate(self._faults):
            here = (fault.way, fault.party, fault.turn) == (way, place, self._turn)
            if here and self._left[index] and (fault.action == "reorder") is reorder:
                self._left[index] -= 1
                met.append(fault)
        return met

    @staticmethod
    def _copies(fault: Fault, arrived: list[bytes]) -> list[bytes]:
        times = {"drop": 0, "delay": 0, "duplicate": 2}
        return arrived * times.get(fault.action, 1)

    def _damaged(self, fault: Fault, message: bytes) -> bytes:
        if fault.action == "truncate":
            return message[: len(message) // 2]
        if fault.action == "flip":
            changed = bytearray(message)
            changed[fault.bit // 8 % len(message)] ^= 1 << fault.bit % 8
            return bytes(changed)
        if fault.action == "replay" and self._older is not None:
            return self._older.letters[fault.way, self._turn, fault.party]
        return message

    def _forged(self, place: int, message: bytes) -> bytes:
        """What a dishonest coordinator sends and signs."""
        if self._forge is None:
            return message
        letter = opened(message, self.agreement, COORDINATOR, place)
        body = self._forge(place, letter.kind, letter.body)
        return replace(letter, body=body).sealed(self.agreement, self.keys.coordinator)
