"""What ``TwoRoundAUC`` concludes: the estimate, how wrong it may be, and warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.metrics.ranking import plug_in_variance
from tacit.protocols.two_round.first_round import CELLS, Opening, ScoreModel, area_of
from tacit.protocols.two_round.second_round import Influence
from tacit.results.server_result import ServerResult

SILENT = 0.5
"""Largest predicted error at which an AUC is given."""

ABSENT = 2.0
"""Least class size, in standard errors, at which an AUC is given."""

WEAK = 7.0
"""Least class size, in standard errors, for which the errors are not too small."""

MERGED = 4
"""Number of cells that are merged to estimate what cells hide."""

CROWDED_CELL = 4.0
"""A cell is crowded when it has more than this many times the pairs of either neighbour ..."""

CROWDED_SHARE = 0.01
"""... and more than this share of all pairs."""


@dataclass(frozen=True)
class Result:
    """One replicate's estimate.

    Parameters
    ----------
    value : the AUC.
    closing_error : the standard error from the second round: its noise, and which records reported.
    opening_error : the root mean square second-order error from the first round.
    hidden_error : the error from scores that lie unevenly within a cell.
    positive_share, positive_share_error : of all records; the error is 0 where labels are public.
    """

    value: float
    closing_error: float
    opening_error: float
    hidden_error: float
    positive_share: float
    positive_share_error: float

    @classmethod
    def of(cls, opening: Opening, plan: Influence, opened: Integers, closed: Integers) -> Result:
        """The result of the counts of both rounds' reports, shapes (C, outputs)."""
        model = plan.model
        concluded = plan.conclude(closed[:, : plan.report.window.outputs])
        trials = opening.trials(model, opened)
        alone = math.isnan(concluded.variance)
        wrong = trials.area - model.area if alone else _second_order(trials, model, opening)
        shares = trials.positive_share - model.positive_share
        return cls(
            concluded.value,
            0.0 if alone else math.sqrt(concluded.variance),
            _root_mean_square(wrong),
            hidden_error(model),
            float(model.positive_share),
            _root_mean_square(shares),
        )

    @property
    def privacy_error(self) -> float:
        """The standard error about the data's AUC."""
        return math.hypot(self.closing_error, self.opening_error)

    @property
    def rarer_share(self) -> float:
        """The share of the smaller class."""
        return min(self.positive_share, 1 - self.positive_share)

    @property
    def silent(self) -> bool:
        """Whether nothing can be said about the AUC."""
        absent = self.rarer_share < ABSENT * self.positive_share_error
        return absent or self.privacy_error > SILENT


def hidden_error(model: ScoreModel) -> float:
    """How wrong the AUC may be as scores are not spread evenly within their cells.

    Spreading the model's own scores evenly over four cells each shows an error of the estimate. A
    tenth of it stands for that of single cells: for smooth densities with an error above 0.0001 the
    ratio of the two was 14 to 80. In a crowded cell, with more than ``CROWDED_SHARE`` of all pairs
    and ``CROWDED_CELL`` times those of either neighbour, the share of pairs that the positives win
    is taken as uniform on [0, 1], of variance 1/12.
    """
    merged = [np.repeat(cells.reshape(-1, MERGED).mean(axis=-1), MERGED) for cells in _cells(model)]
    coarse = area_of(*(wide - cells for wide, cells in zip(merged, _cells(model), strict=True)))
    pairs = np.pad(model.positives * model.negatives, 1)
    usual = np.maximum(CROWDED_CELL * np.maximum(pairs[:-2], pairs[2:]), CROWDED_SHARE)
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
        positives_error=records * result.positive_share_error,
        approximation_error=result.hidden_error,
        warnings=_warnings(result, records),
    )


def several_result(results: list[Result], records: int) -> ServerResult:
    """The server's result of replicates, with their axis."""

    def each(name: str) -> Floats:
        return np.array([getattr(result, name) for result in results], dtype=np.float64)

    error, positives = each("privacy_error"), records * each("positive_share")
    value = np.where(each("silent"), np.nan, each("value"))
    sampling = np.vectorize(plug_in_variance)(
        np.clip(each("value"), 0.0, 1.0), positives, records - positives
    )
    return ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.where(np.isnan(value), np.nan, np.sqrt(sampling)),
        positives=positives,
        negatives=records - positives,
        positives_error=records * each("positive_share_error"),
        approximation_error=each("hidden_error"),
    )


def _second_order(trials: ScoreModel, truth: ScoreModel, opening: Opening) -> Floats:
    """The error that each trial's model leaves in an otherwise exact second round.

    Public labels: ``- integral of (F^- - G^-) d(F^+ - G^+)``. Private labels: ``A + (p / q) (a - A)
    + ((1 - p) / (1 - q)) (b - A)`` less the true area, p the true and q the trial's share of
    positives, a and b the true mean numbers of the two classes.
    """
    if not opening.private_labels:
        return -area_of(trials.positives - truth.positives, trials.negatives - truth.negatives)
    area = trials.area
    true_share, trial_share = truth.positive_share, trials.positive_share
    up = true_share / trial_share * (area_of(truth.positives, trials.negatives) - area)
    down = (
        (1 - true_share) / (1 - trial_share) * (area_of(trials.positives, truth.negatives) - area)
    )
    return area + up + down - truth.area


def _cells(model: ScoreModel) -> tuple[Floats, Floats]:
    return model.positives, model.negatives


def _root_mean_square(errors: Floats) -> float:
    return math.sqrt(float(np.mean(errors**2)))


def _warnings(result: Result, records: int) -> tuple[str, ...]:
    error, wrong = result.privacy_error, records * result.positive_share_error
    smaller = (
        f"the smaller class is estimated at {records * result.rarer_share:.0f} records with a "
        f"standard error of {wrong:.0f}"
    )
    if result.silent:
        return (
            "not enough signal at this epsilon for this number of records: "
            f"the predicted error of the AUC is {error:.2g}"
            + (f", and {smaller}" if wrong else ""),
        )
    warnings = []
    if records * result.rarer_share < WEAK * wrong:
        warnings.append(f"{smaller}; the errors may be too small here")
    if result.closing_error == 0:
        warnings.append("a class had no record left for the second round; the first stands alone")
    elif result.opening_error > result.closing_error:
        warnings.append("the first round's error outweighs the second's: there are too few records")
    if result.hidden_error > error:
        warnings.append(
            f"scores crowd into few of the {CELLS} cells: map them by an agreed public function "
            "so that they spread over [0, 1]"
        )
    return tuple(warnings)
