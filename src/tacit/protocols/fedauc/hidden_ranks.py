"""FedAUC with hidden scores: clients compute their ranks together, and the server learns none.

The server knows how many records each client has, and receives the noisy pairs. All figures that
the server or the noise uses are public: the largest distance of a rank to the middle one is
``(M - 1) / 2`` for every division of the records (Sun et al. 2022a, Appendix R proposes to sort by
multi-party computation).

``RankProgram`` computes the ranks on secret shares. Every party sorts its own scores, so ascending
blocks only have to be merged: a bitonic merging network (Batcher 1968), whose exchanges depend on
the sizes of the blocks alone. The way back through the same exchanges carries each position to the
index of its score, so that every share of a position belongs to a known owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.counts import allocating
from tacit.crypto.secure_sum import masking
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.ragged import Ragged
from tacit.metrics.cells.score_scale import signed_codes
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.privacy.noise import NoiseSource
from tacit.protocol import fields
from tacit.protocol.conversation import Conversation
from tacit.protocol.mpc import Function, MPCError, MPCProgram, Peers, Words
from tacit.protocol.scaled import check_scores_in_unit_interval
from tacit.protocol.steps import ClientState, Query, Reply, View, step
from tacit.protocols.fedauc import steps
from tacit.protocols.fedauc.estimate import result_of_sums, totals_of_pairs

RANKS = ("fedauc", "hidden ranks")
"""Key of the ranks in a client state."""

DROPPED_BITS = 6
"""Number of a score's last bits that are not compared, of the 52 after the leading one."""


