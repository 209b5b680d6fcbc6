"""Shamir's sharing: pycryptodome computes the same, and few shares say nothing."""

from __future__ import annotations

import os

import numpy as np
import pytest
from Crypto.Protocol.SecretSharing import Shamir
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto.secure_sum.secret_sharing import combine, split
from tests.crypto.secure_sum.transporting import uniform
from tests.privacy.reference import UNSEEDED_LEVEL


def test_pycryptodome_opens_our_shares() -> None:
    secret, points = os.urandom(32), np.random.default_rng(0).choice(65_535, 40, replace=False) + 1
    shares = split(secret, points, threshold=21)
    for chosen in (range(21), range(19, 40), range(39, 18, -1)):
        halves = [
            Shamir.combine([(int(points[k]), shares[k, part].tobytes()) for k in chosen], False)
            for part in (slice(0, 16), slice(16, 32))
        ]
        assert b"".join(halves) == secret


@settings(max_examples=12, deadline=None)
@given(
    points=st.lists(st.integers(1, 2**16 - 1), min_size=1, max_size=11, unique=True), data=st.data()
)
def test_any_shares_give_what_pycryptodome_gives(points: list[int], data: st.DataObject) -> None:
    """Of five secrets at once; the shares are of any secret."""
    size = 5 * 16 * len(points)
    octets = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), np.uint8)
    shares = octets.reshape(5, len(points), 16)
    expected = [
        Shamir.combine([(k, each.tobytes()) for k, each in zip(points, row, strict=True)], False)
        for row in shares
    ]
    found = combine(np.array([points] * 5), shares)
    assert [secret.tobytes() for secret in found] == expected


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
