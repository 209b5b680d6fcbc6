"""What a ledger's entries say, the chain of hashes that binds them, and why none is made.

The text of a ``BudgetError`` is for the owner of the ledger and may hold numbers. ``public`` is for
the others, and holds none: it says that the party declines, and of what kind the reason is.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from operator import attrgetter
from typing import Literal, cast, get_args, get_type_hints

from tacit.privacy.cost import Adjacency, Cost

Kind = Literal["debit", "refusal", "limit", "approval"]
Act = Literal["drafted", "revoked", "answered"]
Accounting = Literal["basic", "zcdp"]

KINDS = DEBIT, REFUSAL, LIMIT, APPROVAL = get_args(Kind)
ACTS = DRAFTED, REVOKED, ANSWERED = get_args(Act)
ACCOUNTINGS: tuple[Accounting, ...] = get_args(Accounting)

DIGEST_BYTES = 32
MAX_NAME = 200
CHAIN = b"tacit ledger 1"
MICROSECOND = timedelta(microseconds=1)
PERIODS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}


@dataclass(frozen=True)
class Entry:
    """A question about to be answered, and what the answer spends.

    Parameters
    ----------
    dataset : the name under which the owner keeps these records; limits are set for names.
    fingerprint : ``Ledger.fingerprint`` of the records, 32 bytes.
    protocol : the protocol's name.
    step : the round's number and the step's name, or what kind of message was answered.
    session : the run's name, the same for all its steps and never used again; a run that asks about
        two data sets of one ledger has a session for each.
    request : ``request_digest`` of the query as it arrived, 32 bytes.
    cost : what the answer spends, as ``composition.stated_cost`` gives it.

    Raises
    ------
    ValueError : for an empty or too long name, a digest of another length, or a finite cost that
        does not name its adjacency.
    """

    dataset: str
    fingerprint: bytes
    protocol: str
    step: str
    session: str
    request: bytes
    cost: Cost

    def __post_init__(self) -> None:
        for name in ("dataset", "protocol", "step", "session"):
            check_name(name, getattr(self, name))
        for name in ("fingerprint", "request"):
            size = len(getattr(self, name))
            if size != DIGEST_BYTES:
                raise ValueError(f"{name} must have {DIGEST_BYTES} bytes, got {size}")
        if math.isfinite(self.cost.epsilon) and self.cost.adjacency is None:
            raise ValueError(f"a cost must name its adjacency, got {self.cost}; see stated_cost")


@dataclass(frozen=True)
class Limit:
    """How much may be spent about a data set at one adjacency, for ever or in any period so long.

    Parameters
    ----------
    dataset : the data set's name.
    epsilon : positive; infinity says that everything is written down and nothing refused.
    delta : 0 <= delta < 1, and positive with "zcdp".
    adjacency : what the limit hides; costs at others are restated (``composition.restated``).
    period : the length of a rolling window, or None for the whole history.
    accounting : "basic" adds epsilons and deltas; "zcdp" adds rhos, up to the largest that gives
        (epsilon, delta), and refuses costs that have none.

    Raises
    ------
    ValueError : for values outside these bounds.
    """

    dataset: str
    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency = Adjacency.RECORD
    period: timedelta | None = None
    accounting: Accounting = "basic"

    def __post_init__(self) -> None:
        check_name("dataset", self.dataset)
        if not self.epsilon > 0:
            raise ValueError(f"a limit's epsilon must be positive, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise ValueError(f"a limit's delta must be at least 0 and below 1, got {self.delta}")
        if self.period is not None and self.period < MICROSECOND:
            raise ValueError(f"a limit's period must be positive, got {self.period}")
        if self.accounting not in ACCOUNTINGS:
            raise ValueError(f"accounting must be one of {ACCOUNTINGS}, got {self.accounting!r}")
        if self.accounting == "zcdp" and not (self.delta > 0 and math.isfinite(self.epsilon)):
            raise ValueError(
                "a zcdp limit needs a finite epsilon and a positive delta, "
                f"got {self.epsilon} and {self.delta}"
            )


@dataclass(frozen=True)
class Receipt:
    """Proof that a debit is on disk: its number, its time, and its hash, which is the ledger's
    head after the debit."""

    number: int
    hash: bytes
    time: datetime


@dataclass(frozen=True)
class Line:
    """An entry as the ledger stores it; times and periods in microseconds, digests keyed.

    ``time`` never goes back from one line to the next; ``clock`` is what the clock said.
    """

    number: int
    kind: str
    time: int
    clock: int
    dataset: str
    epsilon: float
    delta: float
    rho: float | None = None
    adjacency: str | None = None
    fingerprint: bytes | None = None
    protocol: str | None = None
    step: str | None = None
    session: str | None = None
    request: bytes | None = None
    period: int | None = None
    accounting: str | None = None
    reason: str | None = None
    hash: bytes = b""

    @cached_property
    def entry(self) -> Entry:
        """The question that a debit paid for or a refusal declined; its request is keyed."""
        adjacency = None if self.adjacency is None else Adjacency(self.adjacency)
        return Entry(
            self.dataset,
            self.fingerprint or b"",
            self.protocol or "",
            self.step or "",
            self.session or "",
            self.request or b"",
            Cost(self.epsilon, self.delta, adjacency, self.rho),
        )

    @property
    def limit(self) -> Limit:
        """The limit that a line of this kind sets."""
        period = None if self.period is None else self.period * MICROSECOND
        adjacency = Adjacency(self.adjacency)
        accounting = cast(Accounting, self.accounting)
        return Limit(self.dataset, self.epsilon, self.delta, adjacency, period, accounting)

    def chained(self, before: bytes) -> bytes:
        """The hash that this line must have after a line with the hash ``before``.

        SHA-256 over a fixed prefix, the hash before, and all other fields in their order as a JSON
        list without blanks: digests in hexadecimal, floating-point numbers as ``float.hex``.
        """
        return hashlib.sha256(CHAIN + before + _encoded(self)).digest()


COLUMNS = tuple(column.name for column in fields(Line))
_hashed = attrgetter(*(name for name in COLUMNS if name != "hash"))


def request_digest(query: bytes) -> bytes:
    """The digest of a query's bytes, as ``Entry.request`` takes it.

    Examples
    --------
    >>> request_digest(b"ask").hex()[:8]
    '2f2fc7f2'
    """
    return hashlib.sha256(query).digest()


def period_of(text: str) -> timedelta:
    """A period as 30m, 12h, 365d, 52w or 1y of 365 days; a ledger counts 99,999 years at most.

    Raises
    ------
    ValueError : for another text.

    Examples
    --------
    >>> period_of("2w")
    datetime.timedelta(days=14)
    """
    parts = re.fullmatch(r"([1-9][0-9]{0,4})([mhdwy])", text)
    if parts is None:
        raise ValueError(f"a period must be like 30m, 12h, 365d, 52w or 1y, got {text!r}")
    return int(parts[1]) * PERIODS[parts[2]]


def instant(microseconds: int) -> datetime:
    """A line's time, in UTC."""
    return datetime.fromtimestamp(0, UTC) + microseconds * MICROSECOND


