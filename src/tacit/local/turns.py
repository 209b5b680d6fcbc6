"""Turns: in which of two rounds a record reports, and what it reports in the first.

A record draws its turn itself, once a run. A turn is uniform on ``0 .. SLOTS - 1`` and depends on
nothing private. Records whose turn is below a number that the server names report in the first
round, all others in the second. Each client stores the turns of its records, so that a server
cannot choose which records report first, nor make one report twice. Protocols whose number of cells
is to suit the number of records ask for that number in a round before (``reporting_records``).

In the first round a record reports where it lies on the protocol's scale, through a sliding window
(``WindowReports``). Positions from 0 to 1 are cut into equal cells. A record's input is its cell;
or where a report covers the class as well, its class and cell together; the cells of the positives
come after those of the negatives. The window keeps nearby cells together. The server estimates the
masses of the cells by expectation and maximisation, stopped early (as Li et al. 2020 do for reports
through a window).
"""

from __future__ import annotations

import hmac
import math
import secrets
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Flags, Floats, Integers
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.ragged import Ragged
from tacit.privacy import bounded
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.mechanisms.response import Choices
from tacit.privacy.noise import NoiseSource
from tacit.protocol import devices
from tacit.protocol.conversation import Protocol
from tacit.protocol.fields import ragged_of
from tacit.protocol.steps import ClientState, Field, Query, Reply, step

SLOTS = 256
"""Number of slots; records in the first slots report in the first round."""

TURNS_NOTE = ("two-round turns",)
ORDER_KEY_BYTES = 32

MIN_GAIN = 0.1
"""Least gain of log-likelihood of an iteration: below it iterations end, as the rest is noise."""

MAX_ITERATIONS = 2000

MAX_STEP = 1.0
"""Largest log-change of a mass in one accelerated iteration."""

ACCELERATION_FRACTION = 1 / 3
"""Acceleration of the iterations, as a fraction of the largest that converges from equal masses."""


@dataclass(frozen=True, eq=False)
class Turns:
    """What a client stores: its records' turns, and the number of rounds that are over.

    A turn is the slot that a record drew. ``order`` is a digest of the records in their order,
    under a ``key`` that never leaves the client: a turn belongs to a record by its position, so
    records that changed positions would report in both rounds, or in none.
    """

    drawn: NDArray[np.uint8]
    rounds: int
    first: int
    key: bytes = field(repr=False)
    order: bytes

    @classmethod
    def of(
        cls, clients: Clients, drawn: NDArray[np.uint8], rounds: int = 0, first: int = 0
    ) -> Turns:
        """The note of clients whose records drew these turns, before any round by default."""
        key = secrets.token_bytes(ORDER_KEY_BYTES)
        return cls(drawn, rounds, first, key, clients.digest(key))


def early(clients: Clients, query: Query) -> Flags:
    """Which records report in the first round, shape (M,)."""
    return np.asarray(turns_of(query) < query.broadcast["first"])


def late(clients: Clients, query: Query) -> Flags:
    """Which records report in the second round, shape (M,)."""
    return ~early(clients, query)


def turn_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    """What a round costs: all of epsilon for a record that reports in it."""
    return query.protocol.guarantee if query.step.participates(clients, query).any() else NOTHING


def drawn_turns(clients: Clients, noise: NoiseSource, state: ClientState) -> Ragged[np.uint8]:
    """Draw every record's turn and store it with the state."""
    turns = noise.draw(Choices((1,) * SLOTS), (clients.records,)).astype(np.uint8)
    state.keep(TURNS_NOTE, Turns.of(clients, turns))
    return clients.ragged(turns)


def renew_turns(clients: Clients, state: ClientState) -> None:
    """Keep the turns that were drawn, without a look at the records.

    A client answers only for the records that drew the turns of its note.
    """
    note: Turns | None = state.recall(TURNS_NOTE)
    if note is not None:
        state.keep(TURNS_NOTE, Turns.of(clients, note.drawn, note.rounds, note.first))


def at_their_turn(clients: Clients, query: Query, state: ClientState, rounds: int) -> Query:
    """The query of a round to records that all speak in it, with their turns noted.

    For devices, which keep their turns themselves.

    Parameters
    ----------
    clients : who speaks.
    query : of the round, without turns.
    state : of the clients; the note is kept there.
    rounds : how many rounds are over.
    """
    drawn = np.full(clients.records, 0 if rounds == 0 else SLOTS - 1, dtype=np.uint8)
    state.keep(TURNS_NOTE, Turns.of(clients, drawn, rounds, first=1))
    per_client = {**query.per_client, "turns": clients.ragged(drawn)}
    return replace(query, broadcast={**query.broadcast, "first": 1}, per_client=per_client)


