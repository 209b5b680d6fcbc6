"""The encryption schemes BFV and CKKS, each as the two sides of an evaluation.

A class of a side's secret key encrypts and decrypts; an evaluator is made from the bytes of
evaluation keys and holds nothing that decrypts.

BFV (Fan and Vercauteren 2012): key owners encrypt integer polynomials, an evaluator squares.

CKKS (Cheon, Kim, Kim and Song 2017): inner products of encrypted vectors. Results are approximate.
A party that publishes a decryption with all its digits may reveal the key (Li and Micciancio 2021),
so what leaves a key owner is rounded.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.crypto.homomorphic import engine

DEGREE = 8192
BITS = (60, 60, 60, 38)
PLAIN_MODULI = (2**60 - 93, 2**60 - 173)
"""Primes that are 3 modulo 8: x^8192 + 1 has two factors only, so that no multiplication by a
plaintext picks out few coefficients or slots."""

FLOOD_BITS = 42
ZEROS = 2
"""Number of encryptions of zero: with two of them, e1 r1 + e2 r2 takes every value of the ring."""

PLAINTEXT = struct.Struct("<32xQd5s3xQQ")
"""A stored plaintext before its coefficients: no level, their number, a scale, and the header of an
array with its bytes and numbers."""
PLAINTEXT_START = 24

Words = NDArray[np.uint64]


def bfv_parameters(run: int = 0) -> engine.Parameters:
    """The parameters of a run; runs differ in the plain modulus only."""
    return engine.Parameters("bfv", DEGREE, BITS, PLAIN_MODULI[run])


class BfvSecretKey(engine.SecretKey):
    """What a party can do: encrypt, decrypt, and make evaluation keys.

    Parameters
    ----------
    parameters : the agreed parameters.
    seed : the 64 secret bytes that all parties share.

    Examples
    --------
    >>> import os
    >>> secret_key = BfvSecretKey(bfv_parameters(), os.urandom(64))
    >>> aggregator = BfvEvaluator(bfv_parameters(), secret_key.evaluation_keys())
    >>> polynomial = np.zeros(DEGREE, dtype=np.uint64)
    >>> polynomial[[1, 2]] = 3, 5
    >>> uploads = [secret_key.encrypted(polynomial) for _ in range(2)]
    >>> total = aggregator.total(uploads)
    >>> answer = aggregator.answer(total, 7, np.zeros(DEGREE, dtype=np.uint64))
    >>> secret_key.decrypted(answer, [3]) == [7 * 2 * 6 * 10]
    True
    """

    def evaluation_keys(self) -> list[bytes]:
        """A relinearisation key, and encryptions of zero to hide an answer's noise with."""
        maker = engine.tenseal_api().KeyGenerator(self._context, self._key)
        zeros = [engine.stored(self._encryptor.encrypt_zero_symmetric()) for _ in range(ZEROS)]
        return [engine.stored(maker.create_relin_keys()), *zeros]

    def encrypted(self, polynomial: Words) -> bytes:
        """A ciphertext of the polynomial; half of it is a seed, since the encryptor has the key.

        Parameters
        ----------
        polynomial : its coefficients below the plain modulus, shape (n,).
        """
        plain = plaintext(polynomial, self._context)
        return engine.stored(self._encryptor.encrypt_symmetric(plain))

    @engine.refusals()
    def decrypted(self, answer: bytes, positions: Sequence[int]) -> list[int]:
        """Coefficients of an answer.

        Raises
        ------
        HomomorphicError : for bytes that are no answer; for an answer that was not relinearised,
            which its size shows; or for an answer whose noise hides its content.
        """
        ciphertext = self._answer(answer, answer_level(self._context))
        if self._decryptor.invariant_noise_budget(ciphertext) < 1:
            raise engine.HomomorphicError("the answer's noise hides its content")
        plain = self._decrypted(ciphertext)
        coefficients = plain.coeff_count()
        return [
            int(plain.data(position)) if position < coefficients else 0 for position in positions
        ]


