"""Shamir's sharing: pycryptodome and a naive reference agree, and few shares say nothing."""

from __future__ import annotations

import os
from functools import reduce
from operator import xor

import numpy as np
import pytest
from Crypto.Protocol.SecretSharing import Shamir
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto.secure_sum.secret_sharing import MODULUS, combine, split
from tests.crypto.secure_sum.transporting import uniform
from tests.privacy.reference import UNSEEDED_LEVEL


def times(left: int, right: int) -> int:
    """A product in the field, bit by bit."""
    product = 0
    while right:
        product ^= left * (right & 1)
        left, right = left << 1, right >> 1
        left ^= MODULUS * (left >> 128)
    return product


def power(base: int, exponent: int) -> int:
    result = 1
    while exponent:
        result = times(result, base) if exponent & 1 else result
        base, exponent = times(base, base), exponent >> 1
    return result


def naive_combine(shares: dict[int, int]) -> int:
    """Lagrange's formula at zero, with inverses by Fermat's theorem."""
    terms = []
    for index, share in shares.items():
        weight = 1
        for other in shares.keys() - {index}:
            weight = times(times(weight, other), power(other ^ index, 2**128 - 2))
        terms.append(times(share, weight))
    return reduce(xor, terms)


def test_pycryptodome_opens_our_shares() -> None:
    secret = os.urandom(32)
    shares = split(secret, np.arange(1, 41), threshold=21)
    for chosen in (range(21), range(19, 40), range(39, 18, -1)):
        halves = [
            Shamir.combine([(k + 1, shares[k, part].tobytes()) for k in chosen], ssss=False)
            for part in (slice(0, 16), slice(16, 32))
        ]
        assert b"".join(halves) == secret


def test_we_open_the_shares_of_pycryptodome() -> None:
    secrets = [os.urandom(16) for _ in range(5)]
    split_by_peer = [Shamir.split(11, 30, secret, ssss=False) for secret in secrets]
    chosen = [np.random.default_rng(k).permutation(30)[:11] for k in range(5)]
    rows = [
        [shares[k] for k in remaining]
        for shares, remaining in zip(split_by_peer, chosen, strict=True)
    ]
    points = np.array([[point for point, _ in row] for row in rows])
    shares = np.array([[list(share) for _, share in row] for row in rows], dtype=np.uint8)
    assert [secret.tobytes() for secret in combine(points, shares)] == secrets


@settings(max_examples=12, deadline=None)
@given(
    points=st.lists(st.integers(1, 2**16 - 1), min_size=1, max_size=4, unique=True),
    data=st.data(),
)
def test_any_shares_give_what_the_naive_formula_gives(
    points: list[int], data: st.DataObject
) -> None:
    values = data.draw(
        st.lists(st.integers(0, 2**128 - 1), min_size=len(points), max_size=len(points))
    )
    octets = np.array([list(value.to_bytes(16)) for value in values], dtype=np.uint8)
    result = combine(np.array([points]), octets[None])[0].tobytes()
    assert int.from_bytes(result) == naive_combine(dict(zip(points, values, strict=True)))


@settings(max_examples=30, deadline=None)
@given(
    points=st.lists(st.integers(1, 2**16 - 1), min_size=2, max_size=9, unique=True),
    blocks=st.integers(1, 4),
    data=st.data(),
)
def test_any_threshold_of_shares_gives_the_secret(
    points: list[int], blocks: int, data: st.DataObject
) -> None:
    secret = data.draw(st.binary(min_size=16 * blocks, max_size=16 * blocks))
    threshold = data.draw(st.integers(2, len(points)))
    remaining = data.draw(st.permutations(range(len(points))))[:threshold]
    shares = split(secret, np.array(points), threshold)
    assert combine(np.array(points)[None, remaining], shares[None, remaining]).tobytes() == secret


def test_shares_below_the_threshold_are_uniform_whatever_the_secret() -> None:
    """Both shares of two out of three receivers, and their sum, which a line through zero fixes.

    Nominal level 1e-8 for each of three tests at 256 expected bytes a cell.
    """
    shares = np.stack([split(bytes(16 * 64), np.array([1, 2, 3]), 3) for _ in range(64)])
    for octets in (shares[:, 0], shares[:, 1], shares[:, 0] ^ shares[:, 1]):
        assert uniform(octets.tobytes()) > UNSEEDED_LEVEL


@pytest.mark.parametrize(
    ("secret", "points", "threshold", "sentence"),
    [
        (b"short", [1, 2], 2, "whole blocks of 16 bytes, got 5"),
        (b"", [1, 2], 2, "whole blocks of 16 bytes, got 0"),
        (bytes(16), [0, 1], 2, "points must be from 1 to 65535, got 0"),
        (bytes(16), [1, 2**16], 2, "points must be from 1 to 65535, got 65536"),
        (bytes(16), [4, 4], 2, "same point"),
        (bytes(16), [1, 2], 3, "threshold must be from 2 to 2, got 3"),
        (bytes(16), [1, 2], 1, "threshold must be from 2 to 2, got 1"),
    ],
)
def test_what_cannot_be_shared_is_refused(
    secret: bytes, points: list[int], threshold: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        split(secret, np.array(points), threshold)
