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
from tacit.privacy.cost import MAX_BUDGET, MIN_BUDGET, Adjacency
from tacit.privacy.exact import MAX_SHARED_SCALE

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


def test_units_give_noise_of_the_largest_shared_scale() -> None:
    assert units_for(1.0) / 1.0 == MAX_SHARED_SCALE
    for epsilon in np.geomspace(MIN_BUDGET, MAX_BUDGET, 200).tolist():
        assert units_for(epsilon) / epsilon <= MAX_SHARED_SCALE
    assert units_for(1e-9) == 1
    assert units_for(MAX_BUDGET) < 2**26