class BfvEvaluator(engine.Evaluator):
    """What the aggregator can do, with no key that decrypts: add, square, mask.

    Parameters
    ----------
    parameters : the agreed parameters.
    keys : what ``BfvSecretKey.evaluation_keys`` made under the parameters of the first run; they
        serve every run.

    Raises
    ------
    HomomorphicError : for bytes that are not keys of these parameters.
    """

    def __init__(self, parameters: engine.Parameters, keys: Sequence[bytes]) -> None:
        if len(keys) != 1 + ZEROS:
            raise engine.HomomorphicError(f"there are {1 + ZEROS} evaluation keys, got {len(keys)}")
        super().__init__(parameters)
        self._relinearisation = self._adopted("RelinKeys", keys[0], "key_parms_id")
        self._zeros = [self._adopted("Ciphertext", raw, "first_parms_id") for raw in keys[1:]]

    def _adopted(self, kind: str, raw: bytes, level: str) -> Any:
        first_context = engine.context_of(bfv_parameters())
        adopted = engine.restored(kind, first_context, raw)
        if first_context is self.context:
            return adopted
        old, new = getattr(first_context, level)(), getattr(self.context, level)()
        return engine.restored(kind, self.context, engine.rebadged(raw, old, new))

    @engine.refusals()
    def answer(self, total: Any, multiplier: int, mask: Words, linear: bool = False) -> bytes:
        """``multiplier * total^2 + mask``, plus ``total`` itself where ``linear``.

        The square is relinearised: with three polynomials it would show key owners the summed
        ciphertext, and through it every count. It then drops to the smaller modulus, and its noise,
        which depends on the counts, is drowned in ``FLOOD_BITS`` bits of fresh noise.

        Parameters
        ----------
        total : the parties' summed ciphertext.
        multiplier : a positive integer below the plain modulus.
        mask : what is added to every coefficient, shape (n,).
        """
        squared = engine.tenseal_api().Ciphertext()
        self._evaluator.square(total, squared)
        self._evaluator.relinearize_inplace(squared, self._relinearisation)
        if multiplier != 1:
            self._evaluator.multiply_plain_inplace(
                squared, engine.tenseal_api().Plaintext(f"{multiplier:X}")
            )
        if linear:
            self._evaluator.add_inplace(squared, total)
        if mask.any():
            self._evaluator.add_plain_inplace(squared, plaintext(mask, self.context))
        self._evaluator.mod_switch_to_next_inplace(squared)
        for zero in self._zeros:
            self._evaluator.add_inplace(squared, self._drowning(zero))
        return engine.stored(squared)

    def _drowning(self, zero: Any) -> Any:
        """An encryption of zero with large unknown noise: zero times a random polynomial."""
        noise = engine.tenseal_api().Ciphertext()
        self._evaluator.mod_switch_to_next(zero, noise)
        wide = random_words(DEGREE) >> np.uint64(64 - FLOOD_BITS)
        self._evaluator.multiply_plain_inplace(noise, plaintext(wide, self.context))
        return noise


def answer_level(context: Any) -> list[int]:
    """The name of the level of answers: one prime less than uploads."""
    first = context.get_context_data(context.first_parms_id())
    return list(first.next_context_data().parms_id())


def plaintext(polynomial: Words, context: Any) -> Any:
    """SEAL's plaintext of integer coefficients below the plain modulus, shape (n,).

    The function writes SEAL's stored form, because SEAL's parser needs twenty times as long for
    the text of a full polynomial.
    """
    nonzero = np.flatnonzero(polynomial)
    size = int(nonzero[-1]) + 1 if nonzero.size else 0
    start = _object_start()
    body = PLAINTEXT.pack(size, 1.0, start, PLAINTEXT_START + 8 * size, size)
    body += polynomial[:size].astype("<u8").tobytes()
    raw = start + bytes(3) + (engine.HEADER_BYTES + len(body)).to_bytes(8, "little") + body
    return engine.restored("Plaintext", context, raw)


@lru_cache(maxsize=1)
def _object_start() -> bytes:
    """The magic number and version at the start of whatever this SEAL stores."""
    return engine.stored(engine.tenseal_api().Plaintext())[: engine.COMPRESSION]


