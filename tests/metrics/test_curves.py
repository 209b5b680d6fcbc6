"""Areas and curves from counts, against those of records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.metrics import curves
from tacit.metrics.ranking import auc, auc_with_variance

CELLS = st.lists(st.integers(0, 20), min_size=4, max_size=4)


@given(CELLS.filter(any), CELLS.filter(any))
def test_areas_are_shares_of_pairs(positive_counts: list[int], negative_counts: list[int]) -> None:
    positives, negatives = np.array(positive_counts), np.array(negative_counts)
    cells = np.concatenate([np.repeat(range(4), each) for each in (positives, negatives)])
    expected = auc(cells, np.repeat([1, 0], [positives.sum(), negatives.sum()]))
    assert float(curves.cell_area(positives, negatives)) == pytest.approx(expected)
    across, up = curves.rates(
        *(curves.counts_from_thresholds(positives), curves.counts_from_thresholds(negatives)),
        negatives.sum() - curves.counts_from_thresholds(negatives),
        positives.sum() - curves.counts_from_thresholds(positives),
    )
    assert float(curves.trapezoid_area(across, up)) == pytest.approx(expected)


@given(CELLS.filter(any), CELLS.filter(any), st.integers(0, 3))
def test_influences_are_the_derivatives_of_the_area(
    positive_counts: list[int], negative_counts: list[int], cell: int
) -> None:
    positives, negatives = (
        np.array(positive_counts, dtype=float),
        np.array(negative_counts, dtype=float),
    )
    step = np.zeros(4)
    step[cell] = 1e-5
    by_positive, by_negative = curves.cell_influences(positives, negatives)
    plain = float(curves.cell_area(positives, negatives))
    more = float(curves.cell_area(positives + step, negatives))
    assert (more - plain) / 1e-5 == pytest.approx(float(by_positive[cell]), abs=1e-3)
    more = float(curves.cell_area(positives, negatives + step))
    assert (more - plain) / 1e-5 == pytest.approx(float(by_negative[cell]), abs=1e-3)


def test_the_density_correction_is_exact_for_linear_densities() -> None:
    """Density 2x against 2(1-x) on [0, 1]: the AUC is 5/6; the correction leaves under 1 %."""
    edges = np.linspace(0, 1, 21)
    positives = np.diff(edges**2)
    negatives = positives[::-1]
    plain = float(curves.cell_area(positives, negatives))
    corrected = plain + float(curves.density_correction(positives, negatives))
    assert abs(corrected - 5 / 6) < 0.01 * abs(plain - 5 / 6)


@pytest.mark.parametrize(
    ("positives", "negatives"), [([30, 60, 90], [80, 50, 40]), ([1, 2, 1], [2, 1, 1])]
)
def test_the_placement_variance_is_that_of_records_thrown_into_their_cells(
    positives: list[int], negatives: list[int]
) -> None:
    """3,000 throws: the variance's own error is 2.6 %, so 13 % is five of them."""
    rng = np.random.default_rng(1)
    labels = np.repeat([1, 0], [sum(positives), sum(negatives)]).astype(np.int8)
    cells = np.concatenate([np.repeat([0, 1, 2], counts) for counts in (positives, negatives)])
    areas = [auc(cells + rng.random(cells.size), labels) for _ in range(3000)]
    stated = float(curves.placement_variance(np.array(positives), np.array(negatives)))
    assert np.var(areas) == pytest.approx(stated, rel=0.13)


def test_noise_leaves_no_sampling_variance_of_almost_nothing() -> None:
    """400 records in 256 cells under noise of 8 errors a cell: a quarter has no variance left."""
    rng = np.random.default_rng(3)
    labels = np.repeat([1, 0], [100, 300]).astype(np.int8)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    cells = np.minimum((256 * scores).astype(int), 255)
    exact = [np.bincount(cells[labels == each], minlength=256) for each in (1, 0)]
    true = auc_with_variance(scores, labels)[1]
    noisy = [[each + rng.normal(0, 2, 256) for each in exact] for _ in range(400)]
    direct = np.array([float(curves.cell_sampling_variance(*each)) for each in noisy])
    assert np.mean(direct < true / 4) > 0.1
    area = np.array(0.76)
    kept = np.array(
        [float(curves.noisy_sampling_variance(each[0], each[1], area)) for each in noisy]
    )
    assert kept.min() > true / 5
    believed = direct > true / 3
    np.testing.assert_array_equal(kept[believed], direct[believed])
    few = float(curves.noisy_sampling_variance(exact[0], exact[1], area))
    assert few == float(curves.cell_sampling_variance(*exact)) == pytest.approx(true, rel=0.02)


def test_merging_pairs_keeps_every_record() -> None:
    np.testing.assert_array_equal(curves.merge_pairs(np.array([1, 2, 3, 4, 5])), [3, 7, 5])


def test_an_empty_class_has_no_area() -> None:
    assert np.isnan(curves.cell_area(np.zeros(3), np.ones(3)))
