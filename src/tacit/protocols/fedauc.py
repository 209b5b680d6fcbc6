"""FedAUC: labels are private, scores are known to the server (paper 1; docs, sections 1a to 1f).

The server ranks everybody's scores; each client returns a noisy count of its positives and a noisy
rank sum. Adjacency: one record's label flips. The server sees every client's scores in ascending
order within the client (so that positions tell nothing), and every client's noisy pair.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients, Ragged
from tacit.data.scales import clients_apart
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.privacy.cost import Adjacency, Cost, check_budget, most
from tacit.privacy.noise import NoiseSource, gaussian_delta
from tacit.protocols.allocation import (
    FIRST_ROUND_FRACTIONS,
    Allocation,
    RankGeometry,
    Release,
    adaptive_allocation,
    first_round_fraction,
    fixed_allocation,
    influence_allocation,
    influence_centre,
    orthogonal_allocation,
    predicted_variance,
    release_from,
    vague_release,
)
from tacit.protocols.conversation import (
    Ask,
    Conversation,
    Memory,
    Protocol,
    Reply,
    Step,
    View,
    step,
)
from tacit.protocols.flipped import flipped_labels, flipping_cost
from tacit.protocols.hidden_ranks import (
    hidden_geometry,
    middle_allocation,
    noisy_hidden_rank_sums,
    offer_sizes,
    rank_together,
)
from tacit.protocols.rank_asks import RankAsk
from tacit.protocols.rank_findings import area_of_sums, findings_from_pairs, totals_of_pairs
from tacit.protocols.rank_noise import MECHANISMS, RESPONSE, RankNoise
from tacit.protocols.rank_sums import largest_distance, pair_of_sums
from tacit.protocols.score_range import UNIT_INTERVAL
from tacit.results.findings import Findings

Floats = NDArray[np.float64]

UNSETTLED: Any = None
"""A setting that follows from the others unless it is given."""

ALLOCATIONS = ("influence", "adaptive", "orthogonal", "fixed")


@step()
def share_scores(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Send the scores, ascending within each client.

    Spends nothing at label adjacency, where scores are public. The server learns each client's
    multiset of scores; the order says nothing about records, as shuffling would (paper 1, Alg. 2).
    """
    return {"scores": clients.ragged(clients.scores[clients.ascending])}


def _pair_cost(clients: Clients, ask: Ask, memory: Memory) -> Cost:
    asked = RankAsk.of(clients, ask)
    costs = [] if asked.respond.all() else [asked.mechanism.cost]
    return most([*costs, flipping_cost(clients, asked.mechanism.epsilon, memory, asked.respond)])


