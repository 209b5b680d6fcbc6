"""An aggregator that learns from refusals: one bit, and no second one, whatever it runs at once."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from tacit import files
from tacit.crypto import masking
from tacit.crypto.identities import Identity
from tacit.crypto.masking import MaskedValueError
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.privacy.noise import NoNoise
from tacit.protocol.conversation import (
    ClientState,
    Lasting,
    PublicRefusalError,
    Query,
    Reply,
    stack,
)
from tacit.protocol.values import decode_values
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.protocols.encrypted.sessions import NOT_OPENED, REFUSED_BEFORE
from tacit.protocols.encrypted.steps import open_masked
from tacit.protocols.published.fhe.packing import Scale
from tacit.running.session.answers import REFUSED
from tacit.running.session.coordinator import Coordinator
from tacit.running.session.messages import COORDINATOR, Agreement, Kind, verified
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk
from tacit.running.simulation import simulate
from tests.protocols.encrypted.forging import RECORDS, THRESHOLDS, federation, true_numbers
from tests.running.desks import federation as federation_on_disk

REVEAL: Literal["parties", "aggregator"] = "parties"
CHECKED = EncryptedAUC(THRESHOLDS, "malicious", most_records=RECORDS, scale="even", reveal=REVEAL)
RUNS = 20


def is_accepted(multiplier: int, state: ClientState, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A run in which all is computed as agreed, but for how the multiplier is chosen."""
    monkeypatch.setattr(masking, "log_uniform", lambda *bits: multiplier)
    try:
        simulate(federation(), CHECKED, NoNoise(), state)
    except (MaskedValueError, DataError):
        return False
    return True


def test_refusals_in_many_runs_would_give_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parties that forget: the largest multiplier that they accept gives Y, although untold."""
    scheme = CHECKED.masked_scheme
    low, high = (1 << (scheme.least_bits + octaves) for octaves in (0, scheme.octaves + 2))
    for _ in range(RUNS):
        middle = (low + high) // 2
        taken = is_accepted(middle, ClientState(), monkeypatch)
        low, high = (middle, high) if taken else (low, middle)
    # 2 (c Y + e) <= accepted_most: Y is what the parties accept at most, over 2 c
    assert scheme.accepted_most / (2 * low) == pytest.approx(true_numbers()[1] // 2, rel=1e-4)


def test_after_a_refusal_no_session_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ClientState()
    assert is_accepted(2**13, state, monkeypatch)
    assert is_accepted(2**13, state, monkeypatch)
    assert not is_accepted(2**60, state, monkeypatch)
    with pytest.raises(PublicRefusalError, match="agree on other settings, such as most_records"):
        is_accepted(2**13, state, monkeypatch)


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
    parties : how many there are.
    """

    home: Path
    identity: Identity
    parties: int

    @classmethod
    def among(cls, home: Path, scheme: str, parties: int = 3) -> Liar:
        """Among parties that agreed to a checked evaluation."""
        if scheme == "bfv":
            pytest.importorskip("tenseal")
        settings = FORMS[scheme] + SETTINGS
        identity = federation_on_disk(home, settings, parties, "epsilon = inf")
        liar = cls(home, identity, parties)
        for index in range(parties):
            liar.desk(index).set_limit()
        return liar

    @property
    def agreement(self) -> Agreement:
        return Plan.read(self.home / "plan.toml").agreement()

    def folder(self, index: int) -> Path:
        return self.home / "abcdefgh"[index]

    def desk(self, index: int) -> PartyDesk:
        return PartyDesk.open(self.folder(index) / "party.toml")

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

    def opened(self, answers: dict[int, bytes]) -> list[str]:
        """What the parties say of their answers."""
        return [self.asked(index, message) for index, message in answers.items()]


