"""What the server sees, and what clients refuse to tell it."""

from __future__ import annotations

import os
from copy import copy
from itertools import product
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray
from scipy import stats

from tacit.crypto.identities import (
    ForgedError,
    Identity,
    RefusedError,
    RoundError,
    SumError,
    TooFewError,
    UnknownClientError,
)
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.consistency import lists_statement
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.masking import Packing, self_mask
from tacit.crypto.secure_sum.messages import EVERYBODY, Advert, Kind
from tacit.crypto.secure_sum.secret_sharing import combine
from tests.crypto.secure_sum.transporting import (
    HEADER,
    Federation,
    before_lists,
    boxes_of,
    delivery_of,
    revealed,
    started,
)
from tests.privacy.reference import UNSEEDED_LEVEL

ONES = np.ones((4, 3), dtype=np.int64)


def uniform(words: NDArray[Any], packing: Packing | None = None) -> float:
    """The p-value of the chi-square test that the words' bytes, as they travel, are uniform."""
    sent = words.tobytes() if packing is None else packing.pack(words)
    octets = np.frombuffer(sent, dtype=np.uint8)
    return float(stats.chisquare(np.bincount(octets, minlength=256)).pvalue)


def masked(federation: Federation, index: int) -> NDArray[Any]:
    sent = federation.sent[index][2][HEADER : -messages.SIGNATURE_BYTES]
    return federation.terms.packing.unpack(sent)


def lists(federation: Federation, stayed: list[int], left: list[int]) -> bytes:
    """Lists with the signatures that clients sent beside their masked vectors."""
    size = messages.SIGNATURE_BYTES
    signed = {index: federation.sent[index][2][-size:] for index in stayed}
    body = messages.pack_records(signed) + messages.pack_indices(left)
    return messages.write(Kind.LISTS, federation.terms.session, EVERYBODY, body)


def certificate(federation: Federation, signatures: dict[int, bytes]) -> bytes:
    body = messages.pack_records(signatures)
    return messages.write(Kind.CERTIFICATE, federation.terms.session, EVERYBODY, body)


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
    words, packing = [masked(federation, index) for index in range(3)], federation.terms.packing
    assert min(uniform(part, packing) for part in words) > UNSEEDED_LEVEL
    assert uniform(words[0] - words[1], packing) > UNSEEDED_LEVEL
    seed = reconstructed(federation, owner=0)
    bare = words[0] - self_mask(
        seed, federation.server._transcript, 0, (4096, federation.terms.bits)
    )
    assert uniform(bare, packing) > UNSEEDED_LEVEL


def reconstructed(federation: Federation, owner: int) -> bytes:
    """The secret of one client that the server puts together from what it was sent."""
    shares = [revealed(sent[4], federation.terms.clients) for sent in federation.sent.values()]
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
    """All messages of an honest run in which three of five reveal, where four are needed."""
    federation = Federation(5)
    federation.carry(np.zeros((5, 3), dtype=np.int64), [5, 5, 5, 4, 4])
    with pytest.raises(TooFewError, match="4 clients must reveal a share of client 0, got 3"):
        federation.server.conclude()
    for owner in range(5):
        shares = [revealed(federation.sent[index][4], 5)[owner][1:] for index in (0, 1, 2)]
        octets = np.array([[list(share) for share in shares]], dtype=np.uint8)
        seed = combine(np.array([[1, 2, 3]]), octets)[0].tobytes()
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
        - self_mask(reconstructed(federation, k), federation.server._transcript, k, shape)
        for k in range(3)
    ]
    words, packing = bare[0].dtype, federation.terms.packing
    for part in ([0], [1], [2], [0, 1], [0, 2], [1, 2]):
        left = np.sum([bare[k] for k in part], axis=0, dtype=words)
        assert uniform(left, packing) > UNSEEDED_LEVEL
    assert packing.signed(np.sum(bare, axis=0, dtype=words)).tolist() == [3] * 4096


