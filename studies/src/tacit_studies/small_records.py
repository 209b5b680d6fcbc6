"""Scores of small models on records that come with scikit-learn: a few hundred at most clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.clients import Clients
from tacit_studies.sources import Floats

FOLDS = 5


def breast_cancer() -> Clients:
    """569 records, 212 of them malignant: almost told apart.

    Examples
    --------
    >>> breast_cancer().records
    569
    """
    load_breast_cancer = _datasets().load_breast_cancer
    data = load_breast_cancer()
    return _scored(data.data, 1 - data.target)


def digits() -> Clients:
    """1,797 records of digits, odd or even: scores with errors on both sides."""
    load_digits = _datasets().load_digits
    data = load_digits()
    return _scored(data.data, data.target % 2)


def cancer_features() -> tuple[Floats, Floats]:
    """Smoothness, compactness and symmetry of 569 records, shape (3, 569), and which are malignant.

    Each feature is standardised. The three tell the classes apart with many errors.
    """
    data = _datasets().load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    columns = [names.index(f"mean {name}") for name in ("smoothness", "compactness", "symmetry")]
    chosen = np.asarray(data.data, dtype=np.float64)[:, columns]
    standard = (chosen - chosen.mean(axis=0)) / chosen.std(axis=0)
    return standard.T, np.asarray(1 - data.target, dtype=np.float64)


def _scored(features: Floats, labels: Any) -> Clients:
    """Each record with the probability of a logistic regression that was fit without its fold."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 -- an extra
    from sklearn.model_selection import cross_val_predict  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    odds = cross_val_predict(model, features, labels, cv=FOLDS, method="predict_proba")
    return Clients.from_arrays(odds[:, 1], np.asarray(labels))


def _datasets() -> Any:
    try:
        from sklearn import datasets  # noqa: PLC0415 -- an extra
    except ImportError:
        raise ImportError(
            "small records come with scikit-learn; install it with: pip install 'tacit[demo]'"
        ) from None
    return datasets
