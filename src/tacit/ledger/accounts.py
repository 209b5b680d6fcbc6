"""What a ledger's lines add up to: spending in every limit's window, questions answered."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from operator import add, sub
from typing import NamedTuple

from tacit.ledger.entries import APPROVAL, DEBIT, LIMIT, MICROSECOND, Chain, Entry, Limit, Line
from tacit.privacy import composition
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost

UNIT = 2**100
"""Number of parts of 1 in which costs are added: whole numbers of parts, rounded up, have exact
sums."""

SLACK = 10**9
"""Inverse of the relative excess over a limit that is still allowed: fractions of epsilon are
binary fractions."""


class Amount(NamedTuple):
    """A sum of costs at one adjacency, in units; ``lost`` counts what protects nothing there."""

    epsilon: int = 0
    delta: int = 0
    rho: int = 0
    lost: int = 0
    rholess: int = 0

    def __add__(self, other: Amount) -> Amount:  # type: ignore[override]
        return Amount(*map(add, self, other))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(*map(sub, self, other))

    def within(self, limit: Limit) -> bool:
        """Whether this sum stays within a limit."""
        if math.isinf(limit.epsilon):
            return True
        if self.lost:
            return False
        if limit.accounting == "zcdp":
            most = _units(composition.largest_rho(limit.epsilon, limit.delta))
            return not self.rholess and _below(self.rho, most)
        return _below(self.epsilon, _units(limit.epsilon)) and _below(
            self.delta, _units(limit.delta)
        )


@lru_cache(maxsize=4096)
def amount(cost: Cost, adjacency: Adjacency) -> Amount:
    """What one release adds at an adjacency.

    Examples
    --------
    >>> amount(Cost(1.0, adjacency=Adjacency.RECORD), Adjacency.REPLACE).epsilon == 2 * UNIT
    True
    """
    there = composition.restated(cost, adjacency)
    if math.isinf(there.epsilon):
        return Amount(lost=1)
    epsilon, delta = _units(there.epsilon), _units(there.delta)
    if there.rho is not None:
        return Amount(epsilon, delta, _units(there.rho))
    if there.delta == 0:
        return Amount(epsilon, delta, -(-(epsilon * epsilon) // (2 * UNIT)))
    return Amount(epsilon, delta, rholess=1)


@dataclass(frozen=True)
class Spending:
    """What was spent under a limit, in its window.

    Parameters
    ----------
    limit : the limit.
    epsilon, delta, rho : the sums at the limit's adjacency; ``rho`` counts what has one.
    unlimited : how many debits in the window protect nothing at that adjacency.
    """

    limit: Limit
    epsilon: float
    delta: float
    rho: float
    unlimited: int

    def runs_left(self, cost: Cost) -> int | None:
        """How many more runs of a cost basic composition allows; None for any number."""
        limit = self.limit
        if math.isinf(limit.epsilon):
            return None
        unknown = cost.adjacency is None
        run_cost = UNPROTECTED if unknown else composition.restated(cost, limit.adjacency)
        if self.unlimited or math.isinf(run_cost.epsilon):
            return 0
        shares = [(limit.epsilon - self.epsilon, run_cost.epsilon)]
        shares.append((limit.delta - self.delta, run_cost.delta))
        counts = [math.floor(left / each + 1e-9) for left, each in shares if each > 0]
        return max(0, min(counts)) if counts else None

    def line(self, cost: Cost | None) -> str:
        """What the limit allows, what is spent, and for how many runs of a cost that is enough.

        No number of runs is said where the cost is None.
        """
        limit = self.limit
        span = "" if limit.period is None else f" in any {limit.period.days} days"
        allowed = f"epsilon {limit.epsilon:g}{span} at {limit.adjacency.value} adjacency"
        line = f"allows {allowed}; {self.epsilon:g} spent"
        if cost is None:
            return line
        enough = self.runs_left(cost)
        left = "any number of runs" if enough is None else f"{enough} more run{'s' * (enough != 1)}"
        return f"{line}; enough for {left}"


@dataclass
class Window:
    """The debits that count for a limit: those less than a period ago, by the ledger's time."""

    limit: Limit
    debits: deque[tuple[int, Amount]] = field(default_factory=deque)
    total: Amount = field(default_factory=Amount)

    def take(self, time: int, cost: Cost) -> None:
        """Count a debit in the ledger."""
        added = amount(cost, self.limit.adjacency)
        self.debits.append((time, added))
        self.total = self.total + added
        while self._gone(self.debits[0][0], time):
            self.total = self.total - self.debits.popleft()[1]

    def at(self, time: int) -> Amount:
        """The sum at a time that is not before the last debit's; the call changes nothing."""
        total = self.total
        for when, added in self.debits:
            if not self._gone(when, time):
                break
            total = total - added
        return total

    def _gone(self, when: int, now: int) -> bool:
        return self.limit.period is not None and when <= now - self.limit.period // MICROSECOND


