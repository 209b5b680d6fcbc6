"""What all parties of a secure sum agree on, and what the sum protects.

Every client holds a vector of integers. The server learns their sum, and which clients are in it;
of the vectors it learns nothing else. A client learns who else takes part, and nothing of vectors
or sum. The protocol is that of Bonawitz et al. 2017, "Practical Secure Aggregation for
Privacy-Preserving Machine Learning", figure 4, on the sparse graph of Bell et al. 2020 where
clients are many; the rule of ``consistency`` replaces its consistency check.
``SumClient`` and ``SumServer`` are state machines that turn bytes into bytes: their caller
carries the messages.

=========  ===============================  ====================================================
Round      A client sends                   What the server sees of it
=========  ===============================  ====================================================
advertise  two public keys, a commitment    all of it; the identity key signs it
share      encrypted shares of two secrets  which neighbours they are for; it cannot read them
mask       its vector plus its masks, and   a uniformly random vector
           a signature of all keys and of
           who is announced to have shared
certify    a signature of who sent a        all of it
           vector and who did not
reveal     shares of seeds of those who     the seeds and keys, when ``threshold`` clients
           sent a vector, of mask keys      reveal: together they unmask the sum of sent
           of those who did not             vectors
=========  ===============================  ====================================================

**What a server learns that may lie** to each client apart, about keys, deliveries and lists, and
with which ``colluders`` clients share all they know: at most one sum an agreed step, over at least
``min_clients`` clients, and so over at least ``min_clients - colluders`` of those that do not
collude with it. Let K clients have agreed, b of them collude, tau = floor((K + b) / 2) + 1. (1) An
honest client reveals shares on tau signatures of its lists and digest only, and signs one list an
attempt. Two certified lists would take ``2 (tau - b) > K - b`` honest signatures: there is one at
most. So no two honest clients reveal different kinds of share of a client. (2) The digest fixes all
keys and who had shared, and everybody in the sum signed the same: all masked under the same graph.
(3) Fewer than ``threshold`` receivers of any client's shares collude, so that its second secret
stays hidden. (4) The graph on the honest clients of the sum is connected: it is complete, or
clients checked the ring's windows. Masked vectors on a connected graph are uniform given their sum
(Bonawitz et al. 2017, lemma 6.1; Bell et al. 2020, section 3). (5) A client joins a new attempt
only when the last one can no longer be unmasked, so that there are no two sums to subtract. It
takes authentic identities: clients pin the roster. On a sparse graph (3) and (4) fail with
probabilities that ``neighbours`` bounds.

**Liveness**: tau of those who sent a vector remain to the end, and ``threshold`` receivers of every
client's shares; else there is no sum. A client that stops can only delay the sum or leave it.

**Not protected against** clients that send wrong numbers. The sum itself is exact: what it says
about a client is for noise to limit.

Another attempt (``SumRestart``). The difference of two sums over different clients shows what
single clients added. So a new attempt begins only when the last one can no longer be unmasked: its
clients erase their secrets, and sign that they revealed nothing and never will. Every client
verifies these statements itself.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

from tacit.crypto import identities
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.consistency import NO_DIGEST, ListRule, check_restart, ended_statement
from tacit.crypto.secure_sum.graph import Neighbourhood, check_min_clients, window_excess
from tacit.crypto.secure_sum.masking import Packing, Run, Shape, modulus_for

SESSION_BYTES = 16
MAX_LENGTH = 2**26
"""Numbers of a vector; its message then stays below 2**30 bytes."""
MAX_ATTEMPTS = 2**16


def new_session() -> bytes:
    """A session's name: 16 bytes from the operating system's entropy, never to be used again."""
    return os.urandom(SESSION_BYTES)


@dataclass(frozen=True)
class SumTerms:
    """What clients and server agree on before a sum; advertised keys are signed together with it.

    Parameters
    ----------
    session : 16 bytes that name this sum and no other, from ``new_session``.
    roster : the public identity keys of all clients of the agreement, also of clients that do not
        take part.
    length : numbers in each vector.
    largest : the largest magnitude of a number that a client sends, with the tail of its noise. A
        client refuses to send a larger one, so that no sum wraps around.
    neighbourhood : who masks with whom, how many may drop out, how many may collude.
    attempt : which attempt at the sum, from 0. All share one digest.
    runs : the widths of the numbers in order. Empty for numbers of one width, the least in which no
        sum of numbers up to ``largest`` wraps around. A sum beyond its width is taken modulo
        ``2**bits``: who names widths bounds the sums.

    Raises
    ------
    ValueError : for a session of another size, a length out of range, a ``largest`` whose sum may
        pass 64 bits where no widths are named, widths of another number of numbers, a neighbourhood
        that asks for more clients than the roster has, or fewer clients than must certify a sum.

    Examples
    --------
    Four clients, one of which leaves after its shares were sent; the others are summed.

    >>> import numpy as np
    >>> from tacit.crypto.identities import Identity, Roster
    >>> from tacit.crypto.secure_sum.client import SumClient
    >>> from tacit.crypto.secure_sum.server import SumServer
    >>> identities = [Identity.generate() for _ in range(4)]
    >>> roster = Roster(tuple(identity.public for identity in identities))
    >>> around = Neighbourhood.complete(4)
    >>> terms = SumTerms(new_session(), roster, 2, largest=100, neighbourhood=around)
    >>> clients = {k: SumClient(identity, terms) for k, identity in enumerate(identities)}
    >>> server = SumServer(terms)
    >>> for k, client in clients.items():
    ...     server.receive(k, client.advertise())
    >>> for k, message in server.close_round().items():
    ...     server.receive(k, clients[k].share(message))
    >>> messages = server.close_round()
    >>> for k in (0, 2, 3):
    ...     server.receive(k, clients[k].mask(messages[k], np.array([k + 1, -10])))
    >>> for k, message in server.close_round().items():
    ...     server.receive(k, clients[k].certify(message))
    >>> for k, message in server.close_round().items():
    ...     server.receive(k, clients[k].reveal(message))
    >>> result = server.conclude()
    >>> result.total, result.clients
    (array([  8, -30]), (0, 2, 3))
    """

    session: bytes
    roster: identities.Roster
    length: int
    largest: int
    neighbourhood: Neighbourhood
    attempt: int = 0
    runs: tuple[Run, ...] = ()

    def __post_init__(self) -> None:
        if len(self.session) != SESSION_BYTES:
            raise ValueError(f"a session has {SESSION_BYTES} bytes, got {len(self.session)}")
        if not 1 <= self.length <= MAX_LENGTH:
            raise ValueError(f"length must be from 1 to {MAX_LENGTH}, got {self.length}")
        if not self.runs:
            run = Run(self.length, modulus_for(self.clients, self.largest))
            object.__setattr__(self, "runs", (run,))
        if self.packing.length != self.length:
            raise ValueError(
                f"widths of {self.length} numbers must be named, got {self.packing.length}"
            )
        around = self.neighbourhood
        if max(around.degree + 1, around.min_clients) > self.clients:
            raise ValueError(f"{around} is for more than {self.clients} clients")
        check_min_clients(self.clients, around.colluders, around.min_clients)
        if self.rule.is_complete and around.threshold != self.rule.certificate:
            raise ValueError(
                f"threshold must be {self.rule.certificate} where {self.clients} clients all share "
                f"with each other and {around.colluders} may collude, got {around.threshold}"
            )
        if not 0 <= self.attempt < MAX_ATTEMPTS:
            raise ValueError(f"attempt must be from 0 to {MAX_ATTEMPTS - 1}, got {self.attempt}")

    @property
    def clients(self) -> int:
        """The number of clients in the roster."""
        return len(self.roster)

    @cached_property
    def packing(self) -> Packing:
        """How masked vectors travel."""
        return Packing(self.runs)

    @property
    def shape(self) -> Shape:
        """How many words masked vectors are added in, and the bits of each, 32 or 64."""
        return self.length, self.packing.bits

    @cached_property
    def rule(self) -> ListRule:
        """What a client requires of lists under these terms."""
        around, excess = self.neighbourhood, 0
        if around.degree < self.clients - 1:
            numbers = (self.clients, around.min_clients, around.colluders, around.degree)
            excess = window_excess(*numbers)
        return ListRule(self.clients, around.colluders, around.min_clients, around.degree, excess)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all terms but the attempt."""
        around = self.neighbourhood
        graph = (around.degree, around.threshold, around.min_clients, around.colluders)
        numbers = struct.pack("<IQIIII", self.length, self.largest, *graph)
        head = b"tacit secure sum terms 3" + self.session + numbers + self.packing.digested
        return sha256(head + self.roster.digest).digest()

    def verified(self, index: int, record: bytes) -> messages.Advert:
        """What a client advertises, in the record of it.

        Raises
        ------
        MalformedError : for another number of bytes.
        ForgedError : for keys that the client's identity did not sign for these terms.
        """
        advert = messages.Advert.from_bytes(record)
        signed = self.signed_part(index, advert.keys)
        self.roster.verify(index, signed, advert.signature)
        return advert

    def signed_part(self, index: int, keys: bytes) -> bytes:
        """What a client's identity signs of its advertised keys."""
        return b"tacit secure sum keys 2" + self._named(index) + keys

    def transcript(self, adverts: bytes) -> bytes:
        """SHA-256 of terms, attempt and all that was advertised; every later key depends on it."""
        return sha256(b"tacit secure sum adverts 2" + self._named(0) + adverts).digest()

    def commitment(self, index: int, seed: bytes) -> bytes:
        """What a client advertises of its seed, so that wrong shares of it are noticed."""
        return sha256(b"tacit secure sum seed 2" + self._named(index) + seed).digest()

    def _named(self, index: int) -> bytes:
        return self.digest + struct.pack("<II", self.attempt, index)


