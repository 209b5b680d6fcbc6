"""The exact AUC and its sampling error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit import Clients, ExactAUC, evaluate
from tacit.protocol import Ragged
from tacit.protocols.baselines import _bits_in_bytes, _unpacked

Floats = NDArray[np.float64]


NORMAL_RATINGS, ABNORMAL_RATINGS = (33, 6, 6, 11, 2), (3, 2, 2, 11, 33)
"""How often a reader rated 58 normal and 51 abnormal CT images 1 to 5 (Hanley and McNeil 1982)."""


def test_the_interval_of_published_ratings_is_the_published_one() -> None:
    """What Stata's manual prints of ``roctab`` for these ratings, most of which are tied."""
    ratings = np.arange(1.0, 6.0)
    scores = np.concatenate(
        [np.repeat(ratings, NORMAL_RATINGS), np.repeat(ratings, ABNORMAL_RATINGS)]
    )
    labels = np.repeat([0, 1], [sum(NORMAL_RATINGS), sum(ABNORMAL_RATINGS)])
    result = evaluate(Clients.split(scores, labels, 4, seed=0), ExactAUC()).auc
    assert result.value == pytest.approx(0.8932, abs=5e-5)
    assert result.sampling_error == pytest.approx(0.0307, abs=5e-5)
    low, high = result.interval(0.95, about="population")
    assert (low, high) == pytest.approx((0.83295, 0.95339), abs=5e-6)


def test_a_client_sends_one_label_for_each_score() -> None:
    _, offsets = _bits_in_bytes(np.array([9], dtype=np.int64))
    short = Ragged(np.zeros(1, dtype=np.uint8), np.array([0, 1]))
    assert offsets.tolist() == [0, 2]
    with pytest.raises(ValueError, match="one label for each score"):
        _unpacked(short, np.array([9], dtype=np.int64))


def test_a_lone_record_of_a_class_leaves_the_sampling_error_unknown() -> None:
    result = evaluate(Clients.from_arrays([0.1, 0.5, 0.3], [0, 1, 0]), ExactAUC())
    assert result.auc.value == 1
    assert math.isnan(result.auc.sampling_error)
    assert result.to_dict()["auc"]["population_interval"] == [None, None]


def test_classes_told_apart_without_a_mistake_are_warned_of() -> None:
    result = evaluate(Clients.from_arrays([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]), ExactAUC())
    assert result.auc.interval(about="population") == (1.0, 1.0)
    assert "the interval about the population is too narrow" in result.warnings[-1]
