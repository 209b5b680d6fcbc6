"""Whose records they are, and which of a person's records count at a client.

Where a person is the unit of privacy, at most k of a person's records count at each client. They
are drawn before anything is computed, each set of k of them with the same probability. The draw of
a person follows from a secret seed, the person, the client and the order of the person's records
there, and from nothing else. So the data with and without a person differ in at most k counted
records, whichever seed was drawn; and a party that stores its seed counts the same records in every
round, in a restarted process, and in later runs.

Persons are read as keys: an id becomes a digest, which stays in memory; none is sent or stored.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.checking import as_keys
from tacit.data.errors import DataError, DataWarning

SEED_BYTES = 32
DIGEST_BYTES = 16
"""Two of 10^9 persons have the same digest with probability below 10^-20."""
DIGESTS = np.dtype(f"S{2 * DIGEST_BYTES}")
"""Type of digests, which are hexadecimal digits."""


class PersonWarning(DataWarning):
    """Persons whom a guarantee about a person's records at one client does not cover."""


WITHOUT_PERSON = "every record needs a person"


def as_persons(ids: ArrayLike) -> NDArray[np.bytes_]:
    """One digest for each record, equal where the ids are equal, shape (M,); digests stay.

    Integers and their decimal text are one person, so that files of several formats agree, and
    blanks at the ends of a text do not count.

    Raises
    ------
    DataError : for ids that are neither integers nor strings, and for an empty one, naming its row.

    Examples
    --------
    >>> ada, bob, again = as_persons(["17", "18", " 17"])
    >>> ada == again, ada == bob, bool(as_persons([17])[0] == ada)
    (True, False, True)
    """
    values = np.asarray(ids)
    if values.dtype == DIGESTS and values.ndim == 1:
        return values
    keys = as_keys(values, "persons")
    texts = [_text(key, row) for row, key in enumerate(keys.tolist(), 1)]
    digests = {text: _digest(text) for text in set(texts)}
    return np.array([digests[text] for text in texts], dtype=DIGESTS)


def counted(
    persons: NDArray[np.bytes_], offsets: NDArray[np.int64], most: int, seed: bytes
) -> NDArray[np.bool_]:
    """Which records count, shape (M,): of each person at each client all, or ``most`` drawn ones.

    Parameters
    ----------
    persons : as ``as_persons`` gives them.
    offsets : shape (K+1,): client ``k`` holds the records ``offsets[k]:offsets[k+1]``.
    most : k, at least 1.
    seed : ``SEED_BYTES`` secret random bytes.

    Examples
    --------
    >>> visits = as_persons(["ada", "ada", "ada", "bob"])
    >>> counts = counted(visits, np.array([0, 4]), 2, bytes(32))
    >>> int(counts[:3].sum()), bool(counts[3])
    (2, True)
    """
    clients = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    codes = np.unique(persons, return_inverse=True)[1]
    together = np.unique(clients * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    order, place = _places(together)
    over = np.bincount(together)[together] > most
    drawn = np.zeros(persons.size, dtype=np.uint64)
    for record in np.flatnonzero(over).tolist():
        drawn[record] = _lot(seed, persons[record], int(clients[record]), int(place[record]))
    by_lot = np.lexsort((drawn, together))
    lots = np.empty_like(place)
    lots[by_lot] = place[order]
    return ~over | (lots < most)


def spread_persons(persons: NDArray[np.bytes_], offsets: NDArray[np.int64]) -> int:
    """How many persons have records at two clients or more: the guarantee does not cover them.

    Examples
    --------
    >>> spread_persons(as_persons(["ada", "bob", "ada"]), np.array([0, 2, 3]))
    1
    """
    clients = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    codes = np.unique(persons, return_inverse=True)[1]
    pairs = np.unique(codes * (offsets.size - 1) + clients) // (offsets.size - 1)
    return int(np.count_nonzero(np.bincount(pairs) > 1))


def _places(groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The records by group, and each record's place in its group in the order of records."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty_like(order)
    place[order] = np.arange(groups.size) - starts
    return order, place


def _lot(seed: bytes, person: bytes, client: int, place: int) -> int:
    """64 pseudorandom bits of one record; two lots of a person are equal with probability 2^-64."""
    content = person + client.to_bytes(8, "little") + place.to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(content, key=seed, digest_size=8).digest(), "little")


def _text(value: Any, row: int) -> str:
    if value is None:
        raise DataError(f"{WITHOUT_PERSON}, got none in row {row}")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise DataError(f"persons must be integers or strings, got {value!r:.60} in row {row}")
    text = str(value).strip()
    if not text:
        raise DataError(f"{WITHOUT_PERSON}, got an empty one in row {row}")
    return text


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * DIGEST_BYTES].encode()
