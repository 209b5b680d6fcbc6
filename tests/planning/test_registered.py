"""A protocol that planning has never heard of, in plans."""

from __future__ import annotations

import inspect
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner

import tacit.planning
from tacit import Protocol, plan
from tacit.cli import main
from tacit.planning import searching
from tacit.planning.searching import Search
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.protocol import Family, Forecast, Metric, Scenario, Shape, SimulatedNoise, Trust
from tacit.protocol.registry import protocol_kinds
from tacit.results.figure import AUC_FIGURE
from tacit.running.simulation import simulate
from tests import known
from tests.brier import UNITS, Brier

MEAN = "Mean squared error"


@dataclass(frozen=True)
class Squares(Brier):
    """The mean squared error from noisy sums, with a prediction."""

    name = "squares"
    figure = MEAN
    trusts: ClassVar[tuple[Trust, ...]] = (Trust.SECURE_SUM,)
    given_up = "there is no curve"

    def forecast(self, scenario: Scenario, shape: Shape, metric: Metric) -> Forecast | None:
        """The standard deviation of the sum of all clients' noise, by the number of records."""
        variance = scenario.clients * float(discrete_laplace_variance(UNITS / self.epsilon))
        return Forecast(math.sqrt(variance) / (UNITS * scenario.records))


class ChoosySquares(Squares):
    """The same from an epsilon of a half on."""

    name = "choosy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon < 0.5:
            raise ValueError(f"epsilon must be at least 0.5, got {self.epsilon}")


class SilentSquares(Squares):
    """The same without a prediction."""

    name = "silent"

    def forecast(self, scenario: Scenario, shape: Shape, metric: Metric) -> Forecast | None:
        return None


class LocalArea(Squares):
    """A protocol of somebody else's that estimates the AUC."""

    name, figure = "local-area", AUC_FIGURE
    trusts: ClassVar[tuple[Trust, ...]] = (Trust.LOCAL, Trust.EACH)

    def forecast(self, scenario: Scenario, shape: Shape, metric: Metric) -> Forecast | None:
        return Forecast(0.001)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    added: tuple[type[Protocol], ...] = (Squares, SilentSquares, LocalArea)
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
    assert re.search(r"Mean squared error +squares +a record, replaced by any other +\d", others)
    assert "silent" not in others


def test_another_figure_is_left_out_where_a_metric_is_asked_for() -> None:
    assert "squares" not in printed("--trust", "secure-sum", "--want", "auc")
    assert "squares" not in printed("--trust", "local")


def test_another_figure_may_be_asked_for_by_name() -> None:
    made = plan(40_000, 4_000, 10, 1.0, "secure-sum", metric=MEAN, target=1e-5)
    assert [candidate.protocol for candidate in made.candidates] == [Squares(1.0)]
    epsilon = known(known(made.recommended).smallest_epsilon)
    assert "Use squares, which hides a record, replaced by any other" in made.advice
    again = plan(40_000, 4_000, 10, epsilon, "secure-sum", metric=MEAN)
    assert 0.7 < known(again.recommended).forecast.error / 1e-5 <= 1.001


def test_an_epsilon_that_a_protocol_refuses_is_not_recommended() -> None:
    """An error of 0.25 would need less than a thousandth."""
    choosy, shapes = ChoosySquares(1.0), (Shape(0.8),)
    family = Family((choosy,), choosy.trusts, metric=Metric.of_figure(choosy.figure))
    search = Search(family, choosy, Scenario(40_000, 4_000, 10, 1.0), shapes, 0.25)
    epsilon = known(search.smallest_epsilon())
    assert 0.5 <= epsilon < 0.53


def test_an_unknown_metric_is_refused_with_the_known_figures() -> None:
    with pytest.raises(ValueError, match=rf"metric must be .*got 'recall'; .* give .*'{MEAN}'"):
        plan(40_000, 4_000, 10, 1.0, "secure-sum", metric="recall")
    assert plan(40_000, 4_000, 10, 1.0, "secure-sum", metric=MEAN.lower()).candidates


def test_json_names_the_figure() -> None:
    made = json.loads(printed("--trust", "secure-sum", "--json"))
    (other,) = [each for each in made["others"] if each["protocol"] == "squares"]
    assert (other["protocol"], other["figure"]) == ("squares", MEAN)
    assert other["rounds"] == 1
    drawn = Scenario(40_000, 4_000, 10, 1.0).drawn(Shape(0.8), 0)
    sent = simulate(drawn, Squares(1.0), SimulatedNoise(0)).bytes_sent
    assert other["bytes_per_client"] == sent.mean()
    assert {candidate["figure"] for candidate in made["candidates"]} == {"AUC"}


def test_another_protocol_for_the_auc_competes() -> None:
    made = plan(40_000, 4_000, 10, 1.0, "local")
    assert known(made.recommended).protocol == LocalArea(1.0)
    assert "AUC" not in {each.figure for each in made.others}


def test_the_command_names_the_columns_of_values() -> None:
    for figure, columns in {"mean": ["value"], "concordance": ["time", "event"]}.items():
        made = str(plan(6_000, 2_000, 3, 1.0, "secure-sum", metric=figure))
        assert f"FILES {' '.join(f'--{each} COLUMN' for each in columns)} --protocol" in made
        assert "values distributed as scores" in made


def test_a_metric_under_another_trust_is_pointed_out() -> None:
    made = plan(40_000, 4_000, 10, 1.0, "encrypted", metric=MEAN)
    assert made.recommended is None
    assert "The protocol squares is, with trust secure-sum." in made.advice


def test_planning_names_no_protocol() -> None:
    """Neither a class, nor its name as a string, nor a module of a protocol's package."""
    folder = Path(str(tacit.planning.__file__)).parent
    kinds = [kind for kind in protocol_kinds().values() if inspect.getmodule(kind)]
    words = {word for kind in kinds for word in (kind.__name__, f'"{kind.name}"')}
    for module in folder.glob("*.py"):
        text = module.read_text()
        assert "tacit.protocols" not in text, module.name
        assert not [word for word in words if word in text], module.name
