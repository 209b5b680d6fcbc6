"""FedAUC: labels are private, scores are known to the server (Sun et al. 2022a; docs, sections 1a
to 1f).

The server ranks everybody's scores; each client returns a noisy count of its positives and a noisy
rank sum. Adjacency: one record's label flips. The server sees every client's scores in ascending
order within the client (so that positions tell nothing), and every client's noisy pair.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients, Ragged
from tacit.data.scales import clients_apart
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.privacy.cost import Adjacency, Cost, check_budget, worst_case
from tacit.privacy.mechanisms.interface import Mechanism
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.sampling.grids import gaussian_delta
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import (
    ClientState,
    Conversation,
    Protocol,
    Query,
    Reply,
    Step,
    View,
    step,
)
from tacit.protocol.metric import AUC, Metric
from tacit.protocol.score_range import UNIT_INTERVAL
from tacit.protocol.settings import EPSILON, setting
from tacit.protocol.trust import Trust
from tacit.protocols.fedauc.allocation import (
    FIRST_ROUND_FRACTIONS,
    Allocation,
    PriorEstimate,
    RankGeometry,
    adaptive_allocation,
    first_round_fraction,
    fixed_allocation,
    influence_allocation,
    influence_centre,
    orthogonal_allocation,
    predicted_variance,
    release_from,
    vague_prior,
)
from tacit.protocols.fedauc.declared import FedAUCDeclarations
from tacit.protocols.fedauc.estimate import area_of_sums, result_from_pairs, totals_of_pairs
from tacit.protocols.fedauc.mpc import (
    hidden_geometry,
    middle_allocation,
    noisy_hidden_rank_sums,
    offer_sizes,
    rank_together,
)
from tacit.protocols.fedauc.requests import RankAsk
from tacit.protocols.fedauc.secure_sum import keep_ranks, summed_rank_pairs, summed_residuals
from tacit.protocols.fedauc.secure_sum_rounds import rounds_by_sum
from tacit.protocols.fedauc.sums import largest_distance, pair_of_sums
from tacit.protocols.shared.flipped_labels import Flipped, flipped_labels, flipping_cost
from tacit.protocols.shared.rank_noise import (
    KINDS,
    MECHANISMS,
    PAIR,
    RESPONSE,
    SPELLINGS,
    RankNoise,
)
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocol.forecast import Family, Forecast
    from tacit.protocol.scenario import Scenario, Shape
    from tacit.protocol.traffic import Traffic


SECURE_SUM = Trust.SECURE_SUM.value
SHARED_MECHANISM = "discrete-laplace"
"""The mechanism of which every client can draw a share."""

UNSETTLED: Any = None
"""A setting that follows from the others unless it is given."""


@step()
def share_scores(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the scores, ascending within each client.

    Spends nothing at label adjacency, where scores are public. The server learns each client's
    multiset of scores; the order says nothing about records, as shuffling would (Sun et al. 2022a,
    Alg. 2).
    """
    return {"scores": clients.ragged(clients.scores[clients.ascending])}


def _pair_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    asked = RankAsk.of(clients, query)
    costs = [] if asked.respond.all() else [asked.mechanism.cost]
    return worst_case(
        [*costs, flipping_cost(clients, asked.mechanism.epsilon, state, asked.respond)]
    )


