"""What the counts of a client with one record reveal: its cell and its label.

DPAUC with a mistake each, which an audit has to notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.sampling.noise import SimulatedNoise
from tacit.protocol.conversation import ClientState, Conversation, Protocol, Query, Step
from tacit.protocol.declarations import audits
from tacit.protocols.dpauc.protocol import DPAUC, noisy_histograms
from tacit.protocols.shared.declared import first_reply

THRESHOLDS = 100


def guesses_from_lone_counts(
    protocol: Protocol, sizes: audits.AttackSizes, seed: int
) -> Iterator[audits.Guesses]:
    """The cell of a client's only record, and its label, from the client's noisy counts."""
    clients = lone_records(sizes, seed)
    histogram = DPAUC(protocol.guarantee.epsilon, THRESHOLDS, scale=EVEN)
    noisy = np.asarray(first_reply(histogram, clients, SimulatedNoise(seed + 1))["cells"])
    index = np.argmax(noisy.reshape(-1, clients.count), axis=0)
    guess = index % THRESHOLDS, index < THRESHOLDS
    yield from guesses_of_lone_records("noisy histograms", histogram, clients, guess, True)


def lone_records(sizes: audits.AttackSizes, seed: int) -> Clients:
    """Clients of one record each."""
    scores, labels = audits.synthetic_records(sizes.records // 10, seed, 0.5)
    return Clients.from_arrays(scores, labels, np.arange(scores.size))


def guesses_of_lone_records(
    release: str,
    protocol: Any,
    clients: Clients,
    guess: tuple[NDArray[Any], NDArray[Any]],
    protected: bool,
) -> Iterator[audits.Guesses]:
    """How often the cells and labels of lone records were guessed."""
    cells = np.searchsorted(protocol.edges, clients.scores, side="right") - 1
    blind = float(np.bincount(cells).max() / cells.size)
    right = [
        int(np.sum(guessed == true))
        for guessed, true in zip(guess, (cells, clients.labels), strict=True)
    ]
    hides = protected and protocol.adjacency != Adjacency.LABEL.value
    yield audits.Guesses(
        "a lone record's cell, from its counts", release, hides, right[0], cells.size, blind
    )
    limit = protocol.guarantee if protected else None
    attack = "a lone record's label, from its counts"
    yield audits.Guesses(attack, release, protected, right[1], cells.size, 0.5, limit)


def _claimed(clients: Clients, query: Query, state: ClientState) -> Cost:
    cost: Cost = query.protocol.claim
    return cost


_HISTOGRAMS = Step(
    "noisy_histograms", noisy_histograms.answer, _claimed, noisy_histograms.participates
)


@dataclass(frozen=True)
class TwoReleases(DPAUC):
    """Two histograms of the same records, in cells that are shifted against each other.

    Parameters
    ----------
    declared : what the run declares, as a multiple of epsilon: 2 is true, as both releases cost
        epsilon, and 1 counts the same budget twice.
    shifted : whether cells are half as wide but for the last one.
    """

    declared: float = 2.0
    shifted: bool = False

    @property
    def edges(self) -> Floats:
        """The lower edges of the cells."""
        return super().edges / 2 if self.shifted else super().edges

    @property
    def claim(self) -> Cost:
        """What each release costs."""
        return Cost(self.epsilon, adjacency=super().guarantee.adjacency)

    @property
    def guarantee(self) -> Cost:
        """What is declared of both releases together."""
        return Cost(self.declared * self.epsilon, adjacency=super().guarantee.adjacency)

    def conversation(self, clients: int) -> Conversation:
        """Two rounds: counts in both divisions of the scores."""
        for settings in (self, replace(self, shifted=True)):
            reply = yield Query(_HISTOGRAMS, settings, broadcast={"thresholds": settings.edges})
        raise ValueError(f"an audit draws no conclusion from {len(reply)} fields")


@dataclass(frozen=True)
class SmallSensitivity(DPAUC):
    """Histograms with noise for one changed count, where a replaced record changes two."""

    @property
    def record_distance(self) -> float:
        """One, whatever the adjacency."""
        return 1.0
