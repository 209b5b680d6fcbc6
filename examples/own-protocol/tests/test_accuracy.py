"""The laws and the audit's attacks on a protocol whose records randomise their own reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tacit_accuracy import Accuracy

import tacit
import tacit.protocol as tp
from tacit.testing import Audit, audit, binormal_clients, laws_for, rehearse

globals().update(laws_for(Accuracy))


@tp.register
@dataclass(frozen=True)
class FewFlips(Accuracy):
    """Flips of twice the epsilon that is declared."""

    name = "accuracy-few-flips"

    @property
    def flips(self) -> tp.RandomisedResponse:
        return tp.RandomisedResponse(2 * self.epsilon)


def attacked(name: str) -> Audit:
    return audit(tp.kind_of(name).audit_cases(), 1.0, seed=3, quick=True)


def test_attacks_come_near_the_guarantee_and_do_not_exceed_it() -> None:
    """A sound protocol exceeds it with probability 0.001 over the seed, which is fixed."""
    outcome = attacked("accuracy")
    assert outcome.passed
    assert [step.verdict for step in outcome.steps] == ["holds"]


def test_too_few_flips_are_rejected() -> None:
    assert [step.verdict for step in attacked("accuracy-few-flips").steps] == ["EXCEEDED"]


def test_parties_release_their_bits_in_a_federation() -> None:
    """The error is at most 12 standard errors with probability above 1 - 1e-30."""
    clients, protocol = binormal_clients(3000, 7000, 4), Accuracy(1.0)
    run = rehearse(clients, protocol)
    figure = run.server_result.estimate()
    assert run.spent == protocol.guarantee
    assert abs(figure.value - protocol.exact(clients)) < 12 * figure.privacy_error < 0.2


def test_errors_are_those_that_were_forecast() -> None:
    scenario, shape = tp.Scenario(4_000, 1_000, 4_000, 1.0), tp.Shape(0.8)
    protocol = Accuracy(1.0, threshold=0.4)
    forecast = protocol.forecast(scenario, shape, tp.Metric.of_figure("accuracy"))
    estimate = tacit.evaluate(scenario.drawn(shape, seed=1), protocol, seed=2).estimate
    assert estimate.privacy_error == pytest.approx(forecast.standard_error)
    variance = estimate.value * (1 - estimate.value)
    assert estimate.sampling_error == pytest.approx(math.sqrt(variance / 4_000))


def test_a_score_at_the_threshold_predicts_a_positive() -> None:
    clients = tacit.Clients.from_arrays(np.array([0.5, 0.5, 0.4]), np.array([1, 0, 0]))
    assert Accuracy(1.0).exact(clients) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("setting", "value"), [("epsilon", 0.0), ("threshold", math.inf)])
def test_settings_out_of_range_are_refused(setting: str, value: float) -> None:
    settings: dict[str, Any] = {"epsilon": 1.0, setting: value}
    with pytest.raises(ValueError, match=f"{setting} must be"):
        Accuracy(**settings)
