"""Masks that cancel, and numbers packed into few bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.identities import ForgedError, MalformedError
from tacit.crypto.secure_sum import masking
from tacit.crypto.secure_sum.masking import Packing, Run
from tests.crypto.secure_sum.transporting import Federation


def test_keys_are_derived_as_rfc_5869_does() -> None:
    """Appendix A, test case 1, of which a key is the first 32 bytes."""
    salt, label = bytes(range(13)), bytes(range(0xF0, 0xFA))
    result = masking.derive(b"\x0b" * 22, salt, label).hex()
    assert result == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


def test_two_clients_agree_on_a_secret_and_keys_depend_on_salt_and_label() -> None:
    first, second = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    secret = masking.agree(first, second.public_key().public_bytes_raw())
    assert masking.agree(second, first.public_key().public_bytes_raw()) == secret
    keys = {masking.derive(secret, *use) for use in ((b"a", b"b"), (b"b", b"b"), (b"a", b"a"))}
    assert len(keys) == 3
    with pytest.raises(ForgedError, match="low order"):
        masking.agree(X25519PrivateKey.generate(), bytes(32))


def test_masks_of_other_secrets_owners_and_sessions_differ() -> None:
    shape = (8, 64)
    masks = [
        masking.self_mask(bytes(32), b"salt", 0, shape),
        masking.self_mask(bytes(31) + b"\x01", b"salt", 0, shape),
        masking.self_mask(bytes(32), b"other", 0, shape),
        masking.self_mask(bytes(32), b"salt", 1, shape),
    ]
    assert len({mask.tobytes() for mask in masks}) == len(masks)


def ends(run: Run) -> list[int]:
    """The outermost numbers of a width, as often as the run is long."""
    pair = [2 ** (run.bits - 1) - 1, -(2 ** (run.bits - 1))]
    return (pair * run.length)[: run.length]


RUNS = st.lists(st.builds(Run, st.integers(1, 20), st.integers(2, 64)), min_size=1, max_size=5)


@given(RUNS)
def test_the_outermost_numbers_of_every_width_survive(runs: list[Run]) -> None:
    packing = Packing(tuple(runs))
    numbers = [number for run in runs for number in ends(run)]
    message = packing.pack(masking.to_words(np.array(numbers), packing.bits))
    assert len(message) == packing.size == sum(-(-run.length * run.bits // 8) for run in runs)
    assert packing.signed(packing.unpack(message)).tolist() == numbers


@pytest.mark.parametrize("bits", [7, 32, 33, 64])
def test_more_numbers_than_are_packed_at_once_survive(bits: int) -> None:
    length = 2 * masking.NUMBERS_AT_ONCE + 3
    packing = Packing((Run(length, bits), Run(1, 3)))
    rng = np.random.default_rng(bits)
    numbers = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, length + 1)
    numbers[-1] = -4
    message = packing.pack(masking.to_words(numbers, packing.bits))
    assert np.array_equal(packing.signed(packing.unpack(message)), numbers)


def test_a_bit_in_the_rest_of_a_runs_last_byte_is_refused() -> None:
    packing = Packing((Run(3, 5), Run(1, 8)))
    message = packing.pack(masking.to_words(np.array([-1, -1, -1, -1]), packing.bits))
    assert packing.signed(packing.unpack(message)).tolist() == [-1, -1, -1, -1]
    with pytest.raises(MalformedError, match="after the last packed number"):
        packing.unpack(b"\xff\xff\xff")


@pytest.mark.parametrize(("length", "bits"), [(0, 4), (1, 1), (1, 65)])
def test_other_runs_are_refused(length: int, bits: int) -> None:
    with pytest.raises(ValueError, match=f"got {length if length == 0 else bits}"):
        Run(length, bits)


def test_every_number_is_summed_modulo_its_width() -> None:
    """A sum beyond its width comes back modulo the width, and changes no other number."""
    federation, runs = Federation(4, 4), (Run(2, 5), Run(1, 12), Run(1, 40))
    federation.begin(replace(federation.terms, largest=2**63 - 1, runs=runs))
    vectors = np.array([[3, -4, 500, 2**36], [3, -4, 500, 0], [3, -4, 500, 0], [4, -5, 500, -1]])
    federation.carry(vectors)
    total = federation.server.conclude().total.tolist()
    assert total == [13, 15, 2000, 2**36 - 1]
    assert 13 == 3 + 3 + 3 + 4 and 15 == -17 + 32
    assert len(federation.sent[0][2]) < 26 + 64 + 2 + 2 + 6
