"""FedAUC with hidden scores: clients compute their ranks together, and the server learns none.

The server knows how many records each client has, and receives the noisy pairs. All figures that
the server or the noise uses are public: the largest distance of a rank to the middle one is
``(M - 1) / 2`` for every division of the records (Sun et al. 2022a, Appendix R proposes to sort by
multi-party computation).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.metrics.ranking import doubled_mid_ranks, ordered_codes
from tacit.privacy.cost import Cost
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocol.mpc import MPCProgram
from tacit.protocol.settings.score_range import check_scores_in_unit_interval
from tacit.protocols.fedauc.allocation import Allocation, RankGeometry
from tacit.protocols.fedauc.requests import agreed_noise, count_fraction, public_records
from tacit.protocols.fedauc.sums import check_sums, largest_distance, pair_of_sums

RANKS = ("fedauc", "hidden ranks")
"""Key of the ranks in a client state."""

DROPPED_BITS = 6
"""Number of a score's last bits that are not compared, of the 52 after the leading one."""


@step()
def offer_sizes(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the number of records. It costs nothing: that number is public."""
    return {"records": clients.sizes}


def _rank_program() -> MPCProgram:
    from tacit.protocols.fedauc.hidden_ranks.mpc_program import RankProgram

    return RankProgram()


@step(computes=_rank_program)
def rank_together(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Each client learns the doubled mid-ranks of its scores (an ideal functionality).

    It costs nothing at label adjacency, which does not protect scores; no label is used. The server
    learns the number of records, which it knew. A client learns the ranks of its scores among all,
    and stores them in its client state; it does not learn which client has which other score.

    Scores that differ only in the last ``DROPPED_BITS`` of their 52 bits count as tied.

    Raises
    ------
    DataError : naming client, row and value, for a score outside [0, 1].
    """
    check_scores_in_unit_interval(clients)
    codes = rank_codes(clients.scores[clients.ascending])
    state.keep(RANKS, clients.ragged(doubled_mid_ranks(compared_scores(codes))))
    return {"records": np.array(clients.records)}


def _pair_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    return agreed_noise(query).cost


@step(cost=_pair_cost)
def noisy_hidden_rank_sums(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send a noisy count of positives and a noisy sum of their doubled ranks from the middle rank.

    Spends (epsilon, delta) of ``query.broadcast["noise"]`` at label adjacency: flipping one label
    moves the count by 1 and ``sum((2 rank - (M - 1)) * label)`` by at most ``M - 1``, as ranks are
    from 0 to ``M - 1``. The client computes with the ranks in its client state, and refuses where
    they reach beyond the announced M.

    The server learns the two noisy numbers of each client, whose noise depends on M alone.
    Source: Sun et al. 2022a, Algorithm 4 and Appendix R.

    Raises
    ------
    DataError : before the clients have ranked their scores, or for another number of records.
    ValueError : for another mechanism or more budget than agreed, a fraction that leaves no noise,
        or so many announced records that a sum of ranks would not be exact.
    """
    mechanism = agreed_noise(query)
    records, fraction = public_records(query), count_fraction(query)
    ranks = state.recall_field(RANKS)
    if not isinstance(ranks, Ragged) or ranks.values.size != clients.records:
        raise DataError("the clients have not ranked these scores yet")
    middle = np.full(clients.count, records - 1, dtype=np.int64)
    if np.any(largest_distance(ranks, middle) > middle):
        raise DataError(f"ranks reach beyond the {records} records that were announced")
    check_sums(clients.sizes, middle, mechanism.largest_sum)
    count, residual = pair_of_sums(ranks, clients.labels[clients.ascending], middle)
    shape = (clients.count,)
    return {
        "positives": mechanism.noisy_count(noise, count, fraction, shape),
        "residuals": mechanism.noisy_residual(noise, residual, middle, fraction, shape),
    }


def rank_codes(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integers from 0 to below ``2**56`` whose order is that of scores in [0, 1].

    Examples
    --------
    >>> codes = rank_codes(np.array([0.0, 0.5, 0.5 + 2**-50, 0.5 + 2**-40]))
    >>> bool(codes[1] == codes[2] < codes[3])
    True
    """
    return ordered_codes(scores) >> DROPPED_BITS


def compared_scores(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The scores of these codes, without their last bits."""
    return (codes << DROPPED_BITS).view(np.float64)


def hidden_geometry(sizes: NDArray[np.int64]) -> RankGeometry:
    """The public geometry of hidden ranks: they are from 0 to ``M - 1``."""
    records, clients = int(sizes.sum()), sizes.size
    return RankGeometry(
        records,
        low=np.zeros(clients),
        high=np.full(clients, records - 1.0),
        mean=np.full(clients, (records - 1) / 2),
        scatter=np.zeros(clients),
        sizes=sizes.astype(np.float64),
    )


def middle_allocation(geometry: RankGeometry, count_fraction: float) -> Allocation:
    """The middle rank for every client's pivot, and one fraction for every client."""
    clients = geometry.sizes.size
    return Allocation(
        np.full(clients, geometry.records - 1, dtype=np.int64),
        np.full(clients, count_fraction),
        np.zeros(clients, dtype=np.bool_),
    )
