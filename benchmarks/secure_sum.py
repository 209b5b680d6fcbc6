"""A secure sum at 10, 100 and 1,000 clients: seconds and bytes a client, and the server's.

All clients run in this process. Seconds are measured of a few clients, which check every signature
themselves; the others share the outcome of a check that one of them has made.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import row
from tacit.crypto.identities import Identity, Roster
from tacit.crypto.secure_sum.client import STEPS, SumClient
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.server import SumServer
from tacit.crypto.secure_sum.terms import SumTerms, new_session

LENGTH, LARGEST = 4096, 1_000_000
CLIENTS = (10, 100, 1000)
MEASURED = 5
LEAVING, ALLOWED = 20, 10
"""One client in twenty leaves; terms allow one in ten."""
CERTIFYING = ("certify", "reveal")
"""The rounds whose messages hold everybody's signatures."""
Answer = TypeVar("Answer")


@lru_cache(maxsize=2**17)
def checked(key: bytes, message: bytes, signature: bytes) -> bool:
    return Roster((key, bytes(32))).has_signed(0, message, signature)


class SharedChecks(Roster):
    """A roster with which a signature is checked once for all clients of this process."""

    def has_signed(self, index: int, message: bytes, signature: bytes) -> bool:
        return checked(self.keys[index], message, signature)


class Session:
    """One sum in one process, with processor time and bytes of each party by round."""

    def __init__(self, terms: SumTerms, identities: list[Identity]) -> None:
        last = terms.clients - MEASURED
        shared = replace(terms, roster=SharedChecks(terms.roster.keys))
        self.seconds = [dict.fromkeys(STEPS, 0.0) for _ in identities]
        self.up, self.down = ([dict.fromkeys(STEPS, 0) for _ in identities] for _ in range(2))
        self.server_seconds = 0.0
        self.server = SumServer(terms)
        self.clients = [
            SumClient(identity, terms if index >= last else shared)
            for index, identity in enumerate(identities)
        ]

    def serve(self, work: Callable[[], Answer]) -> Answer:
        start = time.process_time()
        answer = work()
        self.server_seconds += time.process_time() - start
        return answer

    def answer(
        self, name: str, messages: dict[int, bytes], step: Callable[[int, bytes], bytes]
    ) -> None:
        """One round: what was given goes down, what each client answers goes up."""
        for index, message in messages.items():
            start = time.process_time()
            answer = step(index, message)
            self.seconds[index][name] += time.process_time() - start
            self.down[index][name] += len(message)
            self.up[index][name] += len(answer)
            self.serve(partial(self.server.receive, index, answer))

    def run(self, vectors: NDArray[np.int64], leaving: int) -> NDArray[np.int64]:
        """All rounds; the first clients leave after their shares were sent."""
        clients, server = self.clients, self.server
        all_clients = dict.fromkeys(range(len(clients)), b"")
        self.answer("advertise", all_clients, lambda k, _: clients[k].advertise())
        self.answer("share", self.serve(server.close_round), lambda k, m: clients[k].share(m))
        messages = self.serve(server.close_round)
        staying = {index: message for index, message in messages.items() if index >= leaving}
        self.answer("mask", staying, lambda k, m: clients[k].mask(m, vectors[k]))
        self.answer("certify", self.serve(server.close_round), lambda k, m: clients[k].certify(m))
        self.answer("reveal", self.serve(server.close_round), lambda k, m: clients[k].reveal(m))
        return self.serve(server.conclude).total


def sums(clients: int) -> list[str]:
    """The lines of one number of clients."""
    around = Neighbourhood.of(clients, min_clients=clients - clients // ALLOWED)
    identities = [Identity.generate() for _ in range(clients)]
    roster = Roster(tuple(identity.public for identity in identities))
    terms = SumTerms(new_session(), roster, LENGTH, LARGEST, around)
    session = Session(terms, identities)
    rng = np.random.default_rng(0)
    vectors = rng.integers(-LARGEST, LARGEST + 1, (clients, LENGTH), dtype=np.int64)
    leaving = clients // LEAVING
    total = session.run(vectors, leaving)
    assert np.array_equal(total, vectors[leaving:].sum(axis=0))
    note = f"{around.degree} neighbours, {terms.rule.certificate} of {clients:,} certify"
    server = f"{leaving} clients left; the sum is exact"
    return [
        _line(f"Secure sum, {clients:,} clients: a client", session, STEPS, note),
        _line("  of that, to certify and to reveal", session, CERTIFYING, ""),
        row("  its server", session.server_seconds, server),
    ]


def _line(name: str, session: Session, rounds: tuple[str, ...], note: str) -> str:
    """Median seconds of the measured clients, and bytes of the last of them, in some rounds."""
    spent = [sum(by_step[step] for step in rounds) for by_step in session.seconds[-MEASURED:]]
    up, down = (sum(by_step[-1][step] for step in rounds) for by_step in (session.up, session.down))
    sent = f"{up:,} bytes up, {down:,} down"
    return row(name, statistics.median(spent), f"{note}; {sent}" if note else sent)


def main() -> None:
    print(f"Secure sums of vectors of {LENGTH:,}; processor seconds, medians of {MEASURED} clients")
    for clients in CLIENTS:
        print("\n".join(sums(clients)), flush=True)


if __name__ == "__main__":
    main()
