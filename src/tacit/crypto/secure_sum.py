"""What all parties of a secure sum agree on, and what the sum protects.

Every client holds a vector of integers. The server learns their sum, and which clients are in it;
of the vectors it learns nothing else. A client learns who else takes part, and nothing of vectors
or sum. The protocol is that of Bonawitz et al. 2017, "Practical Secure Aggregation for
Privacy-Preserving Machine Learning", figure 4 without its consistency check, on the sparse graph
of Bell et al. 2020 where clients are many. ``SumClient`` and ``SumServer`` are state machines that
turn bytes into bytes: whoever runs them carries the messages.

=========  ==============================  =====================================================
Round      A client sends                  What the server sees of it
=========  ==============================  =====================================================
advertise  two public keys, a commitment   all of it; the identity key signs it
share      sealed shares of both secrets   which neighbours they are for; it cannot open them
mask       its vector plus its masks       a uniformly random vector
reveal     shares of seeds of those who    the seeds and keys, when ``threshold`` clients reveal:
           sent a vector, of mask keys     together they open the sum of all sent vectors
           of those who did not
=========  ==============================  =====================================================

**Protected against** a server that follows the protocol and keeps all it sees, together with up to
``threshold - 1`` of the holders of any client's shares: they learn the sum of the other clients'
vectors, which the total gives away in any case. On a sparse graph this fails with a probability
that ``neighbours`` bounds.

**Protected against** a server, or anybody on the way, that swaps keys: identities sign them with
the session and the terms, and clients pin the identities in the roster. An old session's keys,
replayed where a session is used twice, fail too: their owner would have to seal shares for keys
that were new this time.

**Partly protected against** a server that lies about who dropped out. A client reveals one kind of
share of each neighbour, once; both secrets of one client therefore need
``2 threshold - holders`` clients that collude with the server. With the smallest majority
as threshold that is one or two; raise the threshold to bear more. **Not protected against** clients
that send wrong numbers, and a client that stops can only delay the sum or leave it. The sum itself
is exact: what it says about a client is for noise to limit.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from tacit.crypto.identities import Roster
from tacit.crypto.masking import modulus_for
from tacit.crypto.neighbours import Neighbourhood

SESSION_BYTES = 16
MAX_LENGTH = 2**26
"""Numbers of a vector; its message then stays below 2**30 bytes."""


def new_session() -> bytes:
    """A session's name: 16 bytes from the operating system's entropy, never to be used again."""
    return os.urandom(SESSION_BYTES)


@dataclass(frozen=True)
class SumTerms:
    """What clients and server agree on before a sum; advertised keys are signed together with it.

    Parameters
    ----------
    session : 16 bytes that name this sum and no other, from ``new_session``.
    roster : the clients' public identity keys.
    length : numbers in each vector.
    largest : the largest magnitude of a number that a client sends, with the tail of its noise. A
        client refuses to send a larger one, so that no sum wraps around.
    neighbourhood : who masks with whom, and how many may drop out.

    Raises
    ------
    ValueError : for a session of another size, a length out of range, a ``largest`` whose sum may
        pass 64 bits, or a neighbourhood that asks for more clients than the roster has.

    Examples
    --------
    Three clients, one of which leaves after its shares were sent; the others are summed.

    >>> import numpy as np
    >>> from tacit.crypto.identities import Identity
    >>> from tacit.crypto.secure_sum_client import SumClient
    >>> from tacit.crypto.secure_sum_server import SumServer
    >>> identities = [Identity.generate() for _ in range(3)]
    >>> roster = Roster(tuple(identity.public for identity in identities))
    >>> around = Neighbourhood.complete(3)
    >>> terms = SumTerms(new_session(), roster, 2, largest=100, neighbourhood=around)
    >>> clients = {k: SumClient(identity, terms) for k, identity in enumerate(identities)}
    >>> server = SumServer(terms)
    >>> for k, client in clients.items():
    ...     server.receive(k, client.advertise())
    >>> for k, message in server.close_round().items():
    ...     server.receive(k, clients[k].share(message))
    >>> messages = server.close_round()
    >>> for k in (0, 2):
    ...     server.receive(k, clients[k].mask(messages[k], np.array([k + 1, -10])))
    >>> for k, message in server.close_round().items():
    ...     server.receive(k, clients[k].reveal(message))
    >>> result = server.conclude()
    >>> result.total, result.clients
    (array([  4, -20]), (0, 2))
    """

    session: bytes
    roster: Roster
    length: int
    largest: int
    neighbourhood: Neighbourhood

    def __post_init__(self) -> None:
        if len(self.session) != SESSION_BYTES:
            raise ValueError(f"a session has {SESSION_BYTES} bytes, got {len(self.session)}")
        if not 1 <= self.length <= MAX_LENGTH:
            raise ValueError(f"length must be from 1 to {MAX_LENGTH}, got {self.length}")
        modulus_for(self.clients, self.largest)
        if max(self.neighbourhood.degree + 1, self.neighbourhood.fewest) > self.clients:
            raise ValueError(f"{self.neighbourhood} is for more than {self.clients} clients")

    @property
    def clients(self) -> int:
        """The number of clients in the roster."""
        return len(self.roster)

    @cached_property
    def bits(self) -> int:
        """The bits of a word in which no sum wraps around, 32 or 64."""
        return modulus_for(self.clients, self.largest)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all terms."""
        around = self.neighbourhood
        numbers = (self.length, self.largest, around.degree, around.threshold, around.fewest)
        head = b"tacit secure sum terms 1" + self.session + struct.pack("<IQIII", *numbers)
        return sha256(head + self.roster.digest).digest()

    def signed_part(self, index: int, keys: bytes) -> bytes:
        """What a client's identity signs of its advertised keys."""
        return b"tacit secure sum keys 1" + self.digest + struct.pack("<I", index) + keys

    def transcript(self, adverts: bytes) -> bytes:
        """SHA-256 of the terms and of all that was advertised; every later key depends on it."""
        return sha256(b"tacit secure sum adverts 1" + self.digest + adverts).digest()

    def commitment(self, index: int, seed: bytes) -> bytes:
        """What a client advertises of its seed, so that wrong shares of it are noticed."""
        return sha256(self.session + struct.pack("<I", index) + seed).digest()
