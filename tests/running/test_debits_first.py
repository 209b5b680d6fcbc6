"""Every path that answers about a client's records debits its ledger before."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.data.clients import Clients, Ragged
from tacit.privacy.noise import NoNoise
from tacit.protocols.ask_messages import encode_ask
from tacit.protocols.conversation import Ask, Memory, Protocol, Step, View
from tacit.protocols.hidden_ranks import offer_sizes, rank_together
from tacit.protocols.paired_ustatistic import (
    PairedUStatistic,
    compute_pairs,
    count_positives,
    offer_numbers,
)
from tacit.running import joint_holder
from tacit.running.debits import Debit, DeclinedError
from tacit.running.joint_holder import Holder
from tacit.running.rehearsal import rehearse
from tests.federations import binormal_clients
from tests.laws import PROTOCOLS

SOURCES = Path(tacit.__file__).parent
ANSWERING = {
    "running.party.Party._computed",
    "running.joint_holder.Holder.answer",
    "running.joint_holder.Holder._pair_work",
    "running.joint_holder.Holder._rank_work",
}
"""Where records of clients that exist meet a question; each of them is watched below."""
ONE_PROCESS = {"running.simulation._answer", "running.deployment.preview.check_records"}
"""Where one process holds all records, or nothing leaves it."""
WORK = ("PairWork", "RankWork")
"""What a party holds in a joint computation."""


class Answers(ast.NodeVisitor):
    """Every function that runs a client step, or makes a party's part of a joint one."""

    def __init__(self, module: str) -> None:
        self.inside, self.found = [module], set[str]()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._enter(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._enter(node)

    def _enter(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``ask.step.answer``, called or handed on; other objects' ``answer`` is no step's."""
        of = node.value.attr if isinstance(node.value, ast.Attribute) else None
        if node.attr == "answer" and of == "step":
            self.found.add(".".join(self.inside))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in WORK:
            self.found.add(".".join(self.inside))
        self.generic_visit(node)


def test_nothing_else_in_the_runtime_answers() -> None:
    """A new path fails here until it is watched below, or shown to hold all records itself."""
    found: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        if not module.startswith(("auditing", "reproducing")):
            visitor = Answers(module)
            visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
            found |= visitor.found
    assert found == ANSWERING | ONE_PROCESS


class Books:
    """Guards of all parties, and the last debit of each."""

    def __init__(self) -> None:
        self.last: dict[int, str | None] = {}

    def guard(self, place: int) -> Callable[[Debit], None]:
        def note(debit: Debit) -> None:
            self.last[place] = debit.step

        return note


class Owned(NoNoise):
    """Noise that knows whose it is."""

    def __init__(self, place: int) -> None:
        super().__init__()
        object.__setattr__(self, "place", place)


@contextmanager
def watched(steps: tuple[Step, ...], books: Books, seen: list[str]) -> Iterator[None]:
    """Refuse, while steps run, every answer whose party's last debit is not of that step."""

    def watch(step: Step) -> Any:
        answer = step.answer

        def asked(clients: Clients, ask: Ask, noise: Any, memory: Memory) -> Any:
            assert books.last.pop(noise.place, None) == step.name, f"{step.name} was not debited"
            seen.append(step.name)
            return answer(clients, ask, noise, memory)

        return asked

    originals = [step.answer for step in steps]
    for step in steps:
        object.__setattr__(step, "answer", watch(step))
    try:
        yield
    finally:
        for step, answer in zip(steps, originals, strict=True):
            object.__setattr__(step, "answer", answer)


CARRIED = [
    name
    for name, protocol in PROTOCOLS.items()
    if not {compute_pairs, rank_together} & set(protocol.steps)
]


@pytest.mark.parametrize("name", CARRIED)
def test_a_party_debits_every_step_before_it_runs(name: str) -> None:
    protocol: Protocol = PROTOCOLS[name]
    books, seen = Books(), list[str]()
    clients = binormal_clients(30, 40, 3)
    with watched(protocol.steps, books, seen):
        rehearse(clients, protocol, noise=Owned, guards=[books.guard(k) for k in range(3)])
    assert set(seen) <= {step.name for step in protocol.steps}
    assert len(seen) >= 3


CLIENTS = Clients.from_arrays([0.1, 0.5, 0.5, 0.9], [0, 1, 0, 1])
PAIRS = PairedUStatistic("auc", 1.0, noise="laplace")
RANKED = tacit.FedAUC(1.0, ranks="mpc")
SEATS = {"seats": Ragged(np.arange(4)[np.newaxis], CLIENTS.offsets)}
JOINT = [
    (PAIRS, Ask(offer_numbers, PAIRS)),
    (PAIRS, Ask(count_positives, PAIRS, {"epsilon": 0.2})),
    (PAIRS, Ask(compute_pairs, PAIRS, {"epsilon": 0.8}, SEATS, View.JOINT)),
    (RANKED, Ask(offer_sizes, RANKED)),
    (RANKED, Ask(rank_together, RANKED, view=View.JOINT)),
]


def asked(holder: Holder, ask: Ask) -> None:
    (holder.work if ask.view is View.JOINT else holder.answer)(encode_ask(ask))


@pytest.mark.parametrize(("protocol", "ask"), JOINT, ids=lambda own: getattr(own, "name", ""))
def test_a_party_of_a_joint_computation_debits_first(
    protocol: Protocol, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And computes nothing where its ledger declines."""
    if ask.step not in protocol.steps:
        pytest.skip("this protocol has no such step")
    debits: list[Debit] = []
    touched: list[int] = []

    def computed(*given: Any) -> Any:
        touched.append(len(debits))
        raise InterruptedError

    for work in WORK:
        monkeypatch.setattr(joint_holder, work, computed)
    answer = ask.step.answer
    object.__setattr__(ask.step, "answer", computed)
    try:
        with pytest.raises(InterruptedError):
            asked(Holder(protocol, CLIENTS, 0, True, debits.append), ask)
        assert touched == [1]
        (debit,) = debits
        assert debit.step == ask.step.name
        assert debit.cost == ask.step.spends(CLIENTS, ask, Memory())

        def decline(debit: Debit) -> None:
            raise DeclinedError("declined")

        with pytest.raises(DeclinedError):
            asked(Holder(protocol, CLIENTS, 0, True, decline), ask)
        assert touched == [1]
    finally:
        object.__setattr__(ask.step, "answer", answer)


@pytest.mark.parametrize("given", [{}, {"north": "n.db"}, {"north": "n.db", "south": "n.db"}])
def test_real_clients_do_not_compute_together_without_their_ledgers(given: dict[str, str]) -> None:
    clients = Clients.from_arrays([0.1, 0.5, 0.5, 0.9], [0, 1] * 2, ["north"] * 2 + ["south"] * 2)
    with pytest.raises(ValueError, match="a ledger of its own"):
        tacit.evaluate(clients, PAIRS, engine="spu", ledgers=given)


def test_ledgers_are_not_taken_where_nobody_debits_them() -> None:
    with pytest.raises(ValueError, match="they need engine 'spu'"):
        tacit.evaluate(CLIENTS, PAIRS, ledgers={"0": "a.db"})
