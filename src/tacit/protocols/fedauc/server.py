"""What FedAUC's server asks for and concludes: a first round, noisy rank sums, hidden ranks."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from tacit.arrays import Floats
from tacit.data.batches.ragged import Ragged
from tacit.metrics.errors.laws import ErrorLaw
from tacit.protocol.conversation import Conversation, Query, Reply, View
from tacit.protocols.fedauc.allocation import (
    Allocation,
    PriorEstimate,
    RankGeometry,
    adaptive_allocation,
    first_round_fraction,
    fixed_allocation,
    influence_allocation,
    influence_centre,
    numerator_law,
    orthogonal_allocation,
    predicted_variance,
    prior_from,
    vague_prior,
)
from tacit.protocols.fedauc.estimate import area_of_sums, result_from_pairs, totals_of_pairs
from tacit.protocols.fedauc.hidden_ranks.mpc import (
    hidden_geometry,
    middle_allocation,
    noisy_hidden_rank_sums,
    offer_sizes,
    rank_together,
)
from tacit.protocols.fedauc.steps import noisy_rank_sums
from tacit.protocols.shared.sums.rank_noise import RESPONSE, RankNoise
from tacit.results.server_result import ServerResult

FEW_CLIENTS = 32
"""Largest number of clients whose noise is not taken as normal."""


class RankSumServer:
    """The parts of ``FedAUC.conversation``, under the settings of the protocol."""

    epsilon: float
    delta: float
    mechanism: str
    allocation: str
    sensitivity: str
    alpha: float
    beta: float
    prior: PriorEstimate | None

    def _hidden(self) -> Conversation:
        """The conversation in which nobody shows scores or ranks to the server."""
        offer = yield Query(offer_sizes, self)
        geometry = hidden_geometry(np.asarray(offer["records"]))
        if geometry.records < 2:
            raise ValueError(f"an AUC needs at least two records, got {geometry.records}")
        yield Query(rank_together, self, view=View.MPC)
        noise = RankNoise(self.mechanism, self.epsilon, self.delta)
        allocation = middle_allocation(geometry, 1.0 - self.alpha)
        shared = {"noise": noise, "records": geometry.records, "share": 1.0 - self.alpha}
        reply = yield Query(noisy_hidden_rank_sums, self, shared)
        sums = totals_of_pairs(geometry, noise, allocation, reply)
        return self._conclude(geometry, noise, allocation, sums)

    def _plain(self, geometry: RankGeometry, noise: RankNoise) -> Allocation:
        clients = geometry.sizes.size
        if self.mechanism == RESPONSE:
            pivot = np.zeros(clients, dtype=np.int64)
            return Allocation(pivot, np.ones(clients), np.ones(clients, dtype=np.bool_))
        if self.allocation == "fixed":
            return fixed_allocation(geometry, 1.0 - self.alpha)
        if self.allocation == "orthogonal":
            return orthogonal_allocation(geometry, self.beta)
        return adaptive_allocation(geometry, noise)

    def _influence(
        self, ranks: Ragged[np.int64], geometry: RankGeometry
    ) -> Generator[Query, Reply, tuple[RankNoise, Allocation]]:
        """The allocation of the main round, after a first round if one is worth its price."""
        prior, fraction = self.prior, 0.0
        if prior is None:
            fraction = first_round_fraction(geometry, self.mechanism, self.epsilon, self.delta)
            prior = vague_prior(geometry.records)
        if fraction:
            first = RankNoise(self.mechanism, fraction * self.epsilon, fraction * self.delta)
            first_allocation = adaptive_allocation(geometry, first)
            _, sums = yield from self._query_pairs(ranks, geometry, first, first_allocation)
            positives, area = area_of_sums(geometry.records, *sums)
            prior = prior_from(
                geometry, first, first_allocation, positives, np.nan_to_num(area, nan=0.5)
            )
        noise = RankNoise(
            self.mechanism, self.epsilon - fraction * self.epsilon, self.delta * (1 - fraction)
        )
        return noise, influence_allocation(geometry, noise, prior)

    def _query_pairs(
        self,
        ranks: Ragged[np.int64],
        geometry: RankGeometry,
        noise: RankNoise,
        allocation: Allocation,
    ) -> Generator[Query, Reply, tuple[Allocation, tuple[Floats, Floats]]]:
        """Noisy totals of the positives and of their ranks, measured from the middle rank."""
        largest = 2 * (geometry.records - 1) if self.sensitivity == "global" else 0
        reply = yield Query(
            noisy_rank_sums,
            self,
            broadcast={"noise": noise, "sensitivity": largest if self.allocation == "fixed" else 0},
            per_client={
                "ranks": ranks,
                "pivot": allocation.doubled_pivot,
                "share": allocation.fraction,
                "respond": allocation.respond,
            },
        )
        return allocation, totals_of_pairs(geometry, noise, allocation, reply)

    def _conclude(
        self,
        geometry: RankGeometry,
        noise: RankNoise,
        allocation: Allocation,
        sums: tuple[Floats, Floats],
    ) -> ServerResult:
        positives, value = area_of_sums(geometry.records, *sums)
        return result_from_pairs(
            geometry.records,
            positives,
            value,
            *self._variances(geometry, noise, allocation, positives, value),
            law=self._law(geometry, noise, allocation, positives, value),
        )

    def _variances(
        self,
        geometry: RankGeometry,
        noise: RankNoise,
        allocation: Allocation,
        positives: Floats,
        value: Floats,
    ) -> tuple[Floats, Floats]:
        """Variances of the AUC's numerator about its influence centre, and of the count."""
        _, centre = _pairs_and_centre(geometry.records, positives, value)
        geometry = self._bounded(geometry)
        numerator, count, _ = predicted_variance(geometry, noise, allocation, centre)
        return numerator.sum(axis=-1), count.sum(axis=-1)

    def _bounded(self, geometry: RankGeometry) -> RankGeometry:
        """The geometry whose ends bound the ranks, where all clients use the largest rank."""
        if self.allocation == "fixed" and self.sensitivity == "global":
            return replace(geometry, high=np.full_like(geometry.high, geometry.records - 1))
        return geometry

    def _law(
        self,
        geometry: RankGeometry,
        noise: RankNoise,
        allocation: Allocation,
        positives: Floats,
        value: Floats,
    ) -> ErrorLaw | None:
        """The law of the AUC's first-order error by the noise of few clients; None for others."""
        if geometry.sizes.size > FEW_CLIENTS:
            return None
        pairs, centre = _pairs_and_centre(geometry.records, positives, value)
        return numerator_law(self._bounded(geometry), noise, allocation, centre, pairs)


def _pairs_and_centre(records: int, positives: Floats, value: Floats) -> tuple[Floats, Floats]:
    """``P N``, and the rank where a label's influence changes sign, shape (..., 1) each."""
    inside = np.clip(positives, 1.0, records - 1.0)
    area = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
    pairs = np.asarray(inside * (records - inside))
    centre = np.asarray(influence_centre(records, inside, area))
    return pairs[..., np.newaxis], centre[..., np.newaxis]
