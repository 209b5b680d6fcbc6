"""Plans that a federation agrees on, and each party's own file, read from TOML and checked."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from tacit.crypto.identities import KEY_BYTES
from tacit.crypto.secure_sum.graph import default_colluders
from tacit.data.units import UNITS
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.persons import MAX_RECORDS as MAX_PER_PERSON
from tacit.privacy.persons import of_person
from tacit.protocol.conversation import MAX_RECORDS, Protocol
from tacit.protocol.persons import per_record
from tacit.protocol.registry import SettingError, protocol_of
from tacit.running.session.messages import Agreement, check_certified
from tacit.running.units import check_plan_unit, default_unit, suited

DEADLINE = 120.0
OLDER_MIN_CLIENTS = "fewest"
"""Key of ``min_clients`` in plans of earlier versions, which is still understood."""
PLAN_KEYS = (
    "name",
    "coordinator",
    "min_clients",
    OLDER_MIN_CLIENTS,
    "colluders",
    "deadline",
    "retries",
    "on_loss",
    "unit",
    "per_person",
    "most_records",
)
ONE_EACH = "every_record_another_person"
"""Key by which a party's file says that no person has two of its records."""
DATA_KEYS = ("file", "dataset", "score", "label", "second", "unit", "person", ONE_EACH)
PERIODS = {"d": 1, "w": 7, "y": 365}


class PlanError(ValueError):
    """A plan or a party's file that cannot be used; the message names file, line and value."""


@dataclass(frozen=True)
class PlanParty:
    """Who takes part.

    Parameters
    ----------
    name : what results call the party.
    key : its public identity key, 32 bytes; None where it is still to be made.
    """

    name: str
    key: bytes | None


@dataclass(frozen=True)
class Plan:
    """What a run does, with whom, and for how long it waits.

    Parameters
    ----------
    name : what the federation is called.
    protocol : the protocol with its settings; ``read`` gives it the cells of the unit unless the
        plan's settings say where they lie.
    parties : who takes part, in order.
    coordinator : its public identity key; None where it is still to be made.
    min_clients : the least number of parties in a result.
    deadline : seconds that each round of a run waits.
    retries : how often a message that went unanswered is sent again within its round.
    on_loss : what happens when a party vanishes after others answered with regard to it, or when
        too few are left for a sum.
    colluders : parties that may collude with the coordinator; None takes a fifth of them.
    unit : in what the protocol takes scores; empty for its default.
    per_person : the most records of a person that count at a party, where the protocol's budget is
        a person's; 0 where it is a record's.
    most_records : the records of a party for which sums have room.
    """

    name: str
    protocol: Protocol
    parties: tuple[PlanParty, ...]
    coordinator: bytes | None
    min_clients: int
    deadline: float = DEADLINE
    retries: int = 1
    on_loss: Literal["fail", "restart"] = "fail"
    colluders: int | None = None
    unit: str = ""
    per_person: int = 0
    most_records: int = MAX_RECORDS

    def __post_init__(self) -> None:
        if not self.unit:
            object.__setattr__(self, "unit", default_unit(self.protocol))

    @property
    def divided(self) -> Protocol:
        """The protocol as it runs, with the budget of one of a person's counted records."""
        return per_record(self.protocol, self.per_person)

    @property
    def guarantee(self) -> Cost:
        """What a run costs the plan's unit of privacy at most."""
        return of_person(self.divided.guarantee, self.per_person)

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """The plan in a file.

        Raises
        ------
        PlanError : for a file that is not such a plan.
        OSError : for a file that cannot be read.
        """
        source = _Source.read(Path(path))
        source.only("plan", "protocol", "party")
        head = source.table("plan", *PLAN_KEYS)
        parties = _parties(source)
        keys = [party.key for party in parties if party.key is not None]
        coordinator = head.key("coordinator")
        if len({*keys, coordinator}) <= len(keys) and coordinator is not None:
            head.refuse("coordinator", "a key appears twice in the plan")
        protocol, unit = _in_unit(head, _protocol(source), _given(source))
        min_clients, colluders = _quorum(head, protocol, len(parties))
        return cls(
            head.text("name"),
            protocol,
            parties,
            coordinator,
            min_clients,
            head.number("deadline", DEADLINE, 1.0, 86_400.0),
            head.whole("retries", 1, 0, 10),
            head.choice("on_loss", "fail", "restart"),
            colluders,
            unit,
            _per_person(head, protocol),
            head.whole("most_records", MAX_RECORDS, 1, MAX_RECORDS),
        )

    def agreement(self) -> Agreement:
        """What the plan says, as coordinator and parties sign it.

        Raises
        ------
        PlanError : where a key is missing.
        """
        keys = []
        for party in self.parties:
            if party.key is None:
                raise PlanError(f"the plan has no key of party {party.name!r}")
            keys.append(party.key)
        if self.coordinator is None:
            raise PlanError("the plan has no key of the coordinator")
        return Agreement(
            self.divided,
            tuple(keys),
            self.coordinator,
            self.min_clients,
            colluders=self.colluders,
            unit=self.unit,
            per_person=self.per_person,
            most_records=self.most_records,
        )


