"""Labels guessed from scores that the server receives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.metrics.ranking import top_hits
from tacit.privacy.sampling.noise import NoiseSource, NoNoise, SimulatedNoise
from tacit.protocol.conversation import ClientState, Protocol
from tacit.protocol.declarations.audits import (
    POSITIVE_FRACTION,
    AttackSizes,
    Guesses,
    synthetic_records,
)

CLIENT_SIZES = ((1, "one record"), (100, "100 records"))
"""Numbers of records of clients whose scores the server receives in ascending order."""


def guesses_from_ascending_scores(
    protocol: Protocol, sizes: AttackSizes, seed: int
) -> Iterator[Guesses]:
    """Call the highest-scored hundredth positive, from scores sent in ascending order.

    The server does not know which record of a client has which score, unless a client has one
    record only.
    """
    scores, labels = synthetic_records(sizes.records, seed, POSITIVE_FRACTION)
    yield _guesses("scores beside their records", False, scores, labels)
    for size, text in CLIENT_SIZES:
        clients = Clients.from_arrays(scores, labels, np.arange(scores.size) // size)
        received = received_scores(protocol, clients, NoNoise())
        yield _guesses(f"ascending scores of clients of {text}", size > 1, received, labels)


def guesses_from_plain_scores(
    protocol: Protocol, sizes: AttackSizes, seed: int
) -> Iterator[Guesses]:
    """Call the highest-scored hundredth positive, from the records' scores themselves.

    A protocol that shows no scores prevents this attack.
    """
    scores, labels = synthetic_records(sizes.records, seed, POSITIVE_FRACTION)
    yield _guesses("scores beside their records", False, scores, labels)


def _guesses(release: str, protected: bool, received: Floats, labels: NDArray[np.int8]) -> Guesses:
    """Right guesses of the highest-scored hundredth (Sun et al. 2022a, Table 8; Sun et al. 2022b,
    Table 2)."""
    size = labels.size // 100
    hits = int(top_hits(received, labels, np.array([size]))[0])
    return Guesses("labels, from scores", release, protected, hits, size, float(labels.mean()))


def received_scores(protocol: Protocol, clients: Clients, noise: NoiseSource) -> Floats:
    """The scores that the server receives, in the order in which it receives them."""
    query = next(protocol.conversation(clients.count))
    sent = query.step.answer(clients, query, noise, ClientState())["scores"]
    if not isinstance(sent, Ragged):
        raise TypeError("scores must be ragged")
    return sent.values


def guesses_from_noisy_scores(
    protocol: Protocol, sizes: AttackSizes, seed: int
) -> Iterator[Guesses]:
    """Call the highest-scored hundredth positive, from scores with noise."""
    scores, labels = synthetic_records(sizes.records, seed, POSITIVE_FRACTION)
    yield _guesses("scores beside their records", False, scores, labels)
    received = received_scores(protocol, Clients.from_arrays(scores, labels), SimulatedNoise(seed))
    yield _guesses("scores with noise", True, received, labels)
