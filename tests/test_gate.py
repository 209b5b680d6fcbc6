"""What a gate lets out: what the ledger has debited, declared constants, and nothing else.

The filter for NVIDIA FLARE meets objects of the shape that NVFLARE 2.8.1 has, not NVFLARE.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("flwr", reason="needs flwr: pip install 'tacit[federation]'")

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict

from tacit import DataError, Ledger
from tacit.flower import GatedApp
from tacit.ledger.entries import LimitError
from tacit.nvflare import GateFilter
from tacit.running.gate import HELD, Gate, HeldError
from tacit.running.session.debits import DeclinedError
from tests.running import desks as disk
from tests.running.test_flower import task

__all__ = ["task"]  # a fixture of every test here

ONE = {"num-examples": 1}
Gated = tuple[Path, dict[str, float]]


class Shareable(dict[str, Any]):
    """A result of a task, as NVFLARE's class of that name has it."""

    def get_header(self, name: str, default: Any = None) -> Any:
        return self.get("__headers__", {}).get(name, default)

    def set_header(self, name: str, value: Any) -> None:
        self.setdefault("__headers__", {})[name] = value


def shared(kind: str, data: Any, meta: Any = None) -> Shareable:
    headers = {"__content_type__": "DXO", "current_round": 2, "loss": 0.25}
    encoded = {"kind": kind, "data": data, "meta": meta or {}}
    return Shareable(__headers__=headers, DXO=encoded, loss=0.25)


def measured(home: Path) -> Gated:
    """A site with a plan of its own, and the figures that took all that its ledger allows."""
    disk.federation(home, 'name = "dpauc"\nepsilon = 20.0', parties=1, limit="epsilon = 20.0")
    return home / "a" / "party.toml", Gate(home / "a" / "party.toml", ONE).measure()


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Gated:
    return measured(tmp_path_factory.mktemp("site"))


NAMES = st.text(max_size=12) | st.sampled_from(["loss", "accuracy", "train_loss", "tacit-auc2"])
MALFORMED = st.lists(st.floats(), max_size=3) | st.sampled_from(
    [math.nan, True, None, b"1", "1", [1], {"a": 1}, 1j, np.float64(1), np.int64(1), np.ones(1)]
)
DECLARED = st.sampled_from(["num-examples", "tacit-auc", "tacit-epsilon"])
WRONG = MALFORMED | st.integers(2) | st.floats(20.5) | st.floats(max_value=-1.0)
REFUSED = st.tuples(NAMES, MALFORMED | st.floats() | st.integers()) | st.tuples(DECLARED, WRONG)


@settings(max_examples=100, deadline=None, suppress_health_check=[*HealthCheck])
@given(bad=REFUSED, beside=st.booleans())
def test_what_is_undeclared_or_malformed_is_refused(
    gated: Gated, bad: tuple[str, Any], beside: bool
) -> None:
    """By the gate and the filter: 100 of 100, alone or with values that may leave."""
    party, figures = gated
    values = {**(figures if beside else {}), bad[0]: bad[1]}
    with pytest.raises(HeldError, match="held a reply"):
        Gate(party, ONE).passed(values)
    weights, first = {"w": np.ones(2)}, {"initial_metrics": values}
    places: Any = (("METRICS", values), ("WEIGHTS", weights, first), ("WEIGHTS", weights, values))
    for parts in places:
        with pytest.raises(HeldError, match=f"^{HELD}$"):
            GateFilter(str(party), ONE, model=True).process(shared(*parts), None)


def test_only_what_was_debited_leaves(gated: Gated) -> None:
    party, figures = gated
    gate = Gate(party, ONE)
    assert {"tacit-auc", "tacit-auc-low", "tacit-epsilon"} < set(figures)
    assert gate.passed({**figures, **ONE}) == {**figures, **ONE}
    for name, value in figures.items():
        with pytest.raises(HeldError, match=f"'{name}'"):
            gate.passed({name: math.nextafter(value, 99.0)})
    made = GateFilter(str(party), ONE).process(shared("METRICS", figures, ONE), None)
    encoded = {"kind": "METRICS", "data": figures, "meta": ONE}
    assert made == {"__headers__": {"__content_type__": "DXO", "current_round": 2}, "DXO": encoded}


