"""The first round of ``TwoRoundAUC``: some records report their cell through a sliding window.

The range [0, 1] is cut into equal cells. A record's place is its cell where labels are public.
Where labels are private, its place is its class and cell together; the cells of the positives come
after those of the negatives. The record reports its place through a sliding window, which keeps
nearby cells together. That suits this round: it serves to estimate two distribution functions,
which depend on nearby cells together and not on single cells. The server estimates the cells'
shares by expectation and maximisation, stopped early (as Li et al. 2020 do for reports through a
window). The shares are positive and sum to 1, so the distribution functions rise from 0 to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.privacy.local.bounded import SlidingWindow, Spread, tailored_report

CELLS = 64
"""Number of cells of a class. More cost little accuracy: the window keeps neighbours together."""

PLACES = 256
"""Number of slots; records in the first slots report in the first round."""

MIN_GAIN = 0.1
"""Least gain of log-likelihood of an iteration: below it iterations end, as the rest is noise."""

MAX_ITERATIONS = 2000

MAX_STEP = 1.0
"""Largest log-change of a share in one accelerated iteration."""

PACE = 1 / 3
"""Speed of the iterations, as a fraction of the fastest that converges from equal shares."""

TRIALS = 8
"""Number of simulated first rounds, from which the server estimates the error of the real one."""

WEIGHT_OF_SQUARES = 10.0
"""Ratio of the second-order error to a report's variance over the number of a class's reports.

Measured, it was 4 to 20 for smooth densities and epsilon from 1 to 5.
"""


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """Both classes' scores as shares of the cells; between edges they are spread evenly.

    Parameters
    ----------
    positive_share : the share of the positives among all records, shape (...).
    negatives, positives : the shares of the cells within each class, shape (..., B).
    """

    positive_share: Floats
    negatives: Floats
    positives: Floats

    @property
    def area(self) -> Floats:
        """The AUC of two records drawn from the model."""
        return area_of(self.positives, self.negatives)

    def reached(self) -> tuple[Floats, Floats]:
        """The distribution functions of negatives and positives at the edges, shape (..., B+1)."""
        return _from_zero(self.negatives), _from_zero(self.positives)


def area_of(positives: Floats, negatives: Floats) -> Floats:
    """The integral of the negatives' distribution function over the positives' distribution.

    Bilinear in the two arrays of cell masses, shape (..., B), and exact where the mass of a cell is
    spread evenly; neither needs to be a distribution.

    Examples
    --------
    >>> import numpy as np
    >>> float(area_of(np.array([0.25, 0.75]), np.array([0.75, 0.25])))
    0.75
    """
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    return np.asarray(np.sum(positives * below, axis=-1))


@dataclass(frozen=True)
class Opening:
    """How records are asked in the first round, and what their reports say.

    Parameters
    ----------
    epsilon : the budget of a report.
    private_labels : whether a report covers the class as well.
    """

    epsilon: float
    private_labels: bool

    @property
    def window(self) -> SlidingWindow:
        """The window over the cells, of ``CELLS / 2 * exp(-epsilon / 2)`` outputs.

        That is half of the piecewise mechanism's, which suits the mean of even scores; distribution
        functions want narrower ones. Measured, the second-order error was at most 1.5 times the
        least of all widths for epsilon from 0.5 to 5. Windows of different classes do not overlap.
        """
        return SlidingWindow(self.epsilon, int(self._inputs[-1]) + 1, self._width)

    def places(self, clients: Clients) -> Integers:
        """The window's input for each record, shape (M,)."""
        cells = np.minimum((clients.scores * CELLS).astype(np.int64), CELLS - 1)
        return self._inputs[cells + CELLS * clients.labels] if self.private_labels else cells

    def model(self, counts: Integers, positive_share: float) -> ScoreModel:
        """The model that fits the reports.

        Parameters
        ----------
        counts : how often each output came, shape (..., 2, outputs) for negatives and positives
            where labels are public, else (..., 1, outputs).
        positive_share : the known share of positives; ignored where labels are private.
        """
        shares = likely_shares(counts, self._table, pace_of(self._table))
        if not self.private_labels:
            known_share = np.full(shares.shape[:-2], positive_share)
            return ScoreModel(known_share, shares[..., 0, :], shares[..., 1, :])
        negatives, positives = shares[..., 0, :CELLS], shares[..., 0, CELLS:]
        least = 0.5 / (counts.sum(axis=(-2, -1)) + 1)
        return ScoreModel(
            np.clip(positives.sum(axis=-1), least, 1 - least),
            _of_one(negatives),
            _of_one(positives),
        )

    def trials(self, model: ScoreModel, counts: Integers) -> ScoreModel:
        """Models from simulated first rounds of as many reports, if ``model`` were the truth.

        The server simulates by itself, always from the same seed: the same reports make the same
        result. Shapes have a leading axis of ``TRIALS``.
        """
        truth = np.stack([model.negatives, model.positives])
        if self.private_labels:
            share = model.positive_share
            truth = np.concatenate([(1 - share) * truth[0], share * truth[1]])[np.newaxis]
        expected = truth @ self._table
        expected /= expected.sum(axis=-1, keepdims=True)
        rng = np.random.default_rng(0)
        drawn = rng.multinomial(counts.sum(axis=-1), expected, (TRIALS, truth.shape[0]))
        return self.model(drawn, float(model.positive_share))

    @property
    def _width(self) -> int:
        return max(1, round(CELLS / 2 * math.exp(-self.epsilon / 2)))

    @property
    def _inputs(self) -> Integers:
        """The inputs in use, by class and cell, shape (2 B,), or by cell, shape (B,)."""
        cells = np.arange(CELLS, dtype=np.int64)
        if not self.private_labels:
            return cells
        return np.concatenate([cells, cells + CELLS + self._width - 1])

    @property
    def _table(self) -> Floats:
        """The probabilities of the outputs for the inputs in use."""
        return self.window.probabilities[self._inputs]


