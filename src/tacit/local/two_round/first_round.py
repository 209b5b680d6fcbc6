"""The first round of ``TwoRoundAUC``: some records report their cell through a sliding window.

The window (``tacit.local.turns``) keeps nearby cells together. That suits this round: it
estimates two distribution functions, which depend on nearby cells together and not on single cells.
The masses that it gives are positive and sum to 1, so the distribution functions rise from 0 to 1.

Which records report in which of two rounds, as the server knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.data.errors import DataError, check_classes
from tacit.local import turns
from tacit.privacy import bounded
from tacit.protocol import devices
from tacit.protocol.fields import ragged_of

TRIALS = 8
"""Number of simulated first rounds, from which the server estimates the error of the real one."""

WEIGHT_OF_SQUARES = 10.0
"""Ratio of the second-order error to a report's variance over the number of a class's reports.

Measured, it was 4 to 20 for smooth densities and epsilon from 1 to 5.
"""


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """Both classes' scores as masses of the cells; within a cell scores are uniform.

    Parameters
    ----------
    positive_fraction : the fraction of the positives among all records, shape (...).
    negatives, positives : the masses of the cells within each class, shape (..., B).
    """

    positive_fraction: Floats
    negatives: Floats
    positives: Floats

    @property
    def area(self) -> Floats:
        """The AUC of two records drawn from the model."""
        return area_of(self.positives, self.negatives)


def area_of(positives: Floats, negatives: Floats) -> Floats:
    """The integral of the negatives' distribution function over the positives' distribution.

    ``sum_b p_b (n_1 + ... + n_(b-1) + n_b / 2)`` with p and n the two arrays of cell masses, shape
    (..., B). Exact where scores are uniform within cells; neither needs to be a distribution.

    Examples
    --------
    >>> import numpy as np
    >>> float(area_of(np.array([0.25, 0.75]), np.array([0.75, 0.25])))
    0.75
    """
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    return np.asarray(np.sum(positives * below, axis=-1))


@dataclass(frozen=True)
class FirstRound(turns.WindowReports):
    """What the server estimates from the reports of the first round."""

    def model(self, counts: Integers, positive_fraction: float) -> ScoreModel:
        """The model that fits the reports.

        Parameters
        ----------
        counts : how often each output came, shape (..., 2, outputs) for negatives and positives
            where labels are public, else (..., 1, outputs).
        positive_fraction : the known fraction of positives; ignored where labels are private.
        """
        masses = self.masses(counts)
        if not self.private_labels:
            known_fraction = np.full(masses.shape[:-2], positive_fraction)
            return ScoreModel(known_fraction, masses[..., 0, :], masses[..., 1, :])
        negatives, positives = masses[..., 0, : turns.CELLS], masses[..., 0, turns.CELLS :]
        least = 0.5 / (counts.sum(axis=(-2, -1)) + 1)
        return ScoreModel(
            np.clip(positives.sum(axis=-1), least, 1 - least),
            turns.normalised(negatives),
            turns.normalised(positives),
        )

    def trials(self, model: ScoreModel, counts: Integers, trials: int = TRIALS) -> ScoreModel:
        """Models from simulated first rounds of as many reports, if ``model`` were the truth.

        The server simulates alone, always from the same seed: the same reports make the same
        result. Shapes have a leading axis of ``trials``.
        """
        expected = self.expected(model)
        expected /= expected.sum(axis=-1, keepdims=True)
        rng = np.random.default_rng(0)
        drawn = rng.multinomial(counts.sum(axis=-1), expected, (trials, expected.shape[0]))
        return self.model(drawn, float(model.positive_fraction))

    def expected(self, model: ScoreModel) -> Floats:
        """How likely each report is, if ``model`` were the truth, shape (C, outputs)."""
        truth = np.stack([model.negatives, model.positives])
        if self.private_labels:
            fraction = model.positive_fraction
            truth = np.concatenate([(1 - fraction) * truth[0], fraction * truth[1]])[np.newaxis]
        return np.asarray(truth @ self._table)

    def slots(self, records: int) -> int:
        """How many of the ``SLOTS`` slots belong to the first round.

        With a fraction f of M records in the first round the second round's variance is about ``v /
        (M (1 - f))``, v that of one record's influence, and the squared error of second order about
        ``(c v / (f M))^2``, c = ``WEIGHT_OF_SQUARES``. The sum is least near ``f = (2 c^2 v /
        M)^(1/3)``. For equal classes v is four times a report's variance where labels are private;
        where they are public each class has separate reports, and a report's variance enters once.

        Examples
        --------
        >>> [FirstRound(1.0, False).slots(records) for records in (1000, 20000, 458407)]
        [128, 57, 20]
        """
        influence = report_variance(self.epsilon) * (4.0 if self.private_labels else 1.0)
        fraction = (2 * WEIGHT_OF_SQUARES**2 * influence / records) ** (1 / 3)
        return int(np.clip(round(turns.SLOTS * fraction), 1, turns.SLOTS // 2))


@lru_cache(maxsize=64)
def report_variance(epsilon: float) -> float:
    """The variance of one report of the second round for numbers uniform on [0, 1]."""
    points = (np.arange(turns.CELLS) + 0.5) / turns.CELLS
    even = bounded.PointMasses(points, np.full(turns.CELLS, 1 / turns.CELLS))
    return bounded.tailored_report(epsilon, even).variance(even) + even.variance


def _labels(labels: tp.Ragged[Any], drawn: tp.Ragged[np.uint8]) -> NDArray[np.int8]:
    """Public labels, shape (M,), of the records that drew these turns.

    Raises
    ------
    DataError : naming the client whose labels are not a 0 or 1 for each turn.
    """
    wrong = np.flatnonzero(labels.sizes != drawn.sizes)
    if not wrong.size:
        others = np.flatnonzero(~np.isin(labels.values, (0, 1)))
        wrong = np.searchsorted(labels.offsets, others, side="right") - 1
    if wrong.size:
        raise DataError(
            f"client {wrong[0]} must send a label of 0 or 1 for each of {drawn.sizes[wrong[0]]} "
            f"records, got {labels.part(wrong[0], wrong[0] + 1).values!r:.80}"
        )
    return np.asarray(labels.values, dtype=np.int8)


@dataclass(frozen=True, eq=False)
class AssignedRounds:
    """Which records report in which round, as the server knows it.

    Parameters
    ----------
    sizes : the numbers of records, and of those that report in the second round, by the class by
        which reports are counted, shape (2, C): a record's label where labels are public, else 0.
    turns : what each client receives: its records' turns; nothing where each record keeps its own.
    classes : of the records that report in the first round, and in the second; None where reports
        come counted.
    """

    sizes: Integers
    turns: Mapping[str, tp.Field]
    classes: tuple[NDArray[np.int8], NDArray[np.int8]] | None = None

    @classmethod
    def of(cls, reply: tp.Reply, first: int, private_labels: bool) -> AssignedRounds:
        """The rounds of the records, from the reply about their turns.

        Parameters
        ----------
        reply : turns, with labels where these are public; or counts of both rounds.
        first : records whose turn is below this report in the first round.
        private_labels : whether labels are private.

        Raises
        ------
        DataError : for public labels that are not a 0 or 1 for each turn, or of one class.
        """
        counts = devices.counts_in(reply)
        if counts is not None:
            return cls(np.array([[counts.sum()], [counts[1]]]), {})
        drawn = ragged_of(reply["turns"])
        kinds = np.zeros(drawn.values.size, dtype=np.int8)
        if not private_labels:
            kinds = _labels(ragged_of(reply["labels"], "labels"), drawn)
            check_classes(int(np.count_nonzero(kinds)), int(np.count_nonzero(kinds == 0)))
        early = drawn.values < first
        size = 1 if private_labels else 2
        sizes = [np.bincount(each, minlength=size) for each in (kinds, kinds[~early])]
        return cls(np.stack(sizes), {"turns": drawn}, (kinds[early], kinds[~early]))

    @property
    def records(self) -> int:
        """The number of records."""
        return int(self.sizes[0].sum())

    @property
    def positive_fraction(self) -> float:
        """The fraction of the positives, where labels are public; else 0."""
        return float(self.sizes[0, 1:].sum() / self.records)

    def counted(self, reply: tp.Reply, first: bool, outputs: int) -> Integers:
        """How often each report came from each class, shape (R, C, outputs), R at least 1.

        Parameters
        ----------
        reply : of a round.
        first : whether it is the first.
        outputs : how many reports there are at most.

        Raises
        ------
        ValueError : for a number of reports, or a report, that cannot have come.
        """
        reporting = self.sizes[0] - self.sizes[1] if first else self.sizes[1]
        if self.classes is None:
            counts = devices.counts_in(reply)
            if counts is None or counts.size != outputs:
                raise ValueError(f"the reply must hold counts of {outputs} reports")
            _check_number(reporting, int(counts.sum()))
            return counts[np.newaxis, np.newaxis]
        values, classes = ragged_of(reply["reports"]).values, self.classes[0 if first else 1]
        _check_number(reporting, values.shape[-1])
        of_kinds = (values[..., classes == kind] for kind in range(reporting.size))
        by_class = [devices.output_counts(each, outputs) for each in of_kinds]
        return np.stack(by_class, axis=-2).reshape(-1, reporting.size, outputs)


def _check_number(reporting: Integers, reports: int) -> None:
    if reports != reporting.sum():
        raise ValueError(f"{reporting.sum()} records report, got {reports} reports")
