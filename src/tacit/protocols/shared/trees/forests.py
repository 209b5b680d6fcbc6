"""Forests: several trees of counts in which a record counts in a known number of trees.

A *block* is a set of trees of the same height, of which one record counts in at most ``votes``, in
one cell each. What is summed, and how far a record moves it:

- On one level of one tree a record counts in at most one node. On one level of a block it counts
  in at most ``votes`` nodes, by 1 each. Adding or removing the record changes ``votes`` counts by
  1, so the L1 sensitivity of a level is ``votes``. Replacing a record removes its counts and adds
  others: ``2 votes``.
- Discrete Laplace noise of scale ``reach / part`` on every count of a level, with ``reach`` that
  sensitivity, costs ``part`` by the Laplace mechanism on the integers.
- A record is in every level of every block, so the parts add up (basic composition): to epsilon, or
  to what a second round leaves of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics.tree_noise import TreeNoise
from tacit.metrics.trees import consistent_leaves
from tacit.privacy.cost import Cost
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, PolyaShare
from tacit.privacy.sampling.distributions import discrete_laplace_variance, shared_laplace_epsilon
from tacit.privacy.sampling.exact import MAX_SHARED_SCALE
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, step
from tacit.protocol.sum_bounds import clipped, clipped_sum_bound, planned_clients


@dataclass(frozen=True)
class Block:
    """Trees of one height, and what their counts cost.

    Parameters
    ----------
    name : of its fields in a reply.
    trees : how many there are.
    votes : the most trees in which one record counts.
    parts : the epsilon of each level, the roots first, shape (height + 1,); 0 where a level is not
        asked for, and infinity where it is exact.
    """

    name: str
    trees: int
    votes: int
    parts: tuple[float, ...]

    @property
    def height(self) -> int:
        """Every tree has ``2**height`` cells."""
        return len(self.parts) - 1

    @property
    def levels(self) -> dict[int, float]:
        """The levels that are asked for, with what each costs a record."""
        return {level: part for level, part in enumerate(self.parts) if part > 0}

    def field(self, level: int) -> str:
        """The field that carries a level's counts."""
        return f"{self.name}-{level}"


@dataclass(frozen=True, eq=False)
class Votes:
    """Where records count in a block.

    Parameters
    ----------
    records : the record of each vote, int64, shape (V,).
    leaves : the vote's tree times ``2**height`` plus its cell, int64, shape (V,).
    """

    records: Integers
    leaves: Integers


@dataclass(frozen=True, eq=False)
class Forest:
    """A block's consistent trees, with the errors of their counts.

    Parameters
    ----------
    leaves : the cells' counts, shape (..., trees, 2**height).
    noise : the errors of one tree; all trees have the same, and independent noise.
    """

    leaves: Floats
    noise: TreeNoise

    def totals(self) -> tuple[Floats, Floats]:
        """The records of every tree and the variance of that number, shape (..., trees) each."""
        ones = np.ones_like(self.leaves)
        return self.leaves.sum(axis=-1), self.noise.variance_of(ones, self.leaves)


class CountsForest(Protocol):
    """What a protocol has whose records count in a forest."""

    @property
    def epsilon(self) -> float | None:
        """The budget of one record."""

    @property
    def forest_cost(self) -> Cost:
        """What the counts cost every record."""

    @property
    def distance(self) -> int:
        """1 where a neighbour has one record more or less, 2 where one is replaced."""

    def blocks(self) -> tuple[Block, ...]:
        """The blocks, in the order of the reply."""

    def votes(self, clients: Clients) -> Mapping[str, Votes]:
        """Where the records count, by block."""

    def noise_share(self, batch: int, queried: int) -> Fraction:
        """The part of the noise that a batch of clients draws."""


def _cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    cost: Cost = query.protocol.forest_cost
    return cost


def _layout(query: Query) -> Layout:
    made: dict[str, tuple[int, ...]] = {
        block.field(level): (block.trees << level,)
        for block in query.protocol.blocks()
        for level in block.levels
    }
    return made | {"clients": ()}


def _bounds(query: Query) -> dict[str, int]:
    settings, planned = query.protocol, planned_clients(query)
    share, bounds = settings.noise_share(1, planned), {"clients": planned}
    for block in settings.blocks():
        for level, part in block.levels.items():
            drawn = level_noise(settings, block, part, share)
            bounds[block.field(level)] = clipped_sum_bound(query, drawn)
    return bounds


def level_noise(
    settings: CountsForest, block: Block, part: float, share: Fraction
) -> PolyaShare | None:
    """A share of the noise on the counts of a level that costs this part; None for exact counts."""
    if math.isinf(part):
        return None
    return PolyaShare(block.votes * settings.distance, part, share)


