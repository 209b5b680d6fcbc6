"""The coordinator of a run: carries a protocol's conversation by messages, without I/O.

Its result is the evaluation as the coordinator alone can know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.crypto.identities import Identity, ReplayError, SumError
from tacit.crypto.secure_sum.terms import new_session
from tacit.privacy import composition
from tacit.privacy.cost import cost_line, worst_case
from tacit.protocol import fields, releases
from tacit.protocol.values import named_values
from tacit.results.evaluation import Evaluation, evaluation_of
from tacit.results.run import Traffic
from tacit.running.mpc.transport import Session
from tacit.running.session import answers, exchanges, messages
from tacit.running.session.plan_file import Plan
from tacit.running.simulation import Run
from tacit.running.speaking import checked_reason, printable

DECLINED = "declined: "
"""Beginning of a ledger's reasons."""
SUM_ATTEMPTS = 3
"""How often a run that restarts tries one sum."""
UNFIT_REPLIES = "the server cannot compute with the replies: {}"
LEFT_OUT = "{name} is not in this result: {why}"
ATTEMPTS = "a sum took {count} attempts, and what was spent has the debits of each of them"


class RunError(RuntimeError):
    """A run that ended without a result.

    ``refusals`` are the messages that were not accepted, as far as the runner kept them.
    """

    refusals: tuple[Any, ...] = ()


def called(party: int, names: Sequence[str]) -> str:
    """A party's name, or its index where no one has named it.

    Examples
    --------
    >>> called(1, ["north", "south"]), called(1, ())
    ('south', 'party 1')
    """
    return names[party] if names else f"party {party}"


class LostPartyError(RunError):
    """Parties left after the other parties' answers had come to depend on them.

    Parameters
    ----------
    lost : their indices.
    names : of all parties; empty where they have none.
    """

    def __init__(self, lost: Sequence[int], names: Sequence[str] = ()) -> None:
        who = " and ".join(called(party, names) for party in lost)
        super().__init__(
            f"{who} vanished after the first round, on which the others' replies depend"
        )
        self.lost = tuple(lost)