def records_of(turns: Reply) -> int:
    """How many records drew their turns, from the reply about these or from their counts."""
    counts = devices.counts_in(turns)
    return ragged_of(turns["turns"]).values.size if counts is None else int(counts.sum())


def each_turn(turns: Reply) -> dict[str, Field]:
    """What each client receives about turns: its records' own, where the server has them."""
    return {} if devices.counts_in(turns) is not None else {"turns": ragged_of(turns["turns"])}


def has_replicates(reply: Reply) -> bool:
    """Whether reports have a replicate axis; counts in place of reports have none."""
    return devices.counts_in(reply) is None and ragged_of(reply["reports"]).values.ndim > 1


def turns_of(query: Query) -> NDArray[np.uint8]:
    """The turn of every record, as the query says it, shape (M,)."""
    return ragged_of(query.per_client["turns"]).values


def reports_of(clients: Clients, reporting: Flags, reports: Integers) -> Ragged[np.uint8]:
    """The reports of the records that take part, cut by client."""
    before = np.concatenate(([0], np.cumsum(reporting, dtype=np.int64)))
    return Ragged(reports.astype(np.uint8), before[clients.offsets])


def take_turn(clients: Clients, query: Query, state: ClientState, rounds: int) -> None:
    """Refuse turns that the client did not draw, a round out of turn, and records that moved."""
    note: Turns | None = state.recall(TURNS_NOTE)
    if note is None:
        raise DataError("the query needs turns, and this client drew none")
    first = query.broadcast["first"]
    if not isinstance(first, int):
        raise ValueError(f"the first round's end must be a whole number, got {first!r}")
    unchanged = np.array_equal(note.drawn, turns_of(query)) and (rounds == 0 or note.first == first)
    if note.rounds != rounds or not unchanged:
        raise DataError(
            "a record reports once, at the turn that it drew, and this query asks for another round"
        )
    if not hmac.compare_digest(note.order, clients.digest(note.key)):
        raise DataError(
            "the records, or their order, changed since they drew their turns: a record would "
            "report in both rounds"
        )
    state.keep(TURNS_NOTE, replace(note, rounds=rounds + 1, first=first))