@step(cost=_cost, sums=_layout, shares=planned_clients, bounds=_bounds)
def summed_forest(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the counts of all blocks' levels, with this batch's share of the noise.

    The module's docstring derives the cost: all clients' shares add up to discrete Laplace noise of
    scale ``reach / part`` on every count of a level, which costs the level's part, and all parts
    add up to the forest's cost. It is about the sum over all clients, and holds against a server
    that sees the sum only and colludes with no client. With exact sums there is no noise and no
    guarantee.

    The server learns the noisy sums of all counts, and how many clients answered.
    """
    settings: CountsForest = query.protocol
    share, votes = (
        settings.noise_share(clients.count, planned_clients(query)),
        settings.votes(clients),
    )
    reply: dict[str, Any] = {}
    for block in settings.blocks():
        cast = votes[block.name].leaves
        for level, part in block.levels.items():
            nodes = cast >> (block.height - level)
            counts = clipped(np.bincount(nodes, minlength=block.trees << level), query)
            drawn = level_noise(settings, block, part, share)
            if drawn is not None:
                counts = counts + noise.draw(drawn, counts.shape)
            reply[block.field(level)] = counts
    return reply | {"clients": np.asarray(clients.count, dtype=np.int64)}


@step(cost=_cost)
def own_forest(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send each client's counts of all blocks' levels, each with the whole noise.

    The counts are those of ``summed_forest``; every client adds discrete Laplace noise of scale
    ``reach / part`` to each of its own counts. A record is at one client, whose reply costs the
    parts' sum whoever sees it.

    The server learns the noisy counts of each client.
    """
    settings: CountsForest = query.protocol
    votes, reply = settings.votes(clients), dict[str, Any]()
    for block in settings.blocks():
        cast = votes[block.name]
        owners = clients.client_of_record[cast.records]
        for level, part in block.levels.items():
            width = block.trees << level
            nodes = (cast.leaves >> (block.height - level)) * clients.count + owners
            counts = np.bincount(nodes, minlength=width * clients.count)
            counts = counts.reshape(width, clients.count)
            reach = block.votes * settings.distance
            reply[block.field(level)] = counts + noise.draw(
                DiscreteLaplace(reach, part), counts.shape
            )
    return reply


def forest_of(
    settings: CountsForest, block: Block, reply: Reply, noises: float, by_client: bool = False
) -> Forest:
    """The consistent trees of a block.

    Parameters
    ----------
    settings : the protocol.
    block : one of its blocks.
    reply : the sums, or every client's counts.
    noises : the noise in a count, as a multiple of what the guarantee needs of one.
    by_client : whether the reply has a last axis of clients, over which it is summed here.
    """
    variances = np.full(block.height + 1, np.inf)
    levels: list[Floats | None] = [None] * (block.height + 1)
    for level, part in block.levels.items():
        scale = block.votes * settings.distance / part
        variances[level] = noises * discrete_laplace_variance(scale) if scale else 0.0
        counts = np.asarray(reply[block.field(level)], dtype=np.float64)
        counts = counts.sum(axis=-1) if by_client else counts
        levels[level] = counts.reshape(*counts.shape[:-1], block.trees, 1 << level)
    return Forest(consistent_leaves(levels, variances), TreeNoise(variances))


def exact_leaves(block: Block, votes: Votes) -> Floats:
    """The exact counts of a block's cells, shape (trees, 2**height)."""
    counts = np.bincount(votes.leaves, minlength=block.trees << block.height)
    return counts.reshape(block.trees, -1).astype(np.float64)


def check_shared_scales(settings: CountsForest) -> None:
    """Refuse parts of epsilon of whose noise no shares are drawn, before anybody pays them.

    Raises
    ------
    ValueError : naming the largest scale.
    """
    reach = settings.distance
    scales = [b.votes * reach / part for b in settings.blocks() for part in b.levels.values()]
    if max(scales) > MAX_SHARED_SCALE:
        raise ValueError(
            f"shared noise has a scale of at most {MAX_SHARED_SCALE:g}, got {max(scales):.6g}: "
            f"take a larger epsilon than {settings.epsilon}"
        )


def supported_epsilon(settings: CountsForest, share: Fraction) -> float:
    """What this share of the noise supports: the losses of all counts that a record changes."""
    losses = [
        block.votes
        * settings.distance
        * shared_laplace_epsilon(block.votes * settings.distance / part, float(share))
        for block in settings.blocks()
        for part in block.levels.values()
    ]
    return math.fsum(losses)
