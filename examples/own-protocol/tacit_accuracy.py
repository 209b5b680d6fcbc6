"""The accuracy at a public threshold, from one randomised bit a record: the local model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import tacit.protocol as tp


@tp.step(cost=lambda clients, query, state: query.protocol.guarantee)
def flipped_hits(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send one bit a record: whether its prediction is right, flipped at random.

    A bit is flipped with probability ``1 / (1 + e^epsilon)``. So it has either value with at most
    e^epsilon times the probability under any other score and label, and the bits of other records
    do not depend on this record: replacing a record costs epsilon. No party has to be trusted.

    The server learns the flipped bits, in the order of the records, and the number of records.
    """
    right = (clients.scores >= query.protocol.threshold) == (clients.labels == 1)
    flips = noise.draw(query.protocol.flips, (clients.records,))
    return {"right": clients.ragged((right ^ flips).astype(np.uint8))}


@dataclass(frozen=True)
class Accuracy(tp.Protocol):
    """The fraction of records whose label is what the threshold predicts."""

    epsilon: float = tp.setting(help=tp.EPSILON)
    threshold: float = tp.setting(default=0.5, help="scores from here on predict label 1")
    name = "accuracy"
    figure = tp.Figure("accuracy", limits=(0.0, 1.0))
    steps = (flipped_hits,)
    trusts = (tp.Trust.LOCAL,)
    lone_records = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold}")

    @property
    def guarantee(self) -> tp.Cost:
        """What one evaluation costs every record."""
        return tp.Cost(self.epsilon, adjacency=tp.Adjacency.REPLACE)

    @property
    def flips(self) -> tp.RandomisedResponse:
        """The flips of the bits."""
        return tp.RandomisedResponse(self.epsilon)

    def replicate_size(self, clients: tp.Clients) -> int:
        """A flip and a bit a record."""
        return 2 * clients.records

    def conversation(self, clients: int) -> tp.Conversation:
        """One round: the flipped bits up."""
        reply = yield tp.Query(flipped_hits, self)
        bits = reply["right"]
        if not isinstance(bits, tp.Ragged):
            raise TypeError("the bits must be ragged: several a client")
        flip, records = self.flips.probability, bits.values.shape[-1]
        value = (bits.values.mean(axis=-1) - flip) / (1 - 2 * flip)
        variance = value * (1 - value)
        unknown = np.full_like(value, np.nan)
        return tp.ServerResult(
            value,
            np.full_like(value, math.sqrt(self.flips.variance / records)),
            np.sqrt(np.where(variance > 0, variance, np.nan) / records),
            positives=unknown,
            negatives=unknown,
        )

    def exact(self, clients: tp.Clients) -> float:
        """The accuracy, which is not private."""
        return float(((clients.scores >= self.threshold) == (clients.labels == 1)).mean())

    def noiseless_value(self, clients: tp.Clients) -> float:
        """The debiased value of bits that a law does not flip."""
        flip = self.flips.probability
        return (self.exact(clients) - flip) / (1 - 2 * flip)

    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        """The error by flips, which is the same for all data."""
        return tp.Forecast(math.sqrt(self.flips.variance / scenario.records))

    @classmethod
    def audit_cases(cls) -> tuple[tp.AuditCase, ...]:
        """Clients of one record, whose replies are one bit each."""
        return (tp.AuditCase(cls.name, apart=True),)

    @classmethod
    def error_cases(cls) -> dict[str, tp.ErrorCase]:
        """More flips give other values, but not an error that is 30 % larger."""
        return {cls.name: tp.ErrorCase(cls(1.0))}
