"""Words modulo a power of two, keys and masks."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.identities import ForgedError
from tacit.crypto.secure_sum.masking import (
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