@step()
def count_records(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the number of records.

    It costs nothing: a client sends one report a record afterwards, so that number is public at the
    adjacencies of such reports, which replace a record or its score. The server learns it.
    """
    return {"records": clients.sizes}


def reporting_records(protocol: Protocol, clients: int) -> Generator[Query, Reply, int]:
    """How many records all clients say that they have; of devices, how many are expected.

    Raises
    ------
    ValueError : for numbers below 0.
    """
    reply = yield Query(count_records, protocol)
    if devices.counts_in(reply) is not None:
        return clients
    records = np.asarray(reply["records"])
    if records.min() < 0:
        raise ValueError(f"numbers of records must be at least 0, got {records.min()}")
    return int(records.sum())


CELLS = 64
"""Number of cells of a class. More cost little accuracy: the window keeps neighbours together."""


@dataclass(frozen=True)
class WindowReports:
    """How records report in the first round, and where they are likely to lie.

    Parameters
    ----------
    epsilon : the budget of a report.
    private_labels : whether a report covers the class as well.
    """

    epsilon: float
    private_labels: bool

    @property
    def window(self) -> bounded.SlidingWindow:
        """The window over the cells, of ``CELLS / 2 * exp(-epsilon / 2)`` outputs.

        That is half the width of the piecewise mechanism, which suits the mean of uniform scores;
        for distribution functions narrower windows are better. Measured, the second-order error was
        at most 1.5 times the least of all widths for epsilon from 0.5 to 5. Windows of different
        classes do not overlap.
        """
        return bounded.SlidingWindow(self.epsilon, int(self.inputs[-1]) + 1, self._width)

    def inputs_of(self, clients: Clients) -> Integers:
        """The window's input for each record, shape (M,), from positions for scores."""
        cells = np.minimum((clients.scores * CELLS).astype(np.int64), CELLS - 1)
        return self.inputs[cells + CELLS * clients.labels] if self.private_labels else cells

    def reports(
        self, clients: Clients, query: Query, noise: NoiseSource, state: ClientState
    ) -> Reply:
        """The reports of the records whose turn is early, which may not report again."""
        take_turn(clients, query, state, rounds=0)
        reporting = early(clients, query)
        inputs = self.inputs_of(query.protocol.on_scale(clients))[reporting]
        sent = self.window.answers(inputs, noise)
        return {"reports": reports_of(clients, reporting, sent)}

    def instructions(self, scale: str) -> devices.Instructions:
        """How a device reports about its score on a named scale."""
        return {
            "kind": "window",
            "scale": devices.scale_entry(scale),
            "cells": CELLS,
            # the least input of a positive
            "positives_from": self.window.inputs - CELLS,
            **devices.window_entry(self.window),
        }

    def masses(self, counts: Integers) -> Floats:
        """The likely part of the records at every input in use, shape (..., inputs).

        Parameters
        ----------
        counts : how often each output came, shape (..., outputs).
        """
        return estimated_masses(counts, self._table, _acceleration(self))

    @property
    def _width(self) -> int:
        return max(1, round(CELLS / 2 * math.exp(-self.epsilon / 2)))

    @property
    def inputs(self) -> Integers:
        """The inputs in use, by class and cell, shape (2 B,), or by cell, shape (B,)."""
        cells = np.arange(CELLS, dtype=np.int64)
        if not self.private_labels:
            return cells
        return np.concatenate([cells, cells + CELLS + self._width - 1])

    @property
    def _table(self) -> Floats:
        """The probabilities of the outputs for the inputs in use."""
        return self.window.probabilities[self.inputs]


@lru_cache(maxsize=16)
def _acceleration(reports: WindowReports) -> float:
    """The power that accelerates the iterations of the estimate."""
    return acceleration_of(reports.window.probabilities[reports.inputs])


def estimated_masses(counts: Integers, probabilities: Floats, acceleration: float) -> Floats:
    """The masses of the inputs under which reports are likely, shape (..., inputs).

    Expectation and maximisation from equal masses, accelerated: an iteration computes ``m_i (sum_o
    (n_o / n) P_io / (m P)_o)^w``, scaled to a sum of 1, with m the masses, n_o of n reports of
    output o, P the probabilities and w the acceleration. Plain EM has w = 1. Where w would change a
    mass by a factor of more than ``exp(MAX_STEP)`` it is lower, but not below 1. Each row of counts
    stops when an iteration gains less than ``MIN_GAIN`` of log-likelihood. Without
    reports the masses stay equal.

    Parameters
    ----------
    counts : how often each output came, shape (..., outputs).
    probabilities : of every output for every input, shape (inputs, outputs).
    acceleration : at least 1; see ``acceleration_of``.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> estimated_masses(np.array([[500, 500], [900, 100]]), probabilities, 1.0).round(2).tolist()
    [[0.5, 0.5], [0.99, 0.01]]
    """
    rows = counts.reshape(-1, counts.shape[-1]).astype(np.float64)
    masses = np.full((rows.shape[0], probabilities.shape[0]), 1 / probabilities.shape[0])
    reports = np.maximum(rows.sum(axis=-1, keepdims=True), 1.0)
    last = np.full(rows.shape[0], -np.inf)
    active = np.flatnonzero(rows.any(axis=-1))
    for _ in range(MAX_ITERATIONS):
        expected = masses[active] @ probabilities
        likelihood = np.sum(rows[active] * np.log(expected), axis=-1)
        rising = likelihood - last[active] >= MIN_GAIN
        if not rising.any():
            break
        last[active] = likelihood
        active, expected = active[rising], expected[rising]
        # the log-change of plain EM, and the power that keeps it within MAX_STEP
        change = np.log((rows[active] / reports[active] / expected) @ probabilities.T)
        largest = np.maximum(np.abs(change).max(axis=-1, keepdims=True), MAX_STEP / acceleration)
        change *= np.maximum(MAX_STEP / largest, 1.0)
        masses[active] = normalised(masses[active] * np.exp(change))
    return masses.reshape(*counts.shape[:-1], -1)


def acceleration_of(probabilities: Floats) -> float:
    """The power that accelerates the iterations of EM, at least 1.

    Near the end, and for equal masses, an iteration leaves the part ``1 - acceleration * r`` of the
    largest remaining error. Here r is the second eigenvalue of ``T D^-1 T' / inputs``, T the
    probabilities and D their means over inputs. It measures the information in a report, and falls
    with the square of epsilon. A third of 1 / r leaves room for masses that are not equal.
    """
    means = probabilities.mean(axis=0)
    eigenvalues = np.linalg.eigvalsh(
        (probabilities / means) @ probabilities.T / probabilities.shape[0]
    )
    return max(1.0, ACCELERATION_FRACTION / float(eigenvalues[-2]))


def normalised(masses: Floats) -> Floats:
    """Masses scaled to a sum of 1."""
    return np.asarray(masses / masses.sum(axis=-1, keepdims=True))
