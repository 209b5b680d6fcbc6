"""A party answers what it agreed to, once, and no more; whoever asks."""

import numpy as np
import pytest

from tacit.crypto.sealed import SealError
from tacit.data.clients import Clients, DataError, Ragged
from tacit.protocols.ask_messages import encode_ask
from tacit.protocols.conversation import Ask, Memory, View
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.hidden_ranks import RANKS, noisy_hidden_rank_sums, rank_together
from tacit.protocols.messages import MessageError, decode
from tacit.protocols.paired_ustatistic import (
    PairedUStatistic,
    compute_pairs,
    count_positives,
    offer_numbers,
)
from tacit.protocols.rank_noise import RankNoise
from tacit.running.debits import unrecorded
from tacit.running.joint_holder import Holder, RankWork, _boxed
from tacit.running.joint_work import PairWork, box_place

CLIENTS = Clients.from_arrays([0.1, 0.5, 0.5, 0.9], [0, 1, 0, 1])
PAIRS = PairedUStatistic("auc", 1.0, noise="laplace")
RANKED = FedAUC(1.0, ranks="mpc")


def pairs_ask(epsilon: float = 0.8) -> bytes:
    each = {"seats": Ragged(np.arange(4)[np.newaxis], CLIENTS.offsets)}
    return encode_ask(Ask(compute_pairs, PAIRS, {"epsilon": epsilon}, each, View.JOINT))


def count_ask(epsilon: float) -> bytes:
    return encode_ask(Ask(count_positives, PAIRS, {"epsilon": epsilon}))


def rank_ask() -> bytes:
    return encode_ask(Ask(rank_together, RANKED, view=View.JOINT))


def sums_ask(epsilon: float = 1.0, records: int = 4) -> bytes:
    noise = RankNoise("staircase", epsilon)
    shared = {"noise": noise, "records": records, "share": 0.5}
    return encode_ask(Ask(noisy_hidden_rank_sums, RANKED, shared))


def test_steps_are_answered_with_the_own_records() -> None:
    holder = Holder(PAIRS, CLIENTS, 0, True, unrecorded)
    reply = decode(holder.answer(encode_ask(Ask(offer_numbers, PAIRS))))
    assert reply["records"] == 4
    assert decode(holder.answer(count_ask(0.2)))["positives"] == 2
    assert isinstance(holder.work(pairs_ask()), PairWork)


def test_a_step_is_answered_once() -> None:
    holder = Holder(PAIRS, CLIENTS, 0, True, unrecorded)
    holder.answer(count_ask(0.1))
    with pytest.raises(ValueError, match="'count_positives' was answered before"):
        holder.answer(count_ask(0.1))


def test_no_more_is_spent_than_agreed() -> None:
    holder = Holder(PAIRS, CLIENTS, 0, True, unrecorded)
    with pytest.raises(ValueError, match="would spend"):
        holder.answer(count_ask(1.1))
    holder.answer(count_ask(0.3))
    with pytest.raises(ValueError, match="would spend"):
        holder.work(pairs_ask(0.8))
    holder.work(pairs_ask(0.7))


def test_other_bytes_and_other_protocols_are_refused() -> None:
    holder = Holder(PAIRS, CLIENTS, 0, True, unrecorded)
    for message in (b"", b"other bytes", rank_ask()):
        with pytest.raises(MessageError):
            holder.answer(message)


def test_what_is_computed_together_is_not_answered() -> None:
    holder = Holder(PAIRS, CLIENTS, 0, True, unrecorded)
    with pytest.raises(ValueError, match="is computed together"):
        holder.answer(pairs_ask())
    with pytest.raises(ValueError, match="is not computed together"):
        holder.work(count_ask(0.1))


def test_rank_sums_need_ranks() -> None:
    holder = Holder(RANKED, CLIENTS, 0, True, unrecorded)
    with pytest.raises(DataError, match="not ranked these scores yet"):
        holder.answer(sums_ask())


def test_scores_beyond_the_unit_range_are_refused() -> None:
    outside = Clients.from_arrays([0.1, 1.5], [0, 1])
    with pytest.raises(DataError, match=r"got 1\.5"):
        Holder(RANKED, outside, 0, True, unrecorded).work(rank_ask())


def test_shares_of_scores_and_positions_find_their_way() -> None:
    """Of two parties that rank, here their work is done in the open."""
    holders = [Holder(RANKED, CLIENTS, k, True, unrecorded) for k in range(2)]
    works = [holder.work(rank_ask()) for holder in holders]
    north = works[0]
    assert isinstance(north, RankWork)
    keys = [holder.receiver.public for holder in holders]
    boxes = north.submitted("s", keys)
    assert boxes.keys() == {"0", "1"}
    shares = [np.array([4, 5, 6, 7]), np.array([-4, -4, -4, -1])]
    made = {}
    for rank, own in enumerate(shares):
        place = box_place("s", rank, "positions", 0)
        made[str(rank)] = _boxed({"shares": own[np.newaxis]}, keys[0], place)
    north.placed("s", made)
    kept = holders[0]._memory.recall(RANKS)
    np.testing.assert_array_equal(kept.values, [0, 1, 1, 6])  # the mean of 1 and 2, rounded down
    with pytest.raises(SealError):
        north.placed("another session", made)


def test_a_short_row_of_shares_is_refused() -> None:
    holder = Holder(RANKED, CLIENTS, 0, True, unrecorded)
    work = holder.work(rank_ask())
    assert isinstance(work, RankWork)

    place = box_place("s", 0, "positions", 0)
    short = {
        "0": _boxed({"shares": np.zeros((1, 3), dtype=np.int64)}, holder.receiver.public, place)
    }
    with pytest.raises(ValueError, match="3 positions instead of 4"):
        work.placed("s", short)


def test_rank_sums_of_too_few_announced_records_are_refused() -> None:
    """Noise for fewer records than there are would be too small."""
    memory = Memory()
    memory.keep(RANKS, Ragged(np.array([0, 3, 3, 8]), CLIENTS.offsets))
    shared = {"noise": RankNoise("staircase", 1.0), "records": 4, "share": 0.5}
    ask = Ask(noisy_hidden_rank_sums, RANKED, shared)
    holder = Holder(RANKED, CLIENTS, 0, True, unrecorded)
    with pytest.raises(DataError, match="reach beyond the 4 records"):
        noisy_hidden_rank_sums.answer(CLIENTS, ask, holder.noise, memory)