@dataclass(frozen=True)
class PartyFile:
    """What a party contributes to a run, and what it allows.

    Parameters
    ----------
    name : its name in the plan.
    plans : its own copies of the plans that it agreed to.
    identity : the file of its identity key.
    ledger : its ledger.
    records : the file of its records.
    dataset : the name under which the ledger keeps them.
    columns : the columns of score, label and, for pairs of values, second value.
    epsilon : the ledger's limit; None leaves the limits as they are.
    delta : likewise.
    adjacency : what the limit hides.
    period : the length of the limit's rolling window; None for the whole history.
    unit : in what the scores in the file are; None where it does not say.
    listen : host and port where it listens for other parties that compute with it; None where it
        computes with nobody.
    address : host and port by which they reach it; None for ``listen``.
    peers : the hosts and ports that it connects to; None for any that another party announces.
    person : the column that says whose record it is; None where there is none.
    one_each : whether every record is another person's.
    """

    name: str
    plans: tuple[Path, ...]
    identity: Path
    ledger: Path
    records: Path
    dataset: str
    columns: tuple[str, str, str | None]
    epsilon: float | None = None
    delta: float = 0.0
    adjacency: Adjacency = Adjacency.RECORD
    period: timedelta | None = None
    unit: str | None = None
    listen: tuple[str, int] | None = None
    address: tuple[str, int] | None = None
    peers: tuple[tuple[str, int], ...] | None = None
    person: str | None = None
    one_each: bool = False

    @classmethod
    def read(cls, path: str | Path) -> PartyFile:
        """The party's file; paths in it are relative to it.

        Raises
        ------
        PlanError : for a file that is not such a file.
        OSError : for a file that cannot be read.
        """
        source = _Source.read(Path(path))
        source.only("party", "data", "limit", "mpc")
        party = source.table("party", "name", "plan", "identity", "ledger")
        data = source.table("data", *DATA_KEYS)
        if ONE_EACH in data.values and "person" in data.values:
            data.refuse(ONE_EACH, f"person and {ONE_EACH} cannot both be given")
        limit = source.table("limit", "epsilon", "delta", "adjacency", "period", needed=False)
        channels = source.table("mpc", "listen", "address", "peers", needed=False)
        home = Path(path).resolve().parent
        columns = (
            data.text("score", "score"),
            data.text("label", "label"),
            data.text("second", "") or None,
        )
        adjacency = limit.choice("adjacency", *(choice.value for choice in _limits_first()))
        return cls(
            party.text("name"),
            tuple(home / plan for plan in party.texts("plan")),
            home / party.text("identity", "identity.key"),
            home / party.text("ledger", "ledger.db"),
            home / data.text("file"),
            data.text("dataset"),
            columns,
            limit.number("epsilon", None, 0.0, math.inf),
            limit.number("delta", 0.0, 0.0, 1.0),
            Adjacency(adjacency),
            limit.period("period"),
            data.text("unit", "") or None,
            channels.host_and_port("listen"),
            channels.host_and_port("address"),
            channels.hosts_and_ports("peers"),
            data.text("person", "") or None,
            data.flag(ONE_EACH),
        )

    @property
    def plan(self) -> Path:
        """The first plan."""
        return self.plans[0]

    @property
    def state(self) -> Path:
        """Where the party keeps what it must not forget between messages."""
        return self.ledger.with_name(f"{self.ledger.stem}-state")


def _limits_first() -> list[Adjacency]:
    """All adjacencies; the default adjacency of limits comes first."""
    return sorted(Adjacency, key=lambda adjacency: adjacency is not Adjacency.RECORD)


