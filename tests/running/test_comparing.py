"""compare: one spend for two models, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import DPAUC, Clients, ClientState, DataError, FedAUC, compare
from tacit.privacy.noise import NoNoise
from tacit.running.evaluating import exact_auc


def two_models(records: int = 3000) -> tuple[Clients, Clients]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, records)
    scores = rng.normal(labels, 1.0)
    sites = rng.choice(["north", "south", "west"], records)
    first = Clients.from_arrays(scores, labels, sites)
    return first, replace(first, scores=first.scores + rng.normal(0, 0.7, records))


def test_one_spend_gives_three_figures_that_agree() -> None:
    first, second = two_models()
    comparison = compare(first, second, FedAUC(2.0), seed=1, exact=True)
    assert comparison.spent == tacit.Cost(2.0, adjacency=tacit.Adjacency.LABEL)
    assert comparison.exact == (exact_auc(first), exact_auc(second))
    apart = comparison.first.value - comparison.second.value
    assert comparison.difference.value == pytest.approx(apart, abs=1e-12)
    assert comparison.difference.standard_error < comparison.first.standard_error / 3
    assert comparison.run.noise == "simulated"
    assert comparison.run.simulated
    assert any("simulation" in warning for warning in comparison.run.warnings)


@pytest.mark.parametrize("form", ["clients", "array", "second"])
def test_the_second_model_may_come_in_three_forms(form: str) -> None:
    first, second = two_models(300)
    inputs: Any = {"clients": second, "array": second.scores, "second": None}[form]
    stored = replace(first, second=second.scores) if form == "second" else first
    comparison = compare(stored, inputs, FedAUC(1.0), seed=1, exact=True)
    assert comparison.exact == (exact_auc(first), exact_auc(second))


def test_flipped_labels_serve_further_comparisons() -> None:
    first, second = two_models()
    state, response = ClientState(same_places=True), FedAUC(1.0, trust="local")
    assert compare(first, second, response, seed=1, state=state).spent.epsilon == 1.0
    third = replace(first, scores=-first.scores)
    again = compare(first, third, response, seed=2, state=state)
    assert again.spent.epsilon == 0.0
    assert again.better() == "first"


def test_the_verdict_follows_the_interval() -> None:
    first, second = two_models()
    assert compare(first, second, FedAUC(2.0), seed=1).better() == "first"
    assert compare(second, first, FedAUC(2.0), seed=1).better() == "second"
    alike = compare(first, first.scores + 0.0, FedAUC(2.0), seed=1)
    assert alike.better() == ""
    assert dict(alike.to_rows())["better"].startswith("neither")


def test_a_comparison_without_signal_has_no_verdict() -> None:
    first = Clients.split(np.arange(6) / 6, [0, 1] * 3, 2, seed=0)
    results = [compare(first, -first.scores, FedAUC(0.01), seed=seed) for seed in range(20)]
    silent = [one for one in results if not one.has_signal]
    assert silent
    assert all(one.better() == "" for one in silent)
    content = silent[0].to_dict()
    assert content["difference"]["value"] is None
    assert "not enough signal" in dict(silent[0].to_rows())["first less second"]
    assert "not enough signal" in silent[0]._repr_html_()


def refused() -> list[tuple[Any, Any, Any, str]]:
    first, second = two_models(30)
    labels = first.labels.copy()
    labels[3] = 1 - labels[3]
    message = f"different labels in {first.location(3)}"
    return [
        (replace(second, labels=labels), FedAUC(1.0), {}, message),
        (second.part(0, 2), FedAUC(1.0), {}, "same clients with the same records"),
        (second.scores[:-1], FedAUC(1.0), {}, "30 scores but 29 second values"),
        (None, FedAUC(1.0), {}, "second model's scores"),
        (second, DPAUC(1.0), {}, "compared by fedauc, score-histogram, got dpauc"),
        (second, FedAUC(1.0, "secure-sum"), {}, "trust must be one of each, local"),
        (second, FedAUC(1.0), {"names": ("a", "a")}, "two models need two names"),
        (second, FedAUC(1.0), {"noise": NoNoise(), "seed": 1}, "a seed or a noise source"),
    ]


@pytest.mark.parametrize("place", range(len(refused())))
def test_what_cannot_be_compared_is_refused(place: int) -> None:
    second, protocol, others, match = refused()[place]
    with pytest.raises((DataError, ValueError), match=match):
        compare(two_models(30)[0], second, protocol, **others)
