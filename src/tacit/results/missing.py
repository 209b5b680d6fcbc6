"""How many records were left out of a result, because they lack a score or a label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.arrays import Integers
from tacit.privacy.cost import Cost, cost_line
from tacit.results.estimate import Estimate, finite

LEFT_OUT = "records left out"
"""What the lines of a result call the count."""

NOT_COUNTED = "those without a score or a label (how many is not said)"
"""The line where records may have been left out, and no number was released."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Incomplete records: counted exactly beside exact figures, released with noise, or neither.

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
        return f"about {value:,.0f}, {low:,} to {high:,} ({cost}, a part of what is spent)"

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