@step()
def offer_sizes(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the number of records. It costs nothing: that number is public."""
    return {"records": clients.sizes}


@step(computes=lambda: RankProgram())  # noqa: PLW0108 -- it is declared below
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


@step(cost=lambda clients, query, state: steps.agreed_noise(query).cost)
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
    mechanism = steps.agreed_noise(query)
    records, fraction = steps.public_records(query), steps.count_fraction(query)
    ranks = state.recall_field(RANKS)
    if not isinstance(ranks, Ragged) or ranks.values.size != clients.records:
        raise DataError("the clients have not ranked these scores yet")
    middle = np.full(clients.count, records - 1, dtype=np.int64)
    if np.any(steps.largest_distance(ranks, middle) > middle):
        raise DataError(f"ranks reach beyond the {records} records that were announced")
    steps.check_sums(clients.sizes, middle, mechanism.largest_sum)
    count, residual = steps.pair_of_sums(ranks, clients.labels[clients.ascending], middle)
    shape = (clients.count,)
    return {
        "positives": count + noise.draw(mechanism.drawn(1, fraction), shape),
        "residuals": residual + noise.draw(mechanism.drawn(middle, 1 - fraction), shape),
    }


def rank_codes(scores: Floats) -> Integers:
    """Integers from 0 to below ``2**56`` whose order is that of scores in [0, 1].

    Examples
    --------
    >>> codes = rank_codes(np.array([0.0, 0.5, 0.5 + 2**-50, 0.5 + 2**-40]))
    >>> bool(codes[1] == codes[2] < codes[3])
    True
    """
    return signed_codes(scores) >> DROPPED_BITS


def compared_scores(codes: Integers) -> Floats:
    """The scores of these codes, without their last bits."""
    return (codes << DROPPED_BITS).view(np.float64)


def hidden_geometry(sizes: Integers) -> allocating.RankGeometry:
    """The public geometry of hidden ranks: they are from 0 to ``M - 1``."""
    records, clients = int(sizes.sum()), sizes.size
    return allocating.RankGeometry(
        records,
        low=np.zeros(clients),
        high=np.full(clients, records - 1.0),
        mean=np.full(clients, (records - 1) / 2),
        scatter=np.zeros(clients),
        sizes=sizes.astype(np.float64),
    )


def result_with_hidden_ranks(protocol: Any, alpha: float) -> Conversation:
    """Sizes up, ranks among the clients, noisy pairs up: the server sees no score and no rank."""
    offer = yield Query(offer_sizes, protocol)
    geometry = hidden_geometry(np.asarray(offer["records"]))
    if geometry.records < 2:
        raise ValueError(f"an AUC needs at least two records, got {geometry.records}")
    yield Query(rank_together, protocol, view=View.MPC)
    middle, noise = geometry.records - 1, protocol.rank_noise
    allocation = allocating.Allocation.alike(geometry, middle, 1.0 - alpha)
    shared = {"noise": noise, "records": geometry.records, "share": 1.0 - alpha}
    reply = yield Query(noisy_hidden_rank_sums, protocol, shared)
    sums = totals_of_pairs(geometry, noise, allocation, reply)
    return result_of_sums(geometry, noise, allocation, sums)


Undo = Callable[[Any], Any]

OWNER_BITS = 6
"""Number of a key's last bits, after the score's code, that give the owner of the score."""

OWNERS = 2**OWNER_BITS
"""The largest number of parties whose scores are ranked."""


def rank_keys(codes: Integers, owner: int) -> Integers:
    """Keys of one party's scores, ascending, in which equal scores are ordered by owner.

    Parameters
    ----------
    codes : the scores as integers from 0 to below ``2**56``, ascending.
    owner : the party's index.
    """
    return codes * OWNERS + owner


def mid_ranks_of(codes: Integers, positions: Integers) -> Integers:
    """Doubled mid-ranks from the two positions of each score, added up.

    Positions count once with ties among parties ordered upwards and once downwards. Of t equal
    scores at the positions ``f .. f + t - 1``, those of one party have positions that add up to
    ``2 f + t - 1`` on average, which is their doubled mid-rank.

    Parameters
    ----------
    codes : the party's codes, ascending, as in ``rank_keys``.
    positions : the sums of both positions, shape (n,).

    Examples
    --------
    >>> mid_ranks_of(np.array([3, 7, 7]), np.array([0, 5, 3])).tolist()
    [0, 4, 4]
    """
    starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    lengths = np.diff(np.append(starts, codes.size))
    return np.repeat(np.add.reduceat(positions, starts) // lengths, lengths)


def ranking(sizes: Sequence[int], arrays: Any) -> Function:
    """A program that gives the sum of every key's two positions, in the order of the input.

    Parameters
    ----------
    sizes : how many keys each party has; the program takes the keys of all parties, in the order of
        the parties.
    arrays : the module of array functions (``SharedRun.arrays``).

    Examples
    --------
    >>> ranking([2, 1], np)(np.array([64, 192, 129]))
    array([0, 4, 2])
    """
    ends = np.cumsum(sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    turned = np.stack([0 * owners, OWNERS - 1 - 2 * owners])

    def program(keys: Any) -> Any:
        both = arrays.broadcast_to(keys, turned.shape) + turned
        blocks = [both[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]
        _, undo = _sorted(arrays, blocks)
        indices = np.arange(owners.size)
        positions = undo(arrays.asarray(np.stack([indices, indices])))
        return positions[0] + positions[1]

    return program


def _sorted(arrays: Any, blocks: list[Any]) -> tuple[Any, Undo]:
    """All blocks as one in ascending order, and the way back."""
    if len(blocks) == 1:
        return blocks[0], lambda positions: positions
    middle = len(blocks) // 2
    lower, undo_lower = _sorted(arrays, blocks[:middle])
    upper, undo_upper = _sorted(arrays, blocks[middle:])
    size = lower.shape[1]
    valley = arrays.concatenate([lower[:, ::-1], upper], axis=1)
    merged, undo_merge = _merged(arrays, valley)

    def undo(positions: Any) -> Any:
        back = undo_merge(positions)
        return arrays.concatenate(
            [undo_lower(back[:, :size][:, ::-1]), undo_upper(back[:, size:])], axis=1
        )

    return merged, undo


def _merged(arrays: Any, valley: Any) -> tuple[Any, Undo]:
    """Keys that first fall and then rise, in ascending order.

    The network is that of the next power of two, without the exchanges that reach beyond the end:
    the missing keys would be larger than all others, and no exchange would move them.
    """
    size = valley.shape[1]
    swaps: list[tuple[int, Any]] = []
    apart = 1 << max(size - 1, 1).bit_length() - 1
    while apart:
        low, high = _halves(arrays, valley, apart)
        swap = low > high
        smaller = arrays.where(swap, high, low)
        valley = _joined(arrays, valley, smaller, low + high - smaller, apart)
        swaps.append((apart, swap))
        apart //= 2

    def undo(positions: Any) -> Any:
        for apart, swap in reversed(swaps):
            low, high = _halves(arrays, positions, apart)
            first = arrays.where(swap, high, low)
            positions = _joined(arrays, positions, first, low + high - first, apart)
        return positions

    return valley, undo


def _halves(arrays: Any, row: Any, apart: int) -> tuple[Any, Any]:
    """Both sides of all exchanges: numbers at the distance ``apart``, in blocks of twice that."""
    count, size = row.shape
    full = size // (2 * apart) * 2 * apart
    blocks = row[:, :full].reshape(count, -1, 2, apart)
    rest = row[:, full:]
    extra = max(rest.shape[1] - apart, 0)
    low = arrays.concatenate([blocks[:, :, 0].reshape(count, -1), rest[:, :extra]], axis=1)
    high = arrays.concatenate(
        [blocks[:, :, 1].reshape(count, -1), rest[:, apart : apart + extra]], axis=1
    )
    return low, high


def _joined(arrays: Any, row: Any, low: Any, high: Any, apart: int) -> Any:
    """The row, with the exchanged numbers at their indices."""
    count, size = row.shape
    full = size // (2 * apart) * 2 * apart
    half = full // 2
    extra = low.shape[1] - half
    pairs = arrays.stack(
        [low[:, :half].reshape(count, -1, apart), high[:, :half].reshape(count, -1, apart)], axis=2
    )
    left = row[:, full + extra : full + apart] if extra else row[:, full:]
    parts = [pairs.reshape(count, full), low[:, half:], left, high[:, half:]]
    return arrays.concatenate(parts, axis=1)


RANKING = 3
"""Number of clients that rank for all, at most: the first ones."""


class RankProgram(MPCProgram):
    """Every client learns the ranks of its own scores, as ``rank_together`` gives them.

    The first three of the clients rank on shares, with an honest majority; where there are two,
    both do. The others give them their scores in shares, and receive shares of positions.
    """

    def offer(self, clients: Clients, query: Query) -> Mapping[str, Any]:
        """The number of records, which is public."""
        return {"records": clients.records}

    def compute(
        self, clients: Clients, query: Query, noise: NoiseSource, state: ClientState, peers: Peers
    ) -> Reply:
        """Store the ranks of this client's scores; the server receives the number of all scores.

        Raises
        ------
        MPCError : when the others do not do their part.
        DataError : for a score outside [0, 1].
        """
        check_scores_in_unit_interval(clients)
        codes = rank_codes(clients.scores[clients.ascending])
        sizes = _sizes(peers)
        members = range(min(len(sizes), RANKING))
        parts = masking.summands_of(rank_keys(codes, peers.index), len(members))
        shares = {
            rank: np.stack([parts[k] for k in masking.known_summands(rank, len(members))])
            for rank in members
        }
        for rank in members:
            if rank != peers.index:
                peers.send(rank, _encoded(shares[rank]))
        positions = np.zeros(codes.size, dtype=np.uint64)
        if peers.index in members:
            positions = _ranked(peers, members, sizes, shares[peers.index])
        for rank in members:
            if rank != peers.index:
                positions = positions + _received(peers, rank, (1, codes.size))[0]
        ranks = mid_ranks_of(codes, positions.view(np.int64))
        state.keep(RANKS, Ragged(ranks, np.array([0, codes.size], dtype=np.int64)))
        return {"records": np.array(sum(sizes))}


def _ranked(peers: Peers, members: range, sizes: Sequence[int], shares: Words) -> Words:
    """Rank all scores as one of the members; gives this client's shares of its positions."""
    summands = 1 if len(members) == 2 else 2
    parts = [
        shares if owner == peers.index else _received(peers, owner, (summands, size))
        for owner, size in enumerate(sizes)
    ]
    scores = sum(sizes)
    with peers.link(tuple(members), scores, scores * scores.bit_length()) as run:
        function = ranking(sizes, run.arrays)
        inputs = [list(np.concatenate(parts, axis=1))]
        positions = run.evaluated(("ranks", *sizes), function, inputs)
    by_owner = np.split(positions, np.cumsum(sizes)[:-1])
    for owner, client_positions in enumerate(by_owner):
        if owner != peers.index:
            peers.send(owner, _encoded(client_positions[np.newaxis]))
    return by_owner[peers.index]


def _sizes(peers: Peers) -> list[int]:
    """How many scores each client has, as it announced.

    Raises
    ------
    MPCError : for what is not a number of scores, or too many clients.
    """
    sizes = [offer.get("records") for offer in peers.offers]
    if len(sizes) > OWNERS:
        raise MPCError(f"at most {OWNERS} parties rank their scores, got {len(sizes)}")
    for index, size in enumerate(sizes):
        if type(size) is not int or size < 1:
            raise MPCError(f"party {index} announced {size!r:.20} scores")
    return [int(size) for size in sizes if size is not None]


def _encoded(shares: Words) -> bytes:
    return fields.encode({"shares": np.ascontiguousarray(shares).view(np.int64)})


def _received(peers: Peers, place: int, shape: tuple[int, int]) -> Words:
    """The shares that another client sent.

    Raises
    ------
    MPCError : for anything else.
    """
    try:
        shares: Any = fields.decode(peers.receive(place)).get("shares")
    except fields.MessageError as error:
        raise MPCError(f"party {place} sent what cannot be read: {error}") from None
    if not isinstance(shares, np.ndarray) or shares.dtype != np.int64 or shares.shape != shape:
        raise MPCError(f"party {place} sent no shares of shape {shape}")
    return np.ascontiguousarray(shares).view(np.uint64)