def likely_shares(counts: Integers, probabilities: Floats, pace: float) -> Floats:
    """The shares of the inputs under which reports are likely, shape (..., inputs).

    Expectation and maximisation from equal shares: an iteration multiplies each share by the ratio
    of the reports that came from it to those expected, to the power of ``pace``. That power is 1 in
    the common form. It is lower, but not below 1, where it would change a share by a factor of more
    than ``exp(MAX_STEP)``. Each row of counts ends on its own, when an iteration gains less than
    ``MIN_GAIN`` of log-likelihood. Without reports the shares stay equal.

    Parameters
    ----------
    counts : how often each output came, shape (..., outputs).
    probabilities : of every output for every input, shape (inputs, outputs).
    pace : at least 1; see ``pace_of``.

    Examples
    --------
    >>> import numpy as np
    >>> probabilities = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> likely_shares(np.array([[500, 500], [900, 100]]), probabilities, 1.0).round(2).tolist()
    [[0.5, 0.5], [0.99, 0.01]]
    """
    rows = counts.reshape(-1, counts.shape[-1]).astype(np.float64)
    shares = np.full((rows.shape[0], probabilities.shape[0]), 1 / probabilities.shape[0])
    reports = np.maximum(rows.sum(axis=-1, keepdims=True), 1.0)
    last = np.full(rows.shape[0], -np.inf)
    going = np.flatnonzero(rows.any(axis=-1))
    for _ in range(MAX_ITERATIONS):
        expected = shares[going] @ probabilities
        reached = np.sum(rows[going] * np.log(expected), axis=-1)
        rising = reached - last[going] >= MIN_GAIN
        if not rising.any():
            break
        last[going] = reached
        going, expected = going[rising], expected[rising]
        heard = np.log((rows[going] / reports[going] / expected) @ probabilities.T)
        most = np.maximum(np.abs(heard).max(axis=-1, keepdims=True), MAX_STEP / pace)
        heard *= np.maximum(MAX_STEP / most, 1.0)
        shares[going] = _of_one(shares[going] * np.exp(heard))
    return shares.reshape(*counts.shape[:-1], -1)


def pace_of(probabilities: Floats) -> float:
    """The acceleration of the iterations over their common form, at least 1.

    Near the end, and for equal shares, an iteration leaves the part ``1 - pace * r`` of the largest
    remaining error. Here r is the second eigenvalue of ``T D^-1 T' / inputs``, T the probabilities
    and D their means over inputs. It measures the information in a report, and falls with the
    square of epsilon. A third of 1 / r leaves room for shares that are not equal.
    """
    means = probabilities.mean(axis=0)
    eigenvalues = np.linalg.eigvalsh(
        (probabilities / means) @ probabilities.T / probabilities.shape[0]
    )
    return max(1.0, PACE / float(eigenvalues[-2]))


def opening_places(epsilon: float, records: int, private_labels: bool) -> int:
    """How many of the ``PLACES`` slots belong to the first round.

    With a share f of M records in the first round the second one's variance is about ``v / (M (1 -
    f))``, v that of one record's influence, and the squared error of second order about ``(c v / (f
    M))^2``, c = ``WEIGHT_OF_SQUARES``. The sum is least near ``f = (2 c^2 v / M)^(1/3)``. For equal
    classes v is four times a report's variance where labels are private; where they are public each
    class has its own reports, and a report's variance enters once.

    Examples
    --------
    >>> [opening_places(1.0, records, False) for records in (1000, 20000, 458407)]
    [128, 57, 20]
    """
    influence = report_variance(epsilon) * (4.0 if private_labels else 1.0)
    share = (2 * WEIGHT_OF_SQUARES**2 * influence / records) ** (1 / 3)
    return int(np.clip(round(PLACES * share), 1, PLACES // 2))


@lru_cache(maxsize=64)
def report_variance(epsilon: float) -> float:
    """The variance of one report of the second round for numbers spread evenly over [0, 1]."""
    points = (np.arange(CELLS) + 0.5) / CELLS
    even = Spread(points, np.full(CELLS, 1 / CELLS))
    return tailored_report(epsilon, even).variance(even) + even.variance


def _of_one(shares: Floats) -> Floats:
    """Shares scaled to a sum of 1."""
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def _from_zero(shares: Floats) -> Floats:
    reached = np.cumsum(shares, axis=-1)
    return np.concatenate([np.zeros_like(reached[..., :1]), reached], axis=-1)
