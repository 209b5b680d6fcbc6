"""A party whose state is put back to an older copy: what it then answers is paid for again."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.ledger.entries import ConflictError, RepeatedError
from tacit.protocol import fields, values
from tacit.running.session import coordinator, plan_file, service
from tacit.running.session import messages as signed
from tests.running.desks import ONE_SUM, RESPONSE, desks_of, federation, messages_in

TWO_ROUNDS = 'name = "two-round-auc"\nepsilon = 1.0'
ENCRYPTED = 'name = "encrypted-auc"\nthresholds = 5\nmost_records = 1000'
FHE = (
    'name = "published-fhe"\nthresholds = 5\nmost_records = 1000\n'
    'scheme = "bfv(adversary=malicious)"'
)
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 10))]
"""Of random attacks."""


class Attack:
    """A coordinator with a run of its own, who can put party a's state back; not its ledger."""

    def __init__(
        self,
        home: Path,
        protocol: str,
        limit: str = "epsilon = inf",
        parties: int = 2,
        extra: str = "",
    ) -> None:
        self.home = home
        self.identity = federation(home, protocol, parties, limit, extra)
        desks_of(home)
        self.agreement = plan_file.Plan.read(home / "plan.toml").agreement()
        self.copies: list[Path] = []
        self.replies: dict[bytes, bytes] = {}
        """Every reply of party a, with the message that it answers."""
        self.begin()

    def party(self, name: str) -> service.PartyDesk:
        return service.PartyDesk.open(self.home / name / "party.toml")

    def begin(self) -> None:
        """Open a new run."""
        self.coordinator = coordinator.Coordinator(self.agreement, self.identity)
        self.rounds = [self.coordinator.open()]

    def send(self, message: bytes) -> signed.SignedMessage | None:
        """What party a answers; None where it refuses the message."""
        try:
            reply = self.party("a").answer(message)
        except signed.SignedMessageError:
            return None
        signed_message = signed.verified(reply, self.agreement, 0, signed.COORDINATOR)
        if signed_message.kind is signed.Kind.REPLY:
            self.replies[reply] = message
        return signed_message

    def go_on(self) -> bool:
        """One honest round; whether another one follows."""
        messages = self.rounds[-1]
        for index, message in messages.items():
            self.coordinator.receive(index, self.party("abc"[index]).answer(message))
        self.replies[self.party("a").answer(messages[0])] = messages[0]
        following = self.coordinator.close()
        if following:
            self.rounds.append(following)
        return bool(following)

    def at(self, turn: int, message: bytes) -> bytes:
        """The same question in another turn."""
        signed_message = signed.verified(message, self.agreement, signed.COORDINATOR, 0)
        return replace(signed_message, round=turn).signed(self.agreement, self.identity)

    def copy(self) -> None:
        """Keep the state as it is."""
        self.copies.append(self.home / f"copy-{len(self.copies)}")
        self.party("a").party_file.state.mkdir(mode=0o700, exist_ok=True)
        shutil.copytree(self.party("a").party_file.state, self.copies[-1])

    def revert(self, copy: int = -1) -> None:
        """Put the state back as it was."""
        shutil.rmtree(self.party("a").party_file.state)
        shutil.copytree(self.copies[copy], self.party("a").party_file.state)

    @property
    def debited(self) -> float:
        """The sum of all debits of party a."""
        return sum(line.epsilon for line in messages_in(self.home) if line.kind == "debit")

    @property
    def spent(self) -> float:
        """What party a's replies cost the record that spoke most, each at epsilon 1."""
        records = self.party("a").records
        spoken = np.zeros(records.records, dtype=np.int64)
        for message in self.replies.values():
            signed_message = signed.verified(message, self.agreement, signed.COORDINATOR, 0)
            query = values.decode_query(signed_message.body, self.agreement.protocol)
            if query.step.name != "draw_turns":
                spoken += query.step.participates(records, query)
        return float(spoken.max())


