"""What every party counts, and what the parties have in the end, under masks and in ciphertexts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from math import inf, nextafter
from typing import NamedTuple

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.protocols.shared.cells import cell_counts


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts that every client encrypts.

    Parameters
    ----------
    rising : T, ``TP^n + TP^(n-1)``, shape (N, K).
    falling : F, ``FP^n - FP^(n-1)``, shape (N, K): the negatives in every cell.
    inside : the positives in every cell, shape (N, K); 0 in a cell that is a single score.
    positives, negatives : the totals, shape (K,).
    """

    rising: Integers
    falling: Integers
    inside: Integers
    positives: Integers
    negatives: Integers

    def of(self, client: int) -> Counts:
        """The counts of one client."""
        return Counts(
            self.rising[:, client],
            self.falling[:, client],
            self.inside[:, client],
            self.positives[client : client + 1],
            self.negatives[client : client + 1],
        )


def class_cells(clients: Clients, thresholds: Floats) -> tuple[Integers, Integers]:
    """Every client's positives and negatives in every cell, from the highest down, shape (N, K).

    Parameters
    ----------
    clients : the clients.
    thresholds : ascending from 0 to 1, or from minus to plus infinity, shape (N,).

    Raises
    ------
    DataError : for a score outside [0, 1], where thresholds end there.
    """
    positives, records = cell_counts(clients, thresholds)
    return positives[::-1], (records - positives)[::-1]


def cumulative_counts(clients: Clients, thresholds: Floats) -> Counts:
    """The cumulative counts of every client, from the highest threshold down.

    Parameters
    ----------
    clients : the clients.
    thresholds : as in ``class_cells``; evenly spaced in Baykara et al. 2024, section IV-C.

    The curve starts at (0, 0), so that scores of exactly 1 count too. They have a separate cell, in
    which all pairs are ties: its count is exact. Above plus infinity there is no score.

    Raises
    ------
    DataError : for a score outside [0, 1], where thresholds end there.
    """
    positives, negatives = class_cells(clients, thresholds)
    rising = 2 * np.cumsum(positives, axis=0) - positives
    inside = positives.copy()
    inside[0] = 0
    return Counts(rising, negatives, inside, positives.sum(axis=0), negatives.sum(axis=0))


@dataclass(frozen=True)
class Certain:
    """An AUC, and a bound of its distance to the exact one.

    Parameters
    ----------
    value : the AUC.
    half_range : the largest distance of the exact AUC of the records from ``value``.
    """

    value: float
    half_range: float

    def rounded(self, decimals: int, digits: int) -> Certain:
        """The AUC rounded to ``decimals``; the half-range rounded up to ``digits`` digits."""
        value = round(self.value, decimals)
        reach = nextafter(self.half_range + abs(value - self.value), inf)
        return Certain(value, rounded_up(reach, digits, decimals))


def rounded_up(value: float, digits: int, decimals: int) -> float:
    """A positive number rounded up to ``digits`` digits, and at most ``decimals`` decimal places.

    Examples
    --------
    >>> rounded_up(0.0123456, digits=3, decimals=7), rounded_up(0.00000012, digits=3, decimals=7)
    (0.0124, 2e-07)
    """
    exact = Decimal(value)
    finest = max(exact.adjusted() - digits + 1, -decimals) if exact else -decimals
    return float(exact.quantize(Decimal((0, (1,), finest)), ROUND_CEILING))


class Products(NamedTuple):
    """The three forms of all parties' counts, or the numbers of an answer about them.

    An answer's numbers are multiplied by the aggregator's secret and perturbed. In
    ``published.fhe`` all are twice these.

    Parameters
    ----------
    numerator : of ``X = 2 A P N``.
    denominator : of ``Y = P N``.
    tied : of ``Z``, the pairs of one cell.
    """

    numerator: int
    denominator: int
    tied: int