def _protocol(source: _Source) -> Protocol:
    settings = dict(source.table("protocol", needed=True, free=True).values)
    name = settings.pop("name", None)
    try:
        return protocol_of(str(name), settings)
    except SettingError as error:
        raise source.error("protocol", error.name, str(error)) from None
    except (ValueError, TypeError) as error:
        words = re.split(r"\W", str(error))
        named = next((word for word in words if word in settings), words[0])
        raise source.error("protocol", named, str(error)) from None


def _quorum(head: _Table, protocol: Protocol, parties: int) -> tuple[int, int | None]:
    """How many parties there must be, and how many of them may collude where the plan says so."""
    key = OLDER_MIN_CLIENTS if OLDER_MIN_CLIENTS in head.values else "min_clients"
    if key == OLDER_MIN_CLIENTS and "min_clients" in head.values:
        head.refuse(key, f"{key} is the earlier name of min_clients: give one of them")
    min_clients = head.whole(key, parties, 1, parties)
    default = default_colluders(parties)
    colluders = head.whole("colluders", default, 0, max(parties - 2, 0))
    try:
        check_certified(protocol, parties, colluders, min_clients)
    except ValueError as error:
        head.refuse(key, str(error).replace("min_clients", key, 1))
    return min_clients, colluders if "colluders" in head.values else None


def _given(source: _Source) -> frozenset[str]:
    """The settings that the plan names."""
    return frozenset(source.table("protocol", needed=True, free=True).values)


def _in_unit(head: _Table, protocol: Protocol, given: frozenset[str]) -> tuple[Protocol, str]:
    """The plan's protocol for scores of its unit, which must suit each other."""
    unit = str(head.choice("unit", *dict.fromkeys((default_unit(protocol), *UNITS))))
    try:
        protocol = suited(protocol, unit, given)
        check_plan_unit(protocol, unit)
    except ValueError as error:
        head.refuse("unit", str(error))
    return protocol, unit


def _per_person(head: _Table, protocol: Protocol) -> int:
    """How many records of a person count; 0 where the plan's unit of privacy is a record."""
    per_person = head.whole("per_person", 0, 1, MAX_PER_PERSON)
    try:
        per_record(protocol, per_person)
    except ValueError as error:
        head.refuse("per_person", str(error))
    return per_person


def _parties(source: _Source) -> tuple[PlanParty, ...]:
    tables = source.content.get("party", [])
    if not isinstance(tables, list) or not tables:
        raise source.error("party", "party", "a plan names its parties as [[party]]")
    parties = []
    for content in tables:
        if not isinstance(content, dict):
            raise source.error("party", "party", "a plan names its parties as [[party]]")
        table = _Table(source, "party", content)
        table.only("name", "key")
        parties.append(PlanParty(table.text("name"), table.key("key")))
    _refuse_twice(source, "name", [party.name for party in parties])
    _refuse_twice(source, "key", [party.key.hex() for party in parties if party.key is not None])
    return tuple(parties)


def _refuse_twice(source: _Source, what: str, entries: list[str]) -> None:
    value, times = Counter(entries).most_common(1)[0] if entries else ("", 0)
    if times > 1:
        raise source.error("party", value, f"two parties have the {what} {value!r}")


@dataclass(frozen=True)
class _Source:
    """A TOML file: its content, and its lines for messages."""

    path: Path
    content: dict[str, Any]
    lines: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> _Source:
        try:
            text = path.read_text(encoding="utf-8")
            content = tomllib.loads(text)
        except UnicodeDecodeError:
            raise PlanError(f"{path} is not a text in UTF-8") from None
        except tomllib.TOMLDecodeError as error:
            raise PlanError(f"{path}: {error}") from None
        return cls(path, content, tuple(text.splitlines()))

    def only(self, *tables: str) -> None:
        """Refuse other tables."""
        for name in self.content:
            if name not in tables:
                raise self.error(name, name, f"unknown table [{name}]")

    def table(self, name: str, *keys: str, needed: bool = True, free: bool = False) -> _Table:
        """A table that holds these keys only."""
        content = self.content.get(name, {})
        if not isinstance(content, dict) or (needed and not content):
            raise self.error(name, name, f"the table [{name}] is missing")
        table = _Table(self, name, content)
        if not free:
            table.only(*keys)
        return table

    def error(self, table: str, key: str, reason: str) -> PlanError:
        """An error at the line of a key, or of its table."""
        line = self._line(table, key)
        position = f"{self.path}:{line}" if line else str(self.path)
        return PlanError(f"{position}: [{table}] {reason}")

    def _line(self, table: str, key: str) -> int | None:
        inside, header = False, None
        for number, line in enumerate(self.lines, 1):
            stripped = line.strip()
            if stripped.startswith("["):
                inside = stripped.partition("#")[0].strip(" []") == table
                header = number if inside and header is None else header
            elif inside and (re.match(rf"{re.escape(key)}\s*=", stripped) or f'"{key}"' in line):
                return number
        return header


