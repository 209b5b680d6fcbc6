"""The Brier score of all clients' records, from noisy secure sums: a protocol of tacit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp

UNITS = 2**10
"""Squared errors, from 0 to 1, are summed in whole multiples of one over this."""


def squared_errors(clients: tp.Clients) -> NDArray[np.float64]:
    """The squared difference of every record's score and label, shape (M,), from 0 to 1."""
    tp.check_scores_in_unit_interval(clients)
    return np.asarray((clients.scores - clients.labels) ** 2)


def released(query: tp.Query) -> dict[str, tp.Released]:
    """Three sums: the sensitivity of each, and its fraction of epsilon."""
    epsilon = query.protocol.epsilon
    return {
        "records": tp.Released(epsilon=epsilon / 4),
        "errors": tp.Released((), UNITS, 5 / 8 * epsilon, per_record=UNITS),
        "squares": tp.Released((), UNITS, epsilon / 8, per_record=UNITS),
    }


@tp.release(released)
def summed_errors(clients: tp.Clients, query: tp.Query) -> dict[str, NDArray[np.int64]]:
    """Send the number of records and the sums of squared errors and of their squares, with noise.

    A squared error e lies in [0, 1]. Adding or removing a record changes the number of records by
    1, the sum of round(UNITS e) by at most UNITS, and that of round(UNITS e^2) by at most UNITS.
    The costs add up to epsilon, by basic composition (``tacit.protocol.releases``).

    The server learns the three noisy sums over all clients, and how many clients answered.
    """
    errors = squared_errors(clients)
    exact = {"records": errors**0, "errors": UNITS * errors, "squares": UNITS * errors**2}
    return {name: np.rint(each).astype(np.int64).sum() for name, each in exact.items()}


@dataclass(frozen=True)
class Brier(tp.Protocol):
    """The Brier score, which is the mean squared difference of score and label."""

    epsilon: float = tp.setting(help=tp.EPSILON)
    trust: tp.SecureSum | str = tp.trust_setting()
    name = "brier"
    figure = tp.Figure("Brier score", limits=(0.0, 1.0))
    score_range = tp.UNIT_INTERVAL
    steps = (summed_errors,)
    trusts = (tp.Trust.SECURE_SUM,)

    def conversation(self, clients: int) -> tp.Conversation:
        """One round: the noisy sums up."""
        sums = yield from tp.ask(summed_errors, self, clients)
        n = np.maximum(sums["records"], 1.0)
        value = sums["errors"] / (UNITS * n)
        variance = sums["squares"] / (UNITS * n) - value**2
        return sums.result(
            value,
            {"errors": 1 / (UNITS * n), "records": -value / n},
            np.sqrt(np.where(variance > 0, variance, np.nan) / n),  # of a mean; NaN if unknown
            approximation_error=1 / (UNITS * np.sqrt(12 * n)),  # of roundings that are independent
        )

    def exact(self, clients: tp.Clients) -> float:
        """The mean squared error, which is not private."""
        return float(squared_errors(clients).mean())

    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        """The error that the server states of records that are drawn from the shape."""
        return tp.measured_forecast(self, scenario, shape)

    def audit_federation(self, records: int, apart: bool) -> tp.Clients:
        """Scores that are wrong by 1, because such records change the sums most."""
        labels, ids = np.arange(records) % 2, np.arange(records) if apart else None
        return tp.Clients.from_arrays(1 - labels, labels, ids)
