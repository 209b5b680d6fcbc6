"""Masks that cancel, and numbers packed into few bits."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.identities import ForgedError, MalformedError
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.masking import (
    NUMBERS_AT_ONCE,
    Packing,
    Run,
    agree,
    derive,
    expand,
    modulus_for,
    pair_mask,
    self_mask,
    to_words,
)
from tacit.crypto.secure_sum.server import SumServer
from tacit.crypto.secure_sum.terms import SumTerms
from tests.crypto.secure_sum.transporting import Federation


@pytest.mark.parametrize(
    ("clients", "largest", "bits"),
    [
        (1, 1, 2),
        (1, 2, 3),
        (1, 2**31 - 1, 32),
        (1, 2**31, 33),
        (10, 100, 11),
        (2**15, 2**16 - 1, 32),
        (2**15, 2**16, 33),
        (1, 2**63 - 1, 64),
        (7, 2**63 // 7, 64),
    ],
)
def test_the_narrowest_modulus_without_wrapping(clients: int, largest: int, bits: int) -> None:
    assert modulus_for(clients, largest) == bits
    assert 2 ** (bits - 2) <= clients * largest <= 2 ** (bits - 1) - 1


def test_a_sum_beyond_64_bits_is_refused_with_its_size() -> None:
    with pytest.raises(ValueError, match=rf"below 2\*\*63, got 2 \* {2**62} = {2**63}"):
        modulus_for(2, 2**62)


@pytest.mark.parametrize(("clients", "largest"), [(0, 1), (1, 0), (1, -5)])
def test_sums_of_nothing_are_refused(clients: int, largest: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1, got"):
        modulus_for(clients, largest)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1), st.sampled_from([32, 64]))
def test_integers_survive_as_words(numbers: list[int], bits: int) -> None:
    words = to_words(np.array(numbers, dtype=np.int64), bits)
    assert words.itemsize * 8 == bits
    assert words.tolist() == [number % 2**bits for number in numbers]
    packing = Packing((Run(len(numbers), bits),))
    assert packing.signed(words).tolist() == numbers


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_the_outermost_integers_survive(number: int) -> None:
    packing = Packing((Run(1, 64),))
    assert packing.signed(packing.unpack(packing.pack(to_words(np.array([number]), 64)))) == number


def test_keys_are_derived_as_rfc_5869_does() -> None:
    """Appendix A, test case 1, of which a key is the first 32 bytes."""
    salt, label = bytes(range(13)), bytes(range(0xF0, 0xFA))
    result = derive(b"\x0b" * 22, salt, label).hex()
    assert result == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


def test_two_clients_agree_on_a_secret_and_keys_depend_on_salt_and_label() -> None:
    first, second = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    secret = agree(first, second.public_key().public_bytes_raw())
    assert agree(second, first.public_key().public_bytes_raw()) == secret
    keys = {derive(secret, *use) for use in ((b"a", b"b"), (b"b", b"b"), (b"a", b"a"))}
    assert len(keys) == 3


def test_a_public_key_of_low_order_is_refused() -> None:
    with pytest.raises(ForgedError, match="low order"):
        agree(X25519PrivateKey.generate(), bytes(32))


@pytest.mark.parametrize("bits", [32, 64])
def test_pair_masks_cancel(bits: int) -> None:
    first, second = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    mine = first.public_key().public_bytes_raw()
    peer = second.public_key().public_bytes_raw()
    shape = (100, bits)
    one = pair_mask(first, peer, b"salt", (3, 8), shape)
    other = pair_mask(second, mine, b"salt", (8, 3), shape)
    assert not (one + other).any()
    assert np.unique(one).size > 99
    assert np.array_equal(one, pair_mask(second, mine, b"salt", (3, 8), shape))


def test_masks_of_other_secrets_owners_and_sessions_differ() -> None:
    shape = (8, 64)
    masks = [
        self_mask(bytes(32), b"salt", 0, shape),
        self_mask(bytes(31) + b"\x01", b"salt", 0, shape),
        self_mask(bytes(32), b"other", 0, shape),
        self_mask(bytes(32), b"salt", 1, shape),
    ]
    assert len({mask.tobytes() for mask in masks}) == len(masks)


def test_a_short_mask_is_the_head_of_a_long_one() -> None:
    assert np.array_equal(expand(bytes(32), 10, 64), expand(bytes(32), 99, 64)[:10])


def ends(run: Run) -> list[int]:
    """The outermost numbers of a width, as often as the run is long."""
    pair = [2 ** (run.bits - 1) - 1, -(2 ** (run.bits - 1))]
    return (pair * run.length)[: run.length]


RUNS = st.lists(st.builds(Run, st.integers(1, 20), st.integers(2, 64)), min_size=1, max_size=5)


@given(RUNS)
def test_the_outermost_numbers_of_every_width_survive(runs: list[Run]) -> None:
    packing = Packing(tuple(runs))
    numbers = [number for run in runs for number in ends(run)]
    message = packing.pack(to_words(np.array(numbers), packing.bits))
    assert len(message) == packing.size == sum(-(-run.length * run.bits // 8) for run in runs)
    assert packing.signed(packing.unpack(message)).tolist() == numbers


@pytest.mark.parametrize("bits", [7, 32, 33, 64])
def test_more_numbers_than_are_packed_at_once_survive(bits: int) -> None:
    length = 2 * NUMBERS_AT_ONCE + 3
    packing = Packing((Run(length, bits), Run(1, 3)))
    rng = np.random.default_rng(bits)
    numbers = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, length + 1)
    numbers[-1] = -4
    message = packing.pack(to_words(numbers, packing.bits))
    assert np.array_equal(packing.signed(packing.unpack(message)), numbers)


def test_a_bit_in_the_rest_of_a_runs_last_byte_is_refused() -> None:
    packing = Packing((Run(3, 5), Run(1, 8)))
    message = packing.pack(to_words(np.array([-1, -1, -1, -1]), packing.bits))
    for changed, good in ((b"\xff\xff\xff", False), (message, True)):
        if good:
            assert packing.signed(packing.unpack(changed)).tolist() == [-1, -1, -1, -1]
        else:
            with pytest.raises(MalformedError, match="after the last packed number"):
                packing.unpack(changed)


@pytest.mark.parametrize(("length", "bits"), [(0, 4), (1, 1), (1, 65)])
def test_other_runs_are_refused(length: int, bits: int) -> None:
    with pytest.raises(ValueError, match=f"got {length if length == 0 else bits}"):
        Run(length, bits)


def in_runs(federation: Federation, *runs: Run) -> Federation:
    """The same clients under terms that name widths."""
    terms, length = federation.terms, sum(run.length for run in runs)
    federation.terms = SumTerms(
        terms.session, terms.roster, length, 2**63 - 1, terms.neighbourhood, runs=runs
    )
    federation.clients = [SumClient(each, federation.terms) for each in federation.identities]
    federation.server = SumServer(federation.terms)
    return federation


def test_every_number_is_summed_modulo_its_width() -> None:
    """A sum beyond its width comes back modulo the width, and changes no other number."""
    federation = in_runs(Federation(4), Run(2, 5), Run(1, 12), Run(1, 40))
    vectors = np.array([[3, -4, 500, 2**36], [3, -4, 500, 0], [3, -4, 500, 0], [4, -5, 500, -1]])
    federation.carry(vectors)
    total = federation.server.conclude().total.tolist()
    assert total == [13, 15, 2000, 2**36 - 1]
    assert 13 == 3 + 3 + 3 + 4 and 15 == -17 + 32
    assert len(federation.sent[0][2]) < 26 + 64 + 2 + 2 + 6


def test_terms_name_the_width_of_every_number() -> None:
    terms = Federation(3).terms
    with pytest.raises(ValueError, match="widths of 3 numbers must be named, got 2"):
        SumTerms(
            terms.session, terms.roster, 3, 1000, terms.neighbourhood, runs=(Run(1, 4), Run(1, 9))
        )


def test_other_widths_are_other_terms() -> None:
    terms = Federation(3).terms
    named = [
        SumTerms(terms.session, terms.roster, 3, 1000, terms.neighbourhood, runs=runs).digest
        for runs in ((), (Run(3, 13),), (Run(3, 14),), (Run(1, 13), Run(2, 13)))
    ]
    assert named[0] == named[1] == terms.digest
    assert len(set(named)) == 3