@step(cost=_pair_cost)
def noisy_rank_sums(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send a noisy count of positives and a noisy residual rank sum.

    Spends (epsilon, delta) of ``query.broadcast["noise"]`` at label adjacency: flipping one label
    moves the count by 1 and ``2 * sum((rank - pivot) * label)`` by at most ``max |2 rank - 2
    pivot|``, which the client computes from the ranks and pivot it uses. It refuses ranks, pivots,
    shares and mechanisms that are not of the agreed kind (``RankAsk``), and ranks whose sum would
    wrap or be rounded (``check_sums``), so the guarantee does not rest on the server's choice. A
    client told to respond flips every label once at epsilon and sends the exact sums of the flipped
    labels, which is post-processing; it keeps the flipped labels, and later sums of the same labels
    cost nothing. Source: Sun et al. 2022a, Algorithms 1 and 4, section 5.

    The server learns the two noisy numbers of each client.
    """
    asked = RankAsk.of(clients, query, noise)
    mechanism, ranks, pivot = asked.mechanism, asked.ranks, asked.pivot
    share, respond = asked.share, asked.respond
    count, residual = pair_of_sums(ranks, clients.labels[clients.ascending], pivot)
    shape = (clients.count,)
    if not respond.all():
        sensitivity = np.maximum(largest_distance(ranks, pivot), asked.sensitivity)
        noisy_count = mechanism.noisy_count(noise, count, share, shape)
        noisy_residual = mechanism.noisy_residual(noise, residual, sensitivity, share, shape)
        if not respond.any():
            return {"positives": noisy_count, "residuals": noisy_residual}
    flipped = flipped_labels(clients, mechanism.epsilon, noise, state, respond)
    answered = pair_of_sums(ranks, flipped[..., clients.ascending], pivot)
    if respond.all():
        return {"positives": answered[0], "residuals": answered[1]}
    return {
        "positives": np.where(respond, answered[0], noisy_count),
        "residuals": np.where(respond, answered[1], noisy_residual),
    }


def _adds_noise(protocol: FedAUC) -> bool:
    """Whether each client adds noise to its sums, so that it divides its budget between them."""
    return protocol.mechanism != RESPONSE and protocol.trust != SECURE_SUM


def _allocates(allocation: str, protocol: FedAUC) -> bool:
    """Whether a budget is divided in this way."""
    return _adds_noise(protocol) and protocol.allocation == allocation


@dataclass(frozen=True)
class FedAUC(FedAUCDeclarations, Protocol):
    """The AUC with private labels and scores that the server knows.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every label.
    mechanism : ``"staircase"`` (integer staircase noise), ``"discrete-laplace"``, ``"laplace"``
        (the paper's), ``"gaussian"``, or ``"randomised-response"``.
    allocation : how a client divides its budget between count and rank sum: ``"influence"``
        (minimises the AUC's variance, lets a client answer by randomised response, and pays for
        its own first round), or the paper's ``"adaptive"``, ``"orthogonal"``, ``"fixed"``.
    sensitivity : with the fixed allocation, ``"local"`` (the client's largest rank) or ``"global"``
        (M - 1).
    alpha : with the fixed allocation, the share of epsilon for the rank sum.
    beta : with the orthogonal allocation, the share of epsilon for the count.
    delta : for Gaussian noise only.
    prior : an earlier release from which the influence allocation starts, instead of a first
        round.
    ranks : ``"server"``, which then sees all scores, or ``"mpc"``: the clients rank their scores
        together without showing them (``rank_together``). That takes the allocation ``"fixed"``
        with the sensitivity ``"global"``, which are then the defaults, and measures ranks from the
        middle one: the server could not know the errors of any other.
    trust : ``"each"`` (every client adds its own noise) or ``"secure-sum"``: the server sees sums
        over all clients only, whose noise every client draws a share of. That takes discrete
        Laplace noise and ranks that the server knows; its error does not grow with the number of
        clients.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> FedAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.LABEL: 'label'>, rho=None)
    """

    epsilon: float = setting(help=EPSILON)
    mechanism: str = setting(
        default=UNSETTLED,
        choices=MECHANISMS,
        help=f"{', '.join(MECHANISMS)}; the first by default",
        type=str,
        aliases=SPELLINGS,
    )
    allocation: Literal["influence", "adaptive", "orthogonal", "fixed"] = setting(
        default=UNSETTLED,
        help="how a client divides epsilon; influence by default, fixed with --ranks mpc",
        used=_adds_noise,
    )
    sensitivity: Literal["local", "global"] = setting(
        default=UNSETTLED,
        help="local by default, global with --ranks mpc",
        when="fixed",
        used=partial(_allocates, "fixed"),
    )
    alpha: float = setting(
        default=0.5,
        help="the rank sum's share of epsilon, 0.5 by default",
        when="fixed",
        used=partial(_allocates, "fixed"),
    )
    beta: float = setting(
        default=0.5,
        help="the count's share of epsilon, 0.5 by default",
        when="orthogonal",
        used=partial(_allocates, "orthogonal"),
    )
    delta: float = setting(
        default=0.0,
        help="the chance that epsilon fails",
        when="gaussian",
        used=lambda protocol: protocol.mechanism == "gaussian",
    )
    prior: PriorEstimate | None = setting(
        default=None, help=None, shown=lambda protocol: asdict(protocol.prior)
    )
    ranks: Literal["server", "mpc"] = setting(
        default="server",
        help="who ranks the scores: the server (the default), or the clients together, who then "
        "show them to nobody",
        used=lambda protocol: protocol.ranks != "server",
    )
    trust: Literal["each", "secure-sum"] = setting(
        default="each",
        help="who adds noise: each client its own (the default), or all of them a share of the "
        "noise of a secure sum",
        used=lambda protocol: protocol.trust != "each",
    )

    name = "fedauc"
    title_settings = ("trust", "mechanism")
    setting_order = ("epsilon", "mechanism", "allocation", "delta")
    query_types = (RankNoise,)
    state_types = (Flipped,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon)
        self._settle_trust()
        self._settle_ranks()
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value}")
        if self.kind.needs_delta:
            if not 0 < self.delta < 1:
                raise ValueError(f"gaussian noise needs a delta between 0 and 1, got {self.delta}")
            gaussian_delta(self.epsilon, self.delta * min(FIRST_ROUND_FRACTIONS[1:]), PAIR)
        elif self.delta != 0:
            raise ValueError(f"delta belongs to gaussian noise, got {self.delta}")

    def _settle_trust(self) -> None:
        """Fill in the mechanism, and refuse what a secure sum has no use for."""
        summed = self.trust == SECURE_SUM
        if summed and self.allocation is UNSETTLED:
            object.__setattr__(self, "allocation", "influence")
        if self.mechanism is UNSETTLED:
            object.__setattr__(self, "mechanism", SHARED_MECHANISM if summed else "staircase")
        if not summed:
            return
        for name, value, only in (
            ("mechanism", self.mechanism, SHARED_MECHANISM),
            ("allocation", self.allocation, "influence"),
            ("ranks", self.ranks, "server"),
        ):
            if value != only:
                raise ValueError(f"trust={SECURE_SUM!r} needs {name}={only!r}, got {value!r}")

    def _settle_ranks(self) -> None:
        """Fill in what was left open, and refuse what needs ranks that the server does not see."""
        hidden = self.ranks == "mpc"
        if self.allocation is UNSETTLED:
            object.__setattr__(self, "allocation", "fixed" if hidden else "influence")
        if self.sensitivity is UNSETTLED:
            object.__setattr__(self, "sensitivity", "global" if hidden else "local")
        if not hidden:
            return
        for name, value, only in (
            ("allocation", self.allocation, "fixed"),
            ("sensitivity", self.sensitivity, "global"),
            ("prior", self.prior, None),
        ):
            if value != only:
                raise ValueError(
                    f"ranks='mpc' needs {name}={only!r}, as the server knows no ranks, "
                    f"got {value!r}"
                )
        if self.responds:
            raise ValueError(
                f"ranks='mpc' adds noise that depends on no ranks, which {RESPONSE} does not: "
                "take another mechanism"
            )

    @property
    def kind(self) -> type[Mechanism]:
        """The class of the mechanism."""
        return KINDS[self.mechanism]

    @property
    def responds(self) -> bool:
        """Whether every label answers by randomised response."""
        return self.kind is RandomisedResponse

    @property
    def steps(self) -> tuple[Step, ...]:
        """Scores are asked for only where the server may know them."""
        if self.ranks == "mpc":
            return (offer_sizes, rank_together, noisy_hidden_rank_sums)
        if self.trust == SECURE_SUM:
            return (share_scores, keep_ranks, summed_rank_pairs, summed_residuals)
        return (share_scores, noisy_rank_sums)

    def fewest(self, clients: int) -> int:
        """In a secure sum all: they were ranked together, and each draws a share of the noise."""
        return clients if self.trust == SECURE_SUM else super().fewest(clients)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Where clients rank together, they compare scores from 0 to 1."""
        return UNIT_INTERVAL if self.ranks == "mpc" else None

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        return Cost(self.epsilon, self.delta, Adjacency.LABEL)

    def comparison(self) -> Protocol:
        """Two models' AUCs at this epsilon and by this mechanism."""
        from tacit.protocols.fedauc.comparison import ComparedAUC

        plain = FedAUC(self.epsilon, self.mechanism, delta=self.delta)
        if self != plain:
            used = self.settings.items() - plain.settings.items()
            given = ", ".join(sorted(f"{key} {value}" for key, value in used))
            raise ValueError(f"a comparison divides its budget in its own way, got {given}")
        return ComparedAUC(self.epsilon, self.mechanism)

    def prior_estimate(self, records: int, server_result: ServerResult) -> PriorEstimate | None:
        """A starting point for a later influence allocation, from an estimate with signal."""
        value = float(server_result.value)
        if not np.isfinite(value):
            return None
        positives, error = float(server_result.positives), float(server_result.positives_error)
        centre_error = abs(records - 2 * positives) * float(server_result.privacy_error)
        return PriorEstimate(positives, value, error, centre_error + 2 * abs(value - 0.5) * error)

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: a bit and an integer a record when labels are flipped."""
        if self.responds or self.allocation == "influence":
            return 2 * clients.records + 16 * clients.count
        return 8 * clients.count

    @classmethod
    def families(cls, scenario: Scenario, metric: Metric) -> Sequence[Family]:
        """The configurations that a plan tries."""
        from tacit.protocols.fedauc.forecast import fedauc_families

        return fedauc_families(scenario) if metric == AUC else []

    def forecast(self, scenario: Scenario, shape: Shape, metric: Metric) -> Forecast | None:
        """The predicted error, as ``fedauc_forecast`` has it."""
        from tacit.protocols.fedauc.forecast import fedauc_forecast

        return fedauc_forecast(self, scenario, shape) if metric == AUC else None

    def traffic(self, scenario: Scenario) -> Traffic:
        """The bytes and rounds of an evaluation, as ``fedauc_traffic`` has them."""
        from tacit.protocols.fedauc.forecast import fedauc_traffic

        return fedauc_traffic(self, scenario)

    def conversation(self, clients: int) -> Conversation:
        """Scores up, ranks down, noisy pairs up; with a first round where it pays.

        With hidden ranks: sizes up, ranks among the clients, noisy pairs up.
        """
        if self.ranks == "mpc":
            return (yield from self._hidden())
        scores = yield Query(share_scores, self)
        sent = scores["scores"]
        if not isinstance(sent, Ragged):
            raise TypeError("scores must be ragged")
        ranks = Ragged(doubled_mid_ranks(sent.values), sent.offsets)
        if ranks.values.size < 2:
            raise ValueError(f"an AUC needs at least two records, got {ranks.values.size}")
        scales = clients_apart(sent)
        if self.trust == SECURE_SUM:
            return replace((yield from rounds_by_sum(self, clients, ranks)), scales=scales)
        geometry = RankGeometry.of(ranks)
        if self.responds or self.allocation != "influence":
            noise = RankNoise(self.mechanism, self.epsilon, self.delta)
            pairs = yield from self._query_pairs(
                ranks, geometry, noise, self._plain(geometry, noise)
            )
            return replace(self._conclude(geometry, noise, *pairs), scales=scales)
        noise, allocation = yield from self._influence(ranks, geometry)
        pairs = yield from self._query_pairs(ranks, geometry, noise, allocation)
        return replace(self._conclude(geometry, noise, *pairs), scales=scales)

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
        if self.responds:
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
        release, fraction = self.prior, 0.0
        if release is None:
            fraction = first_round_fraction(geometry, self.mechanism, self.epsilon, self.delta)
            release = vague_prior(geometry.records)
        if fraction:
            first = RankNoise(self.mechanism, fraction * self.epsilon, fraction * self.delta)
            opening = adaptive_allocation(geometry, first)
            _, sums = yield from self._query_pairs(ranks, geometry, first, opening)
            positives, area = area_of_sums(geometry.records, *sums)
            release = release_from(
                geometry, first, opening, positives, np.nan_to_num(area, nan=0.5)
            )
        noise = RankNoise(
            self.mechanism, self.epsilon - fraction * self.epsilon, self.delta * (1 - fraction)
        )
        return noise, influence_allocation(geometry, noise, release)

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
                "share": allocation.share,
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
        inside = np.clip(positives, 1.0, geometry.records - 1.0)
        area = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
        centre = np.asarray(influence_centre(geometry.records, inside, area))[..., np.newaxis]
        if self.allocation == "fixed" and self.sensitivity == "global":
            geometry = replace(geometry, high=np.full_like(geometry.high, geometry.records - 1))
        numerator, count, _ = predicted_variance(geometry, noise, allocation, centre)
        return numerator.sum(axis=-1), count.sum(axis=-1)
