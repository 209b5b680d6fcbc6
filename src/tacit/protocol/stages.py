"""A conversation with devices whose reports are counted: counts in, query or result out.

The server's side of a protocol for devices needs no report by itself, only how often each came.
These counts are whole numbers: those of several batches add up, in any order, to the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol as Interface

import numpy as np

from tacit.arrays import Integers
from tacit.protocol.conversation import Protocol, Query
from tacit.protocol.devices import CountedReports, DeviceReports, Payloads
from tacit.protocol.releases import conducted
from tacit.results.server_result import ServerResult

BATCH_REPORTS = 2**18
"""Number of reports that are counted at a time, about."""


class Stage(Interface):
    """The reports of one stage, wherever they are."""

    def __len__(self) -> int:
        """How many there are."""

    def counts(self, devices: DeviceReports, query: Query) -> Integers:
        """How often each report came (``DeviceReports.counts``), about all of them."""


@dataclass(frozen=True)
class PayloadsInMemory:
    """Reports in memory.

    Parameters
    ----------
    payloads : shape (M, bytes).
    """

    payloads: Payloads

    def __len__(self) -> int:
        """How many there are."""
        return self.payloads.shape[0]

    def counts(self, devices: DeviceReports, query: Query) -> Integers:
        """The sum of the counts of all batches."""
        return devices.counts_of_batches(query, slices(self.payloads))


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
    sizes = [
        devices.reported(query, counts)
        for query, counts in zip(ended.queries, ended.counts, strict=True)
    ]
    changes = [(0.0, 0.0)]
    for query, size in zip(ended.queries, sizes, strict=True):
        least, most = devices.influences(query, ended.counts)
        share = sum(sizes) / max(size, 1)
        changes.append((least * share, most * share))
    # over all stages
    return float(np.min(changes)), float(np.max(changes))
