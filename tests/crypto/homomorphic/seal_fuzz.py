"""Hostile bytes for SEAL: ``python -m tests.crypto.homomorphic.seal_fuzz SEED TRIES``.

It stands apart from the tests so that a crash of the C++ library ends this process only.

Every try changes valid bytes of one kind, hands them to whoever reads such bytes, and goes on with
what was accepted. Prints how often it was accepted and refused, and by which errors. ClientState is
limited to ``SPARE`` bytes beyond what valid bytes take, so that wild allocations fail.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from tacit.crypto.homomorphic import schemes
from tacit.crypto.homomorphic.engine import COMPRESSION, HEADER_BYTES, HomomorphicError, _contents
from tacit.crypto.homomorphic.schemes import DEGREE, BfvEvaluator, BfvSecretKey, bfv_parameters

SPARE = 2**28
LENGTH = 4
HEAD = 200
"""Sizes, levels and the inner header stand before this."""
NUMBERS = (0, 1, 2, 3, 2**16, 2**31, 2**32, 2**40, 2**62, 2**63, 2**64 - 1)
MASK = np.zeros(DEGREE, dtype=np.uint64)
Target = tuple[bytes, Callable[[bytes], object]]


def bfv_targets(run: int) -> dict[str, Target]:
    """Valid bytes of each kind, and what reads them."""
    seed = os.urandom(64)
    secret_key, first = (BfvSecretKey(bfv_parameters(each), seed) for each in (run, 0))
    keys, upload = first.evaluation_keys(), secret_key.encrypted(np.arange(DEGREE, dtype=np.uint64))

    def answered(changed: list[bytes], sent: bytes) -> bytes:
        evaluator = BfvEvaluator(bfv_parameters(run), changed)
        return evaluator.answer(evaluator.total([upload, sent]), 7, MASK, linear=True)

    answer = answered(keys, upload)
    return {
        f"bfv upload {run}": (upload, lambda raw: answered(keys, raw)),
        f"bfv keys {run}": (keys[0], lambda raw: answered([raw, *keys[1:]], upload)),
        f"bfv zero {run}": (keys[1], lambda raw: answered([keys[0], raw, raw], upload)),
        f"bfv answer {run}": (answer, lambda raw: secret_key.decrypted(raw, [3])),
    }


def ckks_targets() -> dict[str, Target]:
    secret_key = schemes.CkksSecretKey(os.urandom(64))
    keys, upload = secret_key.evaluation_keys(LENGTH), secret_key.encrypted(np.ones(LENGTH))

    def answered(changed: list[bytes], sent: bytes) -> bytes:
        evaluator = schemes.CkksEvaluator(changed, LENGTH)
        product = evaluator.product(evaluator.total([upload, sent]), evaluator.total([upload]))
        return evaluator.answer(evaluator.summed(product), 3.0, np.zeros(schemes.SLOTS))

    answer = answered(keys, upload)
    return {
        "ckks upload": (upload, lambda raw: answered(keys, raw)),
        "ckks keys": (keys[0], lambda raw: answered([raw, keys[1]], upload)),
        "ckks turns": (keys[1], lambda raw: answered([keys[0], raw], upload)),
        "ckks answer": (answer, secret_key.decrypted),
    }


def with_header(raw: bytes, body: bytes, compressed: bool) -> bytes:
    """Contents behind a header that fits them."""
    packed = pa.compress(body, codec="zstd", asbytes=True) if compressed else body
    start = raw[:COMPRESSION] + bytes([2 if compressed else 0, 0, 0])
    return start + (HEADER_BYTES + len(packed)).to_bytes(8, "little") + packed


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """Valid bytes with a few changes: of the contents, of the header, cut short, or a bomb."""
    body = bytearray(_contents(raw))
    kind = chance.randrange(12)
    if kind == 0:
        return chance.randbytes(chance.randrange(3 * HEADER_BYTES))
    if kind in {1, 2}:
        return bomb(raw, bytes(body), kind)
    if kind == 5:
        packed = with_header(raw, bytes(body), compressed=True) + chance.randbytes(40)
        return packed[:8] + len(packed).to_bytes(8, "little") + packed[HEADER_BYTES:]
    if kind == 3:
        del body[chance.randrange(len(body)) :]
    for _ in range(chance.choice((1, 1, 2, 5))):
        limit = HEAD if chance.random() < 0.7 else len(body)
        index = chance.randrange(min(limit, len(body)) or 1)
        if chance.random() < 0.5:
            body[index : index + 1] = bytes([chance.randrange(256)])
        else:
            body[index : index + 8] = chance.choice(NUMBERS).to_bytes(8, "little")
    made = bytearray(with_header(raw, bytes(body), chance.random() < 0.5))
    if kind == 4:
        made[chance.randrange(HEADER_BYTES)] = chance.randrange(256)
    return bytes(made)


@lru_cache(maxsize=1)
def zeros() -> bytes:
    """Twice the memory that there is, compressed to a few kilobytes."""
    return pa.compress(bytes(4 * SPARE), codec="zstd", asbytes=True)


def bomb(raw: bytes, body: bytes, kind: int) -> bytes:
    """Contents, or an array within them, that grow without bounds when they are decompressed."""
    if kind == 1:
        packed = pa.compress(body, codec="zstd", asbytes=True) + zeros()
        size = (HEADER_BYTES + len(packed)).to_bytes(8, "little")
        return raw[:COMPRESSION] + bytes([2, 0, 0]) + size + packed
    size = (HEADER_BYTES + len(zeros())).to_bytes(8, "little")
    inner = raw[:COMPRESSION] + bytes([2, 0, 0]) + size + zeros()
    before = body[: max(body.find(raw[:COMPRESSION]), 0)]
    return with_header(raw, before + inner, compressed=False)


def limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, used + SPARE))


def main(seed: int, tries: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- repeatable
    targets = {**bfv_targets(0), **bfv_targets(1), **ckks_targets()}
    for raw, read in targets.values():
        read(raw)
    zeros()
    limit_memory()
    result: Counter[str] = Counter()
    for _ in range(tries):
        name = chance.choice(list(targets))
        raw, read = targets[name]
        changed = mutated(raw, chance)
        try:
            read(changed)
            result["accepted"] += 1
        except HomomorphicError:
            result["refused"] += 1
        except Exception as error:
            traceback.print_exc()
            result[f"{name}: {type(error).__name__}: {error}"] += 1
    print(json.dumps(result))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