class Accounts:
    """All that a ledger's lines say; it reads line after line along their chain."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._debits: dict[str, list[tuple[int, Cost]]] = {}
        self.windows: dict[str, dict[tuple[Adjacency, timedelta | None], Window]] = {}
        self.answered: dict[tuple[str, str], Entry] = {}
        self.debits_of: defaultdict[str, list[Line]] = defaultdict(list)
        self.names: dict[bytes, str] = {}
        self.refused: set[tuple[str, str]] = set()
        self.approvals: list[Line] = []
        self._costs: dict[Cost, Cost] = {}

    def take(self, lines: Iterable[Line]) -> None:
        """Follow the chain over more lines, and count them.

        Raises
        ------
        BrokenChainError : where a line does not follow from those before.
        """
        for line in lines:
            self.chain.follow(line)
            if line.kind == LIMIT:
                self._take_limit(line.limit)
            elif line.kind == DEBIT:
                self._take_debit(line, line.entry)
            elif line.kind == APPROVAL:
                self.approvals.append(line)
            else:
                self.refused.add((line.entry.session, line.entry.step))

    def spending(self, dataset: str, clock: int) -> list[Spending]:
        """Every limit of a data set, with what was spent under it."""
        return [
            _spending(window.limit, window.at(self.chain.moment(clock)))
            for window in self.windows.get(dataset, {}).values()
        ]

    def passed(self, dataset: str, cost: Cost, clock: int) -> Spending | None:
        """The first limit that a cost would pass, with what is spent under it; None if it fits."""
        for window in self.windows.get(dataset, {}).values():
            spent = window.at(self.chain.moment(clock))
            if not (spent + amount(cost, window.limit.adjacency)).within(window.limit):
                return _spending(window.limit, spent)
        return None

    def datasets(self) -> list[str]:
        """All data sets with limits or debits, by name."""
        return sorted(self.windows.keys() | self._debits.keys())

    def history(self, dataset: str | None = None) -> Counter[Cost]:
        """What was spent about a data set, or about all together: each cost, how often."""
        names = self._debits if dataset is None else [dataset]
        return Counter(cost for name in names for _, cost in self._debits.get(name, []))

    def _take_debit(self, line: Line, entry: Entry) -> None:
        cost = self._costs.setdefault(entry.cost, entry.cost)
        self._debits.setdefault(entry.dataset, []).append((line.time, cost))
        for window in self.windows.get(entry.dataset, {}).values():
            window.take(line.time, cost)
        self.answered[(entry.session, entry.step)] = entry
        self.debits_of[entry.session].append(line)
        self.names.setdefault(entry.fingerprint, entry.dataset)

    def _take_limit(self, limit: Limit) -> None:
        window = Window(limit)
        for time, cost in self._debits.get(limit.dataset, []):
            window.take(time, cost)
        windows = self.windows.setdefault(limit.dataset, {})
        windows[(limit.adjacency, limit.period)] = window


def _spending(limit: Limit, total: Amount) -> Spending:
    return Spending(limit, total.epsilon / UNIT, total.delta / UNIT, total.rho / UNIT, total.lost)


def _units(number: float) -> int:
    numerator, denominator = number.as_integer_ratio()
    return -(-numerator * UNIT // denominator)


def _below(total: int, most: int) -> bool:
    return total * SLACK <= most * (SLACK + 1)
