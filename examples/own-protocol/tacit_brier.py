"""The Brier score of all clients' records, from noisy secure sums: a protocol of tacit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.privacy.mechanisms import PolyaShare

UNITS = 2**10
"""Squared errors, from 0 to 1, are summed in whole multiples of one over this."""

SUMS = {"records": (1, 0.25), "errors": (UNITS, 0.625), "squares": (UNITS, 0.125)}
"""The sums: how far one record moves each, and the fraction of epsilon that pays for it."""


def squared_errors(clients: tp.Clients) -> NDArray[np.float64]:
    """The squared difference of every record's score and label, shape (M,), from 0 to 1."""
    tp.check_scores_in_unit_interval(clients)
    return np.asarray((clients.scores - clients.labels) ** 2)


def in_units(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The sum of values from 0 to 1, each rounded to whole units."""
    return np.asarray(np.rint(UNITS * values).astype(np.int64).sum())


@tp.step(
    cost=lambda clients, query, state: query.protocol.guarantee,
    sums=lambda query: dict.fromkeys((*SUMS, "clients"), ()),
    shares=lambda query: query.broadcast["clients"],
)
def summed_errors(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the number of records and the sums of squared errors and of their squares, with noise.

    A squared error e lies in [0, 1]. Adding or removing a record changes the number of records by
    1, the sum of round(UNITS e) by at most UNITS, and that of round(UNITS e^2) by at most UNITS.
    All clients' noise adds up to discrete Laplace noise of scale ``reach / (part epsilon)`` on each
    sum, which then costs ``part epsilon``. The parts add up to 1: by basic composition the reply
    costs epsilon at record adjacency. The server must see sums only, and collude with no client.

    The server learns the three noisy sums over all clients, and how many clients answered.
    """
    errors = squared_errors(clients)
    sums = {"errors": in_units(errors), "squares": in_units(errors**2), "records": clients.records}
    shares = query.protocol.noise(clients.count, query.broadcast["clients"])
    noisy = {name: sums[name] + noise.draw(share, ()) for name, share in shares.items()}
    return {**noisy, "clients": np.asarray(clients.count, dtype=np.int64)}


@dataclass(frozen=True)
class Brier(tp.Protocol):
    """The Brier score, which is the mean squared difference of score and label."""

    epsilon: float = tp.setting(help=tp.EPSILON)
    dropouts: float = tp.setting(default=0.0, help="fraction of clients that may vanish, or 0")
    name = "brier"
    figure = "Brier score"
    score_range = tp.UNIT_INTERVAL
    steps = (summed_errors,)
    trusts = (tp.Trust.SECURE_SUM,)

    def __post_init__(self) -> None:
        super().__post_init__()
        tp.check_budget(self.epsilon)
        if self.epsilon < 0.13:  # shares of wider noise cannot be drawn exactly
            raise ValueError(f"epsilon must be at least 0.13, got {self.epsilon}")
        if not 0 <= self.dropouts < 1:
            raise ValueError(f"dropouts must be from 0 to below 1, got {self.dropouts}")

    @property
    def guarantee(self) -> tp.Cost:
        """What one evaluation costs every record at most."""
        return tp.Cost(self.epsilon, adjacency=tp.Adjacency.RECORD)

    def min_clients(self, clients: int) -> int:
        """How many of the clients must answer; so many draw all of the noise together."""
        return max(1, math.ceil(clients * (1 - self.dropouts) - 1e-9))

    def noise(self, batch: int, queried: int) -> dict[str, PolyaShare]:
        """What a batch of the queried clients adds to each sum."""
        share, eps = Fraction(batch, self.min_clients(queried)), self.epsilon
        return {name: PolyaShare(reach, part * eps, share) for name, (reach, part) in SUMS.items()}

    def replicate_size(self, clients: tp.Clients) -> int:
        """Three sums, and their noise."""
        return 2 * len(SUMS)

    def conversation(self, clients: int) -> tp.Conversation:
        """One round: the noisy sums up."""
        reply = yield tp.Query(summed_errors, self, {"clients": clients}, view=tp.View.SUM)
        noise = self.noise(int(np.asarray(reply["clients"])), clients)
        records, errors, squares = (np.asarray(reply[name], dtype=np.float64) for name in SUMS)
        n = np.maximum(records, 1.0)
        value = errors / (UNITS * n)
        variance = squares / (UNITS * n) - value**2
        left = sum((part.cost(tp.Adjacency.RECORD) for part in noise.values()), tp.NOTHING)
        return tp.ServerResult(
            value,
            np.sqrt(quotient_variance(noise, value, n)),
            np.sqrt(np.where(variance > 0, variance, np.nan) / n),  # of a mean; NaN where not known
            positives=np.full_like(value, np.nan),
            negatives=np.full_like(value, np.nan),
            approximation_error=1 / (UNITS * np.sqrt(12 * n)),  # of roundings that are independent
            protection=left if noise["records"].share < 1 else None,
        )

    def exact(self, clients: tp.Clients) -> float:
        """The mean squared error, which is not private."""
        return float(squared_errors(clients).mean())

    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        """The error of the quotient at the Brier score of the shape."""
        positives, negatives = scenario.counts(shape, cells=1000)
        scores = (np.arange(1000) + 0.5) / 1000
        value = (positives @ (1 - scores) ** 2 + negatives @ scores**2) / scenario.records
        noise = self.noise(scenario.clients, scenario.clients)
        return tp.Forecast(math.sqrt(quotient_variance(noise, value, scenario.records)))

    def audit_federation(self, records: int, apart: bool) -> tp.Clients:
        """Scores that are wrong by 1: those records move the sums most."""
        labels, ids = np.arange(records) % 2, np.arange(records) if apart else None
        return tp.Clients.from_arrays(1 - labels, labels, ids)

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> tp.ThreatModel:
        """Who sees what."""
        return tp.ThreatModel(
            "The server is trusted to see sums only, the other clients to hide their noise.",
            "With noise: the number of records, and the sums. Exactly: how many clients answered.",
            "Nothing but the result.",
            "Clients that vanish, or that tell the server their noise, take their share away.",
        )


def quotient_variance(noise: Mapping[str, PolyaShare], value: Any, records: Any) -> Any:
    """The noise of errors / (UNITS n): (Var errors / UNITS^2 + value^2 Var n) / n^2."""
    return (noise["errors"].variance / UNITS**2 + value**2 * noise["records"].variance) / records**2
