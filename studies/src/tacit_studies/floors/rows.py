"""Repeated errors of a protocol, and the rows that put them beside their floors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

import numpy as np

from tacit.data.clients import Clients
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol.conversation import Protocol
from tacit.running.evaluating import exact_auc, repeat
from tacit_studies.measuring import Bench, Split, quotient
from tacit_studies.rows import Beside
from tacit_studies.sources import Floats

Figure = Literal["mean |error|", "std"]
MEAN: Figure = "mean |error|"
STD: Figure = "std"

MANY = 10
"""How many times as often as others those forms are repeated whose repeats take little time. Of
Laplace noise, a mean size is known to one over the root of the number of repeats."""

MOSTLY_BIAS = 0.5
"""Least ratio of a mean error to the root mean square at which bias is the reason of a miss."""


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of repeated estimates of one AUC; NaN where there was no figure."""

    errors: Floats

    @classmethod
    def of(cls, protocol: Protocol, clients: Clients, seed: int, repeats: int) -> Errors:
        """Repeated estimates less the exact AUC."""
        return cls(repeat(clients, protocol, repeats, seed) - exact_auc(clients))

    def figure(self, figure: Figure) -> float:
        """A statistic of all errors; NaN where one of them is missing."""
        spread = np.mean(np.abs(self.errors)) if figure == MEAN else np.std(self.errors)
        return float(spread)

    def reason(self, figure: Figure, at_most: float) -> str:
        """Why a statistic is above what was to be reached, as far as the errors tell."""
        missing = int(np.count_nonzero(np.isnan(self.errors)))
        if missing:
            return f"{missing} of {self.errors.size} runs gave no figure"
        bias, root = float(np.mean(self.errors)), math.sqrt(float(np.mean(self.errors**2)))
        if abs(bias) > MOSTLY_BIAS * root:
            return f"a mean error of {bias:.1e}: what cells hide, not noise"
        spread = self.figure(figure)
        # of Laplace noise, either statistic is known to about this part
        if spread * (1 - 2 / math.sqrt(self.errors.size)) <= at_most:
            return f"within what {self.errors.size} repeats tell"
        return "noise beyond that of one sum"


def sum_floor(guarantee: Cost, exact: float, smaller: int) -> float:
    """The least mean absolute error of a noisy sum over both classes, the smaller of this size.

    Examples
    --------
    >>> sum_floor(Cost(1.0, adjacency=Adjacency.RECORD), 0.75, 1_000)
    0.00075
    >>> sum_floor(Cost(1.0, adjacency=Adjacency.REPLACE), 0.75, 1_000)
    0.001
    """
    width = 1.0 if guarantee.adjacency is Adjacency.REPLACE else max(exact, 1 - exact)
    return width / (guarantee.epsilon * smaller)


def floor_of(protocol: Protocol, clients: Clients) -> float:
    """``sum_floor`` of these records at the protocol's guarantee."""
    smaller = int(min(np.bincount(clients.labels, minlength=2)))
    return sum_floor(protocol.guarantee, exact_auc(clients), smaller)


def beside(
    names: tuple[str, str, Figure],
    measured: Errors,
    reach: float,
    floor: float | None,
    before: Errors,
) -> Beside:
    """A statistic of errors beside its floor and what an earlier form reaches."""
    figure = names[2]
    value = measured.figure(figure)
    reason = "" if value <= reach else measured.reason(figure, reach)
    return Beside(
        *names,
        value,
        at_most=float(f"{reach:.3g}"),
        floor=floor,
        before=before.figure(figure),
        reason=reason,
    )


def spread_of(errors: Mapping[str, Errors]) -> tuple[float, str]:
    """The largest mean absolute error over the least, and which those are."""
    sizes = {name: each.figure(MEAN) for name, each in errors.items()}
    silent = [name for name, size in sizes.items() if math.isnan(size)]
    if silent:
        return math.nan, f"no figure in some runs at {', '.join(silent)}"
    (least, lowest), *_, (most, highest) = sorted(sizes.items(), key=itemgetter(1))
    extremes = f"{highest:.2e} at {most}, {lowest:.2e} at {least}"
    return quotient(highest, lowest), extremes


def records_of(bench: Bench) -> Clients:
    """The records of a file, unchanged, or the small evaluation set where there is no file."""
    return bench.clients(Split()) if bench.source.real is None else bench.source.real


def dealt(clients: Clients, count: int | None, bench: Bench) -> Clients:
    """The records dealt out to so many clients; None means one a record."""
    number = clients.records if count is None else count
    return Clients.split(clients.scores, clients.labels, number, "uniform", bench.seed("dealt"))
