"""FedAUC with hidden ranks: exact without noise, honest with it, and merged on shares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit import FedAUC, PublishedFedAUC
from tacit.counts.rank_noise import RankNoise
from tacit.crypto.secure_sum.masking import known_summands, summands_of
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.protocol import Clients, ClientState, DataError, NoNoise, Query, Ragged, View
from tacit.protocols.fedauc import hidden_ranks
from tacit.running.evaluating import repeat_results
from tacit.testing.checks import conversation_of
from tests.federations import binormal_clients
from tests.running.mpc.threads import ThreadedParties


def unit_clients(positives: int, negatives: int, clients: int) -> Clients:
    """Scores in [0, 1], on a grid, so that they tie."""
    raw = binormal_clients(positives, negatives, clients)
    scores = np.round(1 / (1 + np.exp(-raw.scores)), 2)
    return Clients(scores, raw.labels, raw.offsets, simulated=True)


CLIENTS = unit_clients(300, 700, 7)
HIDDEN = FedAUC(1.0, trust="mpc")


def test_the_middle_pivot_halves_the_noise_of_the_rank_sum() -> None:
    shown = PublishedFedAUC(1.0, "staircase", "fixed(sensitivity=global)")
    errors = [
        float(np.mean(repeat_results(CLIENTS, protocol, 200, seed=2).privacy_error))
        for protocol in (HIDDEN, shown)
    ]
    assert errors[0] < 0.55 * errors[1]


def test_the_server_is_shown_neither_scores_nor_ranks() -> None:
    """It receives sizes, the number of records, and a noisy pair; its asks hold no ranks."""
    seen = list(conversation_of(CLIENTS, HIDDEN, NoNoise(), ClientState()))
    for query, reply in seen:
        assert not query.per_client
        assert all(np.asarray(value).size <= CLIENTS.count for value in reply.values())
    names = ["offer_sizes", "rank_together", "noisy_hidden_rank_sums"]
    assert [query.step.name for query, _ in seen] == names
    assert seen[1][0].view is View.MPC


def test_clients_keep_their_own_mid_ranks() -> None:
    clients = Clients.from_arrays([0.9, 0.1, 0.1, 0.5], [1, 0, 1, 0], ["a", "a", "b", "b"])
    state = ClientState()
    hidden_ranks.rank_together.answer(
        clients, Query(hidden_ranks.rank_together, HIDDEN, view=View.MPC), NoNoise(), state
    )
    stored = state.recall_field(hidden_ranks.RANKS)
    assert isinstance(stored, Ragged)
    np.testing.assert_array_equal(stored.values, [1, 6, 1, 4])
    own = state.part(1, 2).recall_field(hidden_ranks.RANKS)
    assert isinstance(own, Ragged)
    np.testing.assert_array_equal(own.values, [1, 4])


FOUR = Clients.from_arrays([0.1, 0.5, 0.5, 0.9], [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("mechanism", "fraction", "ranks", "said"),
    [
        ("laplace", 0.5, (0, 3, 3, 6), "mechanism must be"),
        ("staircase", 0.0, (0, 3, 3, 6), "share must be"),
        ("staircase", 1.0, (0, 3, 3, 6), "share must be"),
        ("staircase", 0.5, (0, 3, 3, 8), "reach beyond the 4 records"),
        ("staircase", 0.5, None, "not ranked"),
    ],
)
def test_sums_that_would_weaken_the_noise_are_refused(
    mechanism: str, fraction: float, ranks: tuple[int, ...] | None, said: str
) -> None:
    """Noise for fewer records than there are would be too small."""
    state = ClientState()
    if ranks is not None:
        state.keep(hidden_ranks.RANKS, Ragged(np.array(ranks), FOUR.offsets))
    shared = {"noise": RankNoise(mechanism, 1.0), "records": 4, "share": fraction}
    sums = Query(hidden_ranks.noisy_hidden_rank_sums, HIDDEN, shared)
    with pytest.raises((ValueError, DataError), match=said):
        sums.step.answer(FOUR, sums, NoNoise(), state)


def test_codes_keep_order_and_drop_the_last_bits() -> None:
    scores = np.sort(np.random.default_rng(0).random(1000))
    codes = hidden_ranks.rank_codes(np.concatenate([[0.0, 5e-324], scores, [1.0]]))
    assert (np.diff(codes) >= 0).all()
    assert codes[0] >= 0 and codes[-1] < 2**56
    np.testing.assert_allclose(hidden_ranks.compared_scores(codes)[2:-1], scores, rtol=2.0**-46)


Blocks = list[NDArray[np.int64]]


def wanted(blocks: Blocks) -> list[int]:
    """The naive reference: everything in one place."""
    return doubled_mid_ranks(np.concatenate(blocks).astype(np.float64)).tolist()


def keys_of(blocks: Blocks) -> NDArray[np.int64]:
    return np.concatenate(
        [hidden_ranks.rank_keys(block, owner) for owner, block in enumerate(blocks)]
    )


def mid_ranks(blocks: Blocks, positions: NDArray[np.int64]) -> list[int]:
    ends = np.cumsum([block.size for block in blocks])[:-1]
    parts = np.split(np.asarray(positions), ends)
    return [
        r
        for block, own in zip(blocks, parts, strict=True)
        for r in hidden_ranks.mid_ranks_of(block, own)
    ]


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_the_network_ranks_small_blocks_with_ties(lists: list[list[int]]) -> None:
    blocks = [np.sort(np.array(own, dtype=np.int64)) for own in lists]
    positions = hidden_ranks.ranking([block.size for block in blocks], np)(keys_of(blocks))
    assert mid_ranks(blocks, positions) == wanted(blocks)


@pytest.mark.parametrize("sizes", [(64, 64), (1, 127), (33, 95), (100, 7, 1)])
def test_the_network_ranks_blocks_of_any_size(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    blocks = [np.sort(rng.integers(0, 2**56, size)) for size in sizes]
    positions = hidden_ranks.ranking(sizes, np)(keys_of(blocks))
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
            hidden_ranks.ranking([5, 7], run.arrays),
            [[parts[place] for place in known_summands(rank, 2)]],
        )
    )
    positions = sum(shares).view(np.int64)
    assert mid_ranks(blocks, positions) == wanted(blocks)
