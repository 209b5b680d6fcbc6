"""CKKS (Cheon, Kim, Kim and Song 2017), the paper's scheme: inner products of encrypted vectors.

Results are approximate. A party that publishes a decryption with all its digits may reveal the key
(Li and Micciancio 2021), so what leaves a key owner is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.crypto.homomorphic import engine

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
    engine.tenseal_api().CKKSEncoder(engine.context_of(CKKS)).encode(
        filled.tolist(), level, scale, plain
    )
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