def random_words(count: int) -> Words:
    """Uniform 64-bit words from the operating system."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def random_residues(count: int, modulus: int) -> Words:
    """Uniform numbers below a plain modulus; the bias is below 2^-50."""
    return residues(random_words(count), modulus)


def residues(words: Words, modulus: int) -> Words:
    """Uniform words as numbers below a modulus just under 2^60, shape as given.

    The few values from the modulus to 2^60 are folded onto the smallest: a bias below 2^-50.
    """
    low = words & np.uint64(2**60 - 1)
    return np.where(low >= np.uint64(modulus), low - np.uint64(modulus), low)


CKKS = engine.Parameters("ckks", 8192, (60, 45, 45, 60))
SLOTS = CKKS.degree // 2
SCALE = 2.0**45


def rotations(length: int) -> list[int]:
    """The steps whose rotations add up a vector of this length in its first slot.

    Examples
    --------
    >>> rotations(100)
    [1, 2, 4, 8, 16, 32, 64]
    """
    return [1 << k for k in range((length - 1).bit_length())]


def encoded(values: Floats, level: Any, scale: float) -> Any:
    """A plaintext with the values in its first slots and zeros behind them."""
    plain = engine.tenseal_api().Plaintext()
    filled = np.concatenate([values, np.zeros(SLOTS - values.size)])
    encoder = engine.tenseal_api().CKKSEncoder(engine.context_of(CKKS))
    encoder.encode(filled.tolist(), level, scale, plain)
    return plain


class CkksSecretKey(engine.SecretKey):
    """What a party can do: encrypt, decrypt, and make evaluation keys.

    Parameters
    ----------
    seed : the 64 secret bytes that all parties share.

    Examples
    --------
    >>> import os
    >>> secret_key = CkksSecretKey(os.urandom(64))
    >>> aggregator = CkksEvaluator(secret_key.evaluation_keys(4), 4)
    >>> left, right = (secret_key.encrypted(np.array(v)) for v in ([1.0, 2.0], [3.0, 0.5]))
    >>> product = aggregator.product(aggregator.total([left]), aggregator.total([right]))
    >>> answer = aggregator.answer(aggregator.summed(product), 10.0, np.zeros(SLOTS))
    >>> round(secret_key.decrypted(answer), 4)
    40.0
    """

    def __init__(self, seed: bytes) -> None:
        super().__init__(CKKS, seed)

    def evaluation_keys(self, length: int) -> list[bytes]:
        """A relinearisation key, and the keys of the rotations that add up ``length`` slots."""
        maker = engine.tenseal_api().KeyGenerator(self._context, self._key)
        turns = maker.create_galois_keys([_element(step) for step in rotations(length)])
        return [engine.stored(maker.create_relin_keys()), engine.stored(turns)]

    def encrypted(self, values: Floats) -> bytes:
        """A ciphertext of values, at most n / 2 of them."""
        plain = encoded(values, self._context.first_parms_id(), SCALE)
        return engine.stored(self._encryptor.encrypt_symmetric(plain))

    @engine.refusals()
    def decrypted(self, answer: bytes) -> float:
        """The first slot of an answer.

        Raises
        ------
        HomomorphicError : for bytes that are no answer.
        """
        ciphertext = self._answer(answer, list(self._context.last_parms_id()))
        plain = self._decrypted(ciphertext)
        return float(engine.tenseal_api().CKKSEncoder(self._context).decode_double(plain)[0])


class CkksEvaluator(engine.Evaluator):
    """What the aggregator can do, with no key that decrypts: add, multiply, sum slots, mask.

    Parameters
    ----------
    keys : what ``CkksSecretKey.evaluation_keys`` made.
    length : how many slots are summed.

    Raises
    ------
    HomomorphicError : for bytes that are not keys of these parameters.
    """

    def __init__(self, keys: Sequence[bytes], length: int) -> None:
        if len(keys) != 2:
            raise engine.HomomorphicError(f"there are 2 evaluation keys, got {len(keys)}")
        super().__init__(CKKS, SCALE)
        self._relinearisation = engine.restored("RelinKeys", self.context, keys[0])
        self._turns = engine.restored("GaloisKeys", self.context, keys[1])
        self._length = length
        if not all(self._turns.has_key(_element(step)) for step in rotations(length)):
            raise engine.HomomorphicError(f"the keys do not rotate {length} slots")

    @engine.refusals()
    def product(self, first: Any, second: Any) -> Any:
        """Slot by slot."""
        made = engine.tenseal_api().Ciphertext()
        self._evaluator.multiply(first, second, made)
        self._evaluator.relinearize_inplace(made, self._relinearisation)
        self._evaluator.rescale_to_next_inplace(made)
        return made

    @engine.refusals()
    def summed(self, product: Any) -> Any:
        """The sum of the slots in the first slot; the others hold partial sums."""
        for step in rotations(self._length):
            turned = engine.tenseal_api().Ciphertext()
            self._evaluator.rotate_vector(product, step, self._turns, turned)
            self._evaluator.add_inplace(product, turned)
        return product

    @engine.refusals()
    def answer(self, product: Any, multiplier: float, mask: Floats) -> bytes:
        """``multiplier`` times the first slot; what the other slots held is replaced by ``mask``.

        Parameters
        ----------
        product : of ``product`` or ``summed``.
        multiplier : a positive number.
        mask : what every slot gets added, shape (n / 2,); its first must be 0.
        """
        only_first = np.array([multiplier])
        plain = encoded(only_first, product.parms_id(), SCALE)
        self._evaluator.multiply_plain_inplace(product, plain)
        self._evaluator.rescale_to_next_inplace(product)
        hiding = encoded(mask, product.parms_id(), product.scale)
        self._evaluator.add_plain_inplace(product, hiding)
        return engine.stored(product)


def _element(step: int) -> int:
    """The Galois element of a rotation to the left: 3^step modulo 2n."""
    return pow(3, step, 2 * CKKS.degree)