def test_every_session_has_keys_seeds_and_masks_of_its_own() -> None:
    federation = Federation(2)
    other = federation.again()
    for run in (federation, other):
        run.carry(np.zeros((2, 3), dtype=np.int64))
    for number in range(5):
        assert federation.sent[0][number] != other.sent[0][number]
    assert reconstructed(federation, 0) != reconstructed(other, 0)


# --- what a client signs, and answers ---------------------------------------------------------


def test_a_client_refuses_to_tell_both_shares_of_one_client() -> None:
    federation = before_lists(4)
    with pytest.raises(RefusedError, match="client 2 is listed both as having sent a vector and"):
        federation.clients[0].certify(lists(federation, [0, 1, 2, 3], [2]))
    federation.carry(ONES, rounds=2)
    assert {share[0] for share in revealed(federation.sent[0][4], 4).values()} == {0}


def test_a_client_signs_one_list_an_attempt() -> None:
    federation = before_lists(4)
    federation.clients[0].certify(lists(federation, [0, 1, 2, 3], []))
    for question in (([0, 1, 3], [2]), ([0, 1, 2, 3], [])):
        with pytest.raises(RoundError, match="cannot certify now: reveal is due"):
            federation.clients[0].certify(lists(federation, *question))


def test_a_client_that_is_stopped_after_signing_cannot_sign_again() -> None:
    """Its state, taken up once, knows what it signed; only a certificate of that is answered."""
    federation = before_lists(4)
    federation.round(ONES)
    client = federation.clients[0]
    resumed = SumClient.resumed(federation.identities[0], federation.terms, client.state)
    assert resumed.state == client.state
    for question in (([0, 1, 3], [2]), ([0, 1, 2, 3], [])):
        with pytest.raises(RoundError, match="cannot certify now: reveal is due"):
            resumed.certify(lists(federation, *question))
    answer = resumed.reveal(federation.given[-1][0])
    assert answer == copied(federation, 0).reveal(federation.given[-1][0])
    again = SumClient.resumed(federation.identities[0], federation.terms, resumed.state)
    with pytest.raises(RoundError, match="cannot reveal now: it is done"):
        again.reveal(federation.given[-1][0])


def test_a_client_answers_no_second_certificate() -> None:
    federation = before_lists(4)
    federation.carry(ONES, rounds=2)
    with pytest.raises(RoundError, match="cannot reveal now: it is done"):
        federation.clients[0].reveal(federation.given[-1][0])


@pytest.mark.parametrize(
    ("stayed", "left", "error", "sentence"),
    [
        ([1, 2, 3], [0], RefusedError, "client 0 sent its vector, but is not listed"),
        ([1, 2, 3], [], RefusedError, "client 0 sent its vector, but is not listed"),
        ([0, 1, 2], [], RefusedError, "client 3 is listed neither as having sent nor"),
        ([0, 1], [2, 3], TooFewError, "a sum must be over at least 3 clients, got 2"),
    ],
)
def test_a_client_refuses_other_stories(
    stayed: list[int], left: list[int], error: type[SumError], sentence: str
) -> None:
    federation = before_lists(4)
    with pytest.raises(error, match=sentence):
        federation.clients[0].certify(lists(federation, stayed, left))


def test_a_client_refuses_to_sum_with_those_who_were_not_announced() -> None:
    federation = Federation(4)
    federation.carry(np.ones((4, 3), dtype=np.int64), [5, 5, 5, 1], rounds=3)
    federation.sent[3] = [b""] * 2 + [bytes(64)]
    for question in (([0, 1, 2, 3], []), ([0, 1, 2], [3])):
        with pytest.raises(RefusedError, match="client 3 takes part, but was not announced"):
            federation.clients[0].certify(lists(federation, *question))


