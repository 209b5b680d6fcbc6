"""Microsoft SEAL through TenSEAL: checked parameters, objects as bytes, errors of this package.

SEAL reads and writes files only. Where the system has anonymous files in memory they are used, so
that SEAL writes no key to a disk; elsewhere a private directory is made and deleted at once.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from tacit.extras import extra

SEAL_MAGIC = b"\x5e\xa1\x10"
HEADER_BYTES = 16
COMPRESSION = 5
"""Position of the header's byte that names the compression of the body."""
MAX_OBJECT = 2**25


class HomomorphicError(ValueError):
    """Bytes or parameters that homomorphic encryption cannot use."""


def tenseal_api() -> Any:
    """SEAL's own interface, imported where it is used.

    Raises
    ------
    ImportError : with the install command, without TenSEAL.
    """
    return extra("tenseal.sealapi", "encrypted evaluation needs TenSEAL", "'tacit[encrypted]'")


@dataclass(frozen=True)
class Parameters:
    """Parameters of a scheme.

    SEAL refuses parameters beyond its table for 128 bits of security against classical attacks
    with ternary secrets: that of the Homomorphic Encryption Standard (Albrecht et al. 2018,
    Table 1).

    Parameters
    ----------
    scheme : ``"bfv"`` or ``"ckks"``.
    degree : n; polynomials have n coefficients.
    bits : the sizes of the coefficient modulus's primes; the last is for key switching only.
    plain_modulus : t, of BFV.
    """

    scheme: Literal["bfv", "ckks"]
    degree: int
    bits: tuple[int, ...]
    plain_modulus: int = 0


@lru_cache(maxsize=8)
def context_of(parameters: Parameters) -> Any:
    """SEAL's context, which checks the security of the parameters.

    Raises
    ------
    HomomorphicError : for parameters that SEAL refuses.
    """
    return context_with(parameters, None)


def context_with(parameters: Parameters, seed: tuple[int, ...] | None) -> Any:
    """A context whose randomness is the operating system's, or comes from eight 64-bit words.

    Whatever a seeded context encrypts repeats; it serves to derive one secret key only.
    """
    api = tenseal_api()
    kind = api.SCHEME_TYPE.BFV if parameters.scheme == "bfv" else api.SCHEME_TYPE.CKKS
    chosen = api.EncryptionParameters(kind)
    chosen.set_poly_modulus_degree(parameters.degree)
    chosen.set_coeff_modulus(api.CoeffModulus.Create(parameters.degree, list(parameters.bits)))
    if parameters.plain_modulus:
        chosen.set_plain_modulus(parameters.plain_modulus)
    if seed is not None:
        chosen.set_random_generator(api.Blake2xbPRNGFactory(list(seed)))
    # a secret key needs no chain of smaller moduli
    context = api.SEALContext(chosen, seed is None, api.SEC_LEVEL_TYPE.TC128)
    if not context.parameters_set():
        raise HomomorphicError(f"SEAL refuses the parameters: {context.parameters_error_message()}")
    return context


def secret_key_of(parameters: Parameters, seed: bytes) -> Any:
    """The secret key derived from 64 secret bytes; the same bytes give the same key.

    Raises
    ------
    HomomorphicError : for another number of bytes.
    """
    if len(seed) != 64:
        raise HomomorphicError(f"a secret key is derived from 64 bytes, got {len(seed)}")
    words = tuple(int.from_bytes(seed[k : k + 8], "little") for k in range(0, 64, 8))
    made = tenseal_api().KeyGenerator(context_with(parameters, words)).secret_key()
    return restored("SecretKey", context_of(parameters), stored(made))


def stored(value: Any) -> bytes:
    """A SEAL object as bytes."""
    with _file() as path:
        value.save(str(path))
        return path.read_bytes()


def restored(kind: str, context: Any, raw: bytes) -> Any:
    """A SEAL object from bytes, valid in this context.

    Raises
    ------
    HomomorphicError : for bytes that are not an object of this kind, or one of other parameters.
    """
    if len(raw) > MAX_OBJECT:
        raise HomomorphicError(f"an object has at most {MAX_OBJECT} bytes, got {len(raw)}")
    announced = int.from_bytes(raw[8:HEADER_BYTES], "little")
    if raw[:3] != SEAL_MAGIC or announced != len(raw):
        raise HomomorphicError(f"these {len(raw)} bytes are no complete SEAL object")
    value = getattr(tenseal_api(), kind)()
    with _file() as path:
        path.write_bytes(raw)
        with refusals():
            value.load(context, str(path))
    return value


