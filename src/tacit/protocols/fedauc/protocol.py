"""FedAUC: labels are private, scores are known to the server (Sun et al. 2022a; docs, sections 1a
to 1f).

The server ranks all clients' scores; each client returns a noisy count of its positives and a noisy
rank sum. Adjacency: one record's label flips. The server sees every client's scores in ascending
order within the client (so that positions reveal nothing), and every client's noisy pair.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from tacit.data.batches.ragged import Ragged
from tacit.data.batches.ranked import doubled_ranks
from tacit.data.clients import Clients
from tacit.data.scaling.scales import clients_apart
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.privacy.mechanisms.interface import Mechanism
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.sampling.grids import gaussian_delta
from tacit.protocol.conversation import Conversation, Protocol, Query, Step
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.score_range import UNIT_INTERVAL
from tacit.protocols.fedauc.allocation import FIRST_ROUND_FRACTIONS, PriorEstimate, RankGeometry
from tacit.protocols.fedauc.declared import FedAUCDeclarations
from tacit.protocols.fedauc.hidden_ranks.mpc import (
    noisy_hidden_rank_sums,
    offer_sizes,
    rank_together,
)
from tacit.protocols.fedauc.secure_sums.protocol import (
    keep_ranks,
    summed_rank_pairs,
    summed_residuals,
)
from tacit.protocols.fedauc.secure_sums.rounds import rounds_by_sum
from tacit.protocols.fedauc.server import RankSumServer
from tacit.protocols.fedauc.steps import noisy_rank_sums, share_scores
from tacit.protocols.shared.reports.flipped_labels import Flipped
from tacit.protocols.shared.sums.rank_noise import (
    KINDS,
    MECHANISMS,
    PAIR,
    RESPONSE,
    SPELLINGS,
    RankNoise,
)
from tacit.results.server_result import ServerResult

SECURE_SUM = Trust.SECURE_SUM.value
SHARED_MECHANISM = "discrete-laplace"
"""The mechanism of which every client can draw a share."""

UNSETTLED: Any = None
"""A setting that follows from the others unless it is given."""


def _adds_noise(protocol: FedAUC) -> bool:
    """Whether each client adds noise to its sums, so that it divides its budget between them."""
    return protocol.mechanism != RESPONSE and protocol.trust != SECURE_SUM


def _allocates(allocation: str, protocol: FedAUC) -> bool:
    """Whether a budget is divided in this way."""
    return _adds_noise(protocol) and protocol.allocation == allocation


@dataclass(frozen=True)
class FedAUC(RankSumServer, FedAUCDeclarations, Protocol):
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
    alpha : with the fixed allocation, the fraction of epsilon for the rank sum.
    beta : with the orthogonal allocation, the fraction of epsilon for the count.
    delta : for Gaussian noise only.
    prior : an earlier release from which the influence allocation starts, instead of a first
        round. In a secure sum its class sizes are also those that the figure divides by: it has to
        be about the same labels, and one about others gives a wrong figure without a warning.
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
        help="the rank sum's fraction of epsilon, 0.5 by default",
        when="fixed",
        used=partial(_allocates, "fixed"),
    )
    beta: float = setting(
        default=0.5,
        help="the count's fraction of epsilon, 0.5 by default",
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
    planning_module = f"{__package__}.forecast"
    setting_order = ("epsilon", "mechanism", "allocation", "delta")
    query_types = (RankNoise,)
    state_types = (Flipped,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon)
        self._settle_trust()
        self._settle_ranks()
        self._check_prior()
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

    def _check_prior(self) -> None:
        """Refuse a prior estimate that is no estimate, before any score is sent for it."""
        for name, value in vars(self.prior).items() if self.prior is not None else ():
            numbers = np.asarray(value, dtype=np.float64)
            if not np.all(np.isfinite(numbers)) or ("error" in name and np.any(numbers < 0)):
                raise ValueError(f"prior: {name} must be finite, and no error below 0, got {value}")

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

    def min_clients(self, clients: int) -> int:
        """In a secure sum all: they were ranked together, and each draws a share of the noise."""
        return clients if self.trust == SECURE_SUM else super().min_clients(clients)

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
        from tacit.protocols.fedauc.comparing.protocol import ComparedAUC

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
        ranks, records = doubled_ranks(sent), int(sent.offsets[-1])
        if records < 2:
            raise ValueError(f"an AUC needs at least two records, got {records}")
        scales = clients_apart(sent)
        del scores, sent
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