@dataclass(frozen=True)
class _Table:
    """One table of a file; every value is checked where it is read."""

    source: _Source
    name: str
    values: dict[str, Any]

    def only(self, *keys: str) -> None:
        """Refuse other keys."""
        for key in self.values:
            if key not in keys:
                self.refuse(key, f"unknown key {key!r}; known are {', '.join(keys)}")

    def refuse(self, key: str, reason: str) -> None:
        """Raise the error of a key."""
        raise self.source.error(self.name, key, reason)

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; only the default may be empty."""
        value = self.values.get(key, default)
        if value is None:
            self.refuse(key, f"{key!r} is missing")
        if not isinstance(value, str) or (not value and key in self.values):
            self.refuse(key, f"{key} must be a text that is not empty, got {value!r}")
        return str(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A text, or several."""
        values = self.values.get(key)
        if not isinstance(values, list):
            return (self.text(key),)
        if not values or not all(isinstance(value, str) and value for value in values):
            self.refuse(key, f"{key} must hold texts that are not empty, got {values!r}")
        return tuple(values)

    def number(self, key: str, default: Any, low: float, high: float) -> Any:
        """A number from ``low`` to ``high``."""
        return self._within(key, default, low, high, (int, float))

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        return int(self._within(key, default, low, high, (int,)))

    def _within(self, key: str, default: Any, low: Any, high: Any, kinds: tuple[type, ...]) -> Any:
        if key not in self.values:
            return default
        value = self.values[key]
        known = isinstance(value, kinds) and not isinstance(value, bool)
        if not known or not low <= value <= high:
            self.refuse(key, f"{key} must be from {low:g} to {high:g}, got {value!r}")
        return value

    def flag(self, key: str) -> bool:
        """True or false; false by default."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, f"{key} must be true or false, got {value!r}")
        return bool(value)

    def choice(self, key: str, *choices: Any) -> Any:
        """One of several texts; the first by default."""
        value = self.values.get(key, choices[0])
        if value not in choices:
            self.refuse(key, f"{key} must be one of {', '.join(choices)}, got {value!r}")
        return value

    def key(self, key: str) -> bytes | None:
        """A public identity key, as hexadecimal digits."""
        value = self.values.get(key)
        if value is None:
            return None
        digits = 2 * KEY_BYTES
        if not (isinstance(value, str) and re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", value)):
            self.refuse(key, f"{key} must be {digits} hexadecimal digits, got {value!r}")
        return bytes.fromhex(value)

    def host_and_port(self, key: str) -> tuple[str, int] | None:
        """An address such as ``mpc.north.example:7070``; None where there is none."""
        value = self.values.get(key)
        return None if value is None else self._host_and_port(key, value)

    def hosts_and_ports(self, key: str) -> tuple[tuple[str, int], ...] | None:
        """Several addresses; None where the key is not there."""
        if key not in self.values:
            return None
        return tuple(self._host_and_port(key, value) for value in self.texts(key))

    def _host_and_port(self, key: str, value: object) -> tuple[str, int]:
        host, _, port = str(value).rpartition(":")
        if not (host and re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 2**16):
            self.refuse(key, f"{key} must be host:port, got {value!r}")
        return host.strip("[]"), int(port)

    def period(self, key: str) -> timedelta | None:
        """A span of days, weeks or years, as 90d, 4w or 1y."""
        value = self.values.get(key)
        if value is None:
            return None
        match = re.fullmatch(r"([1-9]\d{0,4})([dwy])", value) if isinstance(value, str) else None
        if match is None:
            self.refuse(key, f"{key} must be as 90d, 4w or 1y, got {value!r}")
            return None
        return timedelta(days=int(match[1]) * PERIODS[match[2]])
