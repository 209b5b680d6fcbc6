"""A secure sum at 10, 100 and 1,000 clients: seconds and bytes a client, and the server's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import row
from tacit.crypto.identities import Identity, Roster
from tacit.crypto.neighbours import Neighbourhood
from tacit.crypto.secure_sum import SumTerms, new_session
from tacit.crypto.secure_sum_client import SumClient
from tacit.crypto.secure_sum_server import SumServer

LENGTH, LARGEST = 4096, 1_000_000
CLIENTS = (10, 100, 1000)
Answer = TypeVar("Answer")


class Session:
    """One sum in one process, with the processor time of each party added up apart."""

    def __init__(self, terms: SumTerms, identities: list[Identity]) -> None:
        self.seconds = [0.0] * terms.clients
        self.server_seconds = 0.0
        self.up, self.down = [0] * terms.clients, [0] * terms.clients
        self.server = SumServer(terms)
        self.clients = [
            self.client(index, partial(SumClient, identity, terms))
            for index, identity in enumerate(identities)
        ]

    def client(self, index: int, work: Callable[[], Answer]) -> Answer:
        start = time.process_time()
        answer = work()
        self.seconds[index] += time.process_time() - start
        return answer

    def serve(self, work: Callable[[], Answer]) -> Answer:
        start = time.process_time()
        answer = work()
        self.server_seconds += time.process_time() - start
        return answer

    def answer(self, given: dict[int, bytes], step: Callable[[int, bytes], bytes]) -> None:
        """One round: what was given goes down, what each client answers goes up."""
        for index, message in given.items():
            answer = self.client(index, partial(step, index, message))
            self.down[index] += len(message)
            self.up[index] += len(answer)
            self.serve(partial(self.server.receive, index, answer))

    def run(self, vectors: NDArray[np.int64], leaving: int) -> NDArray[np.int64]:
        """All four rounds; the first clients leave after their shares were sent."""
        clients, server = self.clients, self.server
        self.answer(dict.fromkeys(range(len(clients)), b""), lambda k, _: clients[k].advertise())
        self.answer(self.serve(server.close_round), lambda k, m: clients[k].share(m))
        given = self.serve(server.close_round)
        staying = {index: message for index, message in given.items() if index >= leaving}
        self.answer(staying, lambda k, m: clients[k].mask(m, vectors[k]))
        self.answer(self.serve(server.close_round), lambda k, m: clients[k].reveal(m))
        return self.serve(server.conclude).total


def sums(clients: int) -> list[str]:
    """The lines of one number of clients, of which one in twenty leaves."""
    around = Neighbourhood.of(clients)
    identities = [Identity.generate() for _ in range(clients)]
    roster = Roster(tuple(identity.public for identity in identities))
    session = Session(SumTerms(new_session(), roster, LENGTH, LARGEST, around), identities)
    rng = np.random.default_rng(0)
    vectors = rng.integers(-LARGEST, LARGEST + 1, (clients, LENGTH), dtype=np.int64)
    leaving = clients // 20
    total = session.run(vectors, leaving)
    assert np.array_equal(total, vectors[leaving:].sum(axis=0))
    note = (
        f"{around.degree} neighbours, threshold {around.threshold}; "
        f"{session.up[-1]:,} bytes up, {session.down[-1]:,} down"
    )
    seconds = statistics.median(session.seconds[leaving:])
    return [
        row(f"Secure sum, {clients:,} clients: a client", seconds, note),
        row("  its server", session.server_seconds, f"{leaving} clients left; the sum is exact"),
    ]


def main() -> None:
    print(f"Secure sums of vectors of {LENGTH:,}; processor seconds, medians of clients")
    for clients in CLIENTS:
        print("\n".join(sums(clients)), flush=True)


if __name__ == "__main__":
    main()
