"""What an aggregator learns with all parties but two, and from runs that differ in one record."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import Clients, EncryptedAUC
from tacit.arrays import Integers
from tacit.crypto.masking import REACH, neighbours
from tacit.privacy.noise import NoNoise
from tacit.protocol.conversation import ClientState
from tacit.protocols.encrypted.counts import class_cells
from tacit.protocols.encrypted.masked_scheme import SEED_BYTES, TAG_BYTES, MaskedScheme
from tacit.protocols.encrypted.masked_sides import MaskedParty
from tacit.running.simulation import simulate
from tacit.testing.checks import conversation_of

PARTIES, HONEST, THRESHOLDS = 5, (1, 3), 12


def pairing(party: int, other: int) -> bytes:
    return sha256(b"%d %d" % (min(party, other), max(party, other))).digest()


def federation(owners: list[int]) -> Clients:
    """Records of five parties; ``owners`` divides those of the two that do not collude."""
    rng = np.random.default_rng(0)
    scores, labels = rng.random(500), rng.integers(0, 2, 500)
    parties = np.arange(500) % PARTIES
    parties[np.isin(parties, HONEST)] = owners
    return Clients.from_arrays(scores, labels, parties)


@pytest.mark.parametrize("checked", [False, True])
def test_with_all_parties_but_two_only_the_sum_of_these_is_left(checked: bool) -> None:
    """Colluders know every key but the one that the two share, and their own.

    They take every other mask off, and have words ``w_1 + s`` and ``w_3 - s``, s uniform: their sum
    and nothing else. However records are divided over the two, the sum of their words is the same.
    """
    scheme = MaskedScheme(THRESHOLDS, 2**17, checked=checked)
    everybody = MaskedParty(scheme, bytes(16), bytes(range(16)), PARTIES, pairing)
    field, divisions = scheme.field, ([1, 3] * 100, [1] * 150 + [3] * 50)
    thresholds = np.linspace(0.0, 1.0, THRESHOLDS)
    made = [class_cells(federation(owners), thresholds) for owners in divisions]
    sent = []
    for cells in made:
        uploads = everybody.uploads(*cells, range(PARTIES))
        end = -SEED_BYTES if checked else None
        sent.append([upload[TAG_BYTES:end] for upload in uploads])
    first, second = (
        [field.from_bytes(words[party], scheme.sent_words) for party in HONEST] for words in sent
    )
    difference = first[0] + first[1] - second[0] - second[1]
    assert not np.any(difference % field.prime)
    assert all((one != other).any() for one, other in zip(first, second, strict=True))

    def summed_counts(cells: tuple[Integers, Integers], parties: tuple[int, ...]) -> Any:
        return np.concatenate(cells)[:, list(parties)].sum(axis=1)

    total = field.summed(sent[0], scheme.sent_words)[: 2 * THRESHOLDS]
    known = everybody._masks.joined[: 2 * THRESHOLDS]
    colluders = tuple(set(range(PARTIES)) - set(HONEST))
    left = (total - known - summed_counts(made[0], colluders)) % field.prime
    assert left.tolist() == summed_counts(made[0], HONEST).tolist()


def test_from_102_parties_on_two_that_share_no_mask_may_be_left() -> None:
    """So the table's 99 colluders are the most of which it says that two others are hidden."""
    whole = 2 * REACH + 1
    assert all(len(neighbours(party, whole)) == whole - 1 for party in range(whole))
    assert REACH + 1 not in neighbours(0, whole + 1)
    assert set(range(1, whole + 1)) - set(neighbours(0, whole + 1)) == {REACH + 1}


def one_more(clients: Clients) -> Clients:
    """The same records, and a positive one with the highest score."""
    owners = np.append(clients.client_of_record, 0)
    return Clients.from_arrays(np.append(clients.scores, 1.0), np.append(clients.labels, 1), owners)


@pytest.mark.parametrize(("positives", "within"), [(2000, 4), (5000, 24)])
def test_two_runs_that_differ_in_one_record_tell_the_size_of_its_class(
    positives: int, within: int
) -> None:
    """Of one figure many sizes fit; of two whose difference is a known record's few.

    The record's score beats all negatives, so ``A' = (P A + 1) / (P + 1)``. Both figures are off by
    at most 1e-7, by the last digit and the perturbation.
    """
    scores, labels = tacit.binormal_scores(positives, 3 * positives, 0.75, seed=0)
    clients = Clients.split(scores, labels, 3, seed=0)
    protocol = EncryptedAUC(most_records=5 * positives)
    before, after = (
        float(simulate(each, protocol, NoNoise()).server_result.value)
        for each in (clients, one_more(clients))
    )
    least, most = ((1 - before) / (after - before + off) - 1 for off in (2e-7, -2e-7))
    assert least - 1 <= positives <= most + 1
    assert most - least < 4 * within
    # and who does not know the record has a bound
    assert positives <= max(before, 1 - before) / abs(after - before - 2e-7)


def test_two_runs_that_differ_in_one_record_are_alike_to_who_is_told_nothing() -> None:
    """Every reply has the same fields and sizes, and the words of no party come again."""
    clients = federation([1, 3] * 100)
    protocol = EncryptedAUC(THRESHOLDS, most_records=1000, reveal="parties")
    runs = [
        list(conversation_of(each, protocol, NoNoise(), ClientState()))
        for each in (clients, one_more(clients))
    ]
    for (_, first), (_, second) in zip(*runs, strict=True):
        assert first.keys() == second.keys()
        for name in first:
            one, other = (
                np.asarray(getattr(each[name], "values", each[name])) for each in (first, second)
            )
            assert one.shape == other.shape
            if name == "counts":
                assert np.mean(one == other) < 0.1  # tags differ too
    assert all(np.all(np.asarray(run[-1][1]["opened"]) == 1) for run in runs)
    results = [
        simulate(each, protocol, NoNoise()).server_result for each in (clients, one_more(clients))
    ]
    assert np.isnan([float(each.value) for each in results]).all()
    assert results[0].warnings == results[1].warnings
