"""Every path that answers about a client's records debits its ledger before."""

from __future__ import annotations

import ast
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit import PairedUStatistic, rehearse
from tacit.protocol import Clients, NoNoise, Protocol, Query, Step
from tacit.running.session.debits import Debit
from tests.federations import binormal_clients
from tests.laws import PROTOCOLS

SOURCES = Path(tacit.__file__).parent
ANSWERING = {
    "running.session.answers.Answers.computed",
    "running.session.together.ClientComputations._reply",
}
"""Where records of clients that exist meet a question; each of them is watched below."""
ONE_PROCESS = {
    "running.simulation._answer",
    "running.deployment.preview.check_records",
    "protocol.scenario.exchanges",
    "protocol.scenario.dry_run",
    "protocols.shared.declared.first_reply",
}
"""Where one process holds all records, or nothing leaves it."""
INVENTED = {
    "local.drawing.Drawing._reports",
    "protocol.declared.asked_views",
    "protocol.scenario.exchanges",
    "protocol.scenario.dry_run",
    "protocol.scenario.measured_forecast",
    "protocols.shared.declared.first_reply",
}
"""Where records are made up: dry runs and simulated devices; attacks of audits and laws are too."""


class Answers(ast.NodeVisitor):
    """Every function that runs a client step, or a party's part of a joint one."""

    def __init__(self, module: str) -> None:
        self.inside, self.answering = [module], set[str]()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._enter(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._enter(node)

    def _enter(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``query.step.answer``, called or handed on; other objects' ``answer`` is no step's."""
        of = node.value.attr if isinstance(node.value, ast.Attribute) else None
        if node.attr == "answer" and of == "step":
            self.answering.add(".".join(self.inside))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "compute":
            self.answering.add(".".join(self.inside))
        self.generic_visit(node)


def test_nothing_else_in_the_runtime_answers() -> None:
    """A new path fails here until it is watched below, or shown to hold all records itself."""
    result: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        if not module.startswith(("auditing", "testing.checks")):
            visitor = Answers(module)
            visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
            result |= visitor.answering
    assert result == ANSWERING | ONE_PROCESS | INVENTED


class Owned(NoNoise):
    """Noise that knows whose it is."""

    def __init__(self, party: int) -> None:
        super().__init__()
        object.__setattr__(self, "party", party)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_party_debits_a_step_before_it_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer, or a part of a joint one, whose party's last debit is of another step fails."""
    protocol: Protocol = PROTOCOLS[name]
    last, seen = dict[int, str](), list[str]()

    def note(party: int, debit: Debit) -> None:
        last[party] = debit.step

    def watched(step: Step, work: Any) -> Any:
        @wraps(work)
        def asked(clients: Clients, query: Query, noise: Any, *rest: Any) -> Any:
            assert last.pop(noise.party, None) == step.name, f"{step.name} was not debited"
            seen.append(step.name)
            return work(clients, query, noise, *rest)

        return asked

    def program(step: Step, made: Any) -> Any:
        result = made()
        object.__setattr__(result, "compute", watched(step, result.compute))
        return result

    for step in protocol.steps:
        monkeypatch.setitem(step.__dict__, "answer", watched(step, step.answer))
        if step.computes is not None:
            monkeypatch.setitem(step.__dict__, "computes", partial(program, step, step.computes))
    clients = protocol.trial_records(binormal_clients(30, 40, 3))
    rehearse(clients, protocol, noise=Owned, guards=[partial(note, k) for k in range(3)])
    assert set(seen) <= {step.name for step in protocol.steps}
    assert len(seen) >= 3


@pytest.mark.parametrize("given", [{}, {"north": "n.db"}, {"north": "n.db", "south": "n.db"}])
def test_real_clients_do_not_compute_together_without_their_ledgers(given: dict[str, str]) -> None:
    clients = Clients.from_arrays([0.1, 0.5, 0.5, 0.9], [0, 1] * 2, ["north"] * 2 + ["south"] * 2)
    pairs = PairedUStatistic("auc", 1.0, noise="laplace")
    with pytest.raises(ValueError, match="its own ledger"):
        tacit.evaluate(clients, pairs, engine="spu", ledgers=given)
    if given:
        with pytest.raises(ValueError, match="ledgers need engine 'spu'"):
            tacit.evaluate(clients, pairs, ledgers=given)
