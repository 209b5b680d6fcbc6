"""Reports of devices: how one record answers by one short message, and what the messages give.

A device is a phone or a browser with one record. It knows the campaign that a coordinator signed,
and no query of a conversation; what it has to compute is written there in integers and doubles
(``instructions``), for a library in the devices' language. A message's payload holds the fields
that the client step would reply, in a fixed number of bytes. So the conversation is the server's
side of a campaign, too. It receives how often each report came (``counts``) instead of the reports:
these are whole numbers, and those of several batches add up.

A conversation with devices whose reports are counted: counts in, query or result out.

The server's side of a protocol for devices needs no single report, only how often each came.
These counts are whole numbers: those of several batches add up, in any order, to the same numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Flags, Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.privacy import bounded
from tacit.protocol.conversation import Protocol
from tacit.protocol.fields import ragged_of
from tacit.protocol.releases import conducted
from tacit.protocol.steps import Field, Query, Reply, Step
from tacit.results.server_result import ServerResult

Payloads = NDArray[np.uint8]
"""Payloads of one stage, shape (M, bytes of one)."""


Instructions = Mapping[str, Any]
"""What devices compute, in JSON: ``kind`` names the mechanism, integers above 2**53 are texts."""


class DeviceReports(ABC):
    """What a protocol declares for devices that hold one record each.

    A campaign has one stage, or two. Of two, a device speaks in the first where its turn, which it
    draws once and uniformly on 0..255, is below ``first_turns``, and else in the second. Stages
    after the first need what the server makes of the reports before: its query.
    """

    steps: Sequence[Step]
    """The client steps that devices compute, one for each stage, in order."""

    first_turns: int = 0
    """Devices whose turn is below it report in the first of two stages; 0 where there is one."""

    @property
    def stages(self) -> int:
        """In how many stages devices report."""
        return len(self.steps)

    def stage_of(self, query: Query) -> int | None:
        """The stage in which devices answer a query; None for one about turns alone."""
        return next((number for number, each in enumerate(self.steps) if each is query.step), None)

    @abstractmethod
    def instructions(self, query: Query) -> Instructions:
        """What a device computes for a stage's query."""

    @abstractmethod
    def payload_bytes(self, query: Query) -> int:
        """How long every payload of a stage is."""

    @abstractmethod
    def payloads(self, query: Query, reply: Reply) -> Payloads:
        """What devices send, from a reply of clients that hold one record each."""

    @abstractmethod
    def counts(self, query: Query, payloads: Payloads) -> Integers:
        """How often each report came, shape (numbers of the stage,).

        The counts of several batches add up to those of all of them. The conversation takes them in
        place of reports.

        Raises
        ------
        ValueError : for a report that cannot have come.
        """

    def counts_of_batches(self, query: Query, batches: Iterable[Payloads]) -> Integers:
        """``counts`` of all reports of several batches, at least one: by default the sum."""
        return reduce(np.add, (self.counts(query, batch) for batch in batches))

    def reported(self, query: Query, counts: Integers) -> int:
        """How many reports were counted: by default each is in one number."""
        return int(counts.sum())

    @abstractmethod
    def refused(self, query: Query, payloads: Payloads) -> Flags:
        """Which payloads no honest device sends, but for a chance below ``REFUSED_BITS``, (M,)."""

    @abstractmethod
    def influences(self, query: Query, counts: Sequence[Integers]) -> Floats:
        """Changes of the estimate by one report of this query's stage, shape (reports,).

        The least and the largest are among them. They are times the number of reports of the stage,
        to first order: the estimate moves by ``f`` times the extreme ones where a fraction f of the
        reports are replaced by the worst that is not refused.

        Parameters
        ----------
        query : of the stage.
        counts : of the reports of every stage.
        """


