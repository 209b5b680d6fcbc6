"""DPAUC with a mistake each, which an audit has to notice."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.privacy.cost import Cost
from tacit.protocol.conversation import ClientState, Conversation, Query, Step
from tacit.protocols.dpauc.protocol import DPAUC
from tacit.protocols.dpauc.steps import noisy_histograms


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
