"""Masses under which randomised reports are likely, by expectation and maximisation, stopped early
(as Li et al. 2020 do for reports through a sliding window)."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats, Integers

MIN_GAIN = 0.1
"""Least gain of log-likelihood of an iteration: below it iterations end, as the rest is noise."""

MAX_ITERATIONS = 2000

MAX_STEP = 1.0
"""Largest log-change of a mass in one accelerated iteration."""

ACCELERATION_FRACTION = 1 / 3
"""Acceleration of the iterations, as a fraction of the largest that converges from equal masses."""


def estimated_masses(counts: Integers, probabilities: Floats, acceleration: float) -> Floats:
    """The masses of the inputs under which reports are likely, shape (..., inputs).

    Expectation and maximisation from equal masses, accelerated: an iteration computes ``m_i (sum_o
    (n_o / n) P_io / (m P)_o)^w``, scaled to a sum of 1, with m the masses, n_o of n reports of
    output o, P the probabilities and w the acceleration. Plain EM has w = 1. Where w would change a
    mass by a factor of more than ``exp(MAX_STEP)`` it is lower, but not below 1. Each row of counts
    stops when an iteration gains less than ``MIN_GAIN`` of log-likelihood. Without
    reports the masses stay equal.

    Parameters
    ----------
    counts : how often each output came, shape (..., outputs).
    probabilities : of every output for every input, shape (inputs, outputs).
    acceleration : at least 1; see ``acceleration_of``.

    Examples
    --------
    >>> import numpy as np
    >>> probabilities = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> estimated_masses(np.array([[500, 500], [900, 100]]), probabilities, 1.0).round(2).tolist()
    [[0.5, 0.5], [0.99, 0.01]]
    """
    rows = counts.reshape(-1, counts.shape[-1]).astype(np.float64)
    masses = np.full((rows.shape[0], probabilities.shape[0]), 1 / probabilities.shape[0])
    reports = np.maximum(rows.sum(axis=-1, keepdims=True), 1.0)
    last = np.full(rows.shape[0], -np.inf)
    active = np.flatnonzero(rows.any(axis=-1))
    for _ in range(MAX_ITERATIONS):
        expected = masses[active] @ probabilities
        likelihood = np.sum(rows[active] * np.log(expected), axis=-1)
        rising = likelihood - last[active] >= MIN_GAIN
        if not rising.any():
            break
        last[active] = likelihood
        active, expected = active[rising], expected[rising]
        # the log-change of plain EM, and the power that keeps it within MAX_STEP
        change = np.log((rows[active] / reports[active] / expected) @ probabilities.T)
        largest = np.maximum(np.abs(change).max(axis=-1, keepdims=True), MAX_STEP / acceleration)
        change *= np.maximum(MAX_STEP / largest, 1.0)
        masses[active] = normalised(masses[active] * np.exp(change))
    return masses.reshape(*counts.shape[:-1], -1)


def acceleration_of(probabilities: Floats) -> float:
    """The power that accelerates the iterations of EM, at least 1.

    Near the end, and for equal masses, an iteration leaves the part ``1 - acceleration * r`` of the
    largest remaining error. Here r is the second eigenvalue of ``T D^-1 T' / inputs``, T the
    probabilities and D their means over inputs. It measures the information in a report, and falls
    with the square of epsilon. A third of 1 / r leaves room for masses that are not equal.
    """
    means = probabilities.mean(axis=0)
    eigenvalues = np.linalg.eigvalsh(
        (probabilities / means) @ probabilities.T / probabilities.shape[0]
    )
    return max(1.0, ACCELERATION_FRACTION / float(eigenvalues[-2]))


def normalised(masses: Floats) -> Floats:
    """Masses scaled to a sum of 1."""
    return np.asarray(masses / masses.sum(axis=-1, keepdims=True))