@contextmanager
def refusals() -> Iterator[None]:
    """SEAL's errors about the bytes that it was given, as this package's.

    It reads some objects without complaint that it refuses to compute with, such as those of
    another scale.
    """
    try:
        yield
    except HomomorphicError:
        raise
    except (RuntimeError, ValueError, IndexError, MemoryError) as error:
        raise HomomorphicError(f"SEAL refuses these bytes: {error}") from None


class SecretKey:
    """A party's secret key of one scheme, with which it encrypts and decrypts.

    Parameters
    ----------
    parameters : the agreed parameters.
    seed : the 64 secret bytes that all parties share.
    """

    def __init__(self, parameters: Parameters, seed: bytes) -> None:
        self._context = context_of(parameters)
        self._key = secret_key_of(parameters, seed)

    @cached_property
    def _encryptor(self) -> Any:
        return tenseal_api().Encryptor(self._context, self._key)

    @cached_property
    def _decryptor(self) -> Any:
        return tenseal_api().Decryptor(self._context, self._key)

    def _answer(self, answer: bytes, level: list[int]) -> Any:
        """The ciphertext of an answer, which dropped to a level and was relinearised."""
        ciphertext = restored("Ciphertext", self._context, answer)
        if ciphertext.size() != 2:
            raise HomomorphicError(
                f"an answer has 2 polynomials, got {ciphertext.size()} polynomials"
            )
        if list(ciphertext.parms_id()) != level:
            raise HomomorphicError("an answer has dropped to its level, this one has not")
        return ciphertext

    def _decrypted(self, ciphertext: Any) -> Any:
        plain = tenseal_api().Plaintext()
        self._decryptor.decrypt(ciphertext, plain)
        return plain


class Evaluator:
    """The aggregator's side of one scheme, which adds up what parties encrypted.

    Parameters
    ----------
    parameters : the agreed parameters.
    scale : the scale of fresh ciphertexts.
    """

    def __init__(self, parameters: Parameters, scale: float = 1.0) -> None:
        self.context, self._scale = context_of(parameters), scale
        self._evaluator = tenseal_api().Evaluator(self.context)

    def read(self, upload: bytes) -> Any:
        """A fresh ciphertext of a party.

        Raises
        ------
        HomomorphicError : for bytes that are none.
        """
        ciphertext = restored("Ciphertext", self.context, upload)
        fresh = list(ciphertext.parms_id()) == list(self.context.first_parms_id())
        if ciphertext.size() != 2 or not fresh or ciphertext.scale != self._scale:
            raise HomomorphicError("an upload has 2 polynomials at the first level and scale")
        return ciphertext

    @refusals()
    def total(self, uploads: Sequence[bytes]) -> Any:
        """The sum of all parties' ciphertexts, read one at a time.

        Raises
        ------
        HomomorphicError : for no upload, or bytes that are no fresh ciphertext.
        """
        if not uploads:
            raise HomomorphicError("there are no uploads to add up")
        summed = self.read(uploads[0])
        for upload in uploads[1:]:
            self._evaluator.add_inplace(summed, self.read(upload))
        return summed


def rebadged(raw: bytes, old: list[int], new: list[int]) -> bytes:
    """An object's bytes with the name of its parameters replaced.

    Only for bytes that ``restored`` accepted. Keys do not depend on the plain modulus, which their
    parameters' name does: one set of keys serves several plain moduli. The result is not
    compressed.

    Raises
    ------
    HomomorphicError : for bytes that hold more than an object when they are decompressed.
    """
    body = _contents(raw)
    before, after = (b"".join(word.to_bytes(8, "little") for word in name) for name in (old, new))
    body = body.replace(before, after)
    size = (HEADER_BYTES + len(body)).to_bytes(8, "little")
    return raw[:COMPRESSION] + bytes(3) + size + body


def _contents(raw: bytes) -> bytes:
    """What an object holds behind its header; SEAL ignores what follows an object, pyarrow does
    not, and neither is to fill the memory."""
    body = raw[HEADER_BYTES:]
    if not raw[COMPRESSION]:
        return body
    from pyarrow import BufferReader, CompressedInputStream  # noqa: PLC0415 -- used here only

    try:
        with CompressedInputStream(BufferReader(body), "zstd") as stream:
            contents: bytes = stream.read(MAX_OBJECT + 1)
    except OSError as error:
        raise HomomorphicError(f"these bytes cannot be decompressed: {error}") from None
    if len(contents) > MAX_OBJECT:
        raise HomomorphicError(f"an object has at most {MAX_OBJECT} bytes")
    return contents


@contextmanager
def _file() -> Iterator[Path]:
    """A private file, in memory where the system can, gone afterwards."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tacit")
        try:
            yield Path(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "object"
