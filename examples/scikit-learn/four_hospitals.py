"""Four hospitals fit models with scikit-learn, and measure them with tacit instead of pooling.

python examples/scikit-learn/four_hospitals.py
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, recall_score, roc_auc_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tacit

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hospital:
    """One hospital's records to train with and to test on: features, shape (n, 20), and labels."""

    train: tuple[Floats, NDArray[np.int64]]
    test: tuple[Floats, NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Measured:
    """What tacit found, and the pooled scores and labels that only this demonstration can see."""

    result: tacit.Evaluation
    scores: Floats
    labels: NDArray[np.int64]


def hospitals(records: int, seed: int) -> list[Hospital]:
    """Synthetic records, a fifth of them positive, dealt out to four hospitals."""
    features, labels = make_classification(
        records, 20, n_informative=8, weights=[0.8], flip_y=0.05, class_sep=0.8, random_state=seed
    )
    dealt = np.array_split(np.random.default_rng(seed).permutation(records), 4)
    made = []
    for part in dealt:
        split = train_test_split(features[part], labels[part], test_size=0.5, random_state=seed)
        made.append(Hospital((split[0], split[2]), (split[1], split[3])))
    return made


def model() -> LogisticRegression:
    """What every hospital fits; weighing the classes equally makes its scores too high."""
    return make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))


def measure(scores: list[Floats], labels: list[NDArray[np.int64]], seed: int) -> Measured:
    """One release about all hospitals' records, in place of ``roc_auc_score`` on pooled ones."""
    pooled, truth = np.concatenate(scores), np.concatenate(labels)
    owners = np.repeat(np.arange(len(scores)), [part.size for part in scores])
    clients = tacit.Clients.from_arrays(pooled, truth, owners)
    protocol = tacit.ScoreHistogram("secure-sum", epsilon=1.0)
    return Measured(tacit.evaluate(clients, protocol, seed), pooled, truth)


def held_out(sites: list[Hospital], seed: int) -> Measured:
    """Measure, on held-out records, the mean of the models that all hospitals show each other."""
    models = [model().fit(*site.train) for site in sites]
    scores = [np.mean([m.predict_proba(site.test[0])[:, 1] for m in models], 0) for site in sites]
    return measure(scores, [site.test[1] for site in sites], seed)


def cross_validated(sites: list[Hospital], seed: int) -> Measured:
    """Measure by cross-validation: a record is scored once, out of fold, hence pays once."""
    scores = [
        cross_val_predict(model(), *site.train, cv=5, method="predict_proba")[:, 1]
        for site in sites
    ]
    return measure(scores, [site.train[1] for site in sites], seed)


def main(words: list[str] | None = None) -> None:
    """Print private figures beside exact ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=24_000)
    parser.add_argument("--seed", type=int, default=0)
    requested = parser.parse_args(words)
    sites = hospitals(requested.records, requested.seed)
    tested = held_out(sites, requested.seed)
    rate = tested.result.at(0.3)["recall"]
    mapped = tested.result.calibrator("isotonic").transform(tested.scores)
    lines = [("AUC", tested, tested.result.auc, roc_auc_score(tested.labels, tested.scores))]
    lines += [("recall at 0.3", tested, rate, recall_score(tested.labels, tested.scores >= 0.3))]
    crossed = cross_validated(sites, requested.seed + 1)
    exact = roc_auc_score(crossed.labels, crossed.scores)
    lines += [("AUC, cross-validated", crossed, crossed.result.auc, exact)]
    print("95 % intervals are about these records")
    print("                      private                    exact    epsilon")
    for name, result, figure, truth in lines:
        low, high = figure.interval(0.95)
        value = f"{figure.value:.4f} ({low:.4f} to {high:.4f})"
        print(f"{name:20}  {value}  {truth:.4f}   {result.result.spent.epsilon:g}")
    before, after = (brier_score_loss(tested.labels, part) for part in (tested.scores, mapped))
    print(f"Brier score of the held-out scores: {before:.4f}, and recalibrated {after:.4f}")
    print("The first two figures and the calibrator come from one release.")


if __name__ == "__main__":
    main()
