"""The client step of UStatistic, and the counts of its reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.privacy.local.symbols import SymbolResponse
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocol.devices import counts_in

if TYPE_CHECKING:
    from tacit.protocols.ustatistic.protocol import UStatistic

MAX_SYMBOLS = 4096
"""A table of all pairs of symbols then holds 2**24 numbers."""

BYTE = 256
"""Up to so many symbols travel as one byte each."""


@step(cost=lambda clients, query, state: query.protocol.guarantee)
def random_symbols(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send one symbol a record, by k-ary randomised response (Bell et al. 2020, Alg. 1).

    A record's symbol is the cell of a public space in which its values lie (its class and score,
    for the AUC). Its report is that symbol with probability ``1 - beta + beta / k`` and any other
    with ``beta / k``, ``beta = k / (k + exp(epsilon) - 1)``: whatever the record was instead, a
    report is at most ``exp(epsilon)`` times as likely as under what it is. Reports are independent
    and a record has one, so replacing one record by any other costs epsilon. A client that holds
    several records sends its reports in ascending order, so that their positions reveal nothing.

    The server learns a randomised symbol of every record, and how many records a client holds.

    Raises
    ------
    DataError : naming client, row and value, for a value outside the public domain.
    """
    settings: UStatistic = query.protocol
    space = settings.space(query.broadcast["bins"])
    if space.symbols > MAX_SYMBOLS:
        raise ValueError(f"there may be {MAX_SYMBOLS} symbols at most, got {space.symbols}")
    response = SymbolResponse(space.symbols, settings.epsilon)
    reports = response.answers(space.of_records(clients), noise)
    if clients.count < clients.records:
        owner = clients.client_of_record * space.symbols
        reports = np.sort(reports + owner, axis=-1) - owner
    sent = np.uint8 if space.symbols <= BYTE else np.uint32
    return {"symbols": clients.ragged(reports.astype(sent))}


def symbol_counts(reply: Reply, size: int) -> tuple[int, NDArray[np.int64]]:
    """How many records reported, and how often every symbol, shape (..., size)."""
    counts = counts_in(reply)
    if counts is not None:
        _check_pairs(int(counts.sum()))
        return int(counts.sum()), counts
    sent = reply["symbols"]
    if not isinstance(sent, Ragged):
        raise TypeError("symbols must be ragged")
    records = sent.values.shape[-1]
    _check_pairs(records)
    return records, counts_of(sent.values, size)


def _check_pairs(records: int) -> None:
    if records < 2:
        raise DataError(f"pairs need at least two records, got {records}")


def counts_of(symbols: NDArray[Any], size: int) -> NDArray[np.int64]:
    """How often every symbol was reported, shape (..., size).

    Raises
    ------
    DataError : for a symbol that the space does not have.
    """
    if int(symbols.max()) >= size:
        raise DataError(f"symbols must be below {size}, got {symbols.max()}")
    rows = symbols.reshape(-1, symbols.shape[-1]).astype(np.int64)
    rows += size * np.arange(rows.shape[0], dtype=np.int64)[:, np.newaxis]
    counts = np.bincount(rows.ravel(), minlength=size * rows.shape[0])
    return counts.reshape(*symbols.shape[:-1], size).astype(np.int64)