def test_the_limit_stops_what_comes_again(tmp_path: Path) -> None:
    attack = Attack(tmp_path, TWO_ROUNDS, 'epsilon = 3.0\nadjacency = "replace"')
    attack.go_on()
    attack.go_on()
    attack.copy()
    messages = []
    for _ in range(6):
        messages.append(attack.send(attack.rounds[-1][0]))
        attack.revert()
    assert [message.kind for message in messages if message] == [signed.Kind.REPLY] * 3 + [
        signed.Kind.DECLINE
    ] * 3
    assert attack.debited == attack.spent == 3.0
    bodies = [message.body for message in messages[:3] if message]
    said = [values.named_values(body, content=bytes, spent=dict)["spent"] for body in bodies]
    assert [cost["epsilon"] for cost in said] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_put_back_every_answer_is_paid(tmp_path: Path, seed: int) -> None:
    """Random messages and turns, from random copies of the state, over two runs that overlap."""
    rng, attack = np.random.default_rng(seed), Attack(tmp_path, TWO_ROUNDS)
    known: list[bytes] = []
    for _ in range(2):
        attack.begin()
        attack.go_on()
        attack.copy()
        attack.go_on()
        attack.copy()
        known += [round_messages[0] for round_messages in attack.rounds]
        for _ in range(2):
            attack.send(known[-1])
            attack.revert()
    for _ in range(25):
        message = known[rng.integers(len(known))]
        if rng.random() < 0.5:
            message = attack.at(int(rng.integers(1, 8)), message)
        attack.send(message)
        if rng.random() < 0.6:
            attack.revert(int(rng.integers(len(attack.copies))))
    assert attack.spent > 2
    assert attack.debited >= attack.spent


def test_a_state_that_is_older_answers_no_other_question(tmp_path: Path) -> None:
    attack = Attack(tmp_path, TWO_ROUNDS)
    attack.go_on()
    attack.copy()
    attack.go_on()
    attack.revert()
    before = attack.debited
    reason = reason_of(attack.send(attack.rounds[-1][0]))
    assert reason == "declined: the question contradicts an earlier one"
    assert attack.debited == before


def test_a_ledger_that_is_older_than_the_state_is_not_gone_on_from(tmp_path: Path) -> None:
    attack = Attack(tmp_path, TWO_ROUNDS)
    ledger = attack.party("a").party_file.ledger
    shutil.copy(ledger, tmp_path / "backup.db")
    attack.go_on()
    shutil.copy(tmp_path / "backup.db", ledger)
    reason = reason_of(attack.send(attack.rounds[-1][0]))
    assert reason == "declined: the ledger is not available"


def reason_of(message: signed.SignedMessage | None) -> str:
    """Why party a declined; empty where it replied."""
    assert message is not None
    if message.kind is not signed.Kind.DECLINE:
        return ""
    reason: str = values.named_values(message.body, reason=str)["reason"]
    return reason


def answers_of(attack: Attack) -> dict[tuple[bytes, int], set[bytes]]:
    """All different answers of party a, by session and turn."""
    result: dict[tuple[bytes, int], set[bytes]] = {}
    for reply in attack.replies:
        message = signed.verified(reply, attack.agreement, 0, signed.COORDINATOR)
        content = values.named_values(message.body, content=bytes, spent=dict)["content"]
        result.setdefault((message.session, message.round), set()).add(content)
    return result


@pytest.mark.parametrize("turn", range(5), ids=["keys", "shares", "masked", "certify", "reveal"])
def test_no_two_answers_leave_under_one_mask(tmp_path: Path, turn: int) -> None:
    """Shares and masked numbers are drawn anew, so they leave once; with fresh keys, or for the
    same bytes, the run goes on, as after a crash."""
    attack = Attack(tmp_path, ONE_SUM)
    for _ in range(turn):
        attack.copy()
        attack.go_on()
    attack.copy()
    message = attack.rounds[-1][0]
    assert reason_of(attack.send(message)) == ""
    attack.revert()
    paid = attack.debited
    reason = reason_of(attack.send(message))
    if turn in (1, 2):
        assert reason == RepeatedError.public
        assert attack.debited == paid
    else:
        assert reason == ""
        while attack.go_on():
            pass
        assert attack.coordinator.server_result
    for copy in {0, len(attack.copies) - 1}:
        for round_messages in attack.rounds:
            attack.revert(copy)
            attack.send(round_messages[0])
            attack.send(round_messages[0])
    answers = {asked: len(each) for (_, asked), each in answers_of(attack).items()}
    assert answers == dict.fromkeys(answers, 1) | {0: answers[0]}
    assert set(answers) >= set(range(turn + 1))


def test_keys_that_have_masked_mask_for_no_other_survivors(tmp_path: Path) -> None:
    """Two announcements of who shared: one of all, one without party c."""
    settings = "min_clients = 2\ncolluders = 0"
    protocol = ONE_SUM.replace("secure-sum", "secure-sum(dropouts=0.34)")
    attack = Attack(tmp_path, protocol, parties=3, extra=settings)
    whole, messages = attack.coordinator, attack.rounds[-1]
    without = coordinator.Coordinator(attack.agreement, attack.identity)
    without.session = whole.session
    assert without.open() == messages
    for left in (3, 2):
        for index, message in messages.items():
            reply = attack.party("abc"[index]).answer(message)
            whole.receive(index, reply)
            if index < left:
                without.receive(index, reply)
        messages, others = whole.close(), without.close()
    first, second = messages[0], others[0]
    attack.copy()
    reasons = []
    for message in (first, second, first):
        reasons.append(reason_of(attack.send(message)))
        attack.revert()
    assert reasons == ["", ConflictError.public, RepeatedError.public]


