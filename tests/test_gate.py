"""What a gate lets out: what the ledger has debited, declared constants, and nothing else.

The filter for NVIDIA FLARE meets objects of the shape that NVFLARE 2.8.1 has, not NVFLARE.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("flwr", reason="needs flwr: pip install 'tacit[federation]'")

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict

from tacit.flower import GatedApp
from tacit.ledger.entries import DEBIT, LimitError
from tacit.ledger.ledger import Ledger
from tacit.nvflare import GateFilter
from tacit.running.gate import HELD, Gate, HeldError
from tests.running import desks as disk
from tests.running.test_flower import task

__all__ = ["task"]  # a fixture of every test here

CONSTANTS = {"num-examples": 1, "NUM_STEPS_CURRENT_ROUND": 1}
SETTINGS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Shareable(dict[str, Any]):
    """A result of a task, as NVFLARE's class of that name has it."""

    def __init__(self) -> None:
        super().__init__({"__headers__": {}})

    def get_header(self, name: str, default: Any = None) -> Any:
        return self["__headers__"].get(name, default)

    def set_header(self, name: str, value: Any) -> None:
        self["__headers__"][name] = value


def shared(kind: str, data: Any, meta: Any = None) -> Shareable:
    made = Shareable()
    made.set_header("__content_type__", "DXO")
    made.set_header("current_round", 2)
    made.set_header("loss", 0.25)
    made["DXO"] = {"kind": kind, "data": data, "meta": meta or {}}
    made["loss"] = 0.25
    return made


