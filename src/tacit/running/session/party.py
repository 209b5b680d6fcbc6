"""A party of a run: one client's records behind messages. It decides itself what it answers."""

from __future__ import annotations

from functools import partial
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import tacit.protocol as tp
from tacit.crypto.identities import Identity, Roster
from tacit.protocol import fields
from tacit.protocol.values import Kind, decode_query, decode_values, encode_values
from tacit.running import speaking, spending, units
from tacit.running.mpc.transport import Transport
from tacit.running.session import debits, messages, together
from tacit.running.session.answers import (
    UNANSWERABLE,
    Answers,
    Computation,
    OpenSum,
    Progress,
    checked_query,
)


class Party:
    """Answers the messages of one run for one client's records.

    It answers a message once, in turn, and repeats the same bytes when the same message comes
    again. It answers only steps of the protocol that it agreed to, under the settings that it
    agreed to, and never releases more than that protocol's guarantee. It answers a step
    that is marked ``once`` only once in a run. It adds to one sum a step, over no fewer parties
    than were agreed; it adds to another attempt at that sum only when the last can never be
    unmasked. ``memory`` is its client state.

    Parameters
    ----------
    index : the party's index in the agreement.
    identity : its signing key.
    agreement : what it agreed to.
    records : its records, a batch of one client, in its unit, with their persons where its file
        names them; None where its file does not suit the agreement, and the party declines.
    noise : where its noise comes from.
    guard : receives every debit before the reply is computed, and of every other message before
        the reply leaves. ``debits.unrecorded`` writes nothing down, and is for rehearsals only.
    state : its client state after earlier runs; None starts an empty one.
    unit : the word in its party file for what its scores are; None where it has none.
    transport : how it reaches the others when it computes with them; None where it cannot.
    misfit : why its party file does not suit the agreement, as others may read it; empty where it
        does; None where there is no file, and unit and records alone say it.

    Raises
    ------
    ValueError : for records of several clients, no records where it could answer, or
        an identity that is not the agreement's.
    """

    def __init__(
        self,
        index: int,
        identity: Identity,
        agreement: messages.Agreement,
        records: tp.Clients | None,
        noise: tp.NoiseSource,
        guard: debits.Guard,
        state: tp.ClientState | None = None,
        unit: str | None = None,
        transport: Transport | None = None,
        misfit: str | None = None,
    ) -> None:
        if records is not None and records.count != 1:
            raise ValueError(f"a party holds the records of one client, got {records.count}")
        if agreement.parties[index] != identity.public:
            raise ValueError(f"the identity is not that of party {index} in the agreement")
        self.index = index
        self._identity, self._agreement = identity, agreement
        if misfit is None:
            named = records is not None and records.knows_persons
            misfit = units.unit_misfit(
                unit, agreement.unit, agreement.protocol
            ) or spending.persons_misfit(agreement.per_person, named, one_each=False)
        self._misfit = misfit
        self._again = partial(
            Party, index, identity, agreement, records, noise, guard, unit=unit, transport=transport
        )
        converted = None
        if not self._misfit:
            if records is None:
                raise ValueError("a party whose unit fits the agreement needs its records")
            converted = units.for_plan(records, unit, agreement.unit, agreement.protocol)
        self.memory = tp.ClientState() if state is None else state
        before = self.memory.notes
        if len(agreement.parties) > 1:
            roster = Roster(agreement.parties)
            agreement.protocol.enrol(self.memory, identity, roster, agreement.min_clients)
        # written anew by each process: a stored state has no identity key
        self._enrolled = {k for k, note in self.memory.notes.items() if before.get(k) is not note}
        self.why_declined = ""
        self._answers = Answers(agreement, converted, noise, self.memory, guard)
        self._sums = together.ClientSums(identity, agreement, self._answers)
        self._computations = together.ClientComputations(
            index, identity, agreement, self._answers, transport
        )

    def next_run(self) -> Party:
        """The party for another run, with the same client state and ledger."""
        return self._again(state=self.memory, misfit=self._misfit)

    def restarted(self) -> Party:
        """The party as another process takes it up, with nothing but its stored state."""
        fresh = self._again(misfit=self._misfit)
        fresh.resume(self.state)
        return fresh

    @property
    def has_begun(self) -> bool:
        """Whether the run has cost anything, or any message was answered."""
        return bool(self._run.payments or self._run.session)

    @property
    def _run(self) -> Progress:
        return self._answers.run

    @property
    def state(self) -> bytes:
        """Where the run stands, with the party's secrets of this run: not for any other party.

        Its identity key is not in it: who resumes a state has the key.
        """
        notes = self.memory.notes
        values = {
            "run": self._run,
            "notes": {key: notes[key] for key in notes if key not in self._enrolled},
        }
        return encode_values(values, state_kinds(self._agreement.protocol))

    def resume(self, state: bytes) -> None:
        """Go on from a state that this party gave in another process.

        Its notes may be of kinds that this protocol does not know: other plans' runs kept them.
        """
        values = decode_values(state, state_kinds(self._agreement.protocol), opaque=True)
        self._answers.run = values["run"]
        for key, note in values["notes"].items():
            self.memory.keep(key, note)

    @property
    def spent(self) -> tp.Cost:
        """What the run has cost the record that spent most; at most, where state was lost."""
        return self._answers.spent

    @property
    def failure(self) -> str:
        """Why the last computation with other parties stopped; empty where none did."""
        return self._computations.failure

    def answer(self, message: bytes) -> bytes:
        """The signed reply to a message of the coordinator.

        Raises
        ------
        SignedMessageError : for a message that is not accepted. Nothing was spent or sent.
        """
        received = messages.verified(message, self._agreement, messages.COORDINATOR, self.index)
        request = sha256(message).digest()
        run = self._run
        if request == run.answered[0]:
            return run.answered[1]
        if run.session not in (b"", received.session):
            raise messages.ForeignMessageError("this message is of another run")
        if received.round <= run.round:
            raise messages.StaleMessageError(
                f"round {received.round} was answered, with another message"
            )
        if run.declined:
            raise messages.StaleMessageError("this party has declined the run")
        try:
            kind, body = self._reply(received, request)
        except debits.DeclinedError as reason:
            run.declined = True
            error = reason.__cause__ or reason
            self.why_declined = "; ".join([str(error), *getattr(error, "__notes__", ())])
            kind, body = messages.Kind.DECLINE, encode_values({"reason": reason.public})
        reply = messages.SignedMessage(
            kind, received.session, received.round, self.index, messages.COORDINATOR, body
        )
        signed = reply.signed(self._agreement, self._identity)
        run.session, run.round = received.session, received.round
        run.answered = (request, signed)
        return signed

    def _reply(
        self, message: messages.SignedMessage, request: bytes
    ) -> tuple[messages.Kind, bytes]:
        answers = {
            messages.Kind.ASK: self._to_query,
            messages.Kind.SUM: self._sums.begin,
            messages.Kind.ROUND: self._sums.next_round,
            messages.Kind.RESTART: self._sums.give_up,
            messages.Kind.MPC: self._computations.announce,
            messages.Kind.COMPUTE: self._computations.compute,
        }
        if message.kind not in answers:
            raise messages.MalformedMessageError(
                f"a coordinator does not send a {message.kind.name.lower()}"
            )
        if self._misfit:
            raise debits.DeclinedError(self._misfit)
        try:
            content = answers[message.kind](message, request)
        except messages.SignedMessageError:
            raise
        except tp.DataError as error:
            raise debits.DeclinedError(speaking.UNFIT) from error
        except UNANSWERABLE as error:
            raise messages.MalformedMessageError(
                f"this message cannot be answered: {error}"
            ) from error
        if self._run.request != request:
            self._answers.debit(message, message.kind.name.lower(), request)
        spent = messages.cost_values(self.spent)
        return messages.Kind.REPLY, encode_values({"content": content, "spent": spent})

    def _to_query(self, message: messages.SignedMessage, request: bytes) -> bytes:
        decoded = decode_query(message.body, self._agreement.protocol)
        query = checked_query(decoded, tp.View.EACH, self._agreement)
        name = query.step.name
        if name in self._run.closed:
            raise messages.MalformedMessageError(f"step {name} was answered in this run already")
        self._answers.pay(query, message, request)
        reply = self._answers.computed(query)
        if query.step.once:
            self._run.closed.append(name)
        return fields.encode(fields.reply_of(reply, 0))


SESSION_TYPES = (Computation, spending.CountedSeed, OpenSum, Progress, Roster)

SESSION_KINDS = (
    Kind(tp.Cost, messages.cost_values, lambda **values: messages.cost_of(values)),
    Kind(spending.Payment, spending.payment_values, spending.payment_of),
    Kind(Identity, lambda identity: {"private": identity.to_bytes()}, Identity.from_bytes),
    Kind(
        X25519PrivateKey,
        lambda key: {"data": key.private_bytes_raw()},
        X25519PrivateKey.from_private_bytes,
    ),
    *map(Kind.of, SESSION_TYPES),
)
"""The classes whose values every client's state may hold."""


def state_kinds(protocol: tp.Protocol) -> tuple[Kind, ...]:
    """The classes whose values the state of a client of this protocol may hold.

    Raises
    ------
    TypeError : for classes of one name, of which only one could be read again.
    """
    kinds = (*SESSION_KINDS, *map(Kind.of, protocol.state_types))
    names = [kind.name for kind in kinds]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TypeError(f"{protocol.name} notes values of two classes called {', '.join(twice)}")
    return kinds
