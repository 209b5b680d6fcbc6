"""What clients compute together without showing their inputs: a protocol's programs on shares.

A step with ``View.MPC`` is an ideal functionality. Its ``Step.computes`` names the program that
replaces it between real clients. A program is written against ``Peers`` and ``SharedRun``: who
carries its messages, and by which cryptography it is computed, is not its concern.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tacit.data.clients import Clients
    from tacit.privacy.noise import NoiseSource
    from tacit.protocol.steps import ClientState, Query, Reply

Words = NDArray[np.uint64]
"""Integers modulo 2**64; a client's share of a number is one such word."""

Function = Callable[..., Any]
"""A function of arrays of 64-bit integers, written with the array functions of ``arrays``."""


class MPCError(RuntimeError):
    """A computation between clients that cannot go on; no value was opened."""


class SharedRun(ABC):
    """One client's side of functions on shares, computed with one or two others.

    Attributes
    ----------
    rank : the client's index among those that compute.
    parties : how many they are, two or three.
    """

    rank: int
    parties: int

    @property
    @abstractmethod
    def arrays(self) -> Any:
        """The module of array functions that functions on shares are written with."""

    @abstractmethod
    def shares(
        self,
        name: tuple[Any, ...],
        function: Function,
        value: NDArray[np.int64],
        shapes: Sequence[tuple[int, ...]],
    ) -> Words:
        """Compute a function of one input of every client, in order; gives the output's share.

        Parameters
        ----------
        name : what distinguishes this function from others with inputs of the same shapes.
        function : takes all inputs.
        value : this client's input.
        shapes : the shapes of the inputs of all clients, which are public.

        Raises
        ------
        MPCError : when another client stops answering, or the output is not shared as expected.
        """

    @abstractmethod
    def evaluated(
        self, name: tuple[Any, ...], function: Function, inputs: Sequence[Sequence[Words]]
    ) -> Words:
        """Compute a function of inputs that are shared already; gives the output's share.

        Parameters
        ----------
        name, function : as in ``shares``.
        inputs : of each input the summands of this client
            (``crypto.secure_sum.masking.known_summands``).

        Raises as ``shares`` does.
        """


class Peers(ABC):
    """The clients of one computation, as one of them reaches the others.

    Attributes
    ----------
    index : this client's index among them.
    offers : what each of them said that all may know, in order (``MPCProgram.offer``).
    """

    index: int
    offers: tuple[Mapping[str, Any], ...]

    @abstractmethod
    def link(
        self, members: Sequence[int], items: int, comparisons: int | None = None
    ) -> AbstractContextManager[SharedRun]:
        """A computation of two or three clients, to be left when it is done.

        All members open it, and clients that open several do so in one order.

        Parameters
        ----------
        members : their indices, ascending, this client's among them.
        items : how many pairs or numbers they compute on.
        comparisons : about how many comparisons that takes; None for one an item.
        """

    @abstractmethod
    def send(self, index: int, message: bytes) -> None:
        """Give another client a message that no one else reads."""

    @abstractmethod
    def receive(self, index: int) -> bytes:
        """The next message of another client."""


class MPCProgram(ABC):
    """How real clients compute what a step is the ideal functionality of."""

    def offer(self, clients: Clients, query: Query) -> Mapping[str, Any]:
        """What all clients may know of this one before they compute: nothing, by default.

        It is sent before the step is paid for, for any query that a server may invent. So it
        depends on nothing that the protocol protects.

        Parameters
        ----------
        clients : this client's records, a batch of one.
        query : the whole query, with all clients' parts of ``per_client``.
        """
        return {}

    @abstractmethod
    def compute(
        self, clients: Clients, query: Query, noise: NoiseSource, state: ClientState, peers: Peers
    ) -> Reply:
        """One client's part; gives what it sends to the server.

        Raises
        ------
        MPCError : when the other clients do not do their part.
        """

    def combined(self, query: Query, replies: Sequence[Reply]) -> Reply:
        """The reply that the step gives, from all clients' parts in order.

        By default every client sends the whole reply, and all must send the same.

        Raises
        ------
        ValueError : for parts that do not fit together.
        """
        first = replies[0]
        for index, reply in enumerate(replies):
            same = reply.keys() == first.keys() and all(
                np.array_equal(np.asarray(reply[name]), np.asarray(first[name])) for name in first
            )
            if not same:
                raise ValueError(f"the outputs of parties 0 and {index} differ")
        return first