@pytest.fixture(scope="module")
def party(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a plan of its own, whose figures its ledger has debited once."""
    home = tmp_path_factory.mktemp("site")
    disk.federation(home, 'name = "dpauc"\nepsilon = 20.0', parties=1, limit="epsilon = 40")
    return home / "a" / "party.toml"


@pytest.fixture(scope="module")
def figures(party: Path) -> dict[str, float]:
    return Gate(party, CONSTANTS).measure()


NAMES = st.text(max_size=12) | st.sampled_from(["loss", "accuracy", "train_loss", "tacit-auc2"])
MALFORMED = st.one_of(
    st.sampled_from([math.nan, math.inf, True, None, b"1", "1", [1], [0.5], {"a": 1}, 1 + 0j]),
    st.sampled_from([np.float64(1), np.int64(1), np.ones(1), np.array(1.0), np.array(None)]),
    st.lists(st.floats(allow_nan=True), max_size=3),
)
ANY = MALFORMED | st.floats() | st.integers()


@st.composite
def refused(draw: st.DrawFn) -> tuple[str, Any]:
    """An undeclared name with any value, or a declared name with a value that is not its own."""
    if draw(st.booleans()):
        return draw(NAMES.filter(lambda name: name not in CONSTANTS)), draw(ANY)
    named = draw(st.sampled_from(["num-examples", "tacit-auc", "tacit-epsilon"]))
    return named, draw(MALFORMED | st.integers(2) | st.floats(20.5) | st.floats(max_value=-1.0))


@SETTINGS
@given(bad=refused(), beside=st.booleans())
def test_what_is_undeclared_or_malformed_is_refused(
    party: Path, figures: dict[str, float], bad: tuple[str, Any], beside: bool
) -> None:
    """By the gate and the filter: 100 of 100, alone or with values that may leave."""
    values = {**(figures if beside else {}), bad[0]: bad[1]}
    with pytest.raises(HeldError, match="held a reply: '") as error:
        Gate(party, CONSTANTS).passed(values)
    assert "debited" in str(error.value) or "is n" in str(error.value)
    filtering = GateFilter(str(party), CONSTANTS, model=True)
    weights = {"w": np.ones(2)}
    for result in (
        shared("METRICS", values),
        shared("WEIGHTS", weights, {"initial_metrics": values}),
        shared("WEIGHTS", weights, values),
    ):
        with pytest.raises(HeldError) as told:
            filtering.process(result, None)
        assert str(told.value) == HELD


def test_figures_leave_once_they_are_debited(party: Path, figures: dict[str, float]) -> None:
    assert {"tacit-auc", "tacit-auc-low", "tacit-epsilon"} < set(figures)
    with Ledger.open_readonly(party.parent / "ledger.db") as pages:
        assert [line.epsilon for line in pages.lines() if line.kind == DEBIT] == [20.0]
    gate = Gate(party, CONSTANTS)
    assert gate.passed({**figures, "num-examples": 1}) == {**figures, "num-examples": 1}
    for name in ("tacit-auc", "tacit-epsilon"):
        with pytest.raises(HeldError, match=f"'{name}' is not the value"):
            gate.passed({name: math.nextafter(figures[name], 99.0)})
    made = GateFilter(str(party), CONSTANTS).process(
        shared("METRICS", figures, {"NUM_STEPS_CURRENT_ROUND": 1}), None
    )
    meta = {"NUM_STEPS_CURRENT_ROUND": 1}
    assert made["DXO"] == {"kind": "METRICS", "data": figures, "meta": meta}
    assert made["__headers__"] == {"__content_type__": "DXO", "current_round": 2}
    assert set(made) == {"__headers__", "DXO"}


def test_another_ledger_or_an_empty_budget_lets_nothing_out(tmp_path: Path) -> None:
    disk.federation(tmp_path, 'name = "dpauc"\nepsilon = 20.0', parties=1, limit="epsilon = 20.0")
    gate = Gate(tmp_path / "a" / "party.toml")
    first = gate.measure()
    assert gate.passed(first) == first
    with pytest.raises(LimitError):
        gate.measure()
    with pytest.raises(HeldError, match="'tacit-auc' is not declared"):
        gate.passed({"tacit-auc": first["tacit-auc"]})


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("WEIGHTS", {"w": np.array([math.nan])}),
        ("WEIGHTS", {"w": np.array([None])}),
        ("WEIGHTS", {"w": [1.0]}),
        ("COLLECTION", {}),
        ("ANALYTIC", {"loss": 0.5}),
        ("STATISTICS", {}),
        ("METRICS", None),
    ],
)
def test_the_filter_fails_closed(party: Path, kind: str, data: Any) -> None:
    filtering = GateFilter(str(party), CONSTANTS, model=True)
    results: list[Any] = [shared(kind, data), Shareable(), {}, None]
    for result in results:
        with pytest.raises(HeldError, match=HELD):
            filtering.process(result, None)
    closed = GateFilter(str(party), CONSTANTS)
    with pytest.raises(HeldError, match=HELD):
        closed.process(shared("WEIGHTS", {"w": np.ones(1)}), None)


def replied(party: Path, content: Any, kind: str = "train") -> Any:
    """What a gated app's reply of this content becomes; an exception is raised by the app."""
    app = GatedApp({"num-examples": 1}, model="arrays")

    def answer(message: Message, context: Context) -> Message:
        if isinstance(content, Exception):
            raise content
        return Message(RecordDict(content), reply_to=message)

    app.train()(answer)
    app.evaluate()(answer)
    sent = RecordDict({"arrays": ArrayRecord([np.zeros(3)])})
    message = Message(sent, dst_node_id=1, message_type=kind)
    message.metadata.__dict__["_message_id"] = "1"
    return app(message, Context(1, 1, {"party": str(party)}, RecordDict({}), {}))


def test_the_app_passes_on_the_model_and_what_was_debited(
    party: Path, figures: dict[str, float]
) -> None:
    metrics = {**figures, "num-examples": 1}
    content = {"arrays": ArrayRecord([np.arange(3.0)]), "patient 7": MetricRecord(metrics)}
    passed = replied(party, content).content
    assert list(passed) == ["arrays", "metrics"]
    assert dict(passed["metrics"]) == metrics
    np.testing.assert_array_equal(passed["arrays"].to_numpy_ndarrays()[0], np.arange(3.0))


ONE = {"num-examples": 1}


@pytest.mark.parametrize(
    ("kind", "content", "told"),
    [
        ("train", {"metrics": MetricRecord({**ONE, "train_loss": 0.25})}, "'train_loss' is not"),
        ("train", {"metrics": MetricRecord({"num-examples": 431})}, "'num-examples' is not the"),
        ("evaluate", {"metrics": MetricRecord({**ONE, "losses": [0.1, 0.2]})}, "'losses'"),
        ("evaluate", {"metrics": MetricRecord({"num-examples": math.nan})}, "is no int"),
        (
            "evaluate",
            {"arrays": ArrayRecord([np.zeros(3)])},
            "'arrays' is an undeclared ArrayRecord",
        ),
        ("train", {"arrays": ArrayRecord([np.zeros(4)])}, "not shaped as the model"),
        ("train", {"arrays": ArrayRecord([np.zeros(3), np.zeros(3)])}, "not shaped"),
        ("train", {"scores": ArrayRecord([np.zeros(3)])}, "'scores' is an undeclared ArrayRecord"),
        (
            "train",
            {"note": ConfigRecord({"name": "Smith"})},
            "'note' is an undeclared ConfigRecord",
        ),
        (
            "train",
            {"a": MetricRecord(ONE), "b": MetricRecord(ONE)},
            "'b' is an undeclared MetricRecord",
        ),
        ("evaluate", ValueError("record 7 is 0.25"), "record 7 is 0.25"),
        ("query.own", {}, "No query function"),
    ],
)
def test_the_app_holds_everything_else_and_names_it_to_its_owner(
    party: Path, capsys: pytest.CaptureFixture[str], kind: str, content: Any, told: str
) -> None:
    reply = replied(party, content, kind)
    assert not reply.has_content()
    assert reply.error.reason == HELD
    assert told in capsys.readouterr().err
