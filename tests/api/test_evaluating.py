"""``tacit.evaluate`` takes names, a default and plain records, and names likely mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.planning.planner import choose

SCORES, LABELS = tacit.binormal_scores(400, 1600, 0.8, seed=0)
SITES = np.arange(2000) % 4
FRAME = pd.DataFrame({"score": SCORES, "label": LABELS, "site": SITES})
CLIENTS = tacit.Clients.from_arrays(SCORES, LABELS, SITES)


def test_a_name_with_settings_is_the_protocol() -> None:
    by_name = tacit.evaluate(FRAME, "Score_Histogram", 1, client="site", epsilon=1, height=5)
    protocol = tacit.ScoreHistogram(epsilon=1.0, height=5)
    assert by_name == tacit.evaluate(CLIENTS, protocol, seed=1)
    assert by_name.choice is None


def test_without_a_protocol_the_default_runs_and_says_so() -> None:
    result = tacit.evaluate((SCORES, LABELS, SITES), seed=1, epsilon=1.0)
    chosen = choose(4, 2000, 1.0)
    assert result.choice == chosen.line
    assert result.estimate == tacit.evaluate(CLIENTS, chosen.protocol, seed=1).estimate
    assert result.to_dict()["choice"] == chosen.line


def test_plain_records_get_noise_from_the_system() -> None:
    assert tacit.evaluate((SCORES, LABELS), epsilon=1.0).noise == "system"


@pytest.mark.parametrize(
    ("error", "arguments", "settings", "said"),
    [
        (TypeError, (CLIENTS, tacit.FedAUC), {}, r"the class FedAUC: write FedAUC\(epsilon=1.0\)"),
        (TypeError, (CLIENTS, tacit.ExactAUC), {}, r"write ExactAUC\(\)"),
        (TypeError, (CLIENTS, 1.0), {}, "got 1.0: write epsilon=1.0"),
        (TypeError, (SCORES, LABELS), {"epsilon": 1}, r"one argument, \(scores, labels\)"),
        (TypeError, (CLIENTS, tacit.FedAUC(1.0)), {"epsilon": 2}, "epsilon cannot be given toge"),
        (TypeError, (CLIENTS,), {"epsilon": 1, "epsilom": 2.0}, "unknown arguments 'epsilom'"),
        (TypeError, (CLIENTS, object()), {}, "got object"),
        (ValueError, (CLIENTS, "fedauk"), {"epsilon": 1}, "did you mean 'fedauc'"),
        (ValueError, (CLIENTS, "fedauc"), {}, "fedauc needs the setting 'epsilon'"),
        (ValueError, (CLIENTS, "fedauc"), {"epsilon": 1, "heigth": 3}, "no setting 'heigth'"),
        (
            ValueError,
            (CLIENTS,),
            {"epsilon": "abc"},
            "epsilon must be a positive number, got 'abc'",
        ),
        (ValueError, (CLIENTS,), {}, "epsilon is needed with trust secure-sum"),
    ],
)
def test_likely_mistakes_are_named(
    error: type[Exception], arguments: tuple[Any, ...], settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(error, match=said):
        tacit.evaluate(*arguments, **settings)


@pytest.mark.parametrize("call", [tacit.repeat, tacit.compare, tacit.evaluate_groups])
def test_a_frame_where_clients_are_meant_is_named(call: Any) -> None:
    more = {tacit.repeat: (tacit.FedAUC(1.0), 2), tacit.compare: (None, tacit.FedAUC(1.0))}
    rest = more.get(call, (tacit.Groups.from_arrays(SITES), tacit.FedAUC(1.0)))
    with pytest.raises(TypeError, match=r"got DataFrame: make them by tacit.Clients.from_frame"):
        call(FRAME, *rest)