def ended_record(identity: identities.Identity, terms: SumTerms, digest: bytes) -> bytes:
    """A client's signed statement that it reveals nothing in this attempt or an earlier one."""
    statement = ended_statement(terms.digest, terms.attempt, digest)
    return _packed(digest) + identity.sign(statement)


def _packed(digest: bytes) -> bytes:
    return bytes([bool(digest)]) + digest.ljust(messages.DIGEST_BYTES, b"\0")


def check_ended(
    terms: SumTerms, restart: bytes, announced: AbstractSet[int], digest: bytes
) -> None:
    """Check that the attempt before these terms cannot be unmasked any more.

    Parameters
    ----------
    terms : those of the attempt that is to begin.
    restart : the server's message with the statements.
    announced : who was announced to this client in the last attempt; all clients where none was.
    digest : what this client signed then, or ``NO_DIGEST``.

    Raises
    ------
    ForgedError : for a statement that the client in whose name it is did not sign.
    RefusedError, TooFewError : when not enough clients gave the last attempt up.
    SumError : for any other message.
    """
    body = messages.read(restart, messages.Kind.RESTART, terms.session, messages.EVERYBODY)
    records = messages.unpack_records(body, messages.ENDED_BYTES, terms.clients)
    last = replace(terms, attempt=terms.attempt - 1)
    stated = {index: _stated(last, index, record) for index, record in records.items()}
    check_restart(terms.rule, announced, digest, stated)


