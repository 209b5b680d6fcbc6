"""The paper's scheme: inner products to a millionth, and nothing in the other slots."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from tacit.crypto.homomorphic.engine import (
    HomomorphicError,
    context_of,
    restored,
    stored,
    tenseal_api,
)
from tacit.crypto.homomorphic.schemes import (
    CKKS,
    SLOTS,
    BfvSecretKey,
    CkksEvaluator,
    CkksSecretKey,
    bfv_parameters,
)

pytest.importorskip("tenseal")

LENGTH = 37


@pytest.fixture(scope="module")
def seed() -> bytes:
    return os.urandom(64)


@pytest.fixture(scope="module")
def secret_key(seed: bytes) -> CkksSecretKey:
    return CkksSecretKey(seed)


@pytest.fixture(scope="module")
def keys(secret_key: CkksSecretKey) -> list[bytes]:
    return secret_key.evaluation_keys(LENGTH)


@pytest.fixture(scope="module")
def evaluator(keys: list[bytes]) -> CkksEvaluator:
    return CkksEvaluator(keys, LENGTH)


def slots_of(secret_key: CkksSecretKey, answer: bytes) -> Any:
    """Every slot that a key owner can see."""
    context, plain = context_of(CKKS), tenseal_api().Plaintext()
    tenseal_api().Decryptor(context, secret_key._key).decrypt(
        restored("Ciphertext", context, answer), plain
    )
    return np.array(tenseal_api().CKKSEncoder(context).decode_double(plain))


def test_inner_product_of_sums(secret_key: CkksSecretKey, evaluator: CkksEvaluator) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.random((2, 3, LENGTH))
    totals = [
        evaluator.total([secret_key.encrypted(row) for row in side]) for side in (left, right)
    ]
    answer = evaluator.answer(evaluator.summed(evaluator.product(*totals)), 2.5, np.zeros(SLOTS))
    expected = 2.5 * float(left.sum(axis=0) @ right.sum(axis=0))
    assert secret_key.decrypted(answer) == pytest.approx(expected, rel=1e-6)


def test_other_slots_of_an_answer_hold_no_partial_sums(
    secret_key: CkksSecretKey, evaluator: CkksEvaluator
) -> None:
    """Rotate-and-sum leaves suffix sums there; the paper's released code sends them along."""
    left, right = np.arange(1.0, LENGTH + 1), np.ones(LENGTH)
    totals = [evaluator.total([secret_key.encrypted(side)]) for side in (left, right)]
    summed = evaluator.summed(evaluator.product(*totals))
    suffixes = np.cumsum(left[::-1])[::-1]
    leaking = slots_of(secret_key, stored(summed))
    assert np.abs(leaking[:LENGTH] - suffixes).max() < 1e-3
    masked = slots_of(secret_key, evaluator.answer(summed, 1.0, np.zeros(SLOTS)))
    assert masked[0] == pytest.approx(suffixes[0], rel=1e-6)
    assert np.abs(masked[1:]).max() < 1e-3


def test_what_is_no_upload_answer_or_key_is_refused(
    secret_key: CkksSecretKey, evaluator: CkksEvaluator, keys: list[bytes], seed: bytes
) -> None:
    upload = secret_key.encrypted(np.ones(3))
    foreign = BfvSecretKey(bfv_parameters(), seed).encrypted(np.ones(8192, dtype=np.uint64))
    product = evaluator.product(*(evaluator.total([upload]) for _ in range(2)))
    answer = evaluator.answer(product, 1.0, np.zeros(SLOTS))
    for wrong in (b"", upload[:-1], foreign, answer, keys[0]):
        with pytest.raises(HomomorphicError):
            evaluator.total([wrong])
    for wrong in (b"", upload, answer[1:]):
        with pytest.raises(HomomorphicError):
            secret_key.decrypted(wrong)
    with pytest.raises(HomomorphicError, match="no uploads to add up"):
        evaluator.total([])
    with pytest.raises(HomomorphicError, match="2 evaluation keys, got 1"):
        CkksEvaluator(keys[:1], LENGTH)
    with pytest.raises(HomomorphicError, match="do not rotate 100 slots"):
        CkksEvaluator(keys, 100)