def test_of_masked_sessions_side_by_side_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each party is sent the answer of another session, whose refusal only it would remember.

    A party that accepts is sent the next answer, with a lower bound for the product of the class
    totals. So with K refusals it would be searched for in 27 steps by K parties.
    """
    liar = Liar.among(tmp_path, "masked")
    parties = liar.parties
    protocol = liar.agreement.protocol
    assert isinstance(protocol, EncryptedAUC)
    most = protocol.masked_scheme.accepted_most
    product = parties * 20 * parties * 40
    sessions = []
    for bound in np.geomspace(2 * product, product / 2, 9):  # 2 c Y <= most: Y <= bound
        multiplier = int(most / (2 * bound))
        monkeypatch.setattr(masking, "log_uniform", lambda *_, chosen=multiplier: chosen)
        sessions.append(liar.confirmed())
    said = [
        liar.asked(index, answers[index])
        for index in range(parties)
        for answers in sessions[index::parties]
        if answers
    ]
    assert said.count(REFUSED) <= 1
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
    assert liar.opened(sessions[0]) == [REFUSED] * 3
    assert liar.confirmed() == {}


@pytest.mark.parametrize("scheme", ["masked", pytest.param("bfv", marks=pytest.mark.thorough)])
def test_a_session_whose_answer_has_not_come_is_the_only_one_until_it_comes(
    tmp_path: Path, scheme: str
) -> None:
    """Two runs one after another are two sessions; an interrupted one goes on by its answer."""
    liar = Liar.among(tmp_path, scheme)
    for _ in range(2):
        assert liar.opened(liar.confirmed()) == [""] * 3
    answers = liar.confirmed()
    for _ in range(2):
        _, first = liar.begun()
        assert liar.opened(first) == [NOT_OPENED] * 3
    assert liar.opened(answers) == [""] * 3
    assert liar.opened(liar.confirmed()) == [""] * 3


def test_sessions_begun_together_are_confirmed_one_after_another(tmp_path: Path) -> None:
    """And what a run remembers of the other, from before that was accepted, does not stop it."""
    liar = Liar.among(tmp_path, "masked")
    first, second = liar.begun(), liar.begun()
    others = liar.ahead(*second, rounds=2)
    answers = liar.ahead(*first, rounds=4)
    others = liar.ahead(second[0], others, rounds=1)
    assert liar.opened(answers) == [""] * 3
    assert liar.opened(liar.ahead(second[0], others, rounds=1)) == [""] * 3
    assert liar.opened(liar.confirmed()) == [""] * 3
    first, second = liar.begun(), liar.begun()
    others = liar.ahead(*second, rounds=3)
    assert liar.ahead(*first, rounds=4)
    assert liar.opened(others) == [NOT_OPENED] * 3


def test_parties_that_confirmed_wait_for_the_one_that_did_not(tmp_path: Path) -> None:
    liar = Liar.among(tmp_path, "masked")
    coordinator, first = liar.begun()
    messages = liar.ahead(coordinator, first, rounds=3)
    for index in (0, 1):
        coordinator.receive(index, liar.desk(index).answer(messages[index]))
    _, others = liar.begun()
    assert liar.opened(others) == [NOT_OPENED, NOT_OPENED, ""]
    coordinator.receive(2, liar.desk(2).answer(messages[2]))
    assert liar.opened(coordinator.close()) == [""] * 3
    assert liar.opened(liar.confirmed()) == [""] * 3


def test_one_party_that_keeps_its_notes_suffices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others' files are put back; where every party's are, there is a second refusal."""
    liar = Liar.among(tmp_path, "masked")
    for index in range(3):
        liar.desk(index).answer(liar.begun()[1][index])
        shutil.copytree(liar.folder(index), tmp_path / "copies" / str(index))
    monkeypatch.setattr(masking, "log_uniform", lambda *_: 2**60)
    answers = liar.confirmed()
    assert liar.asked(0, answers[0]) == REFUSED

    def put_back(index: int) -> None:
        shutil.rmtree(liar.folder(index))
        shutil.copytree(tmp_path / "copies" / str(index), liar.folder(index))

    put_back(0)
    put_back(1)
    assert liar.confirmed() == {}
    put_back(2)
    assert liar.opened(liar.confirmed()) == [REFUSED] * 3


