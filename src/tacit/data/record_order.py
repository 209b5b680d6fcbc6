"""Digests of clients' records in their order, for whatever is kept by the place of a record."""

from __future__ import annotations

import hmac

import numpy as np

from tacit.data.clients import Clients


def order_of(clients: Clients, key: bytes, with_scores: bool = True) -> bytes:
    """A keyed digest of clients' records in their order: HMAC-SHA256, 32 bytes.

    Parameters
    ----------
    clients : their records, with all that is known of them.
    key : what nobody else knows; empty where the digest stays beside what it says.
    with_scores : whether it covers scores and second values too; other records may then have the
        same digest where their labels are the same.

    Examples
    --------
    >>> one = Clients.from_arrays([0.2, 0.7], [1, 1])
    >>> other = Clients.from_arrays([0.7, 0.2], [1, 1])
    >>> order_of(one, b"") == order_of(other, b"")
    False
    >>> order_of(one, b"", with_scores=False) == order_of(other, b"", with_scores=False)
    True
    """
    digest = hmac.new(key, digestmod="sha256")
    columns = [clients.offsets, clients.labels, clients.persons]
    if clients.categories is not None:
        columns.append(clients.categories.of_record)
    if with_scores:
        columns += [clients.scores, clients.second]
        columns.append(None if clients.categories is None else clients.categories.scores)
    for column in columns:
        content = b"" if column is None else np.ascontiguousarray(column).tobytes()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()