@pytest.mark.parametrize("reason", [LimitError, DeclinedError, DataError, None])
def test_without_a_debit_nothing_leaves(tmp_path: Path, reason: Any) -> None:
    party, figures = measured(tmp_path)
    gate = Gate(party)
    if reason is DataError:  # the records of now, not those of its last measurement
        with pytest.raises(LimitError):
            gate.measure()
        (party.parent / "records.csv").unlink()
    if reason is DeclinedError:
        with party.open("a") as file:
            file.write(f'[approval]\nneeded = 1\nkeys = {{ ada = "{"0" * 64}" }}\n')
    if reason:
        with pytest.raises(reason):
            gate.measure()
    else:
        (party.parent / "ledger.db").unlink()
        Ledger(party.parent / "ledger.db").close()
    with pytest.raises(HeldError, match="'tacit-auc'"):
        gate.passed(figures)


@pytest.mark.parametrize(
    "result",
    [
        shared("WEIGHTS", {"w": np.array([math.nan])}),
        shared("WEIGHTS", {"w": np.ones(2), "Smith": np.ones(1)}),
        *(shared(kind, {}) for kind in ("COLLECTION", "ANALYTIC", "STATISTICS", "RAW")),
        *(shared("METRICS", None), Shareable(), {}, None),
    ],
)
def test_the_filter_fails_closed(gated: Gated, result: Any) -> None:
    context = SimpleNamespace(get_prop={"__task_data__": shared("WEIGHTS", {"w": 0})}.get)
    gate, passed = GateFilter(str(gated[0]), ONE, model=True), shared("WEIGHTS", {"w": np.ones(2)})
    with pytest.raises(HeldError, match=HELD):
        gate.process(result, context)
    assert gate.process(passed, context)["DXO"] == passed["DXO"]


def replied(party: Path, content: Any, kind: str) -> Any:
    """What a gated app's reply of this content becomes; an exception is raised by the app."""
    app = GatedApp(ONE, model="arrays")

    def answer(message: Message, context: Context) -> Message:
        if isinstance(content, Exception):
            raise content
        return Message(RecordDict(content), reply_to=message)

    app.train()(answer)
    app.evaluate()(answer)
    message = Message(RecordDict({"arrays": arrays(3)}), dst_node_id=1, message_type=kind)
    message.metadata.__dict__["_message_id"] = "1"
    return app(message, Context(1, 1, {"party": str(party)}, RecordDict({}), {}))


def arrays(*sizes: int) -> ArrayRecord:
    return ArrayRecord([np.arange(size) * 0.5 for size in sizes])


def test_the_app_passes_on_the_model_and_what_was_debited(gated: Gated) -> None:
    content = {"arrays": arrays(3), "patient 7": MetricRecord({**gated[1], **ONE})}
    passed = replied(gated[0], content, "train").content
    assert list(passed) == ["arrays", "metrics"]
    assert dict(passed["metrics"]) == {**gated[1], **ONE}
    np.testing.assert_array_equal(passed["arrays"].to_numpy_ndarrays()[0], [0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("kind", "content", "told"),
    [
        ("train", {"metrics": MetricRecord({"num-examples": 431})}, "'num-examples'"),
        ("evaluate", {"arrays": arrays(3)}, "'arrays'"),
        ("train", {"arrays": arrays(3, 3)}, "'arrays'"),
        ("train", {"arrays": ArrayRecord([np.full(3, math.nan)])}, "'0'"),
        ("train", {"note": ConfigRecord({"name": "Smith"})}, "'note'"),
        ("train", {"a": MetricRecord(ONE), "b": MetricRecord(ONE)}, "'b'"),
        ("evaluate", ValueError("record 7 is 0.25"), "record 7 is 0.25"),
        ("query.own", {}, "No query function"),
    ],
)
def test_the_app_holds_everything_else_and_names_it_to_its_owner(
    gated: Gated, capsys: pytest.CaptureFixture[str], kind: str, content: Any, told: str
) -> None:
    reply = replied(gated[0], content, kind)
    assert (reply.has_content(), reply.error.reason) == (False, HELD)
    assert told in capsys.readouterr().err
