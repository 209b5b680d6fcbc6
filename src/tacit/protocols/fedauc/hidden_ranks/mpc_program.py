"""How real clients rank their scores together, on secret shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.summands import known_summands, summands_of
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply
from tacit.protocol.encoding.fields import MessageError, decode, encode
from tacit.protocol.mpc import MPCError, MPCProgram, Peers, Words
from tacit.protocol.settings.score_range import check_scores_in_unit_interval
from tacit.protocols.fedauc.hidden_ranks.mpc import RANKS, rank_codes
from tacit.protocols.fedauc.hidden_ranks.ranking import OWNERS, mid_ranks_of, rank_keys, ranking

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
        parts = summands_of(rank_keys(codes, peers.index), len(members))
        shares = {
            rank: np.stack([parts[k] for k in known_summands(rank, len(members))])
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
    return encode({"shares": np.ascontiguousarray(shares).view(np.int64)})


def _received(peers: Peers, place: int, shape: tuple[int, int]) -> Words:
    """The shares that another client sent.

    Raises
    ------
    MPCError : for anything else.
    """
    try:
        shares: Any = decode(peers.receive(place)).get("shares")
    except MessageError as error:
        raise MPCError(f"party {place} sent what cannot be read: {error}") from None
    if not isinstance(shares, np.ndarray) or shares.dtype != np.int64 or shares.shape != shape:
        raise MPCError(f"party {place} sent no shares of shape {shape}")
    words: NDArray[np.uint64] = np.ascontiguousarray(shares).view(np.uint64)
    return words
