"""An earlier release in place of looks: all of epsilon goes to one number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit import Clients, ClientState, ScoreHistogram, evaluate
from tacit.privacy.cost import Adjacency
from tacit.privacy.sampling.noise import NoNoise, SystemNoise
from tacit.protocol.conversation import Query, View
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocols.histogram.forecast import tree_forecast
from tacit.protocols.histogram.second_round import summed_influences
from tacit.protocols.shared.prior_curves import PriorCurves
from tacit.protocols.shared.sums.whole_units import units_for
from tacit.running.evaluating import exact_auc, repeat_results
from tacit.testing.rehearsal import rehearse
from tests.federations import binormal_clients

EVEN = PriorCurves("probability", (0.2, 0.5, 0.8), (0.4, 0.7, 0.9), 60.0, 90.0, 2.0, (0.1, 0.1))
"""Curves of any earlier release."""


def released(clients: Clients, **settings: object) -> PriorCurves:
    first = evaluate(clients, ScoreHistogram("secure-sum", 1.0, **settings), seed=1)  # type: ignore[arg-type]
    assert isinstance(first.release, PriorCurves)
    return first.release


@pytest.mark.parametrize("settings", [{}, {"aim": "all"}, {"second_round": 0.5}])
def test_the_number_alone_errs_least_and_is_covered(settings: dict[str, object]) -> None:
    """Of 2,000 runs 0.95 are covered but for 4 standard errors: false alarms below 1e-4."""
    clients = binormal_clients(20_000, 40_000, 10)
    prior, exact = released(clients, **settings), exact_auc(clients)
    protocol = ScoreHistogram("secure-sum", 1.0, prior=prior)
    later = evaluate(clients, protocol, seed=2)
    assert later.spent.epsilon == 1.0
    assert later.traffic.rounds == 1
    assert later.roc is None
    several = repeat_results(clients, protocol, 2000, seed=3)
    assert several.covers(exact).mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 2000)
    planned = tree_forecast(protocol, Scenario(60_000, 20_000, 10, 1.0), Shape(0.8))
    assert planned.standard_error == pytest.approx(later.auc.standard_error)
    # the number's own error at the whole of epsilon, and little more
    floor = np.sqrt(2) * max(exact, 1 - exact) / 20_000
    assert 0.95 * floor < (several.value - exact).std() < 1.15 * floor


def test_crowded_scores_are_counted_at_the_knots_of_the_release() -> None:
    plain = binormal_clients(20_000, 40_000, 10)
    clients = replace(plain, scores=0.5 + (plain.scores - 0.5) / 50)
    prior = released(clients)
    assert prior.straight
    protocol = ScoreHistogram("secure-sum", 1.0, prior=prior)
    several = repeat_results(clients, protocol, 500, seed=3)
    assert several.covers(exact_auc(clients)).mean() > 0.9


@pytest.mark.parametrize("adjacency", ["record", "replace"])
def test_a_neighbour_moves_the_sum_by_no_more_than_its_units(adjacency: str) -> None:
    """Noise of scale units / epsilon then costs epsilon, all that the run declares."""
    protocol = ScoreHistogram("secure-sum", 0.5, adjacency=adjacency, prior=EVEN)  # type: ignore[arg-type]
    query = Query(summed_influences, protocol, {"clients": 1}, view=View.SUM)
    scores = np.array([0.01, 0.2, 0.4, 0.45, 0.6, 0.97])
    labels = np.array([0, 1, 0, 1, 1, 0])
    base = Clients.from_arrays(scores, labels)

    def total(clients: Clients) -> int:
        return int(np.asarray(query.step.answer(clients, query, NoNoise(), ClientState())["sum"]))

    grid = [(score, label) for score in np.linspace(0, 1, 41) for label in (0, 1)]
    joined = [
        Clients.from_arrays(np.append(scores, score), np.append(labels, label))
        for score, label in grid
    ]
    moves = [abs(total(clients) - total(base)) for clients in joined]
    if adjacency == "replace":
        moves = [max(map(total, joined)) - min(map(total, joined))]
    assert max(moves) <= units_for(0.5)
    assert max(moves) > 0.8 * units_for(0.5)
    cost = query.step.cost(base, query, ClientState())
    assert (cost.epsilon, cost.adjacency) == (0.5, Adjacency(adjacency))
    assert protocol.influence_noise(protocol.noise_share(1, 1)).epsilon == 0.5
    noisy = query.step.answer(base, query, SystemNoise(), ClientState())["sum"]
    assert np.asarray(noisy).dtype == np.int64


def test_parties_agree_on_the_curves_and_send_one_sum() -> None:
    """Noise from the system: one Laplace draw exceeds ten deviations once in 10^6 runs."""
    clients = binormal_clients(3000, 4000, 3, seed=4)
    prior = released(clients)
    run = rehearse(clients, ScoreHistogram("secure-sum", 4.0, prior=prior))
    assert (run.spent.epsilon, run.rounds) == (4.0, 1)
    result = run.server_result
    assert abs(float(result.value) - exact_auc(clients)) < 10 * float(result.standard_error)


def test_what_has_no_use_or_cannot_be_is_refused() -> None:
    for settings, told in (
        ({"second_round": 0.5}, "second_round must be None with a prior, got 0.5"),
        ({"height": 5}, "height must be None with a prior, got 5"),
        ({"scale": "even"}, "prior: scale must be 'even', got 'probability'"),
        ({"budget": "sample"}, "prior belongs to secure-sum with budget 'split'"),
        ({"trust": "local"}, "prior belongs to secure-sum"),
    ):
        with pytest.raises(ValueError, match=told):
            ScoreHistogram(**{"trust": "secure-sum", "epsilon": 1.0, "prior": EVEN, **settings})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a knot at each of 3 inner edges, got 2"):
        replace(EVEN, knots=(0.2, 0.4))
    with pytest.raises(ValueError, match="hidden_error must be at least 0 and finite, got nan"):
        replace(EVEN, hidden_error=float("nan"))
    for knots in ((0.9, 0.5, 0.2), (-1.0, 0.5, 0.6), (float("nan"), 0.5, 0.6)):
        with pytest.raises(ValueError, match="prior: knots must be finite and ascend"):
            ScoreHistogram("secure-sum", 1.0, prior=replace(EVEN, knots=knots))
    with pytest.raises(ValueError, match="prior: class sizes must be of comparable size"):
        replace(EVEN, positives=1e-300, negatives=1e300, positives_error=0.0)
    again = replace(ScoreHistogram("secure-sum", 1.0, prior=EVEN), epsilon=0.5)
    assert (again.influence_cost.epsilon, again.steps) == (0.5, (summed_influences,))
    assert evaluate(binormal_clients(200, 200, 2), ScoreHistogram("exact-sum")).release is None
