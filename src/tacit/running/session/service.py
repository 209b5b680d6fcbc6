"""Answers a coordinator's messages on a party's own machine, one process a message.

Order of what is made durable: the debit in the ledger, then the notes that outlive the run, then
where the run stands, with the reply, which then leaves. So no reply is repeated of which other runs
know nothing. A process that dies in between has spent what its ledger says, and sent nothing; the
message, sent again, is answered again and paid again. It is declined where such an answer leaves
once (``debits.Debit``): nothing tells this state from an older copy that was put back. Every
message that is answered has its debit, even of zero, so that a state that is older than the ledger
is noticed (``debits.LedgerGuard``).
A note that serves once (``ClientState.take``) is off the disk before it is used: a process that
dies over it does not get it back.
"""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import tacit.protocol as tp
from tacit import files
from tacit.crypto.identities import Identity
from tacit.data.units import UNITS
from tacit.ledger.ledger import Ledger
from tacit.protocol import declared, fields, values
from tacit.results.estimate import finite
from tacit.running import speaking, units
from tacit.running.mpc.transport import Transport
from tacit.running.session import approval, debits, messages, plan_file
from tacit.running.session.party import Party, state_kinds
from tacit.running.session.party_file import ONE_EACH, PartyFile, columns_misfit, read_records
from tacit.running.session.run_records import RECORDS_MARK, RUN, RunRecords
from tacit.running.session.toml_source import PlanError
from tacit.running.spending import NO_PERSONS, PERSONS_UNUSED, persons_misfit

CLIENT_STATE_FILE, NO_NOTES = "notebook", values.encode_values({"notes": {}})
PERSONS_REMEDY = {
    NO_PERSONS: "the plan lets so many records of a person count (per_person), and the file of "
    "{!r} does not say whose its records are; under [data], name the column as person, or say "
    f"{ONE_EACH} = true",
    PERSONS_UNUSED: "the file of {!r} names a column of persons, and the plan protects records "
    "only, of which a person may have many; the plan needs per_person, or the file no person",
}
"""What a party reads on its screen, by the reason that others read."""
FORGOTTEN_AFTER = 30 * 86_400.0
"""Seconds after which the state of a run that was not continued is deleted."""


def read_identity(path: Path) -> Identity:
    """The identity in a key file: 64 hexadecimal digits that only its owner may read.

    Raises
    ------
    PlanError : for a file that others may read, or that holds no key.
    OSError : for a file that cannot be read.
    """
    files.check_private(path, PlanError)
    try:
        return Identity.from_bytes(bytes.fromhex(path.read_text(encoding="ascii").strip()))
    except ValueError:
        raise PlanError(f"{path} holds no identity key of 64 hexadecimal digits") from None


