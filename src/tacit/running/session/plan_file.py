"""Plans that a federation agrees on, read from TOML and checked."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal

import tacit.protocol as tp
from tacit.crypto.identities import Identity, is_signed
from tacit.crypto.secure_sum.graph import default_colluders
from tacit.data import units
from tacit.privacy.composition import MAX_RECORDS as MAX_PER_PERSON
from tacit.privacy.composition import of_person
from tacit.protocol.steps import MAX_RECORDS
from tacit.running.session import messages, toml_source
from tacit.running.spending import per_record
from tacit.running.units import check_plan_unit, default_unit, suited

DEADLINE = 120.0
MINUTE = "%Y-%m-%dT%H:%MZ"
"""How a plan writes a time, in UTC."""
RENEWAL = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\dZ) ([0-9a-f]{64}) ([0-9a-f]{128})", re.ASCII)


@dataclass(frozen=True)
class Renewal:
    """A party's next identity key, as the key before it announces it.

    The signature covers the federation, its coordinator, the party, both keys and the time: who
    does not hold the key before can neither make an announcement nor move it. Who stole that key
    can make one too. Other parties take one only that follows what they know (``PlanParty.keys``),
    so that a second announcement in the place of another needs the roster's spoken code, and two
    parties that were told two stories agree on no run. A key that was stolen is not renewed: its
    owner is invited again.

    Parameters
    ----------
    before, key : the key until then, and the one from then on, 32 bytes each.
    begins : when, to the minute in UTC, as ``MINUTE``.
    signature : by the key before.
    """

    before: bytes
    key: bytes
    begins: str
    signature: bytes

    @classmethod
    def made(cls, plan: Plan, party: str, identity: Identity, key: bytes, begins: str) -> Renewal:
        """The announcement of a key by the holder of the one before."""
        unsigned = cls(identity.public, key, begins, b"")
        return replace(unsigned, signature=identity.sign(unsigned._words(plan, party)))

    def is_signed(self, plan: Plan, party: str) -> bool:
        """Whether the key before announced this to the parties of a plan."""
        return is_signed(self.before, self._words(plan, party), self.signature)

    def _words(self, plan: Plan, party: str) -> bytes:
        keys = [(key or b"").hex() for key in (plan.coordinator, self.before, self.key)]
        return json.dumps(["tacit-renewal/1", plan.name, party, *keys, self.begins]).encode()

    def __str__(self) -> str:
        return f"{self.begins} {self.key.hex()} {self.signature.hex()}"


@dataclass(frozen=True)
class PlanParty:
    """Who takes part.

    Parameters
    ----------
    name : what results call the party.
    key : its public identity key in use when the plan was read, 32 bytes; None where it is still to
        be made.
    renewals : of its first key, in order.
    """

    name: str
    key: bytes | None
    renewals: tuple[Renewal, ...] = ()

    @property
    def keys(self) -> tuple[bytes | None, ...]:
        """Its first key, and those that follow."""
        first = self.renewals[0].before if self.renewals else self.key
        return (first, *(each.key for each in self.renewals))

    @property
    def next(self) -> Renewal | None:
        """What is announced and not yet in use; None where there is nothing."""
        return self.renewals[-1] if self.keys[-1] != self.key else None


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
    unit : in what the protocol takes scores; a file that names none has the default.
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
        """SHA-256 of what a party agrees to: names, settings, and what a lost party means; and of
        the first keys, which announce those that follow.

        Raises
        ------
        PlanError : where a key is missing.
        """
        first = tuple(PlanParty(party.name, party.keys[0]) for party in self.parties)
        return sha256(replace(self, parties=first).words + self.on_loss.encode()).digest()

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
        if coordinator is not None and any(coordinator in party.keys for party in parties):
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
        plan = cls(
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
        announced = ((party.name, each) for party in parties for each in party.renewals)
        for name, renewal in announced:
            if not renewal.is_signed(plan, name):
                raise source.error(
                    "party", "renewals", f"a renewal of {name!r} is not signed by the key before it"
                )
        return plan

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
        table.only("name", "key", "renewals")
    parties = tuple(map(_party, tables))
    _refuse_twice(source, "name", [party.name for party in parties])
    keys = [key.hex() for party in parties for key in party.keys if key is not None]
    _refuse_twice(source, "key", keys)
    return parties


def _party(table: toml_source.Table) -> PlanParty:
    """A party with the key whose time has come."""
    name, key, renewals = table.text("name"), table.key("key"), list[Renewal]()
    now = datetime.fromtimestamp(time.time(), UTC).strftime(MINUTE)
    in_use = key
    for text in table.texts("renewals") if "renewals" in table.values else ():
        said, last = RENEWAL.fullmatch(text), renewals[-1].begins if renewals else ""
        if key is None or said is None or said[1] <= last:
            table.refuse("renewals", f"renewals of {name!r} need a key, and TIME KEY SIGNATURE")
        renewals.append(Renewal(key, bytes.fromhex(said[2]), said[1], bytes.fromhex(said[3])))
        key = renewals[-1].key
        in_use = key if said[1] <= now else in_use
    return PlanParty(name, in_use, tuple(renewals))


def _refuse_twice(source: toml_source.Source, what: str, entries: list[str]) -> None:
    value, times = Counter(entries).most_common(1)[0] if entries else ("", 0)
    if times > 1:
        raise source.error("party", value, f"two parties have the {what} {value!r}")