@pytest.mark.parametrize("write", [0, 1])
def test_parties_that_are_stopped_over_a_confirmation_remember_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """All of them, in each session, between the files that they write; then asked again."""
    liar, written = Liar.among(tmp_path, "masked"), list[Path]()
    monkeypatch.setattr(masking, "log_uniform", lambda *_: 2**60)
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


def test_other_settings_are_another_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person at each party agrees to them; that is also how a session that hangs is left."""
    liar = Liar.among(tmp_path, "masked")
    plan = tmp_path / "plan.toml"
    assert liar.confirmed()
    plan.write_text(plan.read_text().replace("most_records = 200", "most_records = 201"))
    monkeypatch.setattr(masking, "log_uniform", lambda *_: 2**60)
    assert liar.opened(liar.confirmed()) == [REFUSED] * 3
    assert liar.opened(liar.begun()[1]) == [REFUSED_BEFORE] * 3
    plan.write_text(plan.read_text().replace("most_records = 201", "most_records = 200"))
    assert liar.opened(liar.begun()[1]) == [NOT_OPENED] * 3


class Member:
    """A party in memory: notes that last, and a state for each session."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.lasting: dict[tuple[Any, ...], Any] = {}
        self.states: dict[int, ClientState] = {}

    def answer(self, session: int, query: Query) -> Reply:
        state = self.states.setdefault(session, ClientState())
        for key, note in self.lasting.items():
            state.keep(key, note)
        try:
            return query.step.answer(self.clients, query, NoNoise(), state)
        finally:
            lasting = {key: note for key, note in state.notes.items() if isinstance(note, Lasting)}
            self.lasting.update(lasting)


class Side:
    """A session of many at one time, with a multiplier of its own."""

    def __init__(self, number: int, parties: int, multiplier: int) -> None:
        self.number, self.multiplier = number, multiplier
        self.conversation = CHECKED.conversation(parties)
        self.query = next(self.conversation)
        self.replies: dict[int, Reply] = {}
        self.said: dict[int, bool] = {}
        self.declined: set[int] = set()

    def ask(self, index: int, members: list[Member]) -> None:
        """Ask a party that has still to answer, and once all have answered go on."""
        if index in self.replies or index in self.said or index in self.declined:
            return
        opens = self.query.step is open_masked
        try:
            part = self.query.part(index, index + 1)
            self.replies[index] = members[index].answer(self.number, part)
        except (MaskedValueError, DataError):
            assert opens
            self.said[index] = False
            return
        except PublicRefusalError:
            self.declined.add(index)
            return
        if opens:
            self.said[index] = True
        elif len(self.replies) == len(members):
            replies = [self.replies[each] for each in range(len(members))]
            self.query, self.replies = self.conversation.send(stack(replies)), {}


def test_in_any_order_of_messages_one_session_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight sessions at once, or soon after each other, of which about half would be refused."""
    data, rng = federation(), np.random.default_rng(0)
    refused = accepted = 0
    for apart in [1, 30] * 8:
        members = [Member(data.part(index, index + 1)) for index in range(data.count)]
        sides: list[Side] = []
        for turn in range(360):
            if turn % apart == 0 and len(sides) < 8:
                sides.append(Side(len(sides), data.count, int(rng.choice([2**13, 2**60]))))
            side = sides[int(rng.integers(len(sides)))]
            monkeypatch.setattr(masking, "log_uniform", lambda *_, chosen=side.multiplier: chosen)
            side.ask(int(rng.integers(data.count)), members)
        told = [set(side.said.values()) for side in sides]
        assert all(len(each) <= 1 for each in told)
        assert told.count({False}) <= 1
        refused += told.count({False})
        accepted += told.count({True})
    assert refused > 0
    assert accepted > 0
