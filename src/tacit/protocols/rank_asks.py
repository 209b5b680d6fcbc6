"""What a client checks of an ask for rank sums: the server's numbers must not weaken the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients, Ragged
from tacit.privacy.noise import NoiseSource
from tacit.protocols.conversation import Ask
from tacit.protocols.rank_noise import RankNoise
from tacit.protocols.rank_sums import check_sums, largest_distance

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_RECORDS = 2**40
"""Records of all clients together; what sums of their ranks may be is checked apart
(``rank_sums.check_sums``)."""

SLACK = 1 + 1e-9
"""Parts of epsilon that were added up may pass it in the last digits."""


@dataclass(frozen=True, eq=False)
class RankAsk:
    """An ask for rank sums, checked.

    Parameters
    ----------
    mechanism : the noise, of the agreed kind and at most the agreed budget.
    ranks : doubled ranks of the clients' records, ascending within a client.
    pivot : doubled pivots, shape (K,), or (R, K) in replicates.
    share : the count's share of the budget, likewise.
    respond : who flips labels instead, likewise.
    sensitivity : the least sensitivity to be assumed of a rank sum.
    """

    mechanism: RankNoise
    ranks: Ragged[np.int64]
    pivot: Integers
    share: Floats
    respond: NDArray[np.bool_]
    sensitivity: int

    @classmethod
    def of(cls, clients: Clients, ask: Ask, noise: NoiseSource | None = None) -> RankAsk:
        """The checked ask; with the noise that answers it, also that it has no more replicates.

        Raises
        ------
        ValueError : for a value of another type, shape or range, or ranks whose sum would not be
            exact; the message names it.
        """
        ranks, columns = _ranks(clients, ask), _Columns(clients, ask, noise)
        pivot = columns.read("pivot", np.dtype(np.int64))
        if pivot.min() < 0 or pivot.max() > 2 * MOST_RECORDS:
            raise ValueError(f"doubled pivots must be from 0 to {2 * MOST_RECORDS}")
        share = columns.read("share", np.dtype(np.float64))
        respond = columns.read("respond", np.dtype(np.bool_))
        if not ((share > 0) & (share <= 1)).all():
            raise ValueError("the count's share of the budget must be above 0 and at most 1")
        distance, mechanism = largest_distance(ranks, pivot), agreed_noise(ask)
        check_sums(ranks.sizes, distance, mechanism.largest_sum)
        if np.any(~respond & (share == 1) & (distance > 0)):
            raise ValueError("no budget is left for a rank sum that depends on the labels")
        return cls(mechanism, ranks, pivot, share, respond, _whole(ask, "sensitivity"))


def agreed_noise(ask: Ask) -> RankNoise:
    """The mechanism of an ask, which must be the agreed one, within the agreed budget.

    Raises
    ------
    ValueError : for another mechanism, or more budget.
    """
    noise, settings = ask.shared["noise"], ask.settings
    if not isinstance(noise, RankNoise) or noise.mechanism != settings.mechanism:
        raise ValueError(f"mechanism must be {settings.mechanism}, as agreed, got {noise!r:.80}")
    if noise.epsilon > settings.epsilon * SLACK or noise.delta > settings.delta * SLACK:
        raise ValueError(f"the agreed budget is {settings.epsilon}, {settings.delta}, got {noise}")
    return noise


def public_records(ask: Ask) -> int:
    """The number of all clients' records, as the server says it.

    Raises
    ------
    ValueError : for what cannot be that.
    """
    records = _whole(ask, "records")
    if records < 1:
        raise ValueError(f"records must be at least 1, got {records}")
    return records


def count_share(ask: Ask) -> float:
    """The count's share of the budget, the same for every client.

    Raises
    ------
    ValueError : for a share that leaves no noise.
    """
    share = ask.shared["share"]
    if not (isinstance(share, float | int) and 0 < share < 1):
        raise ValueError(f"share must be above 0 and below 1, got {share!r:.40}")
    return float(share)


def _whole(ask: Ask, name: str) -> int:
    value = ask.shared.get(name, 0)
    if not isinstance(value, int | np.integer) or not 0 <= value <= 2 * MOST_RECORDS:
        raise ValueError(
            f"{name} must be a whole number from 0 to {2 * MOST_RECORDS}, got {value!r:.40}"
        )
    return int(value)


def _ranks(clients: Clients, ask: Ask) -> Ragged[np.int64]:
    ranks = ask.each["ranks"]
    if not isinstance(ranks, Ragged) or ranks.values.dtype != np.int64 or ranks.values.ndim != 1:
        raise ValueError("ranks must be ragged 64-bit integers")
    if not np.array_equal(ranks.offsets, clients.offsets):
        raise ValueError("there must be one rank for every record")
    if ranks.values.min() < 0 or ranks.values.max() > 2 * MOST_RECORDS:
        raise ValueError(f"doubled ranks must be from 0 to {2 * MOST_RECORDS}")
    return ranks


@dataclass(frozen=True)
class _Columns:
    """Numbers of which every client receives one, or one a replicate."""

    clients: Clients
    ask: Ask
    noise: NoiseSource | None

    def read(self, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        column, one = np.asarray(self.ask.each[name]), (self.clients.count,)
        several = column.ndim == 2 if self.noise is None else column.shape == self._several
        if column.dtype != dtype or column.shape[-1:] != one or not (several or column.ndim == 1):
            raise ValueError(
                f"{name} must hold one {dtype} a client, got {column.dtype} of {column.shape}"
            )
        return column

    @property
    def _several(self) -> tuple[int, ...]:
        return () if self.noise is None else self.noise.full_shape((self.clients.count,))