def _stated(terms: SumTerms, index: int, record: bytes) -> bytes:
    """The digest in a verified statement."""
    digest = record[1 : 1 + messages.DIGEST_BYTES] if record[0] else NO_DIGEST
    if record[: 1 + messages.DIGEST_BYTES] != _packed(digest):
        raise identities.MalformedError(
            f"the statement of client {index} holds no digest, but bytes of one"
        )
    statement = ended_statement(terms.digest, terms.attempt, digest)
    signature = record[1 + messages.DIGEST_BYTES :]
    terms.roster.verify(index, statement, signature, "statement")
    return digest


class SumRestart:
    """The server's side between two attempts: it collects statements.

    Parameters
    ----------
    terms : those of the attempt that failed.
    """

    def __init__(self, terms: SumTerms) -> None:
        self._last = terms
        self._came: dict[int, bytes] = {}

    @property
    def terms(self) -> SumTerms:
        """Those of the next attempt."""
        return replace(self._last, attempt=self._last.attempt + 1)

    def receive(self, sender: int, message: bytes) -> None:
        """Take a client's statement.

        Raises
        ------
        UnknownClientError : for a sender outside the roster, or another client's statement.
        ReplayError : for a second statement of the sender.
        ForgedError : for a statement that the sender did not sign.
        SumError : for any other message.
        """
        self._last.roster.check_index(sender)
        record = messages.read(message, messages.Kind.ENDED, self._last.session, sender)
        if len(record) != messages.ENDED_BYTES:
            raise identities.MalformedError(
                f"a statement has {messages.ENDED_BYTES} bytes, got {len(record)}"
            )
        if sender in self._came:
            raise identities.ReplayError(f"client {sender} sends ended a second time")
        _stated(self._last, sender, record)
        self._came[sender] = record

    def message(self) -> bytes:
        """The statements that came, for every client.

        Raises
        ------
        TooFewError : when fewer than tau came.
        """
        if len(self._came) < (needed := self._last.rule.certificate):
            raise identities.TooFewError(
                f"{needed} clients must give up before another attempt, got {len(self._came)}"
            )
        body = messages.pack_records(self._came)
        return messages.write(messages.Kind.RESTART, self._last.session, messages.EVERYBODY, body)
