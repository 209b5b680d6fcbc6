"""What the server sees, and what clients refuse to tell it."""

from __future__ import annotations

import os
from copy import copy
from itertools import product

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray
from scipy import stats

from tacit.crypto import sum_messages as messages
from tacit.crypto.identities import Identity
from tacit.crypto.masking import self_mask, to_signed
from tacit.crypto.neighbours import Neighbourhood
from tacit.crypto.secret_sharing import combine
from tacit.crypto.secure_sum_client import SumClient
from tacit.crypto.sum_errors import (
    ForgedError,
    RefusedError,
    RoundError,
    SumError,
    TooFewError,
    UnknownClientError,
)
from tacit.crypto.sum_messages import EVERYBODY, Advert, Kind
from tests.crypto.carrying import HEADER, Federation, before_reveal, revealed, started
from tests.privacy.reference import UNSEEDED_LEVEL


def uniform(words: NDArray[np.generic]) -> float:
    """The p-value of the chi-square test that the words' bytes are uniform."""
    octets = np.frombuffer(words.tobytes(), dtype=np.uint8)
    return float(stats.chisquare(np.bincount(octets, minlength=256)).pvalue)


def masked(federation: Federation, index: int) -> NDArray[np.generic]:
    dtype = f"<u{federation.terms.bits // 8}"
    return np.frombuffer(federation.sent[index][2][HEADER:], dtype=dtype)


def leavers(federation: Federation, stayed: list[int], left: list[int]) -> bytes:
    body = messages.pack_indices(stayed) + messages.pack_indices(left)
    return messages.write(Kind.LEAVERS, federation.terms.session, EVERYBODY, body)


# --- what an honest run shows ---------------------------------------------------------------


@pytest.mark.parametrize("largest", [5, 2**40])
def test_masked_vectors_look_uniform_whatever_they_hold(largest: int) -> None:
    """Zeros, small counts and their sum with one seed's mask taken off, as the server can.

    Nominal level 1e-8 for each of five tests at 64 or more expected bytes a cell.
    """
    federation = Federation(3, 4096, largest)
    sent = np.zeros((3, 4096), dtype=np.int64)
    sent[1:] = largest
    federation.carry(sent)
    total = federation.server.conclude().total
    assert np.array_equal(total, sent.sum(axis=0))
    words = [masked(federation, index) for index in range(3)]
    assert min(uniform(part) for part in words) > UNSEEDED_LEVEL
    assert uniform(words[0] - words[1]) > UNSEEDED_LEVEL
    seed = opened(federation, owner=0)
    bare = words[0] - self_mask(
        seed, federation.server._transcript, 0, (4096, federation.terms.bits)
    )
    assert uniform(bare) > UNSEEDED_LEVEL


def opened(federation: Federation, owner: int) -> bytes:
    """The secret of one client that the server puts together from what it was sent."""
    shares = [revealed(sent[3], federation.terms.clients) for sent in federation.sent.values()]
    rows = [(index + 1, share[owner][1:]) for index, share in enumerate(shares)]
    rows = rows[: federation.terms.neighbourhood.threshold]
    points = np.array([[point for point, _ in rows]])
    return combine(points, np.array([[list(share) for _, share in rows]], np.uint8))[0].tobytes()


def test_the_uniformity_test_sees_a_mask_that_is_30_percent_short() -> None:
    words = np.frombuffer(os.urandom(8 * 4096), dtype="<u8")
    assert uniform(words) > UNSEEDED_LEVEL
    assert uniform((words * 0.7).astype("<u8")) < UNSEEDED_LEVEL
    assert uniform(np.arange(4096)) < UNSEEDED_LEVEL


def test_fewer_shares_than_the_threshold_open_nothing() -> None:
    """All messages of an honest run in which two of five reveal, where three are needed."""
    federation = Federation(5)
    federation.carry(np.zeros((5, 3), dtype=np.int64), [4, 4, 3, 3, 3])
    with pytest.raises(TooFewError, match="3 clients must reveal a share of client 0, got 2"):
        federation.server.conclude()
    for owner in range(5):
        shares = [revealed(federation.sent[index][3], 5)[owner][1:] for index in (0, 1)]
        octets = np.array([[list(share) for share in shares]], dtype=np.uint8)
        seed = combine(np.array([[1, 2]]), octets)[0].tobytes()
        commitment = Advert.from_bytes(federation.sent[owner][0][HEADER:]).commitment
        assert federation.terms.commitment(owner, seed) != commitment


