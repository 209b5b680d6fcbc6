"""The engine of encrypted evaluations, and both its schemes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.crypto.homomorphic import engine, schemes
from tacit.crypto.homomorphic.schemes import DEGREE, BfvEvaluator, BfvSecretKey, bfv_parameters

pytest.importorskip("tenseal")

ZERO = np.zeros(DEGREE, dtype=np.uint64)
LENGTH = 37


class Bfv(NamedTuple):
    """Both sides of an evaluation of integers."""

    key: BfvSecretKey
    keys: list[bytes]
    evaluator: BfvEvaluator


class Ckks(NamedTuple):
    """Both sides of an evaluation of real numbers."""

    key: schemes.CkksSecretKey
    keys: list[bytes]
    evaluator: schemes.CkksEvaluator


@pytest.fixture(scope="module")
def bfv() -> Bfv:
    key = BfvSecretKey(bfv_parameters(), os.urandom(64))
    keys = key.evaluation_keys()
    return Bfv(key, keys, BfvEvaluator(bfv_parameters(), keys))


@pytest.fixture(scope="module")
def ckks() -> Ckks:
    key = schemes.CkksSecretKey(os.urandom(64))
    keys = key.evaluation_keys(LENGTH)
    return Ckks(key, keys, schemes.CkksEvaluator(keys, LENGTH))


def sparse(**contained: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    polynomial = ZERO.copy()
    for index, value in contained.items():
        polynomial[int(index[1:])] = value
    return polynomial


def test_square_is_that_of_the_sum_with_the_sign_of_wrapped_powers(bfv: Bfv) -> None:
    last = DEGREE - 1
    uploads = [
        bfv.key.encrypted(sparse(x1=3)),
        bfv.key.encrypted(sparse(**{f"x{last}": 5, "x7": 2})),
    ]
    answer = bfv.evaluator.answer(bfv.evaluator.total(uploads), 9, ZERO)
    decrypted = bfv.key.decrypted(answer, [2, 8, 0, 14, 3])
    wrapped = schemes.PLAIN_MODULI[0] - 9 * 2 * 3 * 5
    assert decrypted == [9 * 9, 9 * 2 * 3 * 2, wrapped, 9 * 4, 0]


def noise_budget(key: BfvSecretKey, ciphertext: bytes) -> int:
    """The number of bits by which the noise may still grow."""
    parsed = engine.restored("Ciphertext", key._context, ciphertext)
    return int(key._decryptor.invariant_noise_budget(parsed))


def random_uploads(key: BfvSecretKey, parties: int) -> list[bytes]:
    """Of full-size residues."""
    residues = (schemes.random_residues(DEGREE, schemes.PLAIN_MODULI[0]) for _ in range(parties))
    return [key.encrypted(each) for each in residues]


def test_noise_leaves_room_after_a_thousand_parties(bfv: Bfv) -> None:
    """Full-size residues of 1,000 parties under the largest multiplier keep 3 bits or more."""
    uploads = random_uploads(bfv.key, 20)
    answer = bfv.evaluator.answer(bfv.evaluator.total(uploads * 50), 2**17, ZERO, linear=True)
    assert noise_budget(bfv.key, answer) >= 3


def test_noise_of_an_answer_is_drowned(bfv: Bfv, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the fresh noise more than 16 bits of budget are left: it is 2^16 times the rest."""
    uploads = random_uploads(bfv.key, 15)
    total = bfv.evaluator.total(uploads)
    drowned = noise_budget(bfv.key, bfv.evaluator.answer(total, 2**17, ZERO))
    monkeypatch.setattr("tacit.crypto.homomorphic.schemes.FLOOD_BITS", 1)
    assert noise_budget(bfv.key, bfv.evaluator.answer(total, 2**17, ZERO)) >= drowned + 16


