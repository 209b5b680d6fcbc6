"""The central guarantee of sealed batches, as a result states it beside the local one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Context
from typing import Any


@dataclass(frozen=True)
class Shuffled:
    """What sealed batches cost whoever sees them and nothing else.

    Parameters
    ----------
    epsilon, delta : of the smallest batch, for the replacement of one record.
    batches : how many there are.
    reports : how many all batches hold.
    least : how many the smallest batch holds.
    honest : the part of every batch's reports that is taken to be honest, above 0 and at most 1.
    local_epsilon : of one report by itself, towards everybody.
    """

    epsilon: float
    delta: float
    batches: int
    reports: int
    least: int
    honest: float
    local_epsilon: float

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Shuffled:
        """What ``to_dict`` wrote."""
        return cls(*(entry[name] for name in cls.__dataclass_fields__))

    def to_dict(self) -> dict[str, Any]:
        """The ``shuffled`` entry of a result."""
        return asdict(self)

    @property
    def line(self) -> str:
        """The guarantee with its conditions, in one line.

        Examples
        --------
        >>> Shuffled(0.15, 1e-6, 3, 30_000, 10_000, 0.9, 2.0).line[:63]
        '3 with 30,000 reports: epsilon 0.15, delta 1e-06 towards whoeve'
        """
        rounded_up = Context(prec=3, rounding=ROUND_CEILING).create_decimal(self.epsilon)
        shown = min(float(rounded_up), self.local_epsilon)
        return (
            f"{self.batches} with {self.reports:,} reports: epsilon {shown:g}, delta "
            f"{self.delta:g} towards whoever sees these alone, if at least {100 * self.honest:g} % "
            f"of the reports of each batch are honest; towards the collector, who sees reports "
            f"arrive or estimates in between, and always, epsilon {self.local_epsilon:g}"
        )