@dataclass(frozen=True)
class PartyDesk:
    """A party's own files, opened and checked, from which it answers messages.

    Parameters
    ----------
    party_file : the party's file.
    plan : the party's copy of the plan.
    index : the party's index in it.
    identity : its key.
    """

    party_file: PartyFile
    plan: plan_file.Plan
    index: int
    identity: Identity

    @classmethod
    def open(cls, path: str | Path, mark: bytes | None = None) -> PartyDesk:
        """The desk of a party's file.

        Parameters
        ----------
        path : the file.
        mark : the first bytes of the digest of the agreement that is asked about; None takes the
            first plan.

        Raises
        ------
        PlanError : for a file, plan or key that does not fit.
        OSError : for a file that cannot be read.
        """
        party_file = PartyFile.read(path)
        plan, identity = _marked(party_file, mark), read_identity(party_file.identity)
        keys = [party.key for party in plan.parties]
        if identity.public not in keys:
            raise PlanError(f"plan {plan.name!r} does not name the key of {party_file.identity}")
        index = keys.index(identity.public)
        named = plan.parties[index].name
        if named != party_file.name:
            raise PlanError(
                f"the plan calls the owner of this key {named!r}, the file {party_file.name!r}"
            )
        return cls(party_file, plan, index, identity)

    @cached_property
    def records(self) -> tp.Clients:
        """The party's records as its file has them, read when they are needed first.

        Raises
        ------
        DataError : for records that cannot be used.
        """
        return read_records(self.party_file, self.plan.protocol, self.plan.per_person)

    @property
    def misfit(self) -> tuple[str, str]:
        """Why the party's file does not suit the plan in its words; else empty.

        No record is read for it.

        Returns
        -------
        The reason as others may read it, and what the party reads on its screen.
        """
        file, plan = self.party_file, self.plan
        unit = units.unit_misfit(file.unit, plan.unit, plan.protocol)
        if file.counted and file.unit not in (None, plan.unit):
            unit = units.FOREIGN_UNIT  # cells of one unit are not those of another
        if unit:
            said = "no unit" if file.unit is None else f"the unit {file.unit!r}"
            return unit, (
                f"the file of {file.name!r} names {said}, which cannot be converted to the plan's "
                f"{plan.unit!r}; under [data], unit is one of {', '.join(UNITS)}"
            )
        columns = columns_misfit(file, plan.protocol)
        if any(columns):
            return columns
        # counts say themselves of how many records of a person they are
        named = file.columns.person is not None or (file.counted and plan.per_person > 0)
        persons = persons_misfit(plan.per_person, named, file.one_each)
        return persons, PERSONS_REMEDY.get(persons, "").format(file.name)

    def check_unit(self) -> None:
        """Refuse units or columns that do not suit the plan's in words; no record is read.

        Raises
        ------
        PlanError : naming both, on the party's screen.
        """
        _, remedy = self.misfit
        if remedy:
            raise PlanError(remedy)

    def answer(self, message: bytes, noise: tp.NoiseSource | None = None) -> bytes:
        """The signed reply to a message; what it costs is in the ledger before this returns.

        Parameters
        ----------
        message : the message.
        noise : exact noise from the operating system; tests pass another.

        Raises
        ------
        SignedMessageError : for a message that is not accepted.
        BudgetError, OSError : where ledger or state cannot be written; nothing was sent.
        """
        session = message[messages.SESSION_POSITION].hex()
        with self.alone(), Ledger(self.party_file.ledger) as ledger:
            notebook = self.party_file.state / CLIENT_STATE_FILE
            before = NO_NOTES if not notebook.exists() else notebook.read_bytes()
            party = self._party(ledger, noise, before, session)
            state = self.party_file.state / f"{session}.{RUN}"
            if state.exists():
                try:
                    party.resume(state.read_bytes())
                except (fields.MessageError, KeyError, TypeError, ValueError) as error:
                    raise messages.MalformedMessageError(f"{state} is damaged: {error}") from error
            # a circle of references would keep the records' connection open
            answering = weakref.proxy(party)
            party.memory.after_taking = lambda: files.write_private(state, answering.state)
            spent = party.spent
            try:
                reply = party.answer(message)
            except messages.SignedMessageError:
                if party.has_begun:
                    files.write_private(state, party.state)
                raise
            revealed = declared.revealed_to(party.memory)
            if revealed is not None:
                self._write_revealed(session, revealed)
            content = values.encode_values({"notes": self._lasting(party, before)}, self._kinds)
            if content != before:
                files.write_private(notebook, content)
            files.write_private(state, party.state)
            if party.failure:
                speaking.tell_owner(speaking.printable(party.failure))
            self._tell_cost(party, spent, ledger)
            return reply

    def _tell_cost(self, party: Party, before: tp.Cost, ledger: Ledger) -> None:
        """Tell the party's owner what a message cost, or why it was declined."""
        if party.why_declined:
            speaking.tell_owner(f"declined this run: {party.why_declined}")
        elif party.spent != before:
            spendings = ledger.spending(self.party_file.dataset)
            speaking.tell_owner(
                debits.paid_line(self.plan.protocol, party.spent, self.plan.guarantee, spendings)
            )

    def _write_revealed(self, session: str, revealed: declared.Revealed) -> None:
        """Write the figure that the party learned into a file that only its owner may read."""
        folder = self.party_file.results
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        protocol = self.plan.protocol
        result = declared.result_of_client(protocol, revealed).published()
        parts = {} if result.breakdown is None else result.breakdown.to_dict()
        low, high = revealed.value - revealed.half_range, revealed.value + revealed.half_range
        content = {
            "schema": "tacit-party-result/1",
            "federation": self.plan.name,
            "party": self.party_file.name,
            "protocol": {"name": protocol.name, **protocol.settings},
            "figure": protocol.figure,
            "value": finite(revealed.value),
            "half_range": finite(revealed.half_range),
            "interval": [max(0.0, low), min(1.0, high)],
            **parts,
            "warnings": list(result.warnings),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        text = json.dumps(content, indent=2) + "\n"
        files.write_private(folder / f"{session}.json", text.encode("utf-8"))

    def _lasting(self, party: Party, before: bytes) -> dict[tuple[Any, ...], Any]:
        """The notes that outlive the run: those that say so, and those that runs before it left.

        A class of another plan's protocol may have the same name as a class of this plan's
        protocol. The notes of the other protocol stay, whichever class they are read as.
        """
        there = values.decode_values(before, opaque=True)["notes"]
        return {
            key: note
            for key, note in party.memory.notes.items()
            if key in there or isinstance(note, tp.Lasting)
        }

    @property
    def _kinds(self) -> tuple[values.Kind, ...]:
        """The classes whose values the party's notes may hold."""
        return state_kinds(self.plan.protocol)

    def set_limit(self) -> None:
        """Write the file's limit into the ledger, unless the ledger has limits for the data set."""
        limit = self.party_file.limit
        if limit is None:
            return
        with Ledger(self.party_file.ledger) as ledger:
            if not ledger.spending(limit.dataset):
                ledger.limit(
                    limit.dataset, limit.epsilon, limit.delta, limit.period, limit.adjacency
                )

    def _party(
        self, ledger: Ledger, noise: tp.NoiseSource | None, notes: bytes, session: str
    ) -> Party:
        state = tp.ClientState()
        for key, note in values.decode_values(notes, self._kinds, opaque=True)["notes"].items():
            state.keep(key, note)
        misfit, _ = self.misfit
        records, agreement = None, self.plan.agreement()
        guard: debits.Guard = debits.unrecorded
        if not misfit:
            read = partial(read_records, self.party_file, self.plan.protocol, self.plan.per_person)
            of_run = RunRecords(read, ledger, self.party_file.state, session)
            named = self.party_file.dataset, agreement, of_run.fingerprint
            records, guard = of_run.clients, debits.LedgerGuard(ledger, *named)
            subject = approval.Subject(self.party_file, self.plan)
            guard = of_run.guarded(approval.guarded(guard, subject, ledger))
        return Party(
            self.index,
            self.identity,
            agreement,
            records,
            tp.SystemNoise() if noise is None else noise,
            guard,
            state,
            self.party_file.unit,
            self._transport(),
            misfit,
        )

    def _transport(self) -> Transport | None:
        """How this party reaches those that compute with it; None where its file does not say.

        It waits half a round for them, so that its reply arrives in the same round.
        """
        party_file = self.party_file
        if party_file.listen is None:
            return None
        from tacit.running.mpc.channels import TunnelTransport  # noqa: PLC0415 -- few need it

        return TunnelTransport(
            party_file.listen,
            party_file.address,
            self.plan.deadline / 2,
            reachable=party_file.peers,
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other process from answering for this party until the block ends."""
        if not self.party_file.state.exists():
            self.party_file.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.sync(self.party_file.state.parent)
        with files.locked(self.party_file.state / "lock"):
            _forget_old(self.party_file.state)
            yield


def _marked(party_file: PartyFile, mark: bytes | None) -> plan_file.Plan:
    """The plan with this mark, among the plans that the party agreed to."""
    plans = [plan_file.Plan.read(path) for path in party_file.plans]
    if mark is None:
        return plans[0]
    for plan in plans:
        if plan.agreement().digest[: messages.MARK_BYTES] == mark:
            return plan
    raise PlanError("this party agreed to no such plan")


def _forget_old(home: Path) -> None:
    """Remove drafts that ended processes left, and the files of runs that were not continued.

    All files of a run go at one time. Nothing else writes here while this process is alone.
    """
    for ending in (f"*.{RUN}", f"*.{RECORDS_MARK}", CLIENT_STATE_FILE):
        for draft in home.glob(f".{ending}.*{files.DRAFT}"):
            draft.unlink(missing_ok=True)
    runs: dict[str, list[Path]] = {}
    for path in (*home.glob(f"*.{RUN}"), *home.glob(f"*.{RECORDS_MARK}")):
        runs.setdefault(path.stem, []).append(path)
    for paths in runs.values():
        if time.time() - max(path.stat().st_mtime for path in paths) > FORGOTTEN_AFTER:
            for path in paths:
                path.unlink(missing_ok=True)
