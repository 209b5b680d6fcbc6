"""What a conversation sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.results.equality import is_same


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