def test_mask_makes_other_coefficients_uniform(bfv: Bfv) -> None:
    """Chi-square on the top 4 bits, false alarm 1e-6; unmasked coefficients fail it."""
    total = bfv.evaluator.total([bfv.key.encrypted(sparse(x1=5, x2=7))])
    mask = schemes.random_residues(DEGREE, schemes.PLAIN_MODULI[0]).copy()
    mask[3] = 0
    others = [index for index in range(DEGREE) if index != 3]

    def statistic(answer: bytes) -> float:
        top = np.array(bfv.key.decrypted(answer, others), dtype=np.uint64) >> np.uint64(56)
        seen = np.bincount(top.astype(np.int64), minlength=16)
        expected = len(others) / 16
        return float(((seen - expected) ** 2 / expected).sum())

    limit = chi2.isf(1e-6, 15)
    assert statistic(bfv.evaluator.answer(total, 3, mask)) < limit
    assert statistic(bfv.evaluator.answer(total, 3, ZERO)) > limit


def test_answer_of_three_polynomials_is_refused(bfv: Bfv) -> None:
    """An aggregator that does not relinearise would show every count to the key owners."""
    squared = engine.tenseal_api().Ciphertext()
    raw = bfv.evaluator.total([bfv.key.encrypted(sparse(x1=5))])
    engine.tenseal_api().Evaluator(bfv.evaluator.context).square(raw, squared)
    engine.tenseal_api().Evaluator(bfv.evaluator.context).mod_switch_to_next_inplace(squared)
    with pytest.raises(engine.HomomorphicError, match="got 3 polynomials"):
        bfv.key.decrypted(engine.stored(squared), [2])
    answer = bfv.evaluator.answer(raw, 1, ZERO)
    assert engine.restored("Ciphertext", bfv.evaluator.context, answer).size() == 2


def test_evaluator_holds_no_secret_key(bfv: Bfv) -> None:
    contained = {type(value).__name__ for value in vars(bfv.evaluator).values()}
    assert not contained & {"SecretKey", "Decryptor", "KeyGenerator", "Encryptor"}
    for key in bfv.keys:
        with pytest.raises(engine.HomomorphicError):
            engine.restored("SecretKey", bfv.evaluator.context, key)


def test_another_key_decrypts_nothing_and_equal_counts_differ(bfv: Bfv) -> None:
    answer = bfv.evaluator.answer(bfv.evaluator.total([bfv.key.encrypted(sparse(x1=5))]), 1, ZERO)
    stranger = BfvSecretKey(bfv_parameters(), os.urandom(64))
    with pytest.raises(engine.HomomorphicError, match="noise hides"):
        stranger.decrypted(answer, [2])
    assert bfv.key.encrypted(sparse(x1=5)) != bfv.key.encrypted(sparse(x1=5))


def test_secret_key_follows_from_its_seed() -> None:
    seed, parameters = os.urandom(64), bfv_parameters()
    first, again, other = (
        engine.stored(engine.secret_key_of(parameters, each))
        for each in (seed, seed, os.urandom(64))
    )
    assert first == again != other
    with pytest.raises(engine.HomomorphicError, match="64 bytes, got 63"):
        engine.secret_key_of(parameters, seed[1:])


def test_parameters_below_128_bits_of_security_are_refused() -> None:
    """At most 218 bits at degree 8192 (Albrecht et al. 2018, Table 1)."""
    for parameters in (
        engine.Parameters("bfv", 8192, (*schemes.BITS[:3], schemes.BITS[3] + 1), 2**20),
        engine.Parameters("ckks", 4096, (60, 60)),
        engine.Parameters("bfv", 8192, (60, 60), 2**61 - 1),
    ):
        with pytest.raises(engine.HomomorphicError, match="SEAL refuses the parameters"):
            engine.context_of(parameters)
    assert sum(schemes.BITS) == 218 >= sum(schemes.CKKS.bits)


