"""An aggregator that learns from refusals: one bit, and no second one, whatever it runs at once."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import EncryptedAUC, files
from tacit.crypto import identities, masking
from tacit.protocol import DataError, NoNoise
from tacit.protocol.steps import ClientState, Lasting, PublicRefusalError, Reply, stack
from tacit.protocol.values import decode_values
from tacit.protocols.encrypted.sessions import NOT_OPENED, REFUSED_BEFORE
from tacit.protocols.encrypted.steps import open_masked
from tacit.protocols.published.fhe.packing import Scale
from tacit.running.session import plan_file, service
from tacit.running.session.answers import REFUSED
from tacit.running.session.coordinator import Coordinator
from tacit.running.session.messages import COORDINATOR, Agreement, Kind, verified
from tacit.running.simulation import simulate
from tests.protocols.encrypted.forging import RECORDS, THRESHOLDS, federation, true_numbers
from tests.protocols.encrypted.variants import Parties
from tests.running.desks import federation as federation_on_disk

CHECKED = EncryptedAUC(
    THRESHOLDS, "malicious", most_records=RECORDS, scale="even", reveal="parties"
)
ACCEPTED, REFUSED_BY_ALL = 2**13, 2**60
"""Multipliers of which parties accept the answers, and of which none does."""
Choose = Callable[[int], None]


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Choose:
    """All is computed as agreed, but for how the multiplier is chosen."""
    return lambda number: monkeypatch.setattr(masking, "log_uniform", lambda *_: number)


def is_accepted(state: ClientState) -> bool:
    """A run of an evaluation in memory."""
    try:
        simulate(federation(), CHECKED, NoNoise(), state)
    except (masking.MaskedValueError, DataError):
        return False
    return True


def test_refusals_in_many_runs_would_give_the_totals(choose: Choose) -> None:
    """Parties that forget: the largest multiplier that they accept gives Y, although untold."""
    scheme = CHECKED.masked_scheme
    low, high = (1 << (scheme.least_bits + octaves) for octaves in (0, scheme.octaves + 2))
    for _ in range(20):
        middle = (low + high) // 2
        choose(middle)
        low, high = (middle, high) if is_accepted(ClientState()) else (low, middle)
    # 2 (c Y + e) <= accepted_most: Y is what the parties accept at most, over 2 c
    assert scheme.accepted_most / (2 * low) == pytest.approx(true_numbers().denominator, rel=1e-4)


SETTINGS = 'most_records = 200\nthresholds = 6\nscale = "even"\nreveal = "parties"\n'
FORMS = {
    "masked": 'name = "encrypted-auc"\nadversary = "malicious"\n',
    "bfv": 'name = "published-fhe"\nscheme = "bfv(adversary=malicious)"\n',
}


@dataclass(frozen=True)
class Liar:
    """A coordinator that sends answers when and to whom it likes.

    Every party has files of its own, and answers each message by another process's desk.

    Parameters
    ----------
    home : where the plan and the parties' folders are.
    identity : the coordinator's.
    """

    home: Path
    identity: identities.Identity

    @classmethod
    def among(cls, home: Path, scheme: str = "masked") -> Liar:
        """Among parties that agreed to a checked evaluation."""
        if scheme == "bfv":
            pytest.importorskip("tenseal")
        identity = federation_on_disk(home, FORMS[scheme] + SETTINGS, 3, "epsilon = inf")
        liar = cls(home, identity)
        for index in range(3):
            liar.desk(index).set_limit()
        return liar

    @property
    def agreement(self) -> Agreement:
        return plan_file.Plan.read(self.home / "plan.toml").agreement()

    def folder(self, index: int) -> Path:
        return self.home / "abcdefgh"[index]

    def desk(self, index: int) -> service.PartyDesk:
        return service.PartyDesk.open(self.folder(index) / "party.toml")

    def asked(self, index: int, message: bytes) -> str:
        """Why a party declines; empty where it does not."""
        reply = verified(self.desk(index).answer(message), self.agreement, index, COORDINATOR)
        return str(decode_values(reply.body)["reason"]) if reply.kind is Kind.DECLINE else ""

    def begun(self) -> tuple[Coordinator, dict[int, bytes]]:
        """A session, and its first messages."""
        coordinator = Coordinator(self.agreement, self.identity)
        return coordinator, coordinator.open()

    def ahead(
        self, coordinator: Coordinator, messages: dict[int, bytes], rounds: int
    ) -> dict[int, bytes]:
        """The messages after more rounds in which all answer; none once a party declines."""
        for _ in range(rounds):
            for index, message in messages.items():
                coordinator.receive(index, self.desk(index).answer(message))
            if coordinator.declined:
                return {}
            messages = coordinator.close()
        return messages

    def confirmed(self) -> dict[int, bytes]:
        """The answers of a new session that all parties confirmed; none once a party declines."""
        return self.ahead(*self.begun(), rounds=4)

    def say(self, said: str, messages: Mapping[int, bytes]) -> bool:
        """Whether all parties say this of their messages."""
        return [self.asked(index, message) for index, message in messages.items()] == [said] * 3


def test_of_masked_sessions_side_by_side_one_is_refused(tmp_path: Path, choose: Choose) -> None:
    """Each party is sent the answer of another session, whose refusal only it would remember.

    A party that accepts is sent the next answer, with a lower bound for the product of the class
    totals. So with K refusals it would be searched for in 27 steps by K parties.
    """
    liar = Liar.among(tmp_path)
    protocol, product, sessions = liar.agreement.protocol, 3 * 20 * 3 * 40, []
    assert isinstance(protocol, EncryptedAUC)
    for bound in np.geomspace(2 * product, product / 2, 9):  # 2 c Y <= most: Y <= bound
        choose(int(protocol.masked_scheme.accepted_most / (2 * bound)))
        sessions.append(liar.confirmed())
    said = [
        liar.asked(index, answers[index])
        for index in range(3)
        for answers in sessions[index::3]
        if answers
    ]
    assert said == [""]


def test_of_ciphertexts_side_by_side_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = Liar.among(tmp_path, "bfv")
    sessions = []
    for times in (100, 200, 300):
        monkeypatch.setattr(Scale, "multiplier", lambda scale, most=times: most * scale.bound)
        sessions.append(liar.confirmed())
    said = [liar.asked(index, answers[index]) for index, answers in enumerate(sessions) if answers]
    assert said == [REFUSED]
    assert liar.say(REFUSED, sessions[0])
    assert liar.confirmed() == {}


@pytest.mark.parametrize("scheme", ["masked", pytest.param("bfv", marks=pytest.mark.thorough)])
def test_a_session_whose_answer_has_not_come_is_the_only_one_until_it_comes(
    tmp_path: Path, scheme: str
) -> None:
    """Two runs one after another are two sessions; an interrupted one goes on by its answer."""
    liar = Liar.among(tmp_path, scheme)
    for _ in range(2):
        assert liar.say("", liar.confirmed())
    answers = liar.confirmed()
    for _ in range(2):
        _, first = liar.begun()
        assert liar.say(NOT_OPENED, first)
    assert liar.say("", answers)
    assert liar.say("", liar.confirmed())


def test_sessions_begun_together_are_confirmed_one_after_another(tmp_path: Path) -> None:
    """And what a run remembers of the other, from before that was accepted, does not stop it."""
    liar = Liar.among(tmp_path)
    first, second = liar.begun(), liar.begun()
    others = liar.ahead(*second, rounds=2)
    answers = liar.ahead(*first, rounds=4)
    others = liar.ahead(second[0], others, rounds=1)
    assert liar.say("", answers)
    assert liar.say("", liar.ahead(second[0], others, rounds=1))
    assert liar.say("", liar.confirmed())
    first, second = liar.begun(), liar.begun()
    others = liar.ahead(*second, rounds=3)
    assert liar.ahead(*first, rounds=4)
    assert liar.say(NOT_OPENED, others)


def test_parties_that_confirmed_wait_for_the_one_that_did_not(tmp_path: Path) -> None:
    liar = Liar.among(tmp_path)
    coordinator, first = liar.begun()
    messages = liar.ahead(coordinator, first, rounds=3)
    for index in (0, 1):
        coordinator.receive(index, liar.desk(index).answer(messages[index]))
    _, others = liar.begun()
    assert [liar.asked(index, others[index]) for index in range(3)] == [NOT_OPENED, NOT_OPENED, ""]
    coordinator.receive(2, liar.desk(2).answer(messages[2]))
    assert liar.say("", coordinator.close())
    assert liar.say("", liar.confirmed())


def test_one_party_that_keeps_its_notes_suffices(tmp_path: Path, choose: Choose) -> None:
    """All others' files are put back; where every party's are, there is a second refusal."""
    liar = Liar.among(tmp_path)
    for index in range(3):
        liar.desk(index).answer(liar.begun()[1][index])
        shutil.copytree(liar.folder(index), tmp_path / "copies" / str(index))
    choose(REFUSED_BY_ALL)
    answers = liar.confirmed()
    assert liar.asked(0, answers[0]) == REFUSED

    def put_back(index: int) -> None:
        shutil.rmtree(liar.folder(index))
        shutil.copytree(tmp_path / "copies" / str(index), liar.folder(index))

    put_back(0)
    put_back(1)
    assert liar.confirmed() == {}
    put_back(2)
    assert liar.say(REFUSED, liar.confirmed())


@pytest.mark.parametrize("write", [0, 1])
def test_parties_that_are_stopped_over_a_confirmation_remember_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choose: Choose, write: int
) -> None:
    """All of them, in each session, between the files that they write; then asked again."""
    liar, written = Liar.among(tmp_path), list[Path]()
    choose(REFUSED_BY_ALL)
    sessions = [liar.begun() for _ in range(3)]
    asked = [liar.ahead(*session, rounds=3) for session in sessions]

    def stopped(path: Path, content: bytes) -> None:
        if len(written) == write:
            raise OSError("stopped")
        written.append(path)
        whole(path, content)

    whole = files.write_private
    monkeypatch.setattr(files, "write_private", stopped)
    for messages in asked:
        for index, message in messages.items():
            written.clear()
            with contextlib.suppress(OSError):
                liar.desk(index).answer(message)
    monkeypatch.setattr(files, "write_private", whole)
    said = []
    for number, ((coordinator, _), messages) in enumerate(zip(sessions, asked, strict=True)):
        answers = liar.ahead(coordinator, messages, rounds=1)
        said += [liar.asked(number, answers[number])] if answers else []
    assert said.count(REFUSED) <= 1


def test_other_settings_are_another_refusal(tmp_path: Path, choose: Choose) -> None:
    """A person at each party agrees to them; that is also how a session that hangs is left."""
    liar = Liar.among(tmp_path)
    plan = tmp_path / "plan.toml"
    assert liar.confirmed()
    plan.write_text(plan.read_text().replace("most_records = 200", "most_records = 201"))
    choose(REFUSED_BY_ALL)
    assert liar.say(REFUSED, liar.confirmed())
    assert liar.say(REFUSED_BEFORE, liar.begun()[1])
    plan.write_text(plan.read_text().replace("most_records = 201", "most_records = 200"))
    assert liar.say(NOT_OPENED, liar.begun()[1])


class Side(Parties):
    """A session of many at one time, with a multiplier of its own, among parties in memory.

    Parameters
    ----------
    lasting : by party the notes that outlive a session.
    """

    def __init__(self, lasting: list[dict[tuple[Any, ...], Any]], multiplier: int) -> None:
        super().__init__(CHECKED, federation())
        self.lasting, self.multiplier = lasting, multiplier
        self.came: dict[int, Reply] = {}
        self.said: dict[int, bool | None] = {}

    def ask(self, index: int) -> None:
        """Ask a party that has still to answer, and once all have answered go on."""
        if index in self.came or index in self.said:
            return
        state, opens = self.states[index], self.query.step is open_masked
        for key, note in self.lasting[index].items():
            state.keep(key, note)
        try:
            self.came[index] = self.answer(index)
        except PublicRefusalError:
            self.said[index] = None
        except (masking.MaskedValueError, DataError):
            assert opens
            self.said[index] = False
        notes = {key: note for key, note in state.notes.items() if isinstance(note, Lasting)}
        self.lasting[index].update(notes)
        if opens:
            self.said.setdefault(index, True)
        elif len(self.came) == len(self.parts):
            replies = [self.came[each] for each in range(len(self.parts))]
            self.query, self.came = self.conversation.send(stack(replies)), {}


def test_in_any_order_of_messages_one_session_is_refused(choose: Choose) -> None:
    """Eight sessions at once, or soon after each other, of which about half would be refused."""
    rng, parties, told = np.random.default_rng(0), federation().count, list[set[bool]]()
    for apart in [1, 30] * 8:
        lasting: list[dict[tuple[Any, ...], Any]] = [{} for _ in range(parties)]
        sides: list[Side] = []
        for turn in range(360):
            if turn % apart == 0 and len(sides) < 8:
                sides.append(Side(lasting, int(rng.choice([ACCEPTED, REFUSED_BY_ALL]))))
            side = sides[int(rng.integers(len(sides)))]
            choose(side.multiplier)
            side.ask(int(rng.integers(parties)))
        outcomes = [{said for said in each.said.values() if said is not None} for each in sides]
        assert all(len(each) <= 1 for each in outcomes)
        assert outcomes.count({False}) <= 1
        told += outcomes
    assert {False} in told
    assert {True} in told
