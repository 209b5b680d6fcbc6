"""What ``TwoRoundAUC`` concludes: the estimate, its errors, and warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.metrics.ranking import plug_in_variance
from tacit.protocols.two_round.first_round import CELLS, TRIALS, FirstRound, ScoreModel, area_of
from tacit.protocols.two_round.second_round import Influence
from tacit.results.class_sizes import class_too_small, is_class_too_small
from tacit.results.server_result import ServerResult

MAX_ERROR_WITH_AUC = 0.5
"""Largest predicted error at which an AUC is given."""

MERGED = 4
"""Number of cells that are merged to estimate the bias of cells."""

CROWDED_CELL = 4.0
"""Ratio of a crowded cell's pairs to those of its neighbours, at least; and ..."""

CROWDED_FRACTION = 0.01
"""... fraction of all pairs in a crowded cell, at least."""


@dataclass(frozen=True)
class Result:
    """One replicate's estimate.

    Parameters
    ----------
    value : the AUC.
    second_round_error : the standard error from the second round's noise and its sample of records.
    first_round_error : the root mean square second-order error from the first round.
    cell_bias : the error from scores that lie unevenly within a cell.
    positive_fraction : the fraction of the positives among all records.
    positive_fraction_error : its standard error; 0 where labels are public.
    """

    value: float
    second_round_error: float
    first_round_error: float
    cell_bias: float
    positive_fraction: float
    positive_fraction_error: float

    @classmethod
    def of(
        cls,
        first_round: FirstRound,
        plan: Influence,
        first_counts: Integers,
        second_counts: Integers,
        trials: int = TRIALS,
    ) -> Result:
        """The result of the counts of both rounds' reports, shapes (C, outputs)."""
        model = plan.model
        concluded = plan.conclude(second_counts[:, : plan.report.window.outputs])
        drawn = first_round.trials(model, first_counts, trials)
        alone = math.isnan(concluded.variance)
        errors = drawn.area - model.area if alone else _second_order(drawn, model, first_round)
        fraction_errors = drawn.positive_fraction - model.positive_fraction
        return cls(
            concluded.value,
            0.0 if alone else math.sqrt(concluded.variance),
            _root_mean_square(errors),
            cell_bias(model),
            float(model.positive_fraction),
            _root_mean_square(fraction_errors),
        )

    @property
    def privacy_error(self) -> float:
        """The standard error about the data's AUC."""
        return math.hypot(self.second_round_error, self.first_round_error)

    @property
    def rarer_fraction(self) -> float:
        """The fraction of the smaller class."""
        return min(self.positive_fraction, 1 - self.positive_fraction)

    @property
    def withheld(self) -> bool:
        """Whether the errors are too large for an AUC to be given."""
        too_small = is_class_too_small(self.rarer_fraction, self.positive_fraction_error)
        return too_small or self.privacy_error > MAX_ERROR_WITH_AUC


def cell_bias(model: ScoreModel) -> float:
    """The error of the AUC because scores are not uniform within their cells.

    The model's scores are made uniform over groups of four cells; the AUC's change is a bias. A
    tenth of it is taken as the bias of single cells: for smooth densities with an error above
    0.0001 the ratio of the two was 14 to 80. In a crowded cell, with more than
    ``CROWDED_FRACTION`` of all pairs and ``CROWDED_CELL`` times those of either neighbour, the
    fraction of pairs that the positives win is taken as uniform on [0, 1], of variance 1/12.
    """
    merged = [np.repeat(cells.reshape(-1, MERGED).mean(axis=-1), MERGED) for cells in _cells(model)]
    coarse = area_of(*(wide - cells for wide, cells in zip(merged, _cells(model), strict=True)))
    pairs = np.pad(model.positives * model.negatives, 1)
    usual = np.maximum(CROWDED_CELL * np.maximum(pairs[:-2], pairs[2:]), CROWDED_FRACTION)
    crowded = pairs[1:-1][pairs[1:-1] > usual]
    return math.hypot(float(coarse) / 10, math.sqrt(np.sum(crowded**2) / 12))


def result_of(result: Result, records: int) -> ServerResult:
    """The server's result of a single run."""
    replicates = several_result([result], records)
    return ServerResult(
        value=replicates.value[0],
        privacy_error=replicates.privacy_error[0],
        sampling_error=replicates.sampling_error[0],
        positives=replicates.positives[0],
        negatives=replicates.negatives[0],
        positives_error=records * result.positive_fraction_error,
        approximation_error=result.cell_bias,
        warnings=_warnings(result, records),
    )


def several_result(results: list[Result], records: int) -> ServerResult:
    """The server's result of replicates, with their axis."""

    def each(name: str) -> Floats:
        return np.array([getattr(result, name) for result in results], dtype=np.float64)

    error, positives = each("privacy_error"), records * each("positive_fraction")
    value = np.where(each("withheld"), np.nan, each("value"))
    sampling = np.vectorize(plug_in_variance)(
        np.clip(each("value"), 0.0, 1.0), positives, records - positives
    )
    return ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.where(np.isnan(value), np.nan, np.sqrt(sampling)),
        positives=positives,
        negatives=records - positives,
        positives_error=records * each("positive_fraction_error"),
        approximation_error=each("cell_bias"),
    )


def _second_order(trials: ScoreModel, truth: ScoreModel, first_round: FirstRound) -> Floats:
    """The error that each trial's model leaves in an otherwise exact second round.

    Public labels: ``- integral of (F^- - G^-) d(F^+ - G^+)``. Private labels: ``A + (p / q) (a - A)
    + ((1 - p) / (1 - q)) (b - A)`` less the true area, p the true and q the trial's fraction of
    positives, a and b the true mean numbers of the two classes.
    """
    if not first_round.private_labels:
        return -area_of(trials.positives - truth.positives, trials.negatives - truth.negatives)
    area = trials.area
    true_fraction, trial_fraction = truth.positive_fraction, trials.positive_fraction
    by_positives = area_of(truth.positives, trials.negatives) - area
    by_negatives = area_of(trials.positives, truth.negatives) - area
    return (
        area
        + true_fraction / trial_fraction * by_positives
        + (1 - true_fraction) / (1 - trial_fraction) * by_negatives
        - truth.area
    )


def _cells(model: ScoreModel) -> tuple[Floats, Floats]:
    return model.positives, model.negatives


def _root_mean_square(errors: Floats) -> float:
    return math.sqrt(float(np.mean(errors**2)))


def _warnings(result: Result, records: int) -> tuple[str, ...]:
    error, class_error = result.privacy_error, records * result.positive_fraction_error
    smaller = records * result.rarer_fraction
    if is_class_too_small(smaller, class_error):
        return (class_too_small(smaller, class_error),)
    if result.withheld:
        return (
            "not enough signal at this epsilon for this number of records: "
            f"the predicted error of the AUC is {error:.2g}",
        )
    warnings = []
    if result.second_round_error == 0:
        warnings.append("a class had no record left for the second round; the first stands alone")
    elif result.first_round_error > result.second_round_error:
        warnings.append("the first round's error outweighs the second's: there are too few records")
    if result.cell_bias > error:
        warnings.append(
            f"scores crowd into few of the {CELLS} cells of their scale: map them by an agreed "
            "public function so that they spread over it"
        )
    return tuple(warnings)
