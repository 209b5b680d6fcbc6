"""The digest of records is that of its definition: a CBC-MAC a record, in quarters that add up."""

from __future__ import annotations

import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tacit.arrays import Integers
from tacit.crypto.multisets import Words, digests_of, enciphered_sums, word_of

KEY = bytes(range(32))


def defined(columns: list[list[Words]]) -> Integers:
    """The sums, one record at a time: each group's outcome goes into the next group's first."""
    records = columns[0][0].size
    outcomes, sums = [bytes(16)] * records, []
    for number, words in enumerate(columns):
        secret = hmac.digest(KEY, f"group {number} of {len(words)} words".encode(), "sha256")
        for index, before in enumerate(outcomes):
            text = b"".join(word[index].tobytes() for word in words)
            text += bytes(-len(text) % 16)
            encryptor = Cipher(algorithms.AES(secret), modes.CBC(before)).encryptor()
            outcomes[index] = (before + encryptor.update(text))[-16:]
        quarters = sum(np.frombuffer(each, "<u4").astype(np.int64) for each in outcomes)
        sums.append([*np.broadcast_to(quarters, 4), records])
    return np.array(sums, dtype=np.int64)


@pytest.mark.parametrize("records", [0, 1, 255, 256, 600])
@pytest.mark.parametrize("words", [(2,), (1, 4), (3, 0, 1)])
def test_sums_are_those_of_the_definition(records: int, words: tuple[int, ...]) -> None:
    random = np.random.default_rng(records)
    columns = [[word_of(random.integers(0, 3, records)) for _ in range(some)] for some in words]
    assert enciphered_sums(KEY, *columns).tolist() == defined(columns).tolist()


def test_every_number_of_the_sums_is_in_the_digests() -> None:
    sums = np.zeros((2, 5), dtype=np.int64)
    changed = [sums + np.eye(1, 10, place, dtype=np.int64).reshape(2, 5) for place in range(10)]
    firsts, whole = zip(*(digests_of(KEY, each) for each in (sums, *changed)), strict=True)
    assert (len(set(firsts)), len(set(whole))) == (6, 11)
    assert not {*firsts} & {*whole}