@pytest.mark.parametrize("settings", [ENCRYPTED, FHE])
@pytest.mark.parametrize("step", ["keys", "counts"])
def test_no_two_uploads_leave_under_one_session(tmp_path: Path, settings: str, step: str) -> None:
    """What comes again is declined, or the same bytes where all of them follow from keys."""
    attack = Attack(tmp_path, settings)
    for _ in range(1 if step == "keys" else 2):
        attack.go_on()
    attack.copy()
    reasons = []
    for _ in range(2):
        reasons.append(reason_of(attack.send(attack.rounds[-1][0])))
        attack.revert()
    follows = step == "keys" and settings == ENCRYPTED
    assert reasons == ["", "" if follows else RepeatedError.public]
    assert [len(each) for (_, turn), each in answers_of(attack).items() if turn] == [1] * (
        len(attack.rounds) - 1
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_put_back_every_mask_hides_one_vector(tmp_path: Path, seed: int) -> None:
    """Random messages and turns, from random copies of the state, over two runs that overlap."""
    rng, attack = np.random.default_rng(seed), Attack(tmp_path, ONE_SUM)
    for number in range(2):
        for _ in range(2 + number):
            attack.copy()
            attack.go_on()
        attack.begin()
    known = list(attack.replies.values())
    for _ in range(40):
        message = known[rng.integers(len(known))]
        if rng.random() < 0.3:
            message = attack.at(int(rng.integers(1, 6)), message)
        attack.send(message)
        if rng.random() < 0.6:
            attack.revert(int(rng.integers(len(attack.copies))))
    answers = answers_of(attack)
    assert sum(turn == 2 for _, turn in answers) >= 1
    assert all(len(each) == 1 for (_, turn), each in answers.items() if turn)


@pytest.mark.parametrize("back", [1, 2], ids=["reveal", "certify"])
def test_a_sum_is_certified_and_opened_once(tmp_path: Path, back: int) -> None:
    """No message of a secure sum after the masked one costs anything; each has its debit, so that a
    party that was put back to before it signed a list signs no second one."""
    attack = Attack(tmp_path, ONE_SUM)
    going = True
    while going:
        attack.copy()
        going = attack.go_on()
    again = attack.at(len(attack.rounds), attack.rounds[-back][0])
    attack.revert(len(attack.rounds) - back)
    message = attack.send(again)
    assert message is not None
    assert message.kind is signed.Kind.DECLINE


def test_the_first_attempt_at_a_sum_does_not_begin_again(tmp_path: Path) -> None:
    """It needs no statement that an earlier one is over: its payment would be taken back."""
    attack = Attack(tmp_path, ONE_SUM)
    while attack.go_on():
        assert attack.send(attack.at(len(attack.rounds) - 1, attack.rounds[0][0])) is None
    assert len(attack.rounds) == 5


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_that_were_flipped_anew_are_paid_for(tmp_path: Path, seed: int) -> None:
    """Every other set of flipped counts that ever left has its epsilon in the ledger."""
    rng, attack = np.random.default_rng(seed), Attack(tmp_path, RESPONSE)
    attack.copy()
    for _ in range(12):
        attack.send(attack.rounds[-1][0])
        if rng.random() < 0.4:
            attack.copy()
        if rng.random() < 0.6:
            attack.revert(int(rng.integers(len(attack.copies))))
        if rng.random() < 0.7:
            attack.begin()
    counts = set()
    for reply in attack.replies:
        body = signed.verified(reply, attack.agreement, 0, signed.COORDINATOR).body
        content = fields.decode(values.named_values(body, content=bytes, spent=dict)["content"])
        counts.add(tuple(np.asarray(value).tobytes() for value in content.values()))
    assert 1 < len(counts) < len(attack.replies)
    assert attack.debited >= len(counts)


def test_state_is_on_disk_before_the_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, then name, then folder: without the last a rename may be lost with the power."""
    attack = Attack(tmp_path, TWO_ROUNDS)
    desk, seen = attack.party("a"), []
    sync, rename = os.fsync, Path.replace

    def synced(file: int) -> None:
        inode = os.fstat(file).st_ino
        seen.append(("sync", inode))
        sync(file)

    def renamed(path: Path, target: Any) -> Path:
        seen.append(("rename", path.stat().st_ino))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    desk.answer(attack.rounds[-1][0])
    place = desk.party_file.state
    folder, home = (index.stat().st_ino for index in (place, place.parent))
    (state,) = (path.stat().st_ino for path in desk.party_file.state.glob("*.run"))
    assert [("sync", state), ("rename", state), ("sync", folder)] == seen[-3:]
    assert ("sync", home) in seen
