"""Plans that a federation agrees on, read from TOML and checked."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Literal

import tacit.protocol as tp
from tacit.crypto.secure_sum.graph import default_colluders
from tacit.data import units
from tacit.privacy.composition import MAX_RECORDS as MAX_PER_PERSON
from tacit.privacy.composition import of_person
from tacit.protocol.conversation import MAX_RECORDS
from tacit.running.session import messages, toml_source
from tacit.running.spending import per_record
from tacit.running.units import check_plan_unit, default_unit, suited

DEADLINE = 120.0


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
    protocol: tp.Protocol
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
    def is_complete(self) -> bool:
        """Whether the coordinator and all parties have their keys in it."""
        return None not in (self.coordinator, *(party.key for party in self.parties))

    @property
    def divided(self) -> tp.Protocol:
        """The protocol as it runs, with the budget of one of a person's counted records."""
        return per_record(self.protocol, self.per_person)

    @property
    def guarantee(self) -> tp.Cost:
        """What a run costs the plan's unit of privacy at most."""
        return of_person(self.divided.guarantee, self.per_person)

    @property
    def digest(self) -> bytes:
        """SHA-256 of what a party agrees to: names, keys, settings, and what a lost party means.

        Raises
        ------
        PlanError : where a key is missing.
        """
        return sha256(self.words + self.on_loss.encode()).digest()

    @property
    def words(self) -> bytes:
        """The plan's name, its parties' names and keys, and the digest of what they sign.

        Raises
        ------
        PlanError : where a key is missing.
        """
        agreement = self.agreement()
        named = zip(self.parties, agreement.parties, strict=True)
        sites = [[party.name, key.hex()] for party, key in named]
        words = [self.name, sites, agreement.digest.hex()]
        return json.dumps(words, separators=(",", ":")).encode()

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """The plan in a file.

        Raises
        ------
        PlanError : for a file that is not such a plan.
        OSError : for a file that cannot be read.
        """
        return cls._of(toml_source.Source.read(Path(path)))

    @classmethod
    def parsed(cls, text: str, what: str) -> Plan:
        """The plan in a text; ``what`` names it in errors.

        Raises
        ------
        PlanError : for a text that is not such a plan.
        """
        return cls._of(toml_source.Source.of(Path(what), text))

    @classmethod
    def _of(cls, source: toml_source.Source) -> Plan:
        source.only("plan", "protocol", "party")
        tables = {"protocol", "parties"}
        head = source.table("plan", *(f.name for f in fields(cls) if f.name not in tables))
        parties = _parties(source)
        coordinator = head.key("coordinator")
        if coordinator is not None and coordinator in {party.key for party in parties}:
            head.refuse("coordinator", "a key appears twice in the plan")
        given, protocol = source.table("protocol", free=True).values, _protocol(source)
        unit = head.choice("unit", *dict.fromkeys((default_unit(protocol), *units.UNITS)))
        with head.about("unit"):
            protocol = suited(protocol, unit, given)
            check_plan_unit(protocol, unit)
        count, default = len(parties), default_colluders(len(parties))
        min_clients = head.whole("min_clients", count, 1, count)
        colluders = head.whole("colluders", default, 0, max(count - 2, 0))
        with head.about("min_clients"):
            messages.check_certified(protocol, count, colluders, min_clients)
        per_person = head.whole("per_person", 0, 1, MAX_PER_PERSON)
        with head.about("per_person"):
            per_record(protocol, per_person)
        return cls(
            head.text("name"),
            protocol,
            parties,
            coordinator,
            min_clients,
            head.number("deadline", DEADLINE, 1.0, 86_400.0),
            head.whole("retries", 1, 0, 10),
            head.choice("on_loss", "fail", "restart"),
            colluders if "colluders" in head.values else None,
            unit,
            per_person,
            head.whole("most_records", MAX_RECORDS, 1, MAX_RECORDS),
        )

    def agreement(self) -> messages.Agreement:
        """What the plan says, as coordinator and parties sign it.

        Raises
        ------
        PlanError : where a key is missing.
        """
        keys = []
        for party in self.parties:
            if party.key is None:
                raise toml_source.PlanError(f"the plan has no key of party {party.name!r}")
            keys.append(party.key)
        if self.coordinator is None:
            raise toml_source.PlanError("the plan has no key of the coordinator")
        return messages.Agreement(
            self.divided,
            tuple(keys),
            self.coordinator,
            self.min_clients,
            colluders=self.colluders,
            unit=self.unit,
            per_person=self.per_person,
            most_records=self.most_records,
        )


def _protocol(source: toml_source.Source) -> tp.Protocol:
    settings = dict(source.table("protocol", free=True).values)
    name = settings.pop("name", None)
    try:
        return tp.protocol_of(str(name), settings)
    except tp.SettingError as error:
        raise source.error("protocol", error.name, str(error)) from None
    except (ValueError, TypeError) as error:
        words = re.split(r"\W", str(error))
        named = next((word for word in words if word in settings), words[0])
        raise source.error("protocol", named, str(error)) from None


def _parties(source: toml_source.Source) -> tuple[PlanParty, ...]:
    entries = source.content.get("party", [])
    if not (isinstance(entries, list) and entries and all(isinstance(x, dict) for x in entries)):
        raise source.error("party", "party", "a plan names its parties as [[party]]")
    tables = [toml_source.Table(source, "party", entry) for entry in entries]
    for table in tables:
        table.only("name", "key")
    parties = tuple(PlanParty(table.text("name"), table.key("key")) for table in tables)
    _refuse_twice(source, "name", [party.name for party in parties])
    _refuse_twice(source, "key", [party.key.hex() for party in parties if party.key is not None])
    return parties


def _refuse_twice(source: toml_source.Source, what: str, entries: list[str]) -> None:
    value, times = Counter(entries).most_common(1)[0] if entries else ("", 0)
    if times > 1:
        raise source.error("party", value, f"two parties have the {what} {value!r}")
