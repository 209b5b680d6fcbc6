"""What the server sees, and what clients refuse to tell it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from tacit.crypto import identities as ids
from tacit.crypto.secure_sum import consistency, graph, masking, messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.messages import Advert, Kind
from tests.crypto.secure_sum import transporting
from tests.privacy.reference import UNSEEDED_LEVEL


def shares_of(
    federation: transporting.Federation, owner: int, holders: Sequence[int]
) -> dict[int, bytes]:
    """The shares of one client's secret that others revealed."""
    clients = federation.terms.clients
    return {k: transporting.revealed(federation.sent[k][4], clients)[owner][1:] for k in holders}


def unmasked(federation: transporting.Federation, index: int) -> NDArray[Any]:
    """A masked vector without the mask of its seed, which the server puts together."""
    terms, transcript = federation.terms, federation.server._transcript
    holders = range(terms.neighbourhood.threshold)
    seed = transporting.combined(shares_of(federation, index, holders))
    return federation.masked(index) - masking.self_mask(seed, transcript, index, terms.shape)


# --- what an honest run shows ---------------------------------------------------------------


@pytest.mark.parametrize("largest", [5, 2**40])
def test_of_the_vectors_only_their_sum_can_be_unmasked(largest: int) -> None:
    """Words as sent, a difference of them, and what the server's own arithmetic on every proper
    part of the vectors leaves: all uniform, whatever the vectors hold.

    Nominal level 1e-8 for each of ten tests at 64 or more expected bytes a cell.
    """
    sent = np.zeros((3, 4096), dtype=np.int64)
    sent[1:] = largest
    federation = transporting.Federation(3, 4096, largest).carry(sent)
    packing = federation.terms.packing
    words = [federation.masked(index) for index in range(3)]
    bare = [unmasked(federation, index) for index in range(3)]
    parts = ([0], [1], [2], [0, 1], [0, 2], [1, 2])
    seen = [np.sum([bare[k] for k in part], axis=0, dtype=bare[0].dtype) for part in parts]
    for each in (*words, words[0] - words[1], *seen):
        assert transporting.uniform(packing.pack(each)) > UNSEEDED_LEVEL
    total = packing.signed(np.sum(bare, axis=0, dtype=bare[0].dtype))
    assert np.array_equal(total, sent.sum(axis=0))


def test_the_uniformity_test_sees_a_mask_that_is_30_percent_short() -> None:
    words = np.frombuffer(os.urandom(8 * 4096), dtype="<u8")
    assert transporting.uniform(words.tobytes()) > UNSEEDED_LEVEL
    assert transporting.uniform((words * 0.7).astype("<u8").tobytes()) < UNSEEDED_LEVEL
    assert transporting.uniform(np.arange(4096).tobytes()) < UNSEEDED_LEVEL


def test_fewer_shares_than_the_threshold_open_nothing() -> None:
    """All messages of an honest run in which three of five reveal, where four are needed."""
    federation = transporting.Federation(5).carry(staying=[5, 5, 5, 4, 4])
    with pytest.raises(ids.TooFewError, match="4 clients must reveal a share of client 0, got 3"):
        federation.server.conclude()
    for owner in range(5):
        seed = transporting.combined(shares_of(federation, owner, range(3)))
        commitment = Advert.from_bytes(federation.sent[owner][0][transporting.HEADER :]).commitment
        assert federation.terms.commitment(owner, seed) != commitment


def test_every_session_has_keys_seeds_and_masks_of_its_own() -> None:
    federation = transporting.Federation(2).carry(rounds=5)
    other = copy(federation)
    other.begin(federation.terms)
    other.carry()
    for number in range(5):
        assert federation.sent[0][number] != other.sent[0][number]
    seeds = [transporting.combined(shares_of(each, 0, range(2))) for each in (federation, other)]
    assert seeds[0] != seeds[1]


# --- what a client signs, and answers ---------------------------------------------------------