def test_importing_the_protocol_does_not_import_tenseal() -> None:
    code = (
        "import sys, tacit.protocols.encrypted.protocol as p; p.EncryptedAUC(); "
        "sys.exit('tenseal' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_files_are_gone_and_hold_where_the_system_has_none_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, bfv: Bfv
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    raw = bfv.key.encrypted(sparse(x1=5))
    assert len(raw) > 1000
    engine.restored("Ciphertext", engine.context_of(bfv_parameters()), raw)
    assert list(tmp_path.iterdir()) == []


def test_wrong_objects_are_refused(bfv: Bfv) -> None:
    upload = bfv.key.encrypted(sparse(x1=5))
    answer = bfv.evaluator.answer(bfv.evaluator.read(upload), 1, ZERO)
    for wrong in (b"", b"x" * 100, upload[:-1], upload + b"x", bfv.keys[0], answer):
        with pytest.raises(engine.HomomorphicError):
            bfv.evaluator.read(wrong)
    for wrong in (b"", upload, answer[:-1]):
        with pytest.raises(engine.HomomorphicError):
            bfv.key.decrypted(wrong, [0])
    with pytest.raises(engine.HomomorphicError, match="3 evaluation keys, got 2"):
        BfvEvaluator(bfv_parameters(), bfv.keys[:2])
    with pytest.raises(engine.HomomorphicError, match="no uploads to add up"):
        bfv.evaluator.total([])
    with pytest.raises(engine.HomomorphicError):
        BfvEvaluator(bfv_parameters(1), bfv.keys).read(upload)


def slots_of(ckks_key: schemes.CkksSecretKey, answer: bytes) -> Any:
    """Every slot that a key owner can see."""
    context, plain = engine.context_of(schemes.CKKS), engine.tenseal_api().Plaintext()
    engine.tenseal_api().Decryptor(context, ckks_key._key).decrypt(
        engine.restored("Ciphertext", context, answer), plain
    )
    return np.array(engine.tenseal_api().CKKSEncoder(context).decode_double(plain))


def test_other_slots_of_an_answer_hold_no_partial_sums(ckks: Ckks) -> None:
    """Rotate-and-sum leaves suffix sums there; the paper's released code sends them along."""
    left, right = np.arange(1.0, LENGTH + 1), np.ones(LENGTH)
    totals = [ckks.evaluator.total([ckks.key.encrypted(side)]) for side in (left, right)]
    summed = ckks.evaluator.summed(ckks.evaluator.product(*totals))
    suffixes = np.cumsum(left[::-1])[::-1]
    leaking = slots_of(ckks.key, engine.stored(summed))
    assert np.abs(leaking[:LENGTH] - suffixes).max() < 1e-3
    masked = slots_of(ckks.key, ckks.evaluator.answer(summed, 1.0, np.zeros(schemes.SLOTS)))
    assert masked[0] == pytest.approx(suffixes[0], rel=1e-6)
    assert np.abs(masked[1:]).max() < 1e-3


def test_what_is_no_upload_answer_or_key_is_refused(ckks: Ckks, bfv: Bfv) -> None:
    upload, foreign = ckks.key.encrypted(np.ones(3)), bfv.key.encrypted(sparse(x1=5))
    product = ckks.evaluator.product(*(ckks.evaluator.total([upload]) for _ in range(2)))
    answer = ckks.evaluator.answer(product, 1.0, np.zeros(schemes.SLOTS))
    for wrong in (b"", upload[:-1], foreign, answer, ckks.keys[0]):
        with pytest.raises(engine.HomomorphicError):
            ckks.evaluator.total([wrong])
    for wrong in (b"", upload, answer[1:]):
        with pytest.raises(engine.HomomorphicError):
            ckks.key.decrypted(wrong)
    with pytest.raises(engine.HomomorphicError, match="no uploads to add up"):
        ckks.evaluator.total([])
    with pytest.raises(engine.HomomorphicError, match="2 evaluation keys, got 1"):
        schemes.CkksEvaluator(ckks.keys[:1], LENGTH)
    with pytest.raises(engine.HomomorphicError, match="do not rotate 100 slots"):
        schemes.CkksEvaluator(ckks.keys, 100)
