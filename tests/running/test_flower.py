"""The Flower apps, over a grid that carries messages in this process.

Real SuperLinks and SuperNodes are in ``test_deployment_processes.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs flwr: pip install 'tacit[federation]'")

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.supercore.constant import PULL_MAX_TIME
from flwr.supercore.inflatable.inflatable_utils import pull_objects
from flwr.supercore.task_identity import TaskIdentity

import tacit
from tacit.crypto.identities import Identity
from tacit.protocol import NoNoise, steps, values
from tacit.protocols.histogram.local_rounds import unary_reports
from tacit.results.saved.reading import check_result
from tacit.running import flower, simulation
from tacit.running.session.coordinator import LostPartyError, RunError, concluded
from tacit.running.session.messages import (
    COORDINATOR,
    VERSION,
    Kind,
    SignedMessage,
    SignedMessageError,
)
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk, read_identity
from tests.running.desks import FEDAUC, ONE_SUM, UNLIMITED, Clock, federation, pooled

QUIET = "min_clients = 2\ndeadline = 10.0\nretries = 1\n"


@pytest.fixture(autouse=True)
def task() -> Iterator[None]:
    """Flower lets a running task make messages; this pretends to be one."""
    stored = (TaskIdentity._task_id, TaskIdentity._run_id, TaskIdentity._node_id)
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    yield
    TaskIdentity._task_id, TaskIdentity._run_id, TaskIdentity._node_id = stored


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    part = Clock()
    monkeypatch.setattr(flower, "time", part)
    return part


Answer = Callable[[Any, Any], Any]


class Grid:
    """Nodes that answer at once; ``lost`` says which messages do not arrive."""

    def __init__(
        self,
        home: Path,
        names: str = "abc",
        lost: Callable[[int, str, int], bool] = lambda node, kind, count: False,
    ) -> None:
        self.contexts = {
            100 + index: Context(
                1, 100 + index, {"party": str(home / name / "party.toml")}, RecordDict({}), {}
            )
            for index, name in enumerate(names)
        }
        self.lost, self.sent, self.silent = lost, 0, 100 + names.find("x")
        self.counts: dict[tuple[int, str], int] = {}
        self.replies: dict[str, Any] = {}

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Any]) -> list[str]:
        numbers = []
        for message in messages:
            node, kind = message.metadata.dst_node_id, message.metadata.message_type
            count = self.counts[node, kind] = self.counts.get((node, kind), -1) + 1
            self.sent += 1
            numbers.append(str(self.sent))
            message.metadata.__dict__["_message_id"] = numbers[-1]
            if self.lost(node, kind, count):
                continue
            answer: Answer = flower.hello if kind == flower.HELLO else flower.answer
            # A node's reply to a message names that node as its source.
            silent = Message(RecordDict(), reply_to=message)
            reply = silent if node == self.silent else answer(message, self.contexts[node])
            reply.metadata._src_node_id = node
            self.replies[numbers[-1]] = reply
        return numbers

    def pull_messages(self, numbers: Iterable[str]) -> list[Any]:
        """One reply at a time, as nodes that take different times."""
        arrived = [number for number in numbers if number in self.replies][:1]
        return [self.replies.pop(number) for number in arrived]


def conducted(home: Path, identity: Identity, grid: Grid) -> tuple[Any, list[str], dict[int, int]]:
    lines: list[str] = []
    plan = Plan.read(home / "plan.toml")
    coordinator, received = flower.conduct(grid, plan, identity, lines.append)
    return coordinator, lines, received


def refusals(lines: list[str]) -> list[str]:
    """The messages that were not accepted, in words."""
    return [line for line in lines if line.partition(": ")[0] in ("a", "b", "c")]


DEPLOYABLE = {
    "fedauc": FEDAUC,
    "histogram-secure": 'name = "score-histogram"\ntrust = "exact-sum"\nheight = 8',
    "histogram-local": 'name = "score-histogram"\ntrust = "local"\nepsilon = 2.0',
    "encrypted-auc": 'name = "encrypted-auc"\nthresholds = 20\nmost_records = 1000\n'
    "perturbed = false",
}


@pytest.mark.parametrize("name", DEPLOYABLE)
def test_a_run_over_flower(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = federation(tmp_path, DEPLOYABLE[name], limit=UNLIMITED)
    silent = PartyDesk.answer
    monkeypatch.setattr(PartyDesk, "answer", lambda desk, message: silent(desk, message, NoNoise()))
    coordinator, lines, _ = conducted(tmp_path, identity, Grid(tmp_path))
    protocol = Plan.read(tmp_path / "plan.toml").protocol
    expected = simulation.simulate(pooled(tmp_path), protocol, NoNoise())
    np.testing.assert_array_equal(coordinator.server_result.value, expected.server_result.value)
    assert set(coordinator.spent.values()) == {expected.spent.figures}
    assert coordinator.queries == expected.rounds
    assert not refusals(lines)
    assert "round 1.1: 3 of 3 parties answered" in "\n".join(lines)


def test_the_server_app_writes_a_sealed_result(tmp_path: Path) -> None:
    federation(tmp_path, ONE_SUM)
    config = {
        "plan": str(tmp_path / "plan.toml"),
        "identity": str(tmp_path / "centre" / "identity.key"),
        "result": str(tmp_path / "result.json"),
    }
    flower.main(Grid(tmp_path), Context(1, 1, {}, RecordDict({}), config))
    content = json.loads((tmp_path / "result.json").read_text())
    check_result(content)
    assert content["clients"] == 3
    assert content["noise"] == "system"
    assert not any("simulation" in warning for warning in content["warnings"])


@pytest.mark.parametrize("which", [flower.HELLO, flower.MESSAGE])
def test_a_message_that_went_unanswered_is_sent_again(tmp_path: Path, which: str) -> None:
    identity = federation(tmp_path, FEDAUC, extra=QUIET)
    grid = Grid(tmp_path, lost=lambda node, kind, count: kind == which and count == 0)
    coordinator, lines, _ = conducted(tmp_path, identity, grid)
    assert coordinator.active == (0, 1, 2)
    assert (which == flower.MESSAGE) == any("asked again: a, b, c" in line for line in lines)
    assert pull_objects.__kwdefaults__["max_time"] < PULL_MAX_TIME
    with tacit.Ledger(tmp_path / "a" / "ledger.db") as ledger:
        assert len([line for line in ledger.lines() if line.step is not None]) == 2


def test_who_never_answers_is_left_out_and_named(tmp_path: Path) -> None:
    identity = federation(tmp_path, FEDAUC, extra=QUIET)
    grid = Grid(tmp_path, lost=lambda node, kind, count: node == 101 and kind == flower.MESSAGE)
    coordinator, lines, received = conducted(tmp_path, identity, grid)
    assert coordinator.active == (0, 2)
    assert any("no response: b" in line for line in lines)
    assert any(line.startswith("round 1.1: waiting for b, ") for line in lines)
    result = concluded(Plan.read(tmp_path / "plan.toml"), coordinator, received)
    assert "b is not in this result: it did not answer" in result.warnings
    assert result.participants == ("a", "c")


def test_a_party_lost_in_the_middle_ends_the_run_or_begins_it_again(tmp_path: Path) -> None:
    def lost(node: int, kind: str, count: int) -> bool:
        return node == 101 and kind == flower.MESSAGE and count > 0

    identity = federation(tmp_path, FEDAUC, extra=QUIET)
    with pytest.raises(LostPartyError):
        conducted(tmp_path, identity, Grid(tmp_path, lost=lost))
    text = (tmp_path / "plan.toml").read_text()
    (tmp_path / "plan.toml").write_text(text.replace("retries", 'on_loss = "restart"\nretries'))
    coordinator, lines, _ = conducted(tmp_path, identity, Grid(tmp_path, lost=lost))
    assert coordinator.active == (0, 2)
    assert any("begins again without it" in line for line in lines)


@pytest.mark.parametrize(
    ("protocol", "adjacency"),
    [('name = "score-histogram"\nepsilon = 1.0\ntrust = "each"', "record"), (FEDAUC, "label")],
    ids=["score-histogram", "fedauc"],
)
def test_runs_that_broke_off_count_as_spent(tmp_path: Path, protocol: str, adjacency: str) -> None:
    """Three parties of five vanish, each in the second round of another run.

    A histogram's first round costs a part of epsilon, and its next rounds divide the rest.
    """
    last_of = {104: 0, 103: 2, 102: 4}
    grid = Grid(
        tmp_path,
        "abcde",
        lambda node, kind, count: kind == flower.MESSAGE and count > last_of.get(node, count),
    )
    limit = f'epsilon = 100.0\nadjacency = "{adjacency}"'
    restarting = f'on_loss = "restart"\n{QUIET}'
    identity = federation(tmp_path, protocol, parties=5, limit=limit, extra=restarting)
    coordinator, _, received = conducted(tmp_path, identity, grid)
    result = concluded(Plan.read(tmp_path / "plan.toml"), coordinator, received)
    assert result.participants == ("a", "b")
    with tacit.Ledger(tmp_path / "a" / "ledger.db") as ledger:
        debits = [line for line in ledger.lines() if line.kind == "debit"]
    spent = sum(line.epsilon for line in debits)
    told = [warning for warning in result.warnings if "broke off" in warning]
    assert [warning.split("when it lost ")[1][0] for warning in told] == ["e", "d", "c"]
    runs = list(dict.fromkeys(line.session for line in debits))
    assert [warning.split(" ")[1] for warning in told] == runs[:3]
    assert all(f"at most epsilon 1, {adjacency} adjacency" in warning for warning in told)
    written = {"epsilon": pytest.approx(spent), "delta": 0.0, "adjacency": adjacency}
    assert {name: result.to_dict()["spent"][name] for name in written} == written
    page = result.to_html()
    assert f"Each client spent at most epsilon {spent:g}, {adjacency} adjacency." in page
    assert all(str(run) in page for run in runs[:3])


def test_who_is_missing_is_named_while_the_run_waits(tmp_path: Path) -> None:
    identity = federation(tmp_path, FEDAUC, extra="min_clients = 3\ndeadline = 30.0\n")
    grid, lines = Grid(tmp_path, "ac"), list[str]()
    with pytest.raises(RunError, match="2 came within 30 seconds; missing: b"):
        flower.conduct(grid, Plan.read(tmp_path / "plan.toml"), identity, lines.append)
    waiting = [line for line in lines if line.startswith("waiting for b, ")]
    assert len(waiting) == 2
    assert int(waiting[0].removeprefix("waiting for b, ").split(" ")[0]) >= 25


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": VERSION + 1}, "speaks version 3 of messages, and this is version 2"),
        ({"version": None}, "speaks version None"),
        ({"digest": b""}, "agreed to another plan"),
        ({"place": 9}, "names no party"),
        ({"place": "0"}, "names no party"),
        ({"signature": None}, "not signed by the party"),
    ],
)
def test_what_a_node_says_is_checked(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    federation(tmp_path, FEDAUC)
    plan = Plan.read(tmp_path / "plan.toml")
    nodes = flower.Nodes(Grid(tmp_path), plan, lambda line: None)
    nodes.node_of[0] = 100
    words = {"version": VERSION, "digest": plan.agreement().digest, "place": 1} | change
    reported = nodes._problem(words)
    assert reported is not None
    assert problem in reported


def test_nobody_takes_the_seat_of_another(tmp_path: Path) -> None:
    """A seat is taken with its own key, for this plan, on the nonce of this run."""
    federation(tmp_path, FEDAUC)
    plan = Plan.read(tmp_path / "plan.toml")
    nodes = flower.Nodes(Grid(tmp_path), plan, lambda line: None)
    digest = plan.agreement().digest
    a, b = (read_identity(tmp_path / name / "identity.key") for name in "ab")
    signed = flower.greeting(digest, nodes._nonce)
    others = ((digest, bytes(16)), (bytes(32), nodes._nonce))
    elsewhere = [a.sign(flower.greeting(*each)) for each in others]
    # 16 could be 2**40, of bytes
    hello = RecordDict({flower.SAID: ConfigRecord({"digest": digest, "nonce": 16})})
    sent = nodes._grid.push_messages([Message(hello, 100, flower.HELLO)])
    assert nodes._grid.pull_messages(sent)[0].content[flower.SAID]["place"] == flower.NOWHERE
    said = {"version": VERSION, "digest": digest, "place": 0}
    assert nodes._problem({**said, "signature": a.sign(signed)}) is None
    for signature in (b.sign(signed), a.sign(digest + nodes._nonce), *elsewhere):
        reported = nodes._problem({**said, "signature": signature})
        assert reported == "its greeting is not signed by the party that it names"


def test_a_letter_controls_no_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong with a query may be quoted, and the coordinator chose it."""
    identity = federation(tmp_path, DEPLOYABLE["histogram-local"])
    plan = Plan.read(tmp_path / "plan.toml")
    hostile = "\x1b]0;owned\x07\ntacit: the message was answered"
    query = steps.Query(unary_reports, plan.protocol, {"clients": 3, "height": hostile})
    message = SignedMessage(Kind.ASK, bytes(16), 0, COORDINATOR, 0, values.encode_query(query))
    content = flower.enclosed(message.signed(plan.agreement(), identity))
    PartyDesk.open(tmp_path / "a" / "party.toml").set_limit()
    Grid(tmp_path).push_messages([Message(content, 100, flower.MESSAGE)])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tacit: a message was refused: ")
    assert line.isprintable()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (None, "holds no message of a session"),
        ("it is not ready", "it did not answer: it is not ready"),
        ("\x1b[2J" * 1_000_000, r"it did not answer: \\x1b\[2J"),
    ],
    ids=["empty", "refused", "rude"],
)
def test_messages_without_a_letter_are_refused(words: str | None, said: str) -> None:
    content = {} if words is None else {flower.SAID: ConfigRecord({"refused": words})}
    with pytest.raises(SignedMessageError, match=said) as caught:
        flower.message_in(Message(RecordDict(content), dst_node_id=1, message_type=flower.MESSAGE))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_an_unready_party_says_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node that says nothing at all stops no run either."""
    identity = federation(tmp_path, FEDAUC, extra=QUIET)
    (tmp_path / "b" / "records.csv").write_text("score,label\n0.512,7\n")
    (tmp_path / "c" / "party.toml").write_text("nothing")
    plan, names, lines = Plan.read(tmp_path / "plan.toml"), {102: "north"}, list[str]()
    with pytest.raises(RunError, match="and 1 answered"):
        flower.conduct(Grid(tmp_path, "abcx"), plan, identity, lines.append, names)
    assert any(line.startswith("north does not take part: it is not ready") for line in lines)
    assert "0.512" not in "".join(lines)
    assert "label" in capsys.readouterr().err


@pytest.mark.parametrize("function", ["set_limit", "answer"])
def test_no_text_of_an_unforeseen_error_leaves_a_party(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    function: str,
) -> None:
    """Flower answers with the text of whatever its application raises."""

    def failing(*_: Any) -> bytes:
        raise RuntimeError("record 17 has the score 0.512")

    identity = federation(tmp_path, FEDAUC, extra=QUIET)
    monkeypatch.setattr(PartyDesk, function, failing)
    grid = Grid(tmp_path)
    with pytest.raises(RunError):
        conducted(tmp_path, identity, grid)
    said = capsys.readouterr()
    assert "this party failed: RuntimeError: record 17 has the score 0.512" in said.err
    assert "0.512" not in said.out


KNOWN = {100: "a", 101: "b", 102: "c"}


@pytest.mark.parametrize(
    ("protocol", "known", "asked"),
    [
        ("encrypted-auc", "abc", [3, 3, 3]),
        ("encrypted-auc", "a-c", [3, 4, 3]),
        ("encrypted-auc", "bac", [4, 4, 3]),
        ("fedauc", "abc", [1, 1, 1]),
    ],
)
def test_an_early_opening(protocol: str, known: str, asked: list[int], tmp_path: Path) -> None:
    """One round less on masked values; a party whose node is not known is asked afterwards, as are
    two nodes that the coordinator's folder takes for each other."""
    identity = federation(tmp_path, DEPLOYABLE[protocol], limit=UNLIMITED)
    grid, plan = Grid(tmp_path), Plan.read(tmp_path / "plan.toml")
    names = {100 + index: name for index, name in enumerate(known) if name != "-"}
    lines: list[str] = []
    coordinator, _ = flower.conduct(grid, plan, identity, lines.append, names)
    assert coordinator.active == (0, 1, 2)
    assert not refusals(lines)
    assert [1 + grid.counts[node, flower.MESSAGE] for node in grid.contexts] == asked


def test_who_does_not_come_is_left_out_of_an_early_opening(tmp_path: Path) -> None:
    identity = federation(tmp_path, DEPLOYABLE["encrypted-auc"], extra=QUIET, limit=UNLIMITED)
    plan, lines = Plan.read(tmp_path / "plan.toml"), list[str]()
    grid = Grid(tmp_path, "ab")
    coordinator, received = flower.conduct(grid, plan, identity, lines.append, KNOWN)
    assert coordinator.active == (0, 1)
    assert any(line.endswith("no response: c") for line in lines)
    assert concluded(plan, coordinator, received).participants == ("a", "b")


@pytest.mark.parametrize("size", [0, 1, flower.MAX_WHOLE_BYTES, flower.MAX_WHOLE_BYTES + 1])
def test_letters_arrive_whole_and_in_parts(size: int) -> None:
    """Large ones as an array, which Flower sends in parts."""
    message = bytes(range(256)) * (size // 256 + 1)
    content = flower.enclosed(message[:size])
    assert (
        flower.message_in(Message(content, dst_node_id=1, message_type="query.letter"))
        == (message[:size])
    )
    assert bool(content.array_records) == (size > flower.MAX_WHOLE_BYTES)
