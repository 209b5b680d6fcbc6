"""What the counts of a client with one record reveal: its cell and its label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.metrics.curves import counts_from_thresholds
from tacit.privacy.cost import Adjacency
from tacit.privacy.sampling.noise import NoiseSource, NoNoise, SimulatedNoise
from tacit.protocol.conversation import ClientState, Protocol, Reply
from tacit.protocol.declarations.audits import AttackSizes, Guesses, synthetic_records
from tacit.protocols.dpauc.protocol import DPAUC
from tacit.protocols.shared.sums.rank_noise import RESPONSE

THRESHOLDS = 100


def guesses_from_lone_counts(
    protocol: Protocol, sizes: AttackSizes, seed: int
) -> Iterator[Guesses]:
    """The cell of a client's only record, and its label, from the client's counts.

    Exact counts per threshold reveal both. Where labels are flipped the counts still reveal the
    record's cell, a weakness that Sun et al. 2022b names.
    """
    scores, labels = synthetic_records(sizes.records // 10, seed, 0.5)
    clients = Clients.from_arrays(scores, labels, np.arange(scores.size))
    epsilon = protocol.guarantee.epsilon
    exact = DPAUC(epsilon, THRESHOLDS, "laplace", scale=EVEN)
    four = np.asarray(_first_reply(exact, clients, NoNoise())["counts"])
    cells = cells_of_lone_records(four[0] + four[1])
    yield from _lone("exact counts per threshold", exact, clients, (cells, four[0, 0] > 0), False)
    flipping = DPAUC(epsilon, THRESHOLDS, RESPONSE, adjacency="label", scale=EVEN)
    reply = _first_reply(flipping, clients, SimulatedNoise(seed))
    cells = cells_of_lone_records(counts_from_thresholds(np.asarray(reply["records"]).T).T)
    guesses = np.asarray(reply["positives"]).sum(axis=0) > 0
    yield from _lone("counts of flipped labels", flipping, clients, (cells, guesses), True)
    histogram = DPAUC(epsilon, THRESHOLDS, second_round=0.0, scale=EVEN)
    noisy = np.asarray(_first_reply(histogram, clients, SimulatedNoise(seed + 1))["cells"])
    index = np.argmax(noisy.reshape(-1, clients.count), axis=0)
    guess = index % THRESHOLDS, index < THRESHOLDS
    yield from _lone("noisy histograms", histogram, clients, guess, True)


def cells_of_lone_records(reached: NDArray[Any]) -> Integers:
    """The cell of every client's only record, from how many records reach each threshold.

    The difference of neighbouring counts is 1 in the record's cell, which is what Sun et al. 2022b
    warns of.

    Parameters
    ----------
    reached : at ascending thresholds, shape (T, K); noisy or not.

    Examples
    --------
    >>> cells_of_lone_records(np.array([[1, 1], [1, 0], [0, 0]]))
    array([1, 0])
    """
    below = np.vstack([reached[1:], np.zeros_like(reached[:1])])
    return np.argmax(reached - below, axis=0).astype(np.int64)


def _lone(
    release: str,
    protocol: DPAUC,
    clients: Clients,
    guess: tuple[NDArray[Any], NDArray[Any]],
    protected: bool,
) -> Iterator[Guesses]:
    """How often the cells and labels of lone records were guessed."""
    cells = np.searchsorted(protocol.edges, clients.scores, side="right") - 1
    blind = float(np.bincount(cells).max() / cells.size)
    right = [
        int(np.sum(guessed == true))
        for guessed, true in zip(guess, (cells, clients.labels), strict=True)
    ]
    hides = protected and protocol.adjacency != Adjacency.LABEL.value
    yield Guesses(
        "a lone record's cell, from its counts", release, hides, right[0], cells.size, blind
    )
    limit = protocol.guarantee if protected else None
    attack = "a lone record's label, from its counts"
    yield Guesses(attack, release, protected, right[1], cells.size, 0.5, limit)


def _first_reply(protocol: Protocol, clients: Clients, noise: NoiseSource) -> Reply:
    query = next(protocol.conversation(clients.count))
    return query.step.answer(clients, query, noise, ClientState())