class ReportsByInput(DeviceReports):
    """Reports of mechanisms that have few inputs: records with one input are alike.

    A simulation counts the records of each input, and draws all their reports together. For other
    protocols it draws reports one by one.
    """

    @abstractmethod
    def input_counts(self, query: Query, clients: Clients, rng: np.random.Generator) -> Integers:
        """How many records have each input of the stage's mechanism, shape (inputs,).

        Parameters
        ----------
        query : of the stage.
        clients : one record each; all of them report in this stage.
        rng : rounds numbers at random, where the mechanism does.
        """

    @abstractmethod
    def simulated_counts(self, query: Query, held: Integers, rng: np.random.Generator) -> Integers:
        """Counts of reports of so many records with each input, as ``counts`` gives them.

        They are drawn together, from the distribution that the counts of single reports have.
        """


class NumberReports(DeviceReports):
    """Reports of one whole number each, below a bound, by a protocol's last step.

    Parameters
    ----------
    protocol : the protocol.
    """

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self.steps = protocol.steps[-1:]

    number_bytes: int
    """Of a payload: the number, little-endian."""

    field: str = "reports"
    """The field of a client step's reply that holds the numbers, one a record."""

    @abstractmethod
    def numbers(self, query: Query) -> int:
        """How many numbers a stage's reports are from, the least of them 0."""

    def payload_bytes(self, query: Query) -> int:
        """Of the number that the step sends."""
        return self.number_bytes

    def payloads(self, query: Query, reply: Reply) -> Payloads:
        """The numbers of records, one a client."""
        return as_bytes(ragged_of(reply[self.field], self.field).values, self.number_bytes)

    def counts(self, query: Query, payloads: Payloads) -> Integers:
        """How often each number came."""
        return output_counts(from_bytes(payloads), self.numbers(query))

    def refused(self, query: Query, payloads: Payloads) -> Flags:
        """Numbers that there are not."""
        return np.asarray(from_bytes(payloads) >= self.numbers(query))


REFUSED_BITS = 40
"""Minus the base-2 logarithm of the chance that an honest report counts as none."""


class CountedReports(dict[str, Field]):
    """A reply that holds how often each report came, in place of the reports.

    The server's own program makes it. What a client sends is never decoded to it, so no client can
    pass counts for those of all clients.

    Parameters
    ----------
    counts : shape (numbers of the stage,).
    """

    def __init__(self, counts: Integers) -> None:
        super().__init__(counts=counts)
        self.counts = counts


def counts_in(reply: Reply) -> Integers | None:
    """The counts of a reply that holds them in place of reports; None for reports."""
    return reply.counts if isinstance(reply, CountedReports) else None


def report_counts(reply: Reply, field: str, size: int) -> Integers:
    """How often each of so many reports came, shape (..., size): counted before, or of a field."""
    counts = counts_in(reply)
    return output_counts(ragged_of(reply[field], field).values, size) if counts is None else counts


def output_counts(outputs: NDArray[Any], size: int) -> Integers:
    """How often each of so many outputs came, shape (..., size).

    Parameters
    ----------
    outputs : shape (..., m); a leading axis holds replicates.
    size : how many there are.

    Raises
    ------
    ValueError : for an output that there is not.
    """
    if outputs.size and int(outputs.max()) >= size:
        raise ValueError(f"reports must be below {size}, got {outputs.max()}")
    replicates = outputs.reshape(math.prod(outputs.shape[:-1]), outputs.shape[-1])
    counts = [np.bincount(each, minlength=size) for each in replicates]
    return np.array(counts, dtype=np.int64).reshape(*outputs.shape[:-1], size)


def scale_entry(name: str, scale: ScoreScale | None = None) -> dict[str, Any]:
    """A map of scores to positions in instructions: a fixed one by its name, or its cell edges."""
    if scale is None:
        return {"name": name}
    return {"knots": scale.borders.tolist(), "low": scale.low, "high": scale.high}


