"""What a conversation sent, and how many incomplete records were left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.privacy.cost import Cost, cost_line
from tacit.results.estimate import Estimate, finite, is_same


@dataclass(frozen=True, eq=False)
class Traffic:
    """What the conversation sent.

    Parameters
    ----------
    rounds : the number of times the server asked.
    bytes_sent : bytes sent by each client, shape (K,); shape (0,) where only ``summary`` is known.
    summary : the ``traffic`` entry of a file, where it does not list every client; else None.
    """

    rounds: int
    bytes_sent: NDArray[np.int64]
    summary: Mapping[str, Any] | None = None

    def __eq__(self, other: object) -> bool:
        return is_same(self, other) if isinstance(other, Traffic) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.rounds)

    def to_dict(self) -> dict[str, Any]:
        """The ``traffic`` entry of a result."""
        if self.summary is not None:
            return dict(self.summary)
        return {
            "rounds": self.rounds,
            "bytes_sent": int(self.bytes_sent.sum()),
            "bytes_sent_per_client": {"median": self.median, "max": int(self.bytes_sent.max())},
        }

    def by_client(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The ``participants`` entry: what each client sent, with its name where there are any."""
        sent = self.bytes_sent.tolist()
        named: list[dict[str, Any]] = [{"name": name} for name in names] or [{}] * len(sent)
        return [{**who, "bytes_sent": size} for who, size in zip(named, sent, strict=True)]

    @property
    def line(self) -> str:
        """What a client sent, and in how many rounds."""
        sent = self.to_dict()["bytes_sent_per_client"]
        rounds = f"{self.rounds} round{'s' if self.rounds > 1 else ''}"
        return f"{sent['median']:,.0f} bytes (median), {sent['max']:,} (most), {rounds}"

    @property
    def median(self) -> float:
        """The median client's bytes; where all are equal, without a copy of so many numbers."""
        if self.summary is not None:
            return float(self.summary["bytes_sent_per_client"]["median"])
        least, most = self.bytes_sent.min(), self.bytes_sent.max()
        return float(most if least == most else np.median(self.bytes_sent))


LEFT_OUT = "records left out"
"""What the lines of a result call the count."""

NOT_COUNTED = "those without a score or a label (how many is not said)"
"""The line where records may have been left out, and no number was released."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Incomplete records: counted exactly with exact figures, released with noise, or neither.

    Parameters
    ----------
    counts : records without a score (or second value), and records with one and without a label,
        by client, shape (2, K); None where the result does not say them.
    estimate : the noisy count of all; None where none was released.
    spent : what the noisy count cost, which is a part of what the result spent.
    """

    counts: Integers | None = None
    estimate: Estimate | None = None
    spent: Cost | None = None

    def to_dict(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """The entry ``missing`` of a result.

        Parameters
        ----------
        names : of the clients, where they may be written down and there is one of each.
        """
        if self.counts is not None:
            scores, labels = self.counts.sum(axis=1).tolist()
            made: dict[str, Any] = {"private": False, "records": scores + labels}
            made |= {"scores": scores, "labels": labels}
            if len(names) == self.counts.shape[1]:
                by_client = zip(names, *self.counts.tolist(), strict=True)
                listed = [{"name": name, "scores": a, "labels": b} for name, a, b in by_client]
                made["by_client"] = listed
            return made
        if self.estimate is None or self.spent is None:
            return {"private": True, "counted": False}
        return {
            "private": True,
            "records": finite(self.estimate.value),
            "privacy_error": finite(self.estimate.privacy_error),
            **self.estimate.shape,
            "interval": list(self._whole_interval()),
            "spent": self.spent.to_dict(),
        }

    def _whole_interval(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the noisy count, its ends rounded outwards to whole numbers."""
        ends = () if self.estimate is None else self.estimate.interval(0.95)
        if not ends or not all(map(math.isfinite, ends)):
            return None, None
        return max(math.floor(ends[0]), 0), max(math.ceil(ends[1]), 0)

    def to_rows(self, names: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Labelled lines for a person."""
        if self.estimate is not None and self.spent is not None:
            return [(LEFT_OUT, self._noisy_line(self.estimate.value, self.spent))]
        if self.counts is None:
            return [(LEFT_OUT, NOT_COUNTED)]
        return self._exact_rows(self.to_dict(names))

    def _noisy_line(self, value: float, spent: Cost) -> str:
        """The noisy count with its interval and its part of the budget."""
        cost = cost_line(spent.to_dict())
        if not math.isfinite(value):
            return f"not enough signal ({cost}, a part of what is spent)"
        low, high = self._whole_interval()
        interval = "" if low is None else f", {low:,} to {high:,}"
        return f"about {value:,.0f}{interval} ({cost}, a part of what is spent)"

    def _exact_rows(self, entry: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Exact counts, of all and of every client that left any out."""
        line = (
            f"{entry['records']:,}: {entry['scores']:,} without a score, {entry['labels']:,} "
            "without a label (counted here, not private)"
        )
        rows = [(LEFT_OUT, line)]
        for client in entry.get("by_client", []):
            total = client["scores"] + client["labels"]
            if total and len(entry["by_client"]) > 1:
                rows.append(("", f"{client['name']} {total:,}"))
        return rows
