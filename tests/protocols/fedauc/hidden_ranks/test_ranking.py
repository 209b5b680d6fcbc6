"""Merging on shares gives everybody's mid-ranks, whatever ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.crypto.secure_sum.masking import known_summands, summands_of
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.protocols.fedauc.hidden_ranks import mid_ranks_of, rank_keys, ranking
from tests.running.mpc.threads import ThreadedParties

Blocks = list[NDArray[np.int64]]


def wanted(blocks: Blocks) -> list[int]:
    """The naive reference: everything in one place."""
    return doubled_mid_ranks(np.concatenate(blocks).astype(np.float64)).tolist()


def keys_of(blocks: Blocks) -> NDArray[np.int64]:
    return np.concatenate([rank_keys(block, owner) for owner, block in enumerate(blocks)])


def mid_ranks(blocks: Blocks, positions: NDArray[np.int64]) -> list[int]:
    ends = np.cumsum([block.size for block in blocks])[:-1]
    parts = np.split(np.asarray(positions), ends)
    return [r for block, own in zip(blocks, parts, strict=True) for r in mid_ranks_of(block, own)]


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_the_network_ranks_small_blocks_with_ties(lists: list[list[int]]) -> None:
    blocks = [np.sort(np.array(own, dtype=np.int64)) for own in lists]
    positions = ranking([block.size for block in blocks], np)(keys_of(blocks))
    assert mid_ranks(blocks, positions) == wanted(blocks)


@pytest.mark.parametrize("sizes", [(64, 64), (1, 127), (33, 95), (100, 7, 1)])
def test_the_network_ranks_blocks_of_any_size(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    blocks = [np.sort(rng.integers(0, 2**56, size)) for size in sizes]
    positions = ranking(sizes, np)(keys_of(blocks))
    assert mid_ranks(blocks, positions) == wanted(blocks)


def test_shares_of_positions_add_up() -> None:
    """Of two parties; three processes rank in tests/running/mpc/test_runner.py."""
    pytest.importorskip("spu.libspu", reason="joint computations need SPU")
    rng = np.random.default_rng(1)
    blocks = [np.sort(rng.integers(0, 9, size)) for size in (5, 7)]
    parts = summands_of(keys_of(blocks), 2)
    threads = ThreadedParties(2)
    shares = threads.together(
        lambda run, rank: run.evaluated(
            ("ranks",),
            ranking([5, 7], run.arrays),
            [[parts[place] for place in known_summands(rank, 2)]],
        )
    )
    positions = sum(shares).view(np.int64)
    assert mid_ranks(blocks, positions) == wanted(blocks)