def window_entry(window: bounded.SlidingWindow) -> dict[str, Any]:
    """A sliding window in instructions, with its integer weights."""
    inside, outside = window.weights
    return {
        "inputs": window.inputs,
        "width": window.width,
        "inside": str(inside),
        "outside": str(outside),
    }


def as_bytes(numbers: NDArray[Any], size: int) -> Payloads:
    """Integers as little-endian payloads, shape (M, size)."""
    wide = np.ascontiguousarray(numbers.astype("<u4"))
    return wide.view(np.uint8).reshape(-1, 4)[:, :size]


def from_bytes(payloads: Payloads) -> NDArray[Any]:
    """The integers of little-endian payloads of at most four bytes, shape (M,)."""
    if payloads.shape[1] in (2, 4) and payloads.flags.c_contiguous:
        return payloads.view(f"<u{payloads.shape[1]}").ravel()
    wide = np.zeros((payloads.shape[0], 4), dtype=np.uint8)
    wide[:, : payloads.shape[1]] = payloads
    return wide.view("<u4").ravel().astype(np.uint32)


BATCH_REPORTS = 2**18
"""Number of reports that are counted at a time, about."""


class Stage(Interface):
    """The reports of one stage, wherever they are."""

    def __len__(self) -> int:
        """How many there are."""

    def counts(self, devices: DeviceReports, query: Query) -> Integers:
        """How often each report came (``DeviceReports.counts``), about all of them."""


def slices(payloads: Payloads) -> Iterator[Payloads]:
    """Payloads in batches; one batch, without any, where there are none."""
    for start in range(0, max(len(payloads), 1), BATCH_REPORTS):
        yield payloads[start : start + BATCH_REPORTS]


@dataclass(frozen=True, eq=False)
class Concluded:
    """A result, with the queries that its stages answered and the counts of their reports.

    Parameters
    ----------
    result : the server's.
    queries : one a stage.
    counts : of the reports of every stage.
    """

    result: ServerResult
    queries: tuple[Query, ...]
    counts: tuple[Integers, ...]


def conversed(
    protocol: Protocol, devices: DeviceReports, expected: int, stages: Sequence[Stage]
) -> Query | Concluded:
    """The query that these stages leave open, or the end of the conversation.

    Parameters
    ----------
    protocol, devices : the protocol, and what it declares for devices.
    expected : the number of devices.
    stages : the reports of the stages that are over, in order.
    """
    queries, counts = list[Query](), list[Integers]()
    conversation = conducted(protocol, expected)
    try:
        query = next(conversation)
        while True:
            number = devices.stage_of(query)
            if number is None:
                reply = CountedReports(_turn_counts(expected, stages))
            elif number == len(stages):
                return query
            else:
                queries.append(query)
                counts.append(stages[number].counts(devices, query))
                reply = CountedReports(counts[-1])
            query = conversation.send(reply)
    except StopIteration as ended:
        return Concluded(ended.value, tuple(queries), tuple(counts))


def _turn_counts(expected: int, stages: Sequence[Stage]) -> Integers:
    """How many records speak in either stage: those that came, or as many as are expected."""
    early = len(stages[0]) if stages else 0
    late = len(stages[1]) if len(stages) > 1 else max(expected - early, 1)
    return np.array([early, late], dtype=np.int64)


def influences_of(devices: DeviceReports, ended: Concluded) -> tuple[float, float]:
    """The least and largest change of the estimate where a fraction of all reports lies, over it.

    A report of one stage moves the estimate by its stage's change over the number of reports there;
    liars choose the stage in which they move it most.
    """
    sizes = [devices.reported(*stage) for stage in zip(ended.queries, ended.counts, strict=True)]
    changes = [np.zeros(1)]
    for query, size in zip(ended.queries, sizes, strict=True):
        changes.append(devices.influences(query, ended.counts) * (sum(sizes) / max(size, 1)))
    of_all_stages = np.concatenate(changes)
    return float(of_all_stages.min()), float(of_all_stages.max())