def test_of_the_vectors_only_their_sum_can_be_unmasked() -> None:
    """The server's own arithmetic on every proper part of the vectors leaves uniform words.

    One test for each of six parts, nominal level 1e-8, at 64 expected bytes a cell.
    """
    federation = Federation(3, 4096)
    sent = np.ones((3, 4096), dtype=np.int64)
    federation.carry(sent)
    shape = (4096, federation.terms.bits)
    bare = [
        masked(federation, k)
        - self_mask(opened(federation, k), federation.server._transcript, k, shape)
        for k in range(3)
    ]
    for part in ([0], [1], [2], [0, 1], [0, 2], [1, 2]):
        assert uniform(sum(bare[k] for k in part)) > UNSEEDED_LEVEL
    assert to_signed(sum(bare)).tolist() == [3] * 4096


def test_every_session_has_keys_seeds_and_masks_of_its_own() -> None:
    federation = Federation(2)
    other = federation.again()
    for run in (federation, other):
        run.carry(np.zeros((2, 3), dtype=np.int64))
    for number in range(4):
        assert federation.sent[0][number] != other.sent[0][number]
    assert opened(federation, 0) != opened(other, 0)


# --- the obvious attack: both secrets of one client -----------------------------------------


def test_a_client_refuses_to_tell_both_shares_of_one_client() -> None:
    federation = before_reveal(4)
    with pytest.raises(RefusedError, match="client 2 is said both to have sent a vector and to"):
        federation.clients[0].reveal(leavers(federation, [0, 1, 2, 3], [2]))
    answer = federation.clients[0].reveal(leavers(federation, [0, 1, 2, 3], []))
    assert {share[0] for share in revealed(answer, 4).values()} == {0}


def test_a_client_answers_no_second_question() -> None:
    federation = before_reveal(4)
    federation.clients[0].reveal(leavers(federation, [0, 1, 2, 3], []))
    for question in (([0, 1, 3], [2]), ([0, 1, 2, 3], [])):
        with pytest.raises(RoundError, match="cannot reveal now: it is done"):
            federation.clients[0].reveal(leavers(federation, *question))


@pytest.mark.parametrize(
    ("stayed", "left", "error", "sentence"),
    [
        ([1, 2, 3], [0], RefusedError, "client 0 sent its vector, but is not said"),
        ([1, 2, 3], [], RefusedError, "client 0 sent its vector, but is not said"),
        ([0, 1, 2], [], RefusedError, "client 3 is neither said to have sent nor"),
        ([0, 1], [2, 3], TooFewError, "a sum must be over at least 3 clients, got 2"),
    ],
)
def test_a_client_refuses_other_stories(
    stayed: list[int], left: list[int], error: type[SumError], sentence: str
) -> None:
    federation = before_reveal(4)
    with pytest.raises(error, match=sentence):
        federation.clients[0].reveal(leavers(federation, stayed, left))


def test_a_client_refuses_to_sum_with_those_who_sent_it_no_shares() -> None:
    federation = Federation(4)
    federation.carry(np.ones((4, 3), dtype=np.int64), [4, 4, 4, 1], rounds=3)
    for question in (([0, 1, 2, 3], []), ([0, 1, 2], [3])):
        with pytest.raises(RefusedError, match="client 3 takes part, but its shares never came"):
            federation.clients[0].reveal(leavers(federation, *question))


@pytest.mark.parametrize(("clients", "threshold"), [(4, 3), (5, 3), (5, 4)])
def test_no_lie_about_one_client_opens_both_of_its_secrets(clients: int, threshold: int) -> None:
    """Every way to tell some clients that the last one stayed, and the others that it left."""
    around = Neighbourhood.complete(clients, threshold)
    victim, everybody = clients - 1, list(range(clients))
    others = everybody[:-1]
    federation = before_reveal(clients, around)
    answers = [
        {
            story: copied(federation, teller).reveal(question)
            for story, question in enumerate(
                (leavers(federation, everybody, []), leavers(federation, others, [victim]))
            )
        }
        for teller in others
    ]
    own = copied(federation, victim).reveal(leavers(federation, everybody, []))
    most_of_both = 0
    for stories in product((0, 1), repeat=len(others)):
        told = [own] + [answers[teller][story] for teller, story in enumerate(stories)]
        kinds = [revealed(message, clients)[victim][0] for message in told]
        most_of_both = max(most_of_both, min(kinds.count(0), kinds.count(1)))
    assert most_of_both == clients // 2 < threshold


def copied(federation: Federation, index: int) -> SumClient:
    """The same client in another world, in which it is asked another question."""
    return copy(federation.clients[index])


# --- in the middle -----------------------------------------------------------------------------


def advertised(federation: Federation) -> dict[int, bytes]:
    """The records that the server received, after the first round."""
    return {index: sent[0][HEADER:] for index, sent in federation.sent.items()}


def adverts(federation: Federation, records: dict[int, bytes]) -> bytes:
    body = messages.pack_records(records)
    return messages.write(Kind.ADVERTS, federation.terms.session, EVERYBODY, body)


def forged(federation: Federation, index: int, signer: Identity) -> bytes:
    """Keys that the server made itself, in the name of a client."""
    keys = b"".join(
        X25519PrivateKey.generate().public_key().public_bytes_raw() for _ in range(2)
    ) + bytes(32)
    return keys + signer.sign(federation.terms.signed_part(index, keys))


