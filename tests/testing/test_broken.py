"""Protocols with one fault each: a law rejects every one, and accepts the protocol without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit.protocol as tp
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.protocol.steps import Step, step
from tacit.testing import checks

UNITS = 1000


def squares(clients: tp.Clients) -> Any:
    return (clients.scores - clients.labels) ** 2


@tp.release(
    lambda query: {
        "records": tp.Released(epsilon=query.protocol.epsilon / 2),
        "errors": tp.Released((), UNITS, query.protocol.epsilon / 2, per_record=UNITS),
    }
)
def sum_squares(clients: tp.Clients, query: tp.Query) -> dict[str, Any]:
    """The number of records, and the sum of squared errors."""
    errors = np.rint(UNITS * squares(clients)).astype(np.int64).sum()
    return {"records": clients.records, "errors": errors}


@dataclass(frozen=True)
class Sound(tp.Protocol):
    """A Brier score."""

    epsilon: float = tp.setting(help=tp.EPSILON)
    name = "sound-brier"
    figure = tp.Figure("Brier score", limits=(0.0, 1.0))
    steps = (sum_squares,)

    @property
    def score_range(self) -> tuple[float, float] | None:
        return tp.UNIT_INTERVAL

    def conversation(self, clients: int) -> tp.Conversation:
        """One round."""
        sums = yield from tp.ask(self.steps[0], self, clients)
        n = np.maximum(sums["records"], 1.0)
        value = sums["errors"] / (UNITS * n)
        gradient = {"errors": 1 / (UNITS * n), "records": -value / n}
        return sums.result(value, gradient, self.spread / np.sqrt(n))

    spread = 0.18
    """The standard deviation of a squared error in the laws' population."""

    def exact(self, clients: tp.Clients) -> float:
        """The mean squared error."""
        return float(squares(clients).mean())

    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        """As the server states it."""
        return tp.measured_forecast(self, scenario, shape)


class Tripled(Sound):
    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        forecast = super().forecast(scenario, shape, metric)
        return replace(forecast, standard_error=3 * forecast.standard_error)


class Doubled(Sound):
    spread = 2 * Sound.spread


class Rounded(Sound):
    """Its value is rounded to a step, which is small beside its errors on few records alone."""

    value_step = 0.007

    def conversation(self, clients: int) -> tp.Conversation:
        """One round."""
        result = yield from super().conversation(clients)
        return replace(result, value=np.round(result.value / self.value_step) * self.value_step)


class Withheld(Sound):
    figure = tp.Figure("Brier score", limits=(0.5, 1.0))


class Undeclared(Sound):
    score_range = None


def by_hand(shares: Callable[[tp.Query], int | None] | None) -> Step:
    """The same step without a declaration of what it releases."""

    def answer(
        clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
    ) -> Mapping[str, Any]:
        exact: Any = sum_squares.answer(clients, query, tp.NoNoise(), state)
        share = Fraction(clients.count, query.broadcast["clients"])
        part = query.protocol.epsilon / 2
        drawn = {
            "records": noise.draw(PolyaShare(1, part, share), ()),
            "errors": noise.draw(PolyaShare(UNITS, part, share), ()),
        }
        return exact | {name: exact[name] + each for name, each in drawn.items()}

    return step(
        cost=lambda clients, query, state: query.protocol.guarantee,
        sums=lambda query: dict.fromkeys(("records", "errors", "clients"), ()),
        shares=shares,
    )(answer)


class Vanishing(Sound):
    """It divides its noise among all, and says neither that all must come nor what is left."""

    steps = (by_hand(lambda query: query.broadcast["clients"]),)

    def conversation(self, clients: int) -> tp.Conversation:
        reply: Any = yield tp.Query(self.steps[0], self, {"clients": clients}, view=tp.View.SUM)
        value = np.asarray(reply["errors"]) / (UNITS * np.maximum(reply["records"], 1))
        error = np.full_like(value, 0.01)
        return tp.ServerResult(value, error, error, error, error)


class Unshared(Vanishing):
    steps = (by_hand(None),)


def small(protocol: tp.Protocol) -> None:
    checks.check_small(tp.ErrorCase(protocol))


def sampling(protocol: tp.Protocol) -> None:
    checks.check_sampling(tp.ErrorCase(protocol))


def privacy(protocol: tp.Protocol) -> None:
    checks.check_neighbours(protocol, 0)


@pytest.mark.parametrize(
    ("law", "broken", "said"),
    [
        (checks.check_vanishing, Vanishing, "a client that vanishes weakens"),
        (checks.check_vanishing, Unshared, "does not declare its shares"),
        (checks.check_forecast, Tripled, "the forecast is wrong"),
        (checks.check_limits, Withheld, "limits withhold"),
        (sampling, Doubled, "the sampling error is wrong"),
        (small, Rounded, "on 2000 records"),
        (privacy, Undeclared, "a neighbour costs more than declared"),
    ],
)
def test_a_law_rejects_the_fault_alone(
    law: Callable[[tp.Protocol], None], broken: type[Any], said: str
) -> None:
    law(Sound(1.0))
    with pytest.raises(AssertionError, match=said):
        law(broken(1.0))
