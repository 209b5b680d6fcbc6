"""How a party reaches the other parties of a computation, and computes with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tacit.protocol import mpc


@dataclass(frozen=True)
class Session:
    """How one computation between two or three parties went.

    Parameters
    ----------
    parties : their indices.
    items : how many pairs or scores they computed on.
    seconds : how long the slowest computed, once they were linked.
    bytes_sent : what they sent each other.
    """

    parties: tuple[int, ...]
    items: int
    seconds: float
    bytes_sent: int


class MeasuredPeers(mpc.Peers):
    """Peers that know what their computations took this party.

    Parameters
    ----------
    sessions : one entry for every computation that is done.
    sent : the bytes that the party sent to others, messages and computations together.
    """

    sessions: list[Session]
    sent: int


@dataclass(frozen=True)
class Announcement:
    """What a party prepares before it meets the others.

    Parameters
    ----------
    public : what the others need to reach it, and to know that it is this party.
    secret : what it needs itself to prove that; it stays in the party's own state.
    """

    public: Mapping[str, Any]
    secret: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Meeting:
    """Who computes together. Each party signed its own announcement.

    Parameters
    ----------
    session : the name of this computation and of no other.
    index : this party's index among those that compute.
    public : all parties' announcements, in order.
    offers : what each party's program publishes to all, in order.
    secret : the secret part of this party's own announcement.
    """

    session: str
    index: int
    public: tuple[Mapping[str, Any], ...]
    offers: tuple[Mapping[str, Any], ...]
    secret: Mapping[str, Any] = field(repr=False)


class Transport(ABC):
    """A party's way to the others."""

    @abstractmethod
    def announce(self) -> Announcement:
        """Say how to reach this party in one computation.

        Raises
        ------
        UnreachableError : where the party cannot take part.
        """

    @abstractmethod
    def meet(self, meeting: Meeting) -> AbstractContextManager[MeasuredPeers]:
        """Open the channels between the parties, until the context is left.

        Raises
        ------
        MPCError : when the others do not come, or a channel breaks.
        """


class UnreachableError(Exception):
    """A party cannot compute with others, for a public reason."""