def test_a_client_that_is_stopped_after_signing_cannot_sign_again() -> None:
    """Its state, taken up once, knows what it signed; only a certificate of that is answered."""
    federation = transporting.Federation(4).carry(rounds=4)
    client, certificate = federation.clients[0], federation.given[-1][0]
    resumed = SumClient.resumed(federation.identities[0], federation.terms, client.state)
    assert resumed.state == client.state
    for question in (([0, 1, 3], [2]), ([0, 1, 2, 3], [])):
        with pytest.raises(ids.RoundError, match="cannot certify now: reveal is due"):
            resumed.certify(federation.lists(*question))
    answer = resumed.reveal(certificate)
    assert answer == client.reveal(certificate)
    assert {share[0] for share in transporting.revealed(answer, 4).values()} == {0}
    again = SumClient.resumed(federation.identities[0], federation.terms, resumed.state)
    with pytest.raises(ids.RoundError, match="cannot reveal now: it is done"):
        again.reveal(certificate)


def test_everybody_who_stays_signed_the_same_announcement() -> None:
    """Client 1 was told of three clients; the signature of another, or none, is as bad."""
    federation, everybody = transporting.Federation(4).carry(rounds=2), range(4)
    boxes = federation.boxes(1)
    federation.given[-1][1] = federation.delivery(1, {k: boxes[k] for k in (0, 2)})
    for index in range(4):
        federation.sent[index].append(federation.answer(index))
    real = federation.sent[1][2]
    with pytest.raises(ids.ForgedError, match="the announcement in the name of client 1: no sig"):
        federation.server.receive(1, real)
    for other in (real, federation.sent[2][2], real[:-64] + bytes(64)):
        federation.sent[1][2] = other
        with pytest.raises(ids.RefusedError, match="client 1 did not sign the keys and clients th"):
            federation.clients[0].certify(federation.lists(everybody, []))
    with pytest.raises(ids.RefusedError, match="client 3 takes part, but was not announced"):
        federation.clients[1].certify(federation.lists(everybody, []))


def test_shares_are_revealed_on_tau_signatures_of_the_same_lists_only() -> None:
    """Four of five sign that client 4 left; one of these four was told that client 1 left too."""
    around = graph.Neighbourhood.complete(5, 0)
    federation = transporting.Federation(5, around=around).carry(staying=[3, 3, 3, 3, 2], rounds=3)
    told = [*[([0, 1, 2, 3], [4])] * 3, ([0, 2, 3], [1, 4])]
    signed = {
        index: federation.clients[index].certify(federation.lists(*told[index]))[
            transporting.HEADER :
        ]
        for index in range(4)
    }
    for wrong in (
        {0: signed[0], 1: signed[1]},
        {0: signed[0], 1: signed[1], 3: signed[3]},
        {0: signed[0], 1: signed[1], 2: signed[1]},
        {0: signed[0], 1: signed[1], 2: bytes(64)},
    ):
        with pytest.raises(ids.TooFewError, match="3 clients must have signed the same lists, got"):
            federation.clients[0].reveal(federation.written(Kind.CERTIFICATE, wrong))
    enough, left = {index: signed[index] for index in (0, 1, 2)}, federation.identities[4]
    statement = consistency.lists_statement(federation.clients[0]._digest, *told[0])
    certificate = federation.written(Kind.CERTIFICATE, enough)
    with pytest.raises(ids.TooFewError, match="3 clients must have signed the same lists, got 0"):
        federation.clients[3].reveal(certificate)
    with pytest.raises(ids.RefusedError, match="client 4 signed lists, but is not listed"):
        of_another = federation.written(Kind.CERTIFICATE, enough | {4: left.sign(statement)})
        federation.clients[0].reveal(of_another)
    shares = transporting.revealed(federation.clients[0].reveal(certificate), 5)
    assert {owner: share[0] for owner, share in shares.items()} == {0: 0, 1: 0, 2: 0, 3: 0, 4: 1}


# --- in the middle -----------------------------------------------------------------------------


def advertised(federation: transporting.Federation) -> dict[int, bytes]:
    """The records that the server received, after the first round."""
    return {index: sent[0][transporting.HEADER :] for index, sent in federation.sent.items()}


