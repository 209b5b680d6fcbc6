"""FedAUC: labels are private, scores are known to the server (docs, sections 1a to 1e).

The server ranks all clients' scores; each client returns a noisy count of its positives and a noisy
rank sum, after Sun et al. 2022a. Each client divides its budget so that the variance of the AUC is
least. Adjacency: one record's label flips. The server sees every client's scores in ascending order
within the client (so that positions reveal nothing), and every client's noisy pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.data.clients import Clients
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.protocol.conversation import Conversation, Protocol, Step
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.score_range import UNIT_INTERVAL
from tacit.protocol.settings.trusts import Each, Local, SecureSum, trust_setting
from tacit.protocols.fedauc.allocation import RankGeometry, all_respond
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
from tacit.protocols.fedauc.server import (
    divided_by_influence,
    noisy_sums,
    ranked_scores,
    result_of_sums,
    result_with_hidden_ranks,
)
from tacit.protocols.fedauc.steps import noisy_rank_sums, share_scores
from tacit.protocols.fedauc.trusts import HiddenRanks
from tacit.protocols.shared.reports.flipped_labels import Flipped
from tacit.protocols.shared.sums.rank_noise import RESPONSE, STAIRCASE, RankNoise


@dataclass(frozen=True)
class FedAUC(FedAUCDeclarations, Protocol):
    """The AUC with private labels and scores that the server knows.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every label.
    trust : ``Each()``: every client adds staircase noise to its sums or, where that is better,
        flips its labels, and a first round is paid for out of epsilon. ``Local()``: every label is
        flipped at random by itself, once for all evaluations of the same labels (Sun et al. 2022a,
        Algorithms 1 to 3). ``SecureSum()``: the server sees sums over all clients only, whose noise
        every client draws a share of; the error does not grow with the number of clients, all of
        which have to stay. ``HiddenRanks()``: the clients rank their scores, from 0 to 1, together
        without showing them (``rank_together``). Or their words.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> FedAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.LABEL: 'label'>, rho=None)
    """

    epsilon: float = setting(help=EPSILON)
    trust: Each | Local | SecureSum | HiddenRanks | str = trust_setting(Each())

    name = "fedauc"
    title_settings = ("trust",)
    planning_module = f"{__package__}.forecast"
    query_types = (RankNoise,)
    state_types = (Flipped,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon)
        if isinstance(self.trust, SecureSum) and self.trust.dropouts:
            raise ValueError(
                "a sum of ranks needs every client that was ranked: dropouts must be 0, "
                f"got {self.trust.dropouts}"
            )

    @property
    def rank_noise(self) -> RankNoise:
        """The noise of a client's pair, at the whole budget."""
        return RankNoise(RESPONSE if isinstance(self.trust, Local) else STAIRCASE, self.epsilon)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Scores are asked for only where the server may know them."""
        if isinstance(self.trust, HiddenRanks):
            return (offer_sizes, rank_together, noisy_hidden_rank_sums)
        if isinstance(self.trust, SecureSum):
            return (share_scores, keep_ranks, summed_rank_pairs, summed_residuals)
        return (share_scores, noisy_rank_sums)

    def min_clients(self, clients: int) -> int:
        """In a secure sum all: they were ranked together, and each draws a share of the noise."""
        return clients if isinstance(self.trust, SecureSum) else super().min_clients(clients)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Where clients rank together, they compare scores from 0 to 1."""
        return UNIT_INTERVAL if isinstance(self.trust, HiddenRanks) else None

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        return Cost(self.epsilon, adjacency=Adjacency.LABEL)

    def comparison(self) -> Protocol:
        """Two models' AUCs at this epsilon, under this trust."""
        from tacit.protocols.fedauc.comparing.protocol import ComparedAUC

        return ComparedAUC(self.epsilon, str(self.trust))

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: a bit and an integer a record when labels are flipped."""
        if isinstance(self.trust, HiddenRanks):
            return 8 * clients.count
        return 2 * clients.records + 16 * clients.count

    def conversation(self, clients: int) -> Conversation:
        """Scores up, ranks down, noisy pairs up; with a first round where it pays.

        With hidden ranks: sizes up, ranks among the clients, noisy pairs up.
        """
        if isinstance(self.trust, HiddenRanks):
            return (yield from result_with_hidden_ranks(self, self.trust.alpha))
        ranks, scales = yield from ranked_scores(self)
        if isinstance(self.trust, SecureSum):
            return replace((yield from rounds_by_sum(self, clients, ranks)), scales=scales)
        geometry = RankGeometry.of(ranks)
        noise, allocation = self.rank_noise, all_respond(geometry)
        if isinstance(self.trust, Each):
            noise, allocation = yield from divided_by_influence(self, ranks, geometry)
        sums = yield from noisy_sums(self, ranks, geometry, noise, allocation)
        return replace(result_of_sums(geometry, noise, allocation, sums), scales=scales)
