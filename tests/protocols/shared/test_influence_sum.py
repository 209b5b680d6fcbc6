"""Summed influences against a sum that is taken record by record."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import Clients, DataError
from tacit.counts import influence
from tacit.counts.influence import FIXED_POINT, MOST_RECORDS, Influences, units_for, whole_units
from tacit.metrics.cells.score_distribution import LinearDistribution, ScoreDistribution
from tacit.privacy.cost import MAX_BUDGET, Adjacency
from tacit.running.evaluating import exact_auc

EDGES = np.array([0.25, 0.5, 0.75])
SHARES = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted)
SIZES = st.tuples(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9))
RECORDS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0, 1])), min_size=1, max_size=30)


def made(
    positives: list[float], negatives: list[float], sizes: tuple[float, float] = (30.0, 50.0)
) -> Influences:
    upper, lower = (ScoreDistribution(EDGES, np.array(values)) for values in (positives, negatives))
    return Influences.of(upper, lower, np.array(sizes))


def naive(influences: Influences, score: float, label: int) -> int:
    """The influence of one record, in fixed point."""
    area, weights = float(influences.area), influences.weights.tolist()
    if label:
        value = (float(influences.negatives.at([score])[0]) - area) * weights[0]
    else:
        value = (1 - float(influences.positives.at([score])[0]) - area) * weights[1]
    return round(value * FIXED_POINT)


@given(SHARES, SHARES, SIZES, RECORDS)
def test_totals_are_those_of_the_records(
    positives: list[float],
    negatives: list[float],
    sizes: tuple[float, float],
    records: list[tuple[float, int]],
) -> None:
    influences = made(positives, negatives, sizes)
    expected = sum(naive(influences, score, label) for score, label in records)
    scores, labels = zip(*records, strict=True)
    clients = Clients.from_arrays(scores, labels)
    assert influences.totals(clients).tolist() == [expected]


@given(SHARES, SHARES, SIZES, st.floats(0, 1), st.sampled_from([0, 1]))
def test_no_record_passes_the_ends(
    positives: list[float],
    negatives: list[float],
    sizes: tuple[float, float],
    score: float,
    label: int,
) -> None:
    influences = made(positives, negatives, sizes)
    least, largest = (int(end) for end in influences.ends)
    found = int(influences.totals(Clients.from_arrays([score], [label]))[0])
    assert least <= found <= largest
    assert int(influences.sensitivity(Adjacency.RECORD)) == max(-least, largest)
    assert int(influences.sensitivity(Adjacency.REPLACE)) == largest - least
    assert abs(largest - least - FIXED_POINT) <= 1


@pytest.mark.parametrize("at_once", [1, 7, 2**22])
def test_totals_of_clients_do_not_depend_on_the_groups(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    names = np.sort(rng.integers(0, 9, 60))
    clients = Clients.from_arrays(rng.random(60), rng.integers(0, 2, 60), names)
    rows = np.sort(rng.random((2, 2, 3)), axis=-1)
    upper, lower = (ScoreDistribution(EDGES, row) for row in rows)
    influences = Influences.of(upper, lower, np.array([[30.0, 50.0], [70.0, 20.0]]))
    monkeypatch.setattr(influence, "RECORDS_AT_ONCE", at_once)
    found = influences.totals(clients)
    for row in range(2):
        alone = made(
            rows[0][row].tolist(), rows[1][row].tolist(), ((30.0, 50.0), (70.0, 20.0))[row]
        )
        parts = (clients.part(k, k + 1) for k in range(clients.count))
        assert found[row].tolist() == [int(alone.totals(part)[0]) for part in parts]


@pytest.mark.parametrize("kind", [ScoreDistribution, LinearDistribution])
def test_replicates_of_many_records_have_the_same_sums(
    kind: type[ScoreDistribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    names = np.sort(rng.integers(0, 9, 5_000))
    clients = Clients.from_arrays(rng.random(5_000), rng.integers(0, 2, 5_000), names)
    upper, lower = (kind(EDGES, np.sort(rng.random((7, 3)))) for _ in range(2))
    influences = Influences.of(upper, lower, rng.integers(1, 99, (7, 2)).astype(np.float64))
    found = influences.totals(clients)
    monkeypatch.setattr(influence, "MOMENTS_FROM", clients.records + 1)
    # a record's influence is rounded by at most half a unit
    assert np.abs(found - influences.totals(clients)).max() < np.sqrt(clients.records)


def test_an_error_of_one_function_cancels() -> None:
    """Where one function is true, the sum corrects whatever the other says.

    Negatives are evenly spread, which the published straight line says. What is left is the width
    of the steps between them.
    """
    size = 400
    even = (np.arange(size) + 0.5) / size
    clients = Clients.from_arrays(np.concatenate([even, np.sqrt(even)]), np.repeat([0, 1], size))
    for wrong in ([0.0, 0.1, 0.9], [0.2, 0.5, 0.6]):
        influences = made(wrong, [0.25, 0.5, 0.75], (float(size), float(size)))
        total = float(influences.totals(clients)[0]) / FIXED_POINT
        found = float(influences.area) + total / size
        assert abs(found - float(influences.area)) > 0.01
        assert found == pytest.approx(exact_auc(clients), abs=1 / (4 * size))


def test_what_is_no_influence_is_refused() -> None:
    function = ScoreDistribution(EDGES, EDGES)
    weights = np.array([1.0, 0.5])
    for area in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="area must be from 0 to 1"):
            Influences(function, function, np.array(area), weights)
    for weight in (0.0, 1.1, np.nan):
        with pytest.raises(ValueError, match="weights must be above 0 and at most 1"):
            Influences(function, function, np.array(0.5), np.array([1.0, weight]))


@given(
    SHARES,
    SHARES,
    st.tuples(st.floats(1e-150, 1e150), st.floats(1e-150, 1e150)),
    st.integers(MOST_RECORDS - 4, MOST_RECORDS),
    st.sampled_from([Adjacency.RECORD, Adjacency.REPLACE]),
    st.integers(1, units_for(MAX_BUDGET)),
)
def test_the_largest_sum_is_rounded_to_the_unit(
    positives: list[float],
    negatives: list[float],
    sizes: tuple[float, float],
    records: int,
    adjacency: Adjacency,
    units: int,
) -> None:
    """Whatever was published: a size far below the other's makes no sensitivity small."""
    influences = made(positives, negatives, sizes)
    reach = int(influences.sensitivity(adjacency))
    assert reach >= FIXED_POINT // 2
    for end in map(int, influences.ends):
        rounded = int(whole_units(np.array(records * end), reach, units))
        assert rounded == floor(Fraction(records * end * units, reach) + Fraction(1, 2))
        fewer = int(whole_units(np.array((records - 1) * end), reach, units))
        assert abs(rounded - fewer) <= units


def test_more_records_than_a_sum_holds_are_refused() -> None:
    """Influences of one sign, as a server can choose them: 2^31 records would wrap the sum."""

    class Many:
        sizes = np.array([3, MOST_RECORDS + 1])

    with pytest.raises(DataError, match="at most 1,073,741,824 records of a client, got 1,073,741"):
        made([1.0] * 3, [0.0] * 3).totals(Many())  # type: ignore[arg-type]