def forged(federation: transporting.Federation, index: int, signer: ids.Identity) -> bytes:
    """Keys that the server made itself, in the name of a client."""
    keys = b"".join(
        X25519PrivateKey.generate().public_key().public_bytes_raw() for _ in range(2)
    ) + bytes(32)
    return keys + signer.sign(federation.terms.signed_part(index, keys))


def test_swapped_keys_are_refused() -> None:
    federation = transporting.Federation(3).carry(rounds=1)
    real = advertised(federation)
    stranger, accomplice = ids.Identity.generate(), federation.identities[2]
    fresh = transporting.Federation(3, identities=federation.identities)
    for record in (
        forged(federation, 1, stranger),
        forged(federation, 1, accomplice),
        forged(federation, 1, stranger)[:96] + real[1][96:],
        real[2],
    ):
        with pytest.raises(ids.ForgedError, match="client 1: no signature"):
            told = federation.written(Kind.ADVERTS, real | {1: record})
            federation.clients[0].share(told)
        with pytest.raises(ids.ForgedError, match="client 1: no signature"):
            session = fresh.terms.session
            fresh.server.receive(1, messages.write(Kind.ADVERT, session, 1, record))
    federation.clients[0].share(federation.written(Kind.ADVERTS, real))


def test_a_client_notices_that_its_own_keys_were_changed_or_left_out() -> None:
    federation = transporting.Federation(4).carry(rounds=1)
    real = advertised(federation)
    changed = real | {0: forged(federation, 0, federation.identities[0])}
    for records, error, says in (
        (changed, ids.RefusedError, "the keys of client 0 are missing or were changed"),
        ({k: real[k] for k in (1, 2, 3)}, ids.RefusedError, "the keys of client 0 are missing"),
        ({0: real[0]}, ids.TooFewError, "at least 3 clients must take part, got 1"),
    ):
        with pytest.raises(error, match=says):
            federation.clients[0].share(federation.written(Kind.ADVERTS, records))


def test_keys_advertised_for_other_terms_are_refused() -> None:
    """A server that tells one client other terms than the rest; all are in the digest."""
    federation = transporting.Federation(5)
    told = replace(federation.terms, neighbourhood=graph.Neighbourhood.complete(5, 1, 5))
    other = SumClient(federation.identities[1], told)
    with pytest.raises(ids.ForgedError, match="no signature by it for these terms"):
        federation.server.receive(1, other.advertise())


def test_boxes_open_for_the_named_owner_and_holder_only() -> None:
    federation = transporting.Federation(4).carry(rounds=2)
    boxes = federation.boxes(1)
    for wrong in ({0: boxes[2], 2: boxes[0]}, {0: transporting.flipped(boxes[0], -1)}):
        with pytest.raises(ids.ForgedError, match="in the name of client 0 were not encrypted by"):
            federation.answer(1, message=federation.delivery(1, boxes | wrong))
    with pytest.raises(ids.UnknownClientError, match="has the index 0 instead of 1"):
        federation.answer(1, message=federation.given[2][0])
    with pytest.raises(ids.TooFewError, match="shares must have at least 3 receivers, got 2"):
        federation.answer(1, message=federation.delivery(1, {0: boxes[0]}))


def test_clients_that_are_told_of_different_keys_cannot_open_each_others_shares() -> None:
    """The server leaves client 3 out of what client 0 is told."""
    federation = transporting.Federation(4).carry(rounds=1)
    fewer = {index: advertised(federation)[index] for index in (0, 1, 2)}
    shares = federation.clients[0].share(federation.written(Kind.ADVERTS, fewer))
    boxes = messages.unpack_records(shares[transporting.HEADER :], messages.BOX_BYTES, 4)
    federation.clients[1].share(federation.given[1][1])
    delivery = federation.delivery(1, {0: boxes[1], 2: boxes[2], 3: bytes(80)})
    with pytest.raises(ids.ForgedError, match="in the name of client 0 were not encrypted by it"):
        federation.clients[1].mask(delivery, np.zeros(3, dtype=np.int64))
