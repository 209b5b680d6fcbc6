"""The aggregator's side of pairs of records: who meets whom, and what their shares add up to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Ragged
from tacit.protocols.conversation import Ask
from tacit.protocols.paired_matching import check_seats, seated_pairs
from tacit.protocols.paired_noise import RESPONSE
from tacit.protocols.paired_ustatistic import PairedUStatistic
from tacit.running.joint_engine import JointError
from tacit.running.joint_frames import Frame
from tacit.running.joint_processes import JointReply, Parties, Session

Integers = NDArray[np.int64]

SESSION_BYTES = 16


@dataclass(frozen=True, eq=False)
class Meetings:
    """All pairs of records: their clients, and their places among each client's own records.

    Every array has shape (pairs,).
    """

    first_client: Integers
    second_client: Integers
    first_place: Integers
    second_place: Integers

    @classmethod
    def of(cls, offsets: Integers, first: Integers, second: Integers) -> Meetings:
        """The pairs of the records ``first`` and ``second``, which count all clients' records.

        Parameters
        ----------
        offsets : where each client's records begin and end, shape (K+1,).

        Examples
        --------
        >>> meetings = Meetings.of(np.array([0, 2, 3]), np.array([2]), np.array([1]))
        >>> meetings.first_client.tolist(), meetings.second_place.tolist()
        ([1], [1])
        """
        ours, theirs = (
            np.searchsorted(offsets, each, side="right") - 1 for each in (first, second)
        )
        return cls(ours, theirs, first - offsets[ours], second - offsets[theirs])

    @property
    def clients(self) -> list[tuple[int, int]]:
        """Which clients meet, the lower first; a client meets itself in pairs of its own."""
        low = np.minimum(self.first_client, self.second_client)
        high = np.maximum(self.first_client, self.second_client)
        met = np.unique(np.stack([low, high]), axis=1)
        return [(int(one), int(other)) for one, other in met.T]

    def between(self, one: int, other: int) -> Integers:
        """The places of the pairs of these two clients."""
        straight = (self.first_client == one) & (self.second_client == other)
        crossed = (self.first_client == other) & (self.second_client == one)
        return np.flatnonzero(straight | crossed)

    def side(self, pairs: Integers, client: int) -> tuple[Integers, NDArray[np.bool_]]:
        """One client's records in pairs with another client, and whether each is the first."""
        leading = self.first_client[pairs] == client
        places = np.where(leading, self.first_place[pairs], self.second_place[pairs])
        return places, leading


def answer_pairs(parties: Parties, ask: Ask) -> JointReply:
    """The noisy values of all pairs, as ``compute_pairs`` gives them, from processes.

    Raises
    ------
    JointError : when a party fails, ends, or does not answer in time.
    """
    protocol: PairedUStatistic = ask.settings
    seats = ask.each["seats"]
    if not isinstance(seats, Ragged):
        raise TypeError("seats must be ragged")
    check_seats(seats.values, protocol.pairs_a_record)
    first, second = seated_pairs(seats.values)
    meetings = Meetings.of(parties.offsets, first.ravel(), second.ravel())
    values = np.zeros(first.size, dtype=np.int64)
    parties.admit(ask)
    sessions = tuple(_sessions(parties, meetings, parties.settings.chunk, values))
    shaped = values.reshape(first.shape)
    shown = shaped.astype(np.uint8) if protocol.kind == RESPONSE else shaped
    return JointReply({"values": shown}, parties.taken_sent(), sessions)


def _sessions(
    parties: Parties, meetings: Meetings, chunk: int, values: Integers
) -> Iterator[Session]:
    """Run all sessions one after the other, writing down the values."""
    for one, other in meetings.clients:
        pairs = meetings.between(one, other)
        session = os.urandom(SESSION_BYTES).hex()
        if one == other:
            values[pairs] = _alone(parties, meetings, session, one, pairs)
            yield Session((one,), pairs.size, 0.0, 0)
        else:
            yield _together(parties, meetings, session, (one, other), pairs, chunk, values)


def _alone(
    parties: Parties, meetings: Meetings, session: str, client: int, pairs: Integers
) -> Integers:
    """Noisy values of one client's own pairs."""
    places = {"first": meetings.first_place[pairs], "second": meetings.second_place[pairs]}
    parties.order(client, Frame.of("alone", places, session=session))
    _, frame = parties.answer([client])
    found = parties.opened(frame, (session, client, "alone", 0), "values")
    return _sized(parties, client, found, pairs.size)


def _together(
    parties: Parties,
    meetings: Meetings,
    session: str,
    both: tuple[int, int],
    pairs: Integers,
    chunk: int,
    values: Integers,
) -> Session:
    """Let two clients compute their pairs, and add up their shares as they come in."""
    parties.introduce(session, both, pairs.size)
    for client in both:
        places, leading = meetings.side(pairs, client)
        arrays = {"places": places, "leading": leading}
        parties.order(client, Frame.of("pairs", arrays, chunk=chunk))
    done: dict[int, Frame] = {}
    taken = dict.fromkeys(both, 0)
    while len(done) < len(both):
        client, frame = parties.answer([place for place in both if place not in done])
        if frame.kind == "done":
            done[client] = frame
            continue
        part = taken[client]
        taken[client] += 1
        rows = pairs[part * chunk : (part + 1) * chunk]
        shares = parties.opened(frame, (session, client, "pairs", part), "shares")
        values[rows] += _sized(parties, client, shares, rows.size)
    _check_complete(parties, taken, -(-pairs.size // chunk))
    return parties.concluded(done, pairs.size)


def _sized(parties: Parties, client: int, found: Integers, size: int) -> Integers:
    if found.size != size:
        raise JointError(f"{parties.names[client]} sent {found.size} numbers instead of {size}")
    return found


def _check_complete(parties: Parties, taken: dict[int, int], wanted: int) -> None:
    for client, count in taken.items():
        if count != wanted:
            raise JointError(f"{parties.names[client]} sent {count} of {wanted} parts")
