"""Whose records they are, and which of a person's records count at a client.

Where a person is the unit of privacy, at most k of a person's records count at each client. They
are drawn before anything is computed, each set of k of them with the same probability. The draw of
a person follows from a secret seed, the person, the client and the order of the person's records
there, and from nothing else. So the data with and without a person differ in at most k counted
records, whichever seed was drawn; and a party that stores its seed counts the same records in every
round, in a restarted process, and in later runs. The draw is by SHA-256, which databases have too:
``tacit.data.engines.persons``.

Persons are read as keys: an id becomes a digest, which stays in memory; none is sent or stored.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.checking import as_keys
from tacit.data.errors import DataError, DataWarning

SEED_BYTES = 32
DIGEST_BYTES = 16
"""Two of 10^9 persons have the same digest with probability below 10^-20."""
DIGITS = 2 * DIGEST_BYTES
DIGESTS = np.dtype(f"S{DIGITS}")
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
    digests = {text: hashlib.sha256(text.encode()).hexdigest()[:DIGITS] for text in set(texts)}
    return np.array([digests[text] for text in texts], dtype=DIGESTS)


def counted(
    persons: NDArray[np.bytes_],
    offsets: NDArray[np.int64],
    most: int,
    seed: bytes,
    names: Sequence[str] = (),
) -> NDArray[np.bool_]:
    """Which records count, shape (M,): of each person at each client all, or ``most`` drawn ones.

    Parameters
    ----------
    persons : as ``as_persons`` gives them.
    offsets : shape (K+1,): client ``k`` holds the records ``offsets[k]:offsets[k+1]``.
    most : k, at least 1.
    seed : ``SEED_BYTES`` secret random bytes.
    names : of the clients (``marks``).

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
    called, key = [mark.encode() for mark in marks(names, offsets.size - 1)], seed.hex().encode()
    for record in np.flatnonzero(over).tolist():
        drawn[record] = _lot(key, persons[record], called[clients[record]], int(place[record]) + 1)
    by_lot = np.lexsort((drawn, together))
    lots = np.empty_like(place)
    lots[by_lot] = place[order]
    return ~over | (lots < most)


def marks(names: Sequence[str], count: int) -> list[str]:
    """What the draw calls each of so many clients: by its name, its number, or, if alone, nothing.

    Examples
    --------
    >>> marks(["north"], 1), marks(["north", "south"], 2), marks([], 2)
    ([''], ['north', 'south'], ['0', '1'])
    """
    if count == 1:
        return [""]
    return list(names) or [str(index) for index in range(count)]


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


def warn_of_spread(number: int) -> None:
    """Say on the reader's screen alone how many persons are at two clients: it is about records.

    Parameters
    ----------
    number : of these persons; for 0 nothing is said.
    """
    if number:
        warnings.warn(
            f"{number:,} person{'s' * (number > 1)} with records at two clients or more: the "
            "guarantee is about a person's records at one client, and does not cover them",
            PersonWarning,
            stacklevel=5,
        )


def _places(groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The records by group, and each record's place in its group in the order of records."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty_like(order)
    place[order] = np.arange(groups.size) - starts
    return order, place


def _lot(key: bytes, person: bytes, client: bytes, place: int) -> int:
    """64 pseudorandom bits of one record; two lots of a person are equal with probability 2^-64.

    Key and person have fixed lengths, and a place has no colon: no two records have one content.
    """
    content = b"%b%b%d:%b" % (key, person, place, client)
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big")


def _text(value: Any, row: int) -> str:
    if value is None:
        raise DataError(f"{WITHOUT_PERSON}, got none in row {row}")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise DataError(f"persons must be integers or strings, got {value!r:.60} in row {row}")
    text = str(value).strip()
    if not text:
        raise DataError(f"{WITHOUT_PERSON}, got an empty one in row {row}")
    return text