def test_swapped_keys_are_refused() -> None:
    federation = started()
    real = advertised(federation)
    stranger, accomplice = Identity.generate(), federation.identities[2]
    for record in (
        forged(federation, 1, stranger),
        forged(federation, 1, accomplice),
        forged(federation, 1, stranger)[:96] + real[1][96:],
        real[2],
    ):
        with pytest.raises(ForgedError, match="client 1 are not signed by its identity"):
            federation.clients[0].share(adverts(federation, real | {1: record}))
        with pytest.raises(ForgedError, match="client 1 are not signed by its identity"):
            server = Federation(3, identities=federation.identities, session=b"s" * 16).server
            name = server._terms.session
            server.receive(1, messages.write(Kind.ADVERT, name, 1, record))
    federation.clients[0].share(adverts(federation, real))


def test_a_client_notices_that_its_own_keys_were_changed_or_left_out() -> None:
    federation = started()
    real = advertised(federation)
    changed = real | {0: forged(federation, 0, federation.identities[0])}
    with pytest.raises(RefusedError, match="the keys of client 0 are missing or were changed"):
        federation.clients[0].share(adverts(federation, changed))
    with pytest.raises(RefusedError, match="the keys of client 0 are missing or were changed"):
        federation.clients[0].share(adverts(federation, {1: real[1], 2: real[2]}))
    with pytest.raises(TooFewError, match="at least 2 clients must take part, got 1"):
        federation.clients[0].share(adverts(federation, {0: real[0]}))


@pytest.mark.parametrize("change", ["length", "largest", "threshold"])
def test_keys_advertised_for_other_terms_are_refused(change: str) -> None:
    """A server that tells one client other terms than the rest."""
    federation = Federation(5)
    terms = {
        "length": {"length": 4},
        "largest": {"largest": 999},
        "threshold": {"around": Neighbourhood.complete(5, 4)},
    }[change]
    other = Federation(
        5, identities=federation.identities, session=federation.terms.session, **terms
    )
    with pytest.raises(ForgedError, match="or were signed for other terms"):
        federation.server.receive(1, other.clients[1].advertise())


def test_clients_that_are_told_of_different_keys_cannot_open_each_others_shares() -> None:
    """The server leaves client 3 out of what client 0 is told."""
    federation = Federation(4, around=Neighbourhood.complete(4))
    federation.carry(np.zeros((4, 3), dtype=np.int64), rounds=1)
    fewer = {index: advertised(federation)[index] for index in (0, 1, 2)}
    shares = federation.clients[0].share(adverts(federation, fewer))
    boxes = messages.unpack_records(shares[HEADER:], messages.BOX_BYTES, 4)
    federation.clients[1].share(federation.given[1][1])
    body = messages.pack_records({0: boxes[1]})
    delivery = messages.write(Kind.DELIVERY, federation.terms.session, 1, body)
    with pytest.raises(ForgedError, match="in the name of client 0 were not sealed by it"):
        federation.clients[1].mask(delivery, np.zeros(3, dtype=np.int64))


def test_boxes_open_for_the_named_owner_and_holder_only() -> None:
    federation = started(4)
    federation.carry(np.zeros((4, 3), dtype=np.int64), rounds=1)
    boxes = messages.unpack_records(
        federation.given[2][1][HEADER:], messages.BOX_BYTES, federation.terms.clients
    )
    for wrong in (
        {0: boxes[2], 2: boxes[0], 3: boxes[3]},
        {0: boxes[0][:-1] + bytes([boxes[0][-1] ^ 1]), 2: boxes[2], 3: boxes[3]},
    ):
        body = messages.pack_records(wrong)
        delivery = messages.write(Kind.DELIVERY, federation.terms.session, 1, body)
        with pytest.raises(ForgedError, match="in the name of client 0 were not sealed by it"):
            federation.clients[1].mask(delivery, np.zeros(3, dtype=np.int64))
    with pytest.raises(UnknownClientError, match="bears the index 0 instead of 1"):
        federation.clients[1].mask(federation.given[2][0], np.zeros(3, dtype=np.int64))


def test_a_client_whose_shares_have_too_few_holders_sends_nothing() -> None:
    federation = started(4)
    federation.carry(np.zeros((4, 3), dtype=np.int64), rounds=1)
    boxes = messages.unpack_records(federation.given[2][1][HEADER:], messages.BOX_BYTES, 4)
    body = messages.pack_records({0: boxes[0]})
    delivery = messages.write(Kind.DELIVERY, federation.terms.session, 1, body)
    with pytest.raises(TooFewError, match="shares must have at least 3 holders, got 2"):
        federation.clients[1].mask(delivery, np.zeros(3, dtype=np.int64))