def test_everybody_who_stays_signed_the_same_announcement() -> None:
    """Client 1 was told of three clients; the signature of another, or none, is as bad."""
    federation = Federation(4)
    federation.carry(ONES, rounds=2)
    boxes = boxes_of(federation, 1)
    federation.given[-1][1] = delivery_of(federation, 1, {k: boxes[k] for k in (0, 2)})
    for index in range(4):
        answer = federation.clients[index].mask(federation.given[-1][index], ONES[index])
        federation.sent[index].append(answer)
    with pytest.raises(ForgedError, match="the announcement in the name of client 1: no sig"):
        federation.server.receive(1, federation.sent[1][2])
    real = federation.sent[1][2]
    for other in (real, federation.sent[2][2], real[:-64] + bytes(64)):
        federation.sent[1][2] = other
        with pytest.raises(RefusedError, match="client 1 did not sign the keys and clients that"):
            federation.clients[0].certify(lists(federation, [0, 1, 2, 3], []))
    with pytest.raises(RefusedError, match="client 3 takes part, but was not announced"):
        federation.clients[1].certify(lists(federation, [0, 1, 2, 3], []))


def test_shares_are_revealed_on_tau_signatures_of_the_same_lists_only() -> None:
    """Three of four sign that all stayed; the fourth was told that client 1 left."""
    federation = before_lists(4)
    everybody: tuple[list[int], list[int]] = ([0, 1, 2, 3], [])
    others = ([0, 2, 3], [1])
    reported = [everybody, everybody, everybody, others]
    signed = {
        index: client.certify(lists(federation, *reported[index]))[HEADER:]
        for index, client in enumerate(federation.clients)
    }
    for wrong in (
        {0: signed[0], 1: signed[1]},
        {0: signed[0], 1: signed[1], 3: signed[3]},
        {0: signed[0], 1: signed[1], 2: signed[1]},
        {0: signed[0], 1: signed[1], 2: bytes(64)},
    ):
        with pytest.raises(TooFewError, match="3 clients must have signed the same lists, got 2"):
            federation.clients[0].reveal(certificate(federation, wrong))
    enough = {index: signed[index] for index in (0, 1, 2)}
    with pytest.raises(TooFewError, match="3 clients must have signed the same lists, got 0"):
        federation.clients[3].reveal(certificate(federation, enough))
    federation.clients[0].reveal(certificate(federation, enough))


def test_nobody_signs_for_the_sum_of_others() -> None:
    """The signature of a client that left, though it is of the lists, does not count."""
    federation = Federation(5)
    federation.carry(np.ones((5, 3), dtype=np.int64), [5, 5, 5, 5, 2], rounds=4)
    client = federation.clients[0]
    statement = lists_statement(client._digest, [0, 1, 2, 3], [4])
    signed = {k: sent[3][HEADER:] for k, sent in federation.sent.items() if k < 4}
    signed[4] = federation.identities[4].sign(statement)
    with pytest.raises(
        RefusedError, match="client 4 signed lists, but is not listed as having staye"
    ):
        client.reveal(certificate(federation, signed))


@pytest.mark.parametrize(("clients", "colluders"), [(4, 1), (5, 0), (5, 1)])
def test_no_lie_about_one_client_opens_both_of_its_secrets(clients: int, colluders: int) -> None:
    """Every way to tell some clients that the last one stayed, and the others that it left; those
    who collude, the first, sign both lists and reveal what the server likes."""
    around = Neighbourhood.complete(clients, colluders)
    victim, everybody = clients - 1, list(range(clients))
    federation = before_lists(clients, around)
    stories: tuple[tuple[list[int], list[int]], ...]
    stories = ((everybody, []), (everybody[:-1], [victim]))
    most_of_both = 0
    for reported in product((0, 1), repeat=victim):
        kinds = [0, 0]
        for story in (0, 1):
            signers = [k for k in range(victim) if reported[k] == story or k < colluders]
            signers += [victim] * (story == 0)
            requested = {k: copied(federation, k) for k in signers}
            signed = {
                k: client.certify(lists(federation, *stories[story]))[HEADER:]
                for k, client in requested.items()
            }
            for client in requested.values():
                if len(signers) >= around.threshold:
                    client.reveal(certificate(federation, signed))
                    kinds[story] += 1
                else:
                    with pytest.raises(TooFewError, match="clients must have signed the same li"):
                        client.reveal(certificate(federation, signed))
        assert min(kinds) == 0, "two lists were certified"
        most_of_both = max(most_of_both, *kinds)
    assert most_of_both == clients


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
        with pytest.raises(ForgedError, match="client 1: no signature"):
            federation.clients[0].share(adverts(federation, real | {1: record}))
        with pytest.raises(ForgedError, match="client 1: no signature"):
            server = Federation(3, identities=federation.identities, session=b"s" * 16).server
            name = server._terms.session
            server.receive(1, messages.write(Kind.ADVERT, name, 1, record))
    federation.clients[0].share(adverts(federation, real))