def check_name(what: str, name: str) -> None:
    """Refuse a name that is empty, too long, or not printable."""
    if not (name and name.isprintable() and len(name) <= MAX_NAME):
        raise ValueError(f"{what} must be 1 to {MAX_NAME} printable characters, got {name[:40]!r}")


def _encoded(line: Line) -> bytes:
    return json.dumps([_plain(value) for value in _hashed(line)], separators=(",", ":")).encode()


def _plain(value: float | str | bytes | None) -> int | str | None:
    return value.hex() if isinstance(value, bytes | float) else value


class BudgetError(ValueError):
    """A question that the party does not answer; it has sent nothing about its records.

    Attributes
    ----------
    public : the reason that others may read; no numbers, no names.

    Examples
    --------
    >>> LimitError("epsilon 2 would bring data set 'registry' to 3.5; its limit is 3").public
    'declined: the privacy budget does not allow it'
    """

    public = "declined"


class LimitError(BudgetError):
    """The answer would pass a limit of the data set, or the data set has none."""

    public = "declined: the privacy budget does not allow it"


class ConflictError(BudgetError):
    """Another question was answered under this session and step, or under this data set's name."""

    public = "declined: the question contradicts an earlier one"


class RepeatedError(BudgetError):
    """An answer that leaves once may have left before."""

    public = "declined: it may have answered this before, and such an answer leaves once"


class LedgerError(BudgetError):
    """The ledger cannot be read or written, or does not verify."""

    public = "declined: the ledger is not available"


class BrokenChainError(ValueError):
    """A line that does not follow from those before it."""


@dataclass
class Chain:
    """A walk along a ledger from its beginning: where it stands, and what may come next.

    Parameters
    ----------
    hash : the hash of the last line that was followed; at first, that of the ledger's identity.
    number : that line's number, 0 before the first.
    time : that line's time in microseconds.
    """

    hash: bytes
    number: int = 0
    time: int = 0

    def moment(self, clock: int) -> int:
        """The time of the next line: what the clock says, but never before the last line's."""
        return max(self.time, clock)

    def follow(self, line: Line) -> None:
        """Step to the next line.

        Raises
        ------
        BrokenChainError : where its number, its hash or its time is not what must come.
        """
        if line.number != self.number + 1:
            raise BrokenChainError(f"entry {self.number + 1} is missing")
        if line.chained(self.hash) != line.hash:
            raise BrokenChainError(f"entry {line.number} was changed, or entries before it were")
        if line.time != self.moment(line.clock) or not _is_sound(line):
            raise BrokenChainError(f"entry {line.number} is not one this program writes")
        self.number, self.hash, self.time = line.number, line.hash, line.time


def _is_sound(line: Line) -> bool:
    """Whether a line says what one of its kind must; a forged one may have a hash that fits."""
    try:
        if line.kind == LIMIT:
            return bool(line.limit)
        if line.kind == APPROVAL:
            return line.reason in ACTS and len(line.request or b"") == DIGEST_BYTES
        return line.kind in {DEBIT, REFUSAL} and bool(line.entry)
    except ValueError:
        return False


def lines_of(rows: Iterable[tuple[object, ...]]) -> Iterable[Line]:
    """Rows of a ledger as lines.

    Raises
    ------
    BrokenChainError : for a row with a value of another type than its column's.
    """
    for row in rows:
        if not all(
            isinstance(value, _TYPES[name]) for name, value in zip(COLUMNS, row, strict=True)
        ):
            raise BrokenChainError(f"entry {row[0]!r} holds a value of another type")
        yield Line(*row)  # type: ignore[arg-type]


_TYPES = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(Line).items()}
