"""Computations between parties that are threads of one process: a trusted party adds up and deals.

For rehearsals. What is computed is what real parties compute, and nothing of it is hidden.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tacit.arrays import Integers
from tacit.crypto.secure_sum import masking
from tacit.protocol import mpc
from tacit.running.mpc import transport

WAIT = 5.0
"""Seconds that a party waits for another."""


class Room(transport.Transport):
    """Where all parties of a rehearsal meet; they share one room.

    Parameters
    ----------
    wait : seconds that a party waits for another.
    """

    def __init__(self, wait: float = WAIT) -> None:
        self._wait = wait
        self._boxes: dict[tuple[Any, ...], queue.SimpleQueue[Any]] = {}

    def announce(self) -> transport.Announcement:
        """An empty announcement: a party needs no address or secret to enter the room."""
        return transport.Announcement({}, {})

    @contextmanager
    def meet(self, meeting: transport.Meeting) -> Iterator[transport.MeasuredPeers]:
        """The parties in the room."""
        yield _RoomPeers(self, meeting)

    def leave(self, key: tuple[Any, ...], value: Any) -> None:
        """Leave a value for other parties."""
        self._box(key).put(value)

    def take(self, key: tuple[Any, ...]) -> Any:
        """The first value that a party left there, which no one took.

        Raises
        ------
        MPCError : when no party leaves it in time.
        """
        try:
            return self._box(key).get(timeout=self._wait)
        except queue.Empty:
            raise mpc.MPCError(f"party {key[1]} did not come within {self._wait:g} s") from None

    def _box(self, key: tuple[Any, ...]) -> queue.SimpleQueue[Any]:
        # atomic, so that two threads have one box
        return self._boxes.setdefault(key, queue.SimpleQueue())


class _RoomPeers(transport.MeasuredPeers):
    """The parties of one meeting, as one of them sees them."""

    def __init__(self, room: Room, meeting: transport.Meeting) -> None:
        self.index, self.offers = meeting.index, meeting.offers
        self.sessions, self.sent = [], 0
        self._room, self._name = room, meeting.session

    @contextmanager
    def link(
        self, members: Sequence[int], items: int, comparisons: int | None = None
    ) -> Iterator[mpc.SharedRun]:
        """A computation that the first of its members carries out for all."""
        members = tuple(members)
        earlier = sum(each.parties == members for each in self.sessions)
        name = f"{self._name} {members} {earlier}"
        yield _RoomRun(self._room, name, members, self.index)
        self.sessions.append(transport.Session(members, items, 0.0, 0))

    def send(self, index: int, message: bytes) -> None:
        """Leave a message in the room."""
        self._room.leave((self._name, self.index, index), message)
        self.sent += len(message)

    def receive(self, index: int) -> bytes:
        """Take a message from the room."""
        return bytes(self._room.take((self._name, index, self.index)))


class _RoomRun(mpc.SharedRun):
    """One party's side: it hands in its inputs, and takes its share of the output."""

    def __init__(self, room: Room, name: str, members: tuple[int, ...], index: int) -> None:
        self.rank, self.parties = members.index(index), len(members)
        self._room, self._name, self._members = room, name, members

    @property
    def arrays(self) -> Any:
        """NumPy's array functions."""
        return np

    def shares(
        self,
        name: tuple[Any, ...],
        function: mpc.Function,
        value: Integers,
        shapes: Sequence[tuple[int, ...]],
    ) -> mpc.Words:
        """The share of a function of one input of every party; see ``SharedRun.shares``."""
        return self._share(value, lambda values: function(*values))

    def evaluated(
        self, name: tuple[Any, ...], function: mpc.Function, inputs: Sequence[Sequence[mpc.Words]]
    ) -> mpc.Words:
        """The share of a function of shared inputs; see ``SharedRun.evaluated``."""
        first_summands = [summands[0] for summands in inputs]

        def computed(parts: list[list[mpc.Words]]) -> Any:
            sums = [np.sum(each, axis=0, dtype=np.uint64) for each in zip(*parts, strict=True)]
            return function(*(values.view(np.int64) for values in sums))

        return self._share(first_summands, computed)

    def _share(self, value: Any, computed: Callable[[list[Any]], Any]) -> mpc.Words:
        index = self._members[self.rank]
        self._room.leave((self._name, index, "input"), value)
        if self.rank == 0:
            inputs = [self._room.take((self._name, each, "input")) for each in self._members]
            output = np.asarray(computed(inputs), dtype=np.int64)
            parts = masking.summands_of(output, self.parties)
            for member, part in zip(self._members, parts, strict=True):
                self._room.leave((self._name, self._members[0], "output", member), part)
        words: mpc.Words = self._room.take((self._name, self._members[0], "output", index))
        return words
