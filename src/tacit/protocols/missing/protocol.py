"""How many records were left out because they lack a score or a label, with noise.

What is counted. A client leaves out a record that lacks a score or a label
(``tacit.data.tables.missing``), and counts it once. Adding, removing or replacing a record,
complete or not, or taking away its label, moves the count of one client by at most 1. So the
sensitivity is 1 whichever of these the guarantee is about, and discrete Laplace noise of scale ``1
/ epsilon`` costs epsilon (Laplace mechanism on the integers, Ghosh et al. 2012). Beside another
protocol on the complete records, a record that becomes incomplete costs both: the budgets add up. A
person may have any number of incomplete records, so the count protects no person
(``protocol.persons``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from tacit.arrays import Integers
from tacit.data.clients import Clients
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, PolyaShare
from tacit.privacy.sampling.distributions import discrete_laplace_variance, shared_laplace_epsilon
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
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocols.missing.declared import MissingDeclarations
from tacit.protocols.shared.sums.bounds import clipped, clipped_sum_bound
from tacit.protocols.shared.sums.noise_shares import (
    answered_clients,
    noise_fraction,
    planned_clients,
)
from tacit.results.server_result import ServerResult

SECURE_SUM, EACH = Trust.SECURE_SUM.value, Trust.EACH.value


def left_out_by_client(clients: Clients) -> Integers:
    """The records that every client left out, shape (K,); 0 where it refuses to leave any out."""
    if clients.left_out is None:
        return np.zeros(clients.count, dtype=np.int64)
    counts: Integers = clients.left_out.sum(axis=0)
    return counts


def _cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    cost: Cost = query.protocol.guarantee
    return cost


def _bounds(query: Query) -> dict[str, int]:
    planned = planned_clients(query)
    drawn = query.protocol.noise_of(1, planned)
    return {"left_out": clipped_sum_bound(query, drawn), "clients": planned}


@step(cost=_cost)
def own_left_out(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send how many records each client left out, with discrete Laplace noise of scale 1/epsilon.

    Epsilon by the module's docstring: a record moves the count of its client by at most 1. The
    server learns every client's noisy count.
    """
    drawn = noise.draw(DiscreteLaplace(1, query.protocol.epsilon), (clients.count,))
    return {"left_out": left_out_by_client(clients) + drawn}


@step(
    cost=_cost,
    sums=lambda query: {"left_out": (), "clients": ()},
    shares=planned_clients,
    bounds=_bounds,
)
def summed_left_out(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send how many records this batch left out, with its share of the noise of the sum.

    All clients' shares add up to discrete Laplace noise of scale 1/epsilon: epsilon for the sum, by
    the module's docstring, against a server that sees the sum only and colludes with no client. The
    server learns the noisy sum, and how many clients answered.
    """
    settings: MissingRecords = query.protocol
    exact = clipped(np.asarray(left_out_by_client(clients).sum()), query)
    drawn = noise.draw(settings.noise_of(clients.count, planned_clients(query)), ())
    return {
        "left_out": exact + drawn,
        "clients": np.asarray(clients.count, dtype=np.int64),
    }


@dataclass(frozen=True)
class MissingRecords(MissingDeclarations, Protocol):
    """How many records clients left out for lack of a score or a label.

    Parameters
    ----------
    epsilon : the privacy budget.
    trust : ``"secure-sum"`` (the sum, with noise of which every client draws a share) or ``"each"``
        (every client's count, with the whole noise in each).
    adjacency : what epsilon is said to hide: ``"record"`` (added or removed), ``"replace"`` or
        ``"label"``. The noise is the same.
    dropouts : the fraction of clients that may vanish without weakening the guarantee.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> clients = tacit.Clients.from_arrays([0.1, 0.9], [0, 1])
    >>> from dataclasses import replace
    >>> clients = replace(clients, left_out=np.array([[40], [60]]))
    >>> result = tacit.evaluate(clients, MissingRecords(1.0), seed=0, exact=True)
    >>> result.exact, abs(result.estimate.value - 100) < 20
    (100.0, True)
    """

    epsilon: float = setting(help=EPSILON)
    trust: str = setting(
        default=SECURE_SUM,
        choices=(SECURE_SUM, EACH),
        help="who may see what; secure-sum by default",
    )
    adjacency: Literal["record", "replace", "label"] = setting(
        default="record", help="what epsilon hides; record by default where it applies"
    )
    dropouts: float = setting(
        default=0.0,
        help="the fraction of clients that may vanish, 0 by default",
        when=SECURE_SUM,
        used=lambda protocol: protocol.trust == SECURE_SUM,
    )

    name = "missing-records"
    figure = "number of incomplete records"
    counts_missing = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon)
        if not 0 <= self.dropouts < 1:
            raise ValueError(f"dropouts must be from 0 to below 1, got {self.dropouts}")
        if self.dropouts and self.trust != SECURE_SUM:
            raise ValueError(f"dropouts belongs to {SECURE_SUM}, got {self.dropouts}")

    @property
    def steps(self) -> tuple[Step, ...]:
        """The step of this trust model."""
        return (own_left_out,) if self.trust == EACH else (summed_left_out,)

    @property
    def guarantee(self) -> Cost:
        """Epsilon."""
        return Cost(self.epsilon, adjacency=Adjacency(self.adjacency))

    def noise_of(self, batch: int, planned: int) -> PolyaShare:
        """The share of the noise that a batch of clients draws."""
        return PolyaShare(1, self.epsilon, noise_fraction(batch, planned, self.dropouts))

    def min_clients(self, clients: int) -> int:
        """With fewer than the clients that are planned to stay, the noise would not suffice."""
        if self.trust == EACH:
            return 1
        return noise_fraction(1, clients, self.dropouts).denominator

    def replicate_size(self, clients: Clients) -> int:
        """A count of every client."""
        return 2 * clients.count

    def exact(self, clients: Clients) -> float:
        """The number of records that were left out."""
        return float(left_out_by_client(clients).sum())

    def conversation(self, clients: int) -> Conversation:
        """One round: counts up."""
        if self.trust == EACH:
            reply = yield Query(own_left_out, self)
            sent = np.asarray(reply["left_out"])
            return self._conclusion(sent.sum(axis=-1), Fraction(sent.shape[-1]))
        reply = yield Query(summed_left_out, self, broadcast={"clients": clients}, view=View.SUM)
        answered = answered_clients(reply, clients)
        share = noise_fraction(answered, clients, self.dropouts)
        return self._conclusion(np.asarray(reply["left_out"]), share)

    def _conclusion(self, total: Integers, noises: Fraction) -> ServerResult:
        """The count, with the error of this multiple of one count's noise."""
        value = total.astype(np.float64)
        variance = float(noises) * discrete_laplace_variance(1 / self.epsilon)
        unknown = np.full_like(value, np.nan)
        protection = None
        if noises < 1:
            supported = shared_laplace_epsilon(1 / self.epsilon, float(noises))
            protection = Cost(supported, adjacency=Adjacency(self.adjacency))
        return ServerResult(
            value=value,
            privacy_error=np.full_like(value, math.sqrt(variance)),
            sampling_error=unknown,
            positives=unknown,
            negatives=unknown,
            protection=protection,
            limits=(0.0, math.inf),
        )
