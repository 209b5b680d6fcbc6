"""The mean of a bounded value where no party is trusted: every record sends a report of its own.

A value is rounded at random to a point of a public grid of [0, 1], without bias, and the point is
reported through a sliding window (``privacy.bounded``), of the width and on the grid with the least
variance for even values. With P the probabilities of reports for each point, every report has a
value h with ``P h = grid``, so that the mean of the reports' values has no bias whatever the values
are. Its variance is the mean of ``P h^2 - grid^2`` over the records, which has an unbiased estimate
from the same reports.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.privacy.bounded import GridReport, PointMasses, tailored_report
from tacit.protocol import devices
from tacit.results.server_result import ServerResult

EVEN = PointMasses((np.arange(64) + 0.5) / 64, np.full(64, 1 / 64))
"""Numbers that are even over [0, 1], for which reports are tailored."""

KNOWN = 3.0
"""Standard errors of the estimated variance of values below which it is not known."""

LEAST_REPORTS = 30
"""Fewer say nothing about a mean."""


@lru_cache(maxsize=64)
def report_at(epsilon: float) -> GridReport:
    """The report of a number in [0, 1]."""
    return tailored_report(epsilon, EVEN)


@tp.step(cost=lambda clients, query, state: query.protocol.guarantee)
def report_values(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send one randomised report of every record's value.

    A report is at most ``exp(epsilon)`` times as likely under one value as under any other
    (``privacy.bounded.SlidingWindow``), and rounding to the grid comes before. Reports are
    independent and a record has one, so replacing a record by any other costs epsilon. A client
    sends its reports in ascending order, so that their places reveal nothing.

    The server learns a randomised report of every record, and how many records a client holds.
    """
    protocol: Any = query.protocol
    numbers = (protocol.values(clients) + 1) / 2
    report = report_at(protocol.budget)
    owner = clients.client_of_record * report.window.outputs
    reports = np.sort(report.answers(numbers, noise) + owner, axis=-1) - owner
    return {"reports": clients.ragged(reports.astype(np.uint8))}


def mean_of_reports(protocol: Any, clients: int) -> tp.Conversation:
    """One round: reports up."""
    reply = yield tp.Query(report_values, protocol)
    report = report_at(protocol.budget)
    counts = devices.report_counts(reply, "reports", report.window.outputs)
    return _result(protocol, report, counts.astype(np.float64))


def stated_error(protocol: Any, shares: Floats, records: int) -> float:
    """The error by noise of a mean in [0, 1], of records with these shares of even cells."""
    middles = (np.arange(shares.size) + 0.5) / shares.size
    variance = report_at(protocol.budget).variance(PointMasses(middles, shares))
    return math.sqrt(variance / records)


def _result(protocol: Any, report: GridReport, counts: Floats) -> ServerResult:
    """The mean with its errors, from how often each report came, shape (..., outputs)."""
    records = counts.sum(axis=-1)
    records = np.where(records < LEAST_REPORTS, np.nan, records)
    values, table = report.values(EVEN), report.window.probabilities
    mean = counts @ values / records
    # per record: what reporting adds, as an unbiased function of its report
    added = np.linalg.lstsq(table, table @ values**2 - report.grid**2, rcond=None)[0]
    privacy = np.maximum(counts @ added / records, 0.0)
    squares = values**2 - added
    second = counts @ squares / records
    error = np.sqrt((counts @ squares**2 / records - second**2) / records)
    spread = np.where(second - mean**2 > KNOWN * error, second - mean**2, np.nan)
    low, high = protocol.limits
    sampling = np.sqrt(spread / records)
    return ServerResult(
        low + (high - low) * mean,
        (high - low) * np.sqrt(privacy / records),
        (high - low) * sampling,
        limits=protocol.limits,
        withheld="" if np.all(records > 0) else "not enough signal: too few records",
    )
