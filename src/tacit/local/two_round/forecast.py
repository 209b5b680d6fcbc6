"""Predictions for TwoRoundAUC, from the distribution functions that its first round estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Integers
from tacit.local import turns
from tacit.local.turns import CELLS
from tacit.local.two_round.first_round import (
    FirstRound,
    ScoreModel,
    area_of,
    first_round_slots,
)
from tacit.local.two_round.protocol import TwoRoundAUC
from tacit.local.two_round.second_round import Influence, Result
from tacit.privacy import bounded
from tacit.protocol import forecast

TAILORING = 2**20
"""Number of records for which reports are tailored, for every real number of records."""

PLANNED_TRIALS = 64
"""Number of simulated first rounds: a class's predicted error is known to 9 %, not to 25 % as from
the server's few, and a plan does not fail by chance."""

FINER = 32
"""Number of points in a cell at which the true distribution functions are taken."""


@dataclass(frozen=True)
class Setting:
    """What the errors of both rounds depend on, apart from the shape."""

    protocol: TwoRoundAUC
    records: int
    positives: int

    @property
    def first_round(self) -> FirstRound:
        """The first round."""
        return self.protocol.first_round

    @property
    def early(self) -> float:
        """The fraction of the records that report in the first round."""
        first = self.first_round
        return first_round_slots(first.epsilon, self.records, first.private_labels) / turns.SLOTS

    @property
    def sizes(self) -> Integers:
        """The records of each kind, and those left for the second round, shape (2, C)."""
        negatives = self.records - self.positives
        kinds = [self.records] if self.first_round.private_labels else [negatives, self.positives]
        whole = np.array(kinds, dtype=np.int64)
        return np.stack([whole, np.rint(whole * (1 - self.early)).astype(np.int64)])

    def of_size(self, records: int) -> Setting:
        """The same with another number of records, about as many of them positive."""
        positives = round(records * self.positives / self.records)
        return replace(self, records=records, positives=min(max(1, positives), records - 1))

    def model(self, shape: tp.Shape) -> ScoreModel:
        """The shape in the protocol's cells."""
        fraction = self.positives / self.records
        positives, negatives = shape.cell_fractions(CELLS, fraction, self.protocol.scale)
        return ScoreModel(np.array(fraction), negatives, positives)

    def influence(self, shape: tp.Shape) -> Influence:
        """The second round, if the first round estimates the shape exactly."""
        return self.protocol.influence(self.model(shape), self.sizes)


def two_round_forecast(
    protocol: TwoRoundAUC, scenario: tp.Scenario, shape: tp.Shape, central: tp.Shape | None = None
) -> forecast.Forecast:
    """The second round's variance, and the second-order error of the first (docs, section 4d).

    The second-order error comes, as on the server, from simulated first rounds; those and the
    choice of the report are made for the ``central`` shape, where one is given, to save time.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 40_000, 2.0)
    >>> forecast = two_round_forecast(TwoRoundAUC(2.0), scenario, tp.Shape(0.8))
    >>> round(forecast.standard_error, 3)
    0.027
    """
    setting = Setting(protocol, scenario.records, scenario.positives)
    chosen = prepared(setting, central or shape)
    variance = second_round_variance(setting.influence(shape), chosen.report)
    variance += chosen.first_round_error**2
    smaller = min(scenario.positives, scenario.negatives)
    bias = interpolation_bias(shape, scenario.positive_fraction, protocol.scale)
    return forecast.Forecast(math.sqrt(variance), bias, smaller, chosen.class_error)


def two_round_families(scenario: tp.Scenario) -> list[forecast.Family]:
    """Private and public labels."""
    return [
        forecast.Family(
            (TwoRoundAUC(scenario.epsilon),),
            (tp.Trust.LOCAL, tp.Trust.EACH),
            "there is no curve, only the AUC, and every record must be reachable in three rounds",
        ),
        forecast.Family(
            (TwoRoundAUC(scenario.epsilon, "public"),),
            (tp.Trust.LOCAL,),
            "every record's label is shown to the server",
        ),
    ]


def interpolation_bias(shape: tp.Shape, positive_fraction: float, scale: str) -> float:
    """The bias of distribution functions that are linear within cells.

    ``- integral of (F^- - G^-) d(F^+ - G^+)``, F linear and G true at every ``FINER``-th of a cell
    (docs, section 4d).

    Examples
    --------
    >>> abs(interpolation_bias(tp.Shape(0.8), 0.5, "even")) < 1e-6
    True
    """
    errors = [
        np.repeat(coarse / FINER, FINER) - fine
        for coarse, fine in zip(
            shape.cell_fractions(CELLS, positive_fraction, scale),
            shape.cell_fractions(CELLS * FINER, positive_fraction, scale),
            strict=True,
        )
    ]
    return -float(area_of(*errors))


@dataclass(frozen=True, eq=False)
class Prepared:
    """The parts of a forecast that take time to compute for a shape.

    Parameters
    ----------
    report : the second round's mechanism.
    first_round_error : the first round's second-order error.
    class_error : the standard error of the number of positives, by the first round.
    """

    report: bounded.GridReport
    first_round_error: float
    class_error: float


@lru_cache(maxsize=64)
def prepared(setting: Setting, shape: tp.Shape) -> Prepared:
    """The report and the errors of the first round, which do not depend on the second's report."""
    influence = setting.influence(shape)
    report = best_report(setting.of_size(TAILORING), shape)
    first_counts = _expected_reports(setting, influence.model)
    bits = replace(influence, bits=True)
    second_counts = np.ones((setting.sizes.shape[1], bits.report.window.outputs), dtype=np.int64)
    result = Result.of(
        setting.first_round, bits, first_counts, second_counts, trials=PLANNED_TRIALS
    )
    return Prepared(
        report, result.first_round_error, setting.records * result.positive_fraction_error
    )


@lru_cache(maxsize=64)
def best_report(setting: Setting, shape: tp.Shape) -> bounded.GridReport:
    """The second round's mechanism; the number of records hardly matters to it."""
    return setting.influence(shape).report


def second_round_variance(influence: Influence, report: bounded.GridReport) -> float:
    """The variance that ``Influence.conclude`` states, for a report that was chosen before."""
    whole, reporting = influence.sizes
    if not reporting.all():
        return math.inf
    noise = np.array([report.variance(distribution) for distribution in influence.distributions])
    drawn = np.array([distribution.variance for distribution in influence.distributions])
    variance = float(np.sum(noise / reporting + drawn * (1 / reporting - 1 / whole)))
    fraction = float(influence.model.positive_fraction)
    return variance / min(fraction, 1 - fraction) ** 2 if influence.private_labels else variance


def _expected_reports(setting: Setting, model: ScoreModel) -> Integers:
    """How often each report of the first round is expected, shape (C, outputs)."""
    sizes = setting.sizes[0] - setting.sizes[1]
    expected = setting.first_round.expected(model) * sizes[:, np.newaxis]
    return np.rint(expected).astype(np.int64)


PLANNING = forecast.Planning.of_figure(two_round_families, two_round_forecast)