def test_a_client_notices_that_its_own_keys_were_changed_or_left_out() -> None:
    federation = started(4)
    real = advertised(federation)
    changed = real | {0: forged(federation, 0, federation.identities[0])}
    with pytest.raises(RefusedError, match="the keys of client 0 are missing or were changed"):
        federation.clients[0].share(adverts(federation, changed))
    with pytest.raises(RefusedError, match="the keys of client 0 are missing or were changed"):
        federation.clients[0].share(adverts(federation, {1: real[1], 2: real[2], 3: real[3]}))
    with pytest.raises(TooFewError, match="at least 3 clients must take part, got 1"):
        federation.clients[0].share(adverts(federation, {0: real[0]}))


@pytest.mark.parametrize("change", ["length", "largest", "threshold", "min_clients", "colluders"])
def test_keys_advertised_for_other_terms_are_refused(change: str) -> None:
    """A server that tells one client other terms than the rest."""
    federation = Federation(5)
    changes: dict[str, dict[str, Any]] = {
        "length": {"length": 4},
        "largest": {"largest": 999},
        "threshold": {"around": Neighbourhood.complete(5, 3)},
        "min_clients": {"around": Neighbourhood.complete(5, 1, 5)},
        "colluders": {"around": Neighbourhood.complete(5, 0, 4)},
    }
    other = Federation(
        5,
        identities=federation.identities,
        session=federation.terms.session,
        **changes[change],
    )
    with pytest.raises(ForgedError, match="no signature by it for these terms"):
        federation.server.receive(1, other.clients[1].advertise())


def test_clients_that_are_told_of_different_keys_cannot_open_each_others_shares() -> None:
    """The server leaves client 3 out of what client 0 is told."""
    federation = Federation(4, around=Neighbourhood.complete(4))
    federation.carry(np.zeros((4, 3), dtype=np.int64), rounds=1)
    fewer = {index: advertised(federation)[index] for index in (0, 1, 2)}
    shares = federation.clients[0].share(adverts(federation, fewer))
    boxes = messages.unpack_records(shares[HEADER:], messages.BOX_BYTES, 4)
    federation.clients[1].share(federation.given[1][1])
    delivery = delivery_of(federation, 1, {0: boxes[1], 2: boxes[2], 3: bytes(80)})
    with pytest.raises(ForgedError, match="in the name of client 0 were not encrypted by it"):
        federation.clients[1].mask(delivery, np.zeros(3, dtype=np.int64))


def test_boxes_open_for_the_named_owner_and_holder_only() -> None:
    federation = started(4)
    federation.carry(np.zeros((4, 3), dtype=np.int64), rounds=1)
    boxes = boxes_of(federation, 1)
    for wrong in (
        {0: boxes[2], 2: boxes[0], 3: boxes[3]},
        {0: boxes[0][:-1] + bytes([boxes[0][-1] ^ 1]), 2: boxes[2], 3: boxes[3]},
    ):
        delivery = delivery_of(federation, 1, wrong)
        with pytest.raises(ForgedError, match="in the name of client 0 were not encrypted by it"):
            federation.clients[1].mask(delivery, np.zeros(3, dtype=np.int64))
    with pytest.raises(UnknownClientError, match="has the index 0 instead of 1"):
        federation.clients[1].mask(federation.given[2][0], np.zeros(3, dtype=np.int64))


def test_a_client_whose_shares_have_too_few_holders_sends_nothing() -> None:
    federation = started(4)
    federation.carry(np.zeros((4, 3), dtype=np.int64), rounds=1)
    delivery = delivery_of(federation, 1, {0: boxes_of(federation, 1)[0]})
    with pytest.raises(TooFewError, match="shares must have at least 3 receivers, got 2"):
        federation.clients[1].mask(delivery, np.zeros(3, dtype=np.int64))
