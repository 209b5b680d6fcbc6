"""FedAUC by secure sums: its error at any number of clients, and servers that lie to a client."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit
from tacit import Clients, FedAUC
from tacit.counts.influence import units_for
from tacit.privacy.cost import MAX_BUDGET, MIN_BUDGET
from tacit.privacy.exact import MAX_SHARED_SCALE
from tacit.protocol import ClientState, DataError, NoNoise, Query, Ragged, Released, Step, View
from tacit.protocol.declared import asked_views
from tacit.protocols.fedauc import secure_sums
from tacit.protocols.shared.counting import number_field
from tacit.running.evaluating import repeat_results
from tacit.running.simulation import simulate

SUMMED = FedAUC(1.0, trust="secure-sum")
EIGHT = Clients.from_arrays(np.arange(8) / 8, [0, 1] * 4)
SCORES, LABELS = tacit.binormal_scores(2000, 6000, 0.8, seed=3)


def clients_of(count: int) -> Clients:
    return Clients.split(SCORES, LABELS, clients=count, seed=0)


def keep(clients: Clients, ranks: NDArray[np.int64] | None = None) -> ClientState:
    """The state of clients that received these doubled ranks, or 0, 2, 4, ..."""
    values = 2 * np.arange(clients.records) if ranks is None else ranks
    state = ClientState()
    query = Query(
        secure_sums.keep_ranks,
        SUMMED,
        {"records": clients.records},
        {"ranks": Ragged(values.astype(np.int64), clients.offsets)},
    )
    secure_sums.keep_ranks.answer(clients, query, NoNoise(), state)
    return state


def residual_query(
    clients: Clients, step: Step = secure_sums.summed_residuals, **changes: Any
) -> Query:
    shared = {
        "clients": clients.count,
        "records": clients.records,
        "epsilon": 1.0,
        "pivot": np.array(3, dtype=np.int64),
    }
    return Query(step, SUMMED, shared | changes, view=View.SUM)


@pytest.mark.parametrize("count", [1, 10, 800])
def test_the_error_does_not_grow_with_the_number_of_clients(count: int) -> None:
    """Within 8 % of the first-order limit ``sqrt(2) max(c, M-c) / (epsilon P N)``.

    Seeded. Of 2,000 repetitions the standard deviation is known to 2.4 % (Laplace noise), and the
    bound lies 10 % above the expected 1.06: a noise scale 30 % off is rejected.
    """
    clients = clients_of(count)
    result = repeat_results(clients, SUMMED, 2000, seed=7)
    exact = SUMMED.exact(clients)
    centre = 2000 - 0.5 + exact * (8000 - 2 * 2000)
    limit = np.sqrt(2) * max(centre, 8000 - centre) / (2000 * 6000)
    measured = float(np.std(result.value - exact))
    parts = secure_sums.divided(8000, 1.0)
    expected = limit / (1 - parts.first)
    assert 0.9 * expected < measured < 1.1 * expected
    assert abs(np.mean(result.privacy_error) / measured - 1) < 0.1
    assert abs(np.mean(result.value) - exact) < 5 * measured / np.sqrt(2000) + 1e-5


@pytest.mark.parametrize("records", [2, 8000, 10**6, 10**9])
@pytest.mark.parametrize("epsilon", [MIN_BUDGET, 0.002, 0.004, 0.02, 1.0, MAX_BUDGET])
def test_clients_can_draw_shares_of_all_noises(records: int, epsilon: float) -> None:
    """Otherwise each debits its ledger, and then fails to draw."""
    parts = secure_sums.divided(records, epsilon)
    spent = parts.first * epsilon
    fields = (
        Released((), 1, spent * parts.count),
        number_field(spent * (1 - parts.count)),
        number_field(epsilon - spent),
    )
    assert max(field.scale for field in fields) <= MAX_SHARED_SCALE


def test_a_class_that_does_not_show_gives_no_figure() -> None:
    first = secure_sums.FirstRound(np.array(50.0), 100.0, np.array(0.8), np.array(1.0))
    assert np.isnan(first.area_with(1000, np.array(900), np.array(10.0)))
    shown = secure_sums.FirstRound(np.array(70.0), 100.0, np.array(0.8), np.array(1.0))
    assert np.isfinite(shown.area_with(1000, np.array(900), np.array(10.0)))


def test_a_client_that_vanished_ends_the_run() -> None:
    clients = clients_of(5)
    with pytest.raises(DataError, match="all 6 clients that were ranked"):
        simulate(clients, SUMMED, NoNoise(), asked=6)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 1.1}, "epsilon must be above 0 and at most 1.0, got 1.1"),
        ({"epsilon": "1"}, "epsilon must be above 0"),
        ({"epsilon": float("nan")}, "epsilon must be above 0"),
        ({"pivot": np.array(-1)}, "a doubled pivot must be from 0 to 14"),
        ({"pivot": np.array(15)}, "a doubled pivot must be from 0 to 14"),
        ({"pivot": np.array(3.5)}, "pivot must be a 64-bit integer"),
        ({"pivot": np.array([3, 4])}, "pivot must be a 64-bit integer"),
        ({"records": 0}, "records must be at least 1"),
        ({"records": 5}, "reach beyond the 5 records"),
        *(
            (
                {"step": secure_sums.summed_rank_pairs, "count_part": part},
                "must be above 0 and below 1",
            )
            for part in (0.0, 1.0, "half")
        ),
    ],
)
def test_queries_that_would_weaken_the_noise_are_refused(
    changes: dict[str, Any], said: str
) -> None:
    query = residual_query(EIGHT, **changes)
    with pytest.raises((ValueError, DataError), match=said):
        query.step.cost(EIGHT, query, ClientState())
        query.step.answer(EIGHT, query, NoNoise(), keep(EIGHT))


def test_ranks_that_were_not_sent_or_reach_too_far_are_refused() -> None:
    query = residual_query(EIGHT)
    with pytest.raises(DataError, match="has not received the ranks"):
        query.step.answer(EIGHT, query, NoNoise(), ClientState())
    with pytest.raises(ValueError, match="must be at most 14"):
        keep(EIGHT, np.array([0, 1, 2, 3, 4, 5, 6, 15]))


def test_more_records_than_any_sum_is_exact_for_are_refused() -> None:
    """Where they are announced after the ranks, and a sum about a far pivot wraps.

    Of 2.1 million positives a pivot of 2**42 makes a sum beyond 64 bits: one label then moved the
    answer by millions of times its sensitivity.
    """
    records = 2**21 + 2**19
    labels = np.repeat([0, 1], [2**18, records - 2**18])
    clients = Clients.from_arrays(np.arange(records) / records, labels)
    state = keep(clients)
    positives = int(labels.sum())
    rank_sum = int((2 * np.arange(records) * labels).sum())
    pivot = np.array((2**63 + rank_sum) // positives)
    for step in (secure_sums.summed_residuals, secure_sums.summed_rank_pairs):
        query = residual_query(clients, step, records=2**41, pivot=pivot, count_part=0.5)
        with pytest.raises(ValueError, match="the sum would not be exact"):
            step.answer(clients, query, NoNoise(), state)


@pytest.mark.parametrize("epsilon", [0.5, 20.0, 700.0])
def test_the_largest_sums_are_rounded_as_whole_numbers(epsilon: float) -> None:
    """The most records that a sum is exact for, and units of a large budget."""
    protocol = FedAUC(epsilon, trust="secure-sum")
    records = 1_518_500_249
    top = 2 * (records - 1)
    clients = Clients.from_arrays(np.arange(3) / 3, [0, 1, 1])
    state = ClientState()
    ranks = Ragged(np.array([0, top // 3, top]), clients.offsets)
    announced = {"records": records}
    query = Query(secure_sums.keep_ranks, protocol, announced, {"ranks": ranks})
    secure_sums.keep_ranks.answer(clients, query, NoNoise(), state)
    for pivot in (0, top // 7, top):
        shared = announced | {"clients": 1, "epsilon": epsilon, "pivot": np.array(pivot)}
        asked = Query(secure_sums.summed_residuals, protocol, shared, view=View.SUM)
        sent = secure_sums.summed_residuals.answer(clients, asked, NoNoise(), state)["residual"]
        total, reach = top // 3 + top - 2 * pivot, max(pivot, top - pivot)
        exact = Fraction(total * units_for(epsilon), reach)
        assert int(np.asarray(sent)) == math.floor(exact + Fraction(1, 2))


def test_the_server_sees_no_noisy_number_of_a_single_client() -> None:
    views = dict(asked_views(SUMMED))
    noisy = {name for name, view in views.items() if view == View.SUM.value}
    assert noisy == {"summed_rank_pairs", "summed_residuals"}
    assert views.keys() - noisy == {"share_scores", "keep_ranks"}
    assert View.SUM.value not in dict(asked_views(FedAUC(1.0))).values()
