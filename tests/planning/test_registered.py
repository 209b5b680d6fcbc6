"""A protocol that planning has never heard of, in plans."""

from __future__ import annotations

import inspect
import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

import tacit.planning
from tacit.cli import main
from tacit.data.clients import Clients
from tacit.planning import searching
from tacit.planning.planner import plan
from tacit.planning.searching import Search
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.noise import NoiseSource
from tacit.protocol.conversation import (
    ClientState,
    Conversation,
    Protocol,
    Query,
    Reply,
    View,
    step,
)
from tacit.protocol.forecast import Family, Forecast, Metric
from tacit.protocol.registry import protocol_kinds
from tacit.protocol.scenario import Scenario, Shape
from tacit.protocol.trust import Trust
from tacit.results.figure import AUC_FIGURE
from tacit.results.server_result import ServerResult
from tacit.running.evaluating import repeat

UNITS = 2**20
"""A squared error of 1, as an integer."""


def _cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    guarantee: Cost = query.protocol.guarantee
    return guarantee


@step(cost=_cost)
def sum_errors(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """The sum of squared errors, and how many records there are, with shares of noise."""
    errors = np.rint(UNITS * (clients.scores - clients.labels) ** 2).astype(np.int64)
    share = Fraction(clients.count, query.broadcast["clients"])
    half = query.protocol.epsilon / 2
    return {
        "errors": errors.sum() + noise.draw(PolyaShare(UNITS, half, share), (1,))[..., 0],
        "records": clients.records + noise.draw(PolyaShare(1, half, share), (1,))[..., 0],
    }


@dataclass(frozen=True)
class Brier(Protocol):
    """The mean squared error from noisy sums."""

    epsilon: float

    name = "squares"
    figure = "Mean squared error"
    trusts: ClassVar[tuple[Trust, ...]] = (Trust.SECURE_SUM,)
    given_up = "there is no curve"
    steps = (sum_errors,)

    @property
    def guarantee(self) -> Cost:
        return Cost(self.epsilon, adjacency=Adjacency.RECORD)

    @property
    def settings(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def replicate_size(self, clients: Clients) -> int:
        return 2

    def exact(self, clients: Clients) -> float:
        return float(np.mean((clients.scores - clients.labels) ** 2))

    def conversation(self, clients: int) -> Conversation:
        reply = yield Query(sum_errors, self, {"clients": clients}, view=View.SUM)
        value = np.asarray(reply["errors"]) / UNITS / np.maximum(np.asarray(reply["records"]), 1)
        like = np.zeros_like(value)
        return ServerResult(value, like, like, like, like)

    def forecast(self, scenario: Scenario, shape: Shape, metric: Metric) -> Forecast | None:
        """``sqrt((Var(errors) + b^2 Var(records)) / M^2)`` with the mean squared error b."""
        cells = scenario.counts(shape, 256)
        middles = (np.arange(256) + 0.5) / 256
        value = cells[0] @ (middles - 1) ** 2 + cells[1] @ middles**2
        scale = 2 / self.epsilon
        errors = float(discrete_laplace_variance(UNITS * scale)) / UNITS**2
        count = float(discrete_laplace_variance(scale))
        mean = value / scenario.records
        return Forecast(math.sqrt(errors + mean**2 * count) / scenario.records)


class ChoosyBrier(Brier):
    """The same from an epsilon of a half on."""

    name = "choosy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon < 0.5:
            raise ValueError(f"epsilon must be at least 0.5, got {self.epsilon}")


class SilentBrier(Brier):
    """The same without a prediction."""

    name = "silent"

    def forecast(self, scenario: Scenario, shape: Shape, metric: Metric) -> Forecast | None:
        return None


class LocalArea(Brier):
    """A protocol of somebody else's that estimates the AUC."""

    name, figure = "local-area", AUC_FIGURE
    trusts: ClassVar[tuple[Trust, ...]] = (Trust.LOCAL, Trust.EACH)

    def forecast(self, scenario: Scenario, shape: Shape, metric: Metric) -> Forecast | None:
        return Forecast(0.001)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    added: tuple[type[Protocol], ...] = (Brier, SilentBrier, LocalArea)
    known = protocol_kinds() | {kind.__name__: kind for kind in added}
    monkeypatch.setattr(searching, "protocol_kinds", lambda: known)


USUAL = ("--records", "40000", "--positives", "4000", "--clients", "10", "--epsilon", "1")


def printed(*flags: str) -> str:
    result = CliRunner().invoke(main, ["plan", *USUAL, *flags], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_another_figure_stands_in_a_part_of_its_own() -> None:
    main_part, others = printed("--trust", "secure-sum").split("other figures under this trust:")
    assert "squares" not in main_part
    assert re.search(r"Mean squared error  squares +a record, added or removed +\d", others)
    assert "silent" not in others


def test_another_figure_is_left_out_where_a_metric_is_asked_for() -> None:
    assert "Brier" not in printed("--trust", "secure-sum", "--want", "auc")
    assert "Brier" not in printed("--trust", "local")


def test_another_figure_may_be_asked_for_by_name() -> None:
    made = plan(40_000, 4_000, 10, 1.0, "secure-sum", metric="Mean squared error", target=1e-5)
    assert [candidate.protocol for candidate in made.candidates] == [Brier(1.0)]
    assert made.recommended is not None
    assert made.recommended.smallest_epsilon is not None
    assert "Use squares, which hides a record, added or removed" in made.advice
    again = plan(
        40_000,
        4_000,
        10,
        made.recommended.smallest_epsilon,
        "secure-sum",
        metric="Mean squared error",
    )
    assert again.recommended is not None
    assert 0.7 < again.recommended.forecast.error / 1e-5 <= 1.001


def test_an_epsilon_that_a_protocol_refuses_is_not_recommended() -> None:
    """An error of 0.25 would need less than a thousandth."""
    choosy, shapes = ChoosyBrier(1.0), (Shape(0.8),)
    family = Family((choosy,), choosy.trusts, metric=Metric.of_figure(choosy.figure))
    search = Search(family, choosy, Scenario(40_000, 4_000, 10, 1.0), shapes, 0.25)
    epsilon = search.smallest_epsilon()
    assert epsilon is not None
    assert 0.5 <= epsilon < 0.53


def test_an_unknown_metric_is_refused_with_the_known_figures() -> None:
    with pytest.raises(
        ValueError, match=r"metric must be .*got 'recall'; .* give .*'Mean squared error'"
    ):
        plan(40_000, 4_000, 10, 1.0, "secure-sum", metric="recall")
    assert plan(40_000, 4_000, 10, 1.0, "secure-sum", metric="mean squared error").candidates


def test_json_names_the_figure() -> None:
    made = json.loads(printed("--trust", "secure-sum", "--json"))
    (other,) = [each for each in made["others"] if each["protocol"] == "squares"]
    assert (other["protocol"], other["figure"]) == ("squares", "Mean squared error")
    assert other["rounds"] == 1
    assert other["bytes_per_client"] == 6 + 3 + 6 + 8 + 3 + 7 + 8
    assert {candidate["figure"] for candidate in made["candidates"]} == {"AUC"}


def test_another_protocol_for_the_auc_competes() -> None:
    made = plan(40_000, 4_000, 10, 1.0, "local")
    assert made.recommended is not None
    assert made.recommended.protocol == LocalArea(1.0)
    assert made.others == ()


def test_a_metric_under_another_trust_is_pointed_out() -> None:
    made = plan(40_000, 4_000, 10, 1.0, "encrypted", metric="Mean squared error")
    assert made.recommended is None
    assert "The protocol squares is, with trust secure-sum." in made.advice


def test_the_examples_prediction_is_right() -> None:
    """20,000 runs: the measured error is known to 1 %; within 5 %, which is 5 such errors."""
    scenario, shape = Scenario(2_000, 600, 10, 1.0), Shape(0.8)
    clients, protocol = scenario.drawn(shape, 0), Brier(1.0)
    errors = repeat(clients, protocol, 20000, 0) - protocol.exact(clients)
    predicted = protocol.forecast(scenario, shape, Metric.of_figure("Mean squared error"))
    assert predicted is not None
    assert abs(predicted.error / float(np.sqrt(np.mean(errors**2))) - 1) < 0.05


def test_planning_names_no_protocol() -> None:
    """Neither a class, nor its name as a string, nor a module of a protocol's package."""
    folder = Path(str(tacit.planning.__file__)).parent
    kinds = [kind for kind in protocol_kinds().values() if inspect.getmodule(kind)]
    words = {word for kind in kinds for word in (kind.__name__, f'"{kind.name}"')}
    for module in folder.glob("*.py"):
        text = module.read_text()
        assert "tacit.protocols" not in text, module.name
        assert not [word for word in words if word in text], module.name