@step(spends=_pair_cost)
def noisy_rank_sums(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Send a noisy count of positives and a noisy residual rank sum.

    Spends (epsilon, delta) of ``ask.shared["noise"]`` at label adjacency: flipping one label moves
    the count by 1 and ``2 * sum((rank - pivot) * label)`` by at most ``max |2 rank - 2 pivot|``,
    which the client computes from the ranks and pivot it uses. It refuses ranks, pivots, shares and
    mechanisms that are not of the agreed kind (``RankAsk``), and ranks whose sum would wrap or be
    rounded (``check_sums``), so the guarantee does not rest on the server's choice. A client told
    to respond flips every label once at epsilon and sends the exact sums of the flipped labels,
    which is post-processing; it keeps the flipped labels, and later sums of the same labels cost
    nothing. Source: paper 1, Algorithms 1 and 4, section 5.

    The server learns the two noisy numbers of each client.
    """
    asked = RankAsk.of(clients, ask, noise)
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
    flipped = flipped_labels(clients, mechanism.epsilon, noise, memory, respond)
    answered = pair_of_sums(ranks, flipped[..., clients.ascending], pivot)
    if respond.all():
        return {"positives": answered[0], "residuals": answered[1]}
    return {
        "positives": np.where(respond, answered[0], noisy_count),
        "residuals": np.where(respond, answered[1], noisy_residual),
    }


@dataclass(frozen=True)
class FedAUC(Protocol):
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
    previous : an earlier release from which the influence allocation starts, instead of a first
        round.
    ranks : ``"server"``, which then sees all scores, or ``"mpc"``: the clients rank their scores
        together without showing them (``rank_together``). That takes the allocation ``"fixed"``
        with the sensitivity ``"global"``, which are then the defaults, and measures ranks from the
        middle one: the server could not know the errors of any other.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> FedAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.LABEL: 'label'>, rho=None)
    """

    epsilon: float
    mechanism: str = "staircase"
    allocation: Literal["influence", "adaptive", "orthogonal", "fixed"] = UNSETTLED
    sensitivity: Literal["local", "global"] = UNSETTLED
    alpha: float = 0.5
    beta: float = 0.5
    delta: float = 0.0
    previous: Release | None = None
    ranks: Literal["server", "mpc"] = "server"

    name = "fedauc"

    def __post_init__(self) -> None:
        check_budget(self.epsilon)
        object.__setattr__(self, "mechanism", _mechanism_name(self.mechanism))
        self._settle_ranks()
        if self.allocation not in ALLOCATIONS:
            raise ValueError(f"allocation must be one of {ALLOCATIONS}, got {self.allocation!r}")
        if self.sensitivity not in ("local", "global"):
            raise ValueError(f"sensitivity must be 'local' or 'global', got {self.sensitivity!r}")
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value}")
        if self.mechanism == "gaussian" and not 0 < self.delta < 1:
            raise ValueError(f"gaussian noise needs a delta between 0 and 1, got {self.delta}")
        if self.mechanism == "gaussian":
            gaussian_delta(self.epsilon, self.delta * min(FIRST_ROUND_FRACTIONS[1:]), 2)
        if self.mechanism != "gaussian" and self.delta != 0:
            raise ValueError(f"delta belongs to gaussian noise, got {self.delta}")

    def _settle_ranks(self) -> None:
        """Fill in what was left open, and refuse what needs ranks that the server does not see."""
        hidden = self.ranks == "mpc"
        if self.ranks not in ("server", "mpc"):
            raise ValueError(f"ranks must be 'server' or 'mpc', got {self.ranks!r}")
        if self.allocation is UNSETTLED:
            object.__setattr__(self, "allocation", "fixed" if hidden else "influence")
        if self.sensitivity is UNSETTLED:
            object.__setattr__(self, "sensitivity", "global" if hidden else "local")
        if not hidden:
            return
        for name, value, only in (
            ("allocation", self.allocation, "fixed"),
            ("sensitivity", self.sensitivity, "global"),
            ("previous", self.previous, None),
        ):
            if value != only:
                raise ValueError(
                    f"ranks='mpc' needs {name}={only!r}, as the server knows no ranks, "
                    f"got {value!r}"
                )
        if self.mechanism == RESPONSE:
            raise ValueError(
                f"ranks='mpc' adds noise that depends on no ranks, which {RESPONSE} does not: "
                "take another mechanism"
            )

    @property
    def steps(self) -> tuple[Step, ...]:
        """Scores are asked for only where the server may know them."""
        if self.ranks == "mpc":
            return (offer_sizes, rank_together, noisy_hidden_rank_sums)
        return (share_scores, noisy_rank_sums)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Where clients rank together, they compare scores from 0 to 1."""
        return UNIT_INTERVAL if self.ranks == "mpc" else None

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        return Cost(self.epsilon, self.delta, Adjacency.LABEL)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that this combination uses."""
        used: dict[str, Any] = {"epsilon": self.epsilon, "mechanism": self.mechanism}
        if self.mechanism != RESPONSE:
            used["allocation"] = self.allocation
        if self.mechanism == "gaussian":
            used["delta"] = self.delta
        if self.mechanism != RESPONSE and self.allocation == "fixed":
            used |= {"sensitivity": self.sensitivity, "alpha": self.alpha}
        if self.mechanism != RESPONSE and self.allocation == "orthogonal":
            used["beta"] = self.beta
        if self.previous is not None:
            used["previous"] = asdict(self.previous)
        if self.ranks != "server":
            used["ranks"] = self.ranks
        return used

    def draws(self, clients: Clients) -> int:
        """Numbers a replicate holds: a bit and an integer a record when labels are flipped."""
        if self.mechanism == RESPONSE or self.allocation == "influence":
            return 2 * clients.records + 16 * clients.count
        return 8 * clients.count

    def conversation(self, clients: int) -> Conversation:
        """Scores up, ranks down, noisy pairs up; with a first round where it pays.

        With hidden ranks: sizes up, ranks among the clients, noisy pairs up.
        """
        if self.ranks == "mpc":
            return (yield from self._hidden())
        scores = yield Ask(share_scores, self)
        sent = scores["scores"]
        if not isinstance(sent, Ragged):
            raise TypeError("scores must be ragged")
        ranks = Ragged(doubled_mid_ranks(sent.values), sent.offsets)
        if ranks.values.size < 2:
            raise ValueError(f"an AUC needs at least two records, got {ranks.values.size}")
        geometry, scales = RankGeometry.of(ranks), clients_apart(sent)
        if self.mechanism == RESPONSE or self.allocation != "influence":
            noise = RankNoise(self.mechanism, self.epsilon, self.delta)
            pairs = yield from self._ask_pairs(ranks, geometry, noise, self._plain(geometry, noise))
            return replace(self._conclude(geometry, noise, *pairs), scales=scales)
        noise, allocation = yield from self._influence(ranks, geometry)
        pairs = yield from self._ask_pairs(ranks, geometry, noise, allocation)
        return replace(self._conclude(geometry, noise, *pairs), scales=scales)

    def _hidden(self) -> Conversation:
        """The conversation in which nobody shows scores or ranks to the server."""
        offer = yield Ask(offer_sizes, self)
        geometry = hidden_geometry(np.asarray(offer["records"]))
        if geometry.records < 2:
            raise ValueError(f"an AUC needs at least two records, got {geometry.records}")
        yield Ask(rank_together, self, view=View.JOINT)
        noise = RankNoise(self.mechanism, self.epsilon, self.delta)
        allocation = middle_allocation(geometry, 1.0 - self.alpha)
        shared = {"noise": noise, "records": geometry.records, "share": 1.0 - self.alpha}
        reply = yield Ask(noisy_hidden_rank_sums, self, shared)
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
    ) -> Generator[Ask, Reply, tuple[RankNoise, Allocation]]:
        """The allocation of the main round, after a first round if one is worth its price."""
        release, fraction = self.previous, 0.0
        if release is None:
            fraction = first_round_fraction(geometry, self.mechanism, self.epsilon, self.delta)
            release = vague_release(geometry.records)
        if fraction:
            first = RankNoise(self.mechanism, fraction * self.epsilon, fraction * self.delta)
            opening = adaptive_allocation(geometry, first)
            _, sums = yield from self._ask_pairs(ranks, geometry, first, opening)
            positives, area = area_of_sums(geometry.records, *sums)
            release = release_from(
                geometry, first, opening, positives, np.nan_to_num(area, nan=0.5)
            )
        noise = RankNoise(
            self.mechanism, self.epsilon - fraction * self.epsilon, self.delta * (1 - fraction)
        )
        return noise, influence_allocation(geometry, noise, release)

    def _ask_pairs(
        self,
        ranks: Ragged[np.int64],
        geometry: RankGeometry,
        noise: RankNoise,
        allocation: Allocation,
    ) -> Generator[Ask, Reply, tuple[Allocation, tuple[Floats, Floats]]]:
        """Noisy totals of the positives and of their ranks, measured from the middle rank."""
        largest = 2 * (geometry.records - 1) if self.sensitivity == "global" else 0
        reply = yield Ask(
            noisy_rank_sums,
            self,
            shared={"noise": noise, "sensitivity": largest if self.allocation == "fixed" else 0},
            each={
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
    ) -> Findings:
        positives, value = area_of_sums(geometry.records, *sums)
        return findings_from_pairs(
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


def _mechanism_name(mechanism: str) -> str:
    spelled = mechanism.lower().replace("_", "-").replace("randomized", "randomised")
    spelled = RESPONSE if spelled == "rr" else spelled
    if spelled not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {MECHANISMS}, got {mechanism!r}")
    return spelled
