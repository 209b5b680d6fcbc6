"""A score and a scorer in scikit-learn's shape."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

import tacit
from tacit.sklearn import PrivateScorer, private_roc_auc_score

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(3000, 3))
LABELS = (FEATURES[:, 0] + RNG.normal(size=3000) > 0).astype(np.int64)
SITES = np.arange(3000) % 3


def test_the_score_is_that_of_evaluate() -> None:
    scores = 1 / (1 + np.exp(-FEATURES[:, 0]))
    value = private_roc_auc_score(
        LABELS, scores, client=SITES, protocol="fedauc", epsilon=1.0, seed=3
    )
    clients = tacit.Clients.from_arrays(scores, LABELS, SITES)
    assert value == tacit.evaluate(clients, tacit.FedAUC(1.0), seed=3).auc.value
    assert isinstance(value, float)


def test_a_search_counts_what_it_spends() -> None:
    scorer = PrivateScorer(epsilon=0.5, protocol="score-histogram", height=5)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=scorer, cv=2)
    search.fit(FEATURES, LABELS)
    assert scorer.calls == 4
    assert scorer.spent.epsilon == 2.0
    assert 0.5 < search.best_score_ <= 1.0


def test_decision_functions_are_real_numbers_of_clients() -> None:
    scorer = PrivateScorer(epsilon=1.0, client=lambda rows: np.arange(len(rows)) % 3)
    assert 0.5 < scorer(LinearSVC().fit(FEATURES, LABELS), FEATURES, LABELS) <= 1.0
    assert scorer.results[0].unit == "real"
    assert scorer.results[0].clients == 3
    assert scorer.results[0].noise == "system"


def test_several_classes_and_no_scores_are_refused() -> None:
    classes = np.arange(3000) % 3
    with pytest.raises(TypeError, match="the AUC is of two classes"):
        PrivateScorer(1.0)(LogisticRegression().fit(FEATURES, classes), FEATURES, classes)
    with pytest.raises(TypeError, match="neither predict_proba nor decision_function"):
        PrivateScorer(1.0)(object(), FEATURES, LABELS)
