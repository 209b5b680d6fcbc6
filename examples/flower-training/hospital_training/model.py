"""A logistic regression in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEATURES = 12
STEPS = 10
RATE = 0.5


def fresh_weights() -> Floats:
    """Where training begins, shape (FEATURES + 1,); the last one is the intercept."""
    return np.zeros(FEATURES + 1)


def scores_of(weights: Floats, features: Floats) -> Floats:
    """Predicted probabilities, shape (n,)."""
    return np.asarray(1 / (1 + np.exp(-(features @ weights[:-1] + weights[-1]))))


def trained(weights: Floats, features: Floats, labels: Floats) -> Floats:
    """The weights after ``STEPS`` steps of gradient descent on the log loss."""
    widened = np.column_stack([features, np.ones(labels.size)])
    for _ in range(STEPS):
        wrong = scores_of(weights, features) - labels
        weights = weights - RATE * (wrong @ widened) / labels.size
    return weights