class Coordinator:
    """Asks the parties the queries of a protocol's conversation, until its figure is there.

    ``open`` and then each ``close`` give the messages of the next round, by party; ``receive``
    takes the replies that come. The caller decides when it has waited long enough. Who did not
    answer a round has left the run. Lost replies do no harm in the first query, and in queries for
    sums; in any later query every reply is needed.

    Parameters
    ----------
    agreement : what was agreed.
    identity : the coordinator's signing key.
    parties : who is asked; None asks all.
    restarts : whether what costs again may be tried again: a sum for which too few parties stayed,
        up to ``SUM_ATTEMPTS`` times, or the run without lost parties (``without``). A further
        attempt at a sum costs what the sum costs, where a party had sent its numbers.
    names : what errors call the parties; empty calls them by index.

    ``round`` is the number of the present round, from 0. ``begins_again`` is whether the run may
    begin again at no cost: no step that was asked for has one. An answer that was lost may have
    been paid for, so what the coordinator has received does not decide it. A computation between
    parties is never begun again automatically: each one shows its outputs for another set of
    parties.

    Raises
    ------
    ValueError : for an identity that is not the agreement's coordinator.
    """

    def __init__(
        self,
        agreement: messages.Agreement,
        identity: Identity,
        parties: Sequence[int] | None = None,
        restarts: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        if identity.public != agreement.coordinator:
            raise ValueError("the identity is not that of the agreement's coordinator")
        everybody = range(len(agreement.parties))
        self.session = new_session()
        self.active = tuple(everybody if parties is None else parties)
        self.queries = 0
        self.spent: dict[int, tp.Cost] = dict.fromkeys(self.active, tp.NOTHING)
        self.before = dict(self.spent)
        self.repeats: tuple[str, ...] = ()
        self.declined: dict[int, str] = {}
        self._result: tp.ServerResult | None = None
        self.computations: tuple[Session, ...] = ()
        self.sent_to_others = Counter[int]()
        self._agreement, self._identity = agreement, identity
        self._names = tuple(names)
        self.rounds = self._conversed(releases.conducted(agreement.protocol, len(everybody)))
        self._guarantee = composition.of_person(agreement.protocol.guarantee, agreement.per_person)
        self._restarts = restarts
        self.round = self._before_query = -1
        self.begins_again = True
        self._waiting: set[int] = set()
        self._view: tp.View | None = None

    @property
    def server_result(self) -> tp.ServerResult:
        """The server's conclusions.

        Raises
        ------
        RunError : for a run without a result.
        """
        if self._result is None:
            raise RunError("the run has no result")
        return self._result

    @property
    def most_spent(self) -> tp.Cost:
        """The most that a member spent, in this run and in those that broke off before it.

        It is what members say that they debited. So a member can overstate the result's cost; it
        cannot understate what the others debited.
        """
        return worst_case(self.spent[party] for party in self.active)

    def without(self, loss: LostPartyError) -> Coordinator:
        """The coordinator of the run that begins again after this one, without the lost parties.

        What a member spent in this run counts there too, in ``spent`` and ``before``. What a lost
        party spent is not known here, as its last debit may have come with no answer;
        ``repeats``, for the result's warnings, has a sentence with its bound.

        Raises
        ------
        LostPartyError : the loss, where the run may not begin again, or too few parties are left.
        """
        active = tuple(party for party in self.active if party not in loss.lost)
        again = self._restarts or self.begins_again
        if not again or len(active) < self._agreement.min_clients:
            raise loss
        following = Coordinator(
            self._agreement, self._identity, active, self._restarts, names=self._names
        )
        following.spent = {party: self.spent[party] for party in active}
        following.before, following.declined = dict(following.spent), self.declined
        paid = () if self.begins_again else (self._broke(loss),)
        following.repeats = (*self.repeats, *paid)
        return following

    def _broke(self, loss: LostPartyError) -> str:
        who = " and ".join(called(party, self._names) for party in loss.lost)
        bound = cost_line(self._guarantee.to_dict(), unlimited="epsilon without limit")
        return (
            f"run {self.session.hex()} broke off without a result when it lost {who}: what it cost "
            f"the others is in what was spent; what it cost {who} is not known here, by the plan "
            f"at most {bound}, and as much again for each sum tried again"
        )

    @property
    def place(self) -> str:
        """The present round for a person: the query's number, as results count rounds, and which
        exchange of it this is, both from 1."""
        return f"round {self.queries}.{self.round - self._before_query}"

    @property
    def opens_early(self) -> bool:
        """Whether the first messages may go out before it is known who takes part.

        Where too few come nothing is spent then, and no answer depends on another one.
        """
        return self.begins_again and self._view is tp.View.EACH

    @property
    def waiting(self) -> tuple[int, ...]:
        """Whose replies to the present round have not come."""
        return tuple(sorted(self._waiting))

    def open(self) -> dict[int, bytes]:
        """The first messages, by party."""
        return self.close()

    def receive(self, sender: int, message: bytes) -> None:
        """Take a party's reply.

        Parameters
        ----------
        sender : the party that the message came from, as the caller's connection shows.
        message : what ``Party.answer`` gave.

        Raises
        ------
        SignedMessageError : for a message that is not accepted: of another run, forged, late, a
            second one, or not an answer. Nothing was changed.
        """
        if sender not in self.spent:
            raise messages.ForeignMessageError(f"party {sender} was not asked")
        received = messages.verified(message, self._agreement, sender, messages.COORDINATOR)
        if received.session != self.session:
            raise messages.ForeignMessageError("this message is of another run")
        if received.round != self.round:
            raise messages.StaleMessageError(
                f"a reply to round {received.round} came in round {self.round}"
            )
        if sender not in self._waiting:
            raise messages.StaleMessageError(
                f"party {sender} has answered round {received.round}, or has left"
            )
        try:
            if received.kind is messages.Kind.DECLINE:
                reason = named_values(received.body, reason=str)["reason"]
                self.declined[sender] = checked_reason(reason)
            else:
                said = named_values(received.body, content=bytes, spent=dict)
                cost = _stated(said["spent"], self._guarantee)
                self._take(sender, said["content"])
                self.spent[sender] = self.before[sender] + cost
        except ReplayError as error:
            raise messages.StaleMessageError(str(error)) from error
        except ValueError as error:
            raise messages.MalformedMessageError(printable(str(error))) from error
        self._waiting.discard(sender)

    def close(self) -> dict[int, bytes]:
        """End the round: the next messages, by party; none when ``server_result`` is there.

        Raises
        ------
        RunError : when too few parties are left for a result.
        LostPartyError : when one vanished whose reply the rest depends on.
        """
        self._waiting = set()
        try:
            asked, self._take = next(self.rounds)
        except StopIteration:
            return {}
        self.round += 1
        self._waiting = set(asked)
        return {
            party: messages.SignedMessage(
                kind, self.session, self.round, messages.COORDINATOR, party, body
            ).signed(self._agreement, self._identity)
            for party, (kind, body) in asked.items()
        }

    def _conversed(self, conversation: tp.Conversation) -> Iterator[exchanges.Round]:
        """The rounds of the queries of a conversation, which ends with ``server_result``."""
        query = next(conversation)
        while True:
            answered = yield from self._asked(query)
            try:
                query = conversation.send(answered.reply)
            except StopIteration as end:
                if np.shape(end.value.value) != ():
                    raise RunError(UNFIT_REPLIES.format("they give several figures")) from None
                self._result = end.value
                return
            except answers.UNANSWERABLE as error:
                raise RunError(UNFIT_REPLIES.format(error)) from error

    def _asked(self, query: tp.Query) -> exchanges.Exchange:
        """The rounds of one query, after which those who did not take part have left."""
        self.queries, self._view = self.queries + 1, query.view
        self._before_query = self.round
        self.begins_again &= query.step.is_free and query.view is not tp.View.MPC
        attempts = SUM_ATTEMPTS if self._restarts else 1
        try:
            answered = yield from exchanges.exchange(
                query, self.active, self._agreement, self.session, attempts
            )
        except (SumError, fields.MessageError) as error:
            raise self._failure(error) from error
        self.declined |= answered.refused
        if answered.attempts > 1:
            self.repeats = (*self.repeats, ATTEMPTS.format(count=answered.attempts))
        lost = sorted(set(self.active) - set(answered.members))
        if len(answered.members) < self._agreement.min_clients:
            raise self._failure(
                f"a result needs {self._agreement.min_clients} parties, "
                f"and {len(answered.members)} answered"
            )
        depending = query.view is tp.View.EACH and self.queries > 1
        if lost and (depending or query.view is tp.View.MPC):
            raise LostPartyError(lost, self._names)
        self.computations += answered.sessions
        self.sent_to_others.update(answered.sent)
        self.active = answered.members
        return answered

    def run(self, sent: NDArray[np.int64], *, mpc: bool = False) -> Run:
        """The run that has ended.

        Parameters
        ----------
        sent : the bytes that each party sent.
        mpc : whether parties computed together.

        Raises
        ------
        RunError : for a run without a result.
        """
        return Run(self.server_result, self.most_spent, self.queries, sent, mpc, self.computations)

    def _failure(self, reason: object) -> RunError:
        """Why a run has no result: who declined, each reason once; then why, unless all did."""
        by_reason: dict[str, list[int]] = {}
        for party, why in sorted(self.declined.items()):
            by_reason.setdefault(why.removeprefix(DECLINED), []).append(party)
        if self.active and set(self.active) <= self.declined.keys():
            free = all(self.spent[party] == self.before[party] for party in self.active)
            reasons, nothing = " and ".join(sorted(by_reason)), "; nothing more was spent" * free
            return RunError(f"all {len(self.active)} parties declined: {reasons}{nothing}")
        declines = [
            f"{', '.join(called(party, self._names) for party in who)} declined: {why}; "
            for why, who in by_reason.items()
        ]
        return RunError(f"{''.join(declines)}{reason}")


def _stated(values: dict[str, Any], guarantee: tp.Cost) -> tp.Cost:
    """What a party says that its run has cost so far, at the guarantee's adjacency.

    Raises
    ------
    ValueError : for anything else.
    """
    cost = messages.cost_of(values)
    if cost == tp.NOTHING:
        return cost
    if guarantee.adjacency is None:
        return tp.UNPROTECTED
    return composition.restated(cost, guarantee.adjacency)


def concluded(plan: Plan, coordinator: Coordinator, received: Mapping[int, int]) -> Evaluation:
    """The evaluation of a run that has ended.

    Parameters
    ----------
    plan : what was run.
    coordinator : after its last round.
    received : the bytes that each party sent.

    Raises
    ------
    RunError : for a run without a result.
    """
    members = coordinator.active
    run = coordinator.run(np.array([received.get(index, 0) for index in members], dtype=np.int64))
    left_out = [
        LEFT_OUT.format(name=each.name, why=coordinator.declined.get(index, "it did not answer"))
        for index, each in enumerate(plan.parties)
        if index not in members
    ]
    return evaluation_of(
        plan.protocol,
        run.server_result,
        spent=run.spent,
        traffic=Traffic(run.rounds, run.bytes_sent),
        clients=len(members),
        noise="system",
        before=(*left_out, *coordinator.repeats),
        unit=plan.unit,
        names=tuple(plan.parties[index].name for index in members),
        federation=plan.name,
        time=datetime.now(UTC),
        per_person=plan.per_person,
    )
