"""Figures of a regression from clipped sums of one spend: MAE, RMSE, R^2, bias, calibration line.

Prediction and outcome are scaled to p and t in [-1, 1] around the middle of their bounds. With half
their sum, ``s = (p + t) / 2``, and half their difference, ``e = (p - t) / 2``,

    |s| + |e| = max(|p|, |t|) <= 1.

So a record moves the three sums of s, of the positive parts ``e+`` and of the negative parts ``e-``
by at most 1 in all (L1), since ``e+ + e- = |e|``. It moves those of ``s^2``, ``e^2`` and ``2 s e``
by at most ``s^2 + e^2 + 2 |s e| = (|s| + |e|)^2 <= 1`` in all, and the number of records by 1. Any
other basis of these sums, such as p, t and their products, has a larger sensitivity: three of
products alone have 3. All figures follow:

    p = s + e, t = s - e, |p - t| = 2 (e+ + e-), (p - t)^2 = 4 e^2,
    p^2 = s^2 + e^2 + 2 s e, t^2 = s^2 + e^2 - 2 s e, p t = s^2 - e^2.

Epsilon is divided by about the fractions of least total logarithm of the errors of MAE, RMSE and
R^2, where outcomes deviate by 0.4 and errors by 0.2 of half the bounds, but for the number of
records, which gets twice that, so that few records have figures. Errors are those of first order:
the derivative of each figure by each sum, times that sum's own error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import influence
from tacit.outcomes import clipping
from tacit.protocol import releases
from tacit.results.estimate import REACH, Estimate
from tacit.results.parts import BandedCurve, Breakdown
from tacit.results.server_result import ServerResult

RECORDS, FIRST, SECOND = "records", "first", "second"
"""The sums: the number of records, of first and of second powers."""

SHARES = {RECORDS: 0.1, FIRST: 0.3, SECOND: 0.6}
"""How epsilon is divided."""

DROWNED = 6.0
"""A sum of squares of fewer of its standard errors is lost in noise."""

PLACES = 21
"""Of a line that is drawn with its band."""

STEP = 1e-30
"""Of derivatives by complex numbers, which have no rounding error."""

MAE = "mean absolute error"


def _triple(protocol: RegressionError, epsilon: float) -> releases.Released:
    """Three sums that a record moves by at most 1 in all, in units of one over ``per_record``.

    Rounding a sum that moves by x units moves it by at most x rounded up, and three such numbers
    that add up to R by at most R + 2.
    """
    if math.isinf(epsilon):
        return releases.Released((3,), per_record=protocol.one)
    units = max(influence.units_for(epsilon), 3)
    return releases.Released((3,), units, epsilon, per_record=units - 2)


@releases.release(lambda query: query.protocol.released)
def sum_powers(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the number of records, and the sums of first and second powers, with noise.

    A record moves the number by 1, and each triple of sums by at most 1 in all, as the module
    derives. Each of its numbers is cut towards 0 to a whole multiple of ``2**-29``, which makes
    none larger, and every sum of a client is rounded once to units of one over R; so a record moves
    a triple by at most R + 2 units, the declared sensitivity. The three costs add up to epsilon.

    The server learns seven noisy sums over all clients, and how many clients answered.

    Raises
    ------
    DataError : for a client with too many records (``clipping.check_sizes``).
    """
    protocol: RegressionError = query.protocol
    clipping.check_sizes(clients, protocol.one, query)
    totals = clients.added(partial(_totals, protocol))
    made = {RECORDS: releases.by_view(query, clients.sizes)}
    for name, triple in ((FIRST, totals[:3]), (SECOND, totals[3:])):
        made[name] = clipping.units_of(triple, protocol.one, protocol.released[name], query)
    return made


def _totals(protocol: RegressionError, clients: tp.Clients) -> Integers:
    """Each client's six sums, shape (6, K)."""
    predicted, outcome = protocol.pairs(clients)
    mean, error = (predicted + outcome) / 2, (predicted - outcome) / 2
    first = [mean, np.maximum(error, 0.0), np.maximum(-error, 0.0)]
    powers = np.stack([*first, mean**2, error**2, 2 * mean * error]) * protocol.one
    rounded = np.rint(powers) if protocol.epsilon is None else np.trunc(powers)
    return clipping.by_client(rounded.astype(np.int64), clients)


@dataclass(frozen=True, eq=False)
class Powers:
    """The seven sums of scaled values, real or complex, and the moments that follow.

    Parameters
    ----------
    sums : of 1, s, e+, e-, s^2, e^2 and 2 s e, shape (7, ...).
    """

    sums: Any

    @property
    def mean_error(self) -> Any:
        """Of predictions less outcomes."""
        return 2 * (self.sums[2] - self.sums[3]) / self.sums[0]

    @property
    def absolute(self) -> Any:
        """The mean absolute error."""
        return 2 * (self.sums[2] + self.sums[3]) / self.sums[0]

    @property
    def squared(self) -> Any:
        """The mean squared error."""
        return 4 * self.sums[5] / self.sums[0]

    @property
    def means(self) -> tuple[Any, Any]:
        """Of predictions and of outcomes."""
        middle, apart = self.sums[1] / self.sums[0], self.mean_error / 2
        return middle + apart, middle - apart

    def variance(self, sign: int) -> Any:
        """Of predictions (1) or outcomes (-1)."""
        squares = self.sums[4] + self.sums[5] + sign * self.sums[6]
        return squares / self.sums[0] - self.means[sign < 0] ** 2

    @property
    def slope(self) -> Any:
        """Of the line from predictions to outcomes."""
        return self.line(False).slope

    def line(self, of_errors: bool) -> Line:
        """The line of least squares from predictions to outcomes.

        Or, of errors, from the mean of prediction and outcome to their difference.
        """
        predicted, outcome = self.means
        if not of_errors:
            together = (self.sums[4] - self.sums[5]) / self.sums[0] - predicted * outcome
            return Line(predicted, outcome, self.variance(1), together, self.variance(-1))
        middle, apart = self.sums[1] / self.sums[0], self.mean_error
        spread, squares = self.sums[4] / self.sums[0] - middle**2, self.squared - apart**2
        return Line(middle, apart, spread, self.sums[6] / self.sums[0] - middle * apart, squares)

    def intercept(self, middle: float, half: float) -> Any:
        """Of that line, in the values' own units."""
        predicted, outcome = self.means
        return half * (outcome - self.slope * predicted) + middle * (1 - self.slope)

    def agreement(self, sign: int) -> Any:
        """The mean error, and 1.96 standard deviations of errors added or taken away."""
        return self.mean_error + sign * REACH * np.sqrt(self.squared - self.mean_error**2)


class Line(NamedTuple):
    """Moments of x and y: the means, the variance of x, the covariance, the variance of y."""

    x: Any
    y: Any
    spread: Any
    together: Any
    upright: Any

    @property
    def slope(self) -> Any:
        """Of least squares."""
        return self.together / self.spread

    def at(self, place: Any) -> Any:
        """The line at places of x."""
        return self.y + self.slope * (place - self.x)

    def sampling_variance(self, place: Any, records: Any) -> Any:
        """Of the line there, with residuals of one variance."""
        residual = np.maximum(self.upright - self.slope * self.together, 0.0)
        return residual / records * (1 + (place - self.x) ** 2 / self.spread)


Value = Callable[[Powers], Any]


@dataclass(frozen=True)
class Entry:
    """A figure of the catalogue.

    Parameters
    ----------
    value : of the sums.
    needs : what must be above 0 beyond its noise, or there is no figure; None for nothing.
    reason : why there is none then.
    limits : of the scaled figure.
    scaled : whether it is in units of half the bounds' distance.
    squares : for the sampling error of a mean: the mean square of what it is a mean of.
    """

    value: Value
    needs: Value | None = None
    reason: str = ""
    limits: tuple[float, float] = (-math.inf, math.inf)
    scaled: bool = True
    squares: Value | None = None


def _squared(powers: Powers) -> Any:
    return powers.squared


def _spread(powers: Powers) -> Any:
    return powers.squared - powers.mean_error**2


NO_ERRORS = "squared errors are no larger than their noise"
NO_SPREAD = "errors are constant, as far as noise tells"
NO_OUTCOMES = "outcomes are constant, as far as noise tells"
NO_PREDICTIONS = "predictions are constant, as far as noise tells"

CATALOGUE: Mapping[str, Entry] = {
    MAE: Entry(lambda powers: powers.absolute, None, "", (0.0, 2.0), squares=_squared),
    "root mean squared error": Entry(
        lambda powers: np.sqrt(powers.squared), _squared, NO_ERRORS, (0.0, 2.0)
    ),
    "bias": Entry(lambda powers: powers.mean_error, None, "", (-2.0, 2.0), squares=_squared),
    "R2": Entry(
        lambda powers: 1 - powers.squared / powers.variance(-1),
        lambda powers: powers.variance(-1),
        NO_OUTCOMES,
        (-math.inf, 1.0),
        scaled=False,
    ),
    "calibration slope": Entry(
        lambda powers: powers.slope,
        lambda powers: powers.variance(1),
        NO_PREDICTIONS,
        scaled=False,
    ),
    "lower limit of agreement": Entry(lambda powers: powers.agreement(-1), _spread, NO_SPREAD),
    "upper limit of agreement": Entry(lambda powers: powers.agreement(1), _spread, NO_SPREAD),
}
"""What is given, with prediction less outcome for an error; the intercept needs the bounds."""


@dataclass(frozen=True)
class RegressionError(clipping.BoundedValues):
    """How predictions of a number differ from outcomes: MAE, RMSE, R^2, bias, calibration line.

    Clients hold predictions as scores and outcomes as second values.

    Parameters
    ----------
    bounds, epsilon, trust : as ``BoundedValues`` has them; predictions and outcomes share bounds.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> import tacit
    >>> pairs = tacit.Clients.from_values(np.linspace(20, 80, 5000), np.linspace(25, 85, 5000))
    >>> result = tacit.evaluate(pairs, RegressionError(bounds=(0, 100), epsilon=2.0), seed=0)
    >>> round(result.estimate.value), sorted(result.breakdown.overall)[0]
    (5, 'R2')
    """

    trust: tp.SecureSum | tp.Each | tp.ExactSum | str = tp.trust_setting()

    name = "regression-error"
    figure = tp.Figure(MAE)
    steps = (sum_powers,)
    needs_second_values = True
    trusts = (tp.Trust.SECURE_SUM, tp.Trust.EACH, tp.Trust.EXACT_SUM)
    record_columns: ClassVar[Mapping[str, str]] = {"prediction": "score", "outcome": "second"}
    law_settings = clipping.law_settings("regression", 200.0, bounds=(0.0, 1.0))
    law_traits = tp.LawTraits(tolerance=1e-6)
    """Sums are rounded once to units."""
    audit_settings = ({"bounds": (0.0, 1.0)}, {"bounds": (0.0, 1.0), "trust": tp.Each.word})

    @property
    def released(self) -> Mapping[str, releases.Released]:
        """The number of records, and two triples of sums."""
        parts = {name: share * self.budget for name, share in SHARES.items()}
        triples = {name: _triple(self, parts[name]) for name in (FIRST, SECOND)}
        return {RECORDS: releases.Released(epsilon=parts[RECORDS]), **triples}

    def pairs(self, clients: tp.Clients) -> tuple[Floats, Floats]:
        """Scaled predictions and outcomes, shape (M,) each.

        Raises
        ------
        DataError : for clients without outcomes.
        """
        if clients.second is None:
            raise tp.DataError("a regression needs a second value of every record, its outcome")
        return self.scaled(clients.scores), self.scaled(clients.second)

    def exact(self, clients: tp.Clients) -> float:
        """The exact mean absolute error of the clipped values, which is not private."""
        predicted, outcome = self.pairs(clients)
        return float(self.half * np.abs(predicted - outcome).mean())

    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        """The error by noise where predictions have this shape, and outcomes mirror them."""
        shares = clipping.expected_shares(scenario, shape)
        error = (2 * np.arange(shares.size) + 1.0) / shares.size - 1
        means = [np.ones_like(error), 0 * error, error.clip(0), (-error).clip(0)]
        means += [0 * error, error**2, 0 * error]
        noises = float(releases.noises_of(self.trust, scenario.clients, scenario.clients))
        variances = [
            each.variance(noises) / (1 if name == RECORDS else each.per_record) ** 2
            for name, each in self.released.items()
        ]
        by_sum = np.repeat(variances, [1, 3, 3])
        figures = Figures(self, scenario.records * (np.array(means) @ shares), by_sum)
        value, privacy, _ = figures.of(CATALOGUE[MAE])
        return clipping.forecast_of(float(privacy + 0 * value))

    def audit_federation(self, records: int, apart: bool) -> tp.Clients:
        """Predictions at one bound and outcomes at the other: such records move the sums most."""
        ends = np.array(self.bounds)[np.arange(records) % 2]
        ids = np.arange(records) if apart else None
        return tp.Clients.from_values(ends, sum(self.bounds) - ends, ids)

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> tp.ThreatModel:
        """Who sees what."""
        summed = "the number of records, and the sums of predictions, outcomes, errors and squares"
        return clipping.summed_model(settings, summed, "Nothing.")

    def conversation(self, clients: int) -> tp.Conversation:
        """One round: seven sums up."""
        sums = yield from tp.ask(sum_powers, self, clients)
        powers, variances = _scaled(sums)
        main = Figures(self, powers, variances)
        value, privacy, sampling = main.of(CATALOGUE[MAE])
        result = ServerResult(value, privacy, sampling, limits=(0.0, 2 * self.half))
        if value.ndim:
            return result
        if math.isnan(value):
            return replace(result, withheld=clipping.few_records(*main.records))
        others = Breakdown("", (), main.others(), (), main.curves())
        return replace(result, breakdown=others)


def _scaled(sums: releases.Sums) -> tuple[Floats, Floats]:
    """The seven sums, the powers' as multiples of 1, shape (7, ...), and their variances, (7,)."""
    powers, variances = [sums[RECORDS][..., np.newaxis]], [sums.variance(RECORDS)]
    for name in (FIRST, SECOND):
        unit = 1 / sums.fields[name].per_record
        powers.append(sums[name] * unit)
        variances += 3 * [sums.variance(name) * unit**2]
    return np.moveaxis(np.concatenate(powers, axis=-1), -1, 0), np.array(variances)


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures of received sums, with their errors to first order.

    Parameters
    ----------
    protocol : for its bounds.
    sums : shape (7, ...).
    variances : of each by noise, shape (7,).
    """

    protocol: RegressionError
    sums: Floats
    variances: Floats

    @property
    def records(self) -> tuple[float, float]:
        """How many there are, with the standard error."""
        return float(self.sums[0]), math.sqrt(self.variances[0])

    def with_error(self, value: Value) -> tuple[Floats, Floats]:
        """A function of the sums and its error: ``sqrt(sum of (df/dx)^2 Var x)``.

        The derivative is the imaginary part of the function at ``x + i h``, over h.
        """
        steps = np.eye(7).reshape(7, 7, *[1] * (self.sums.ndim - 1)) * 1j * STEP
        moved = [value(Powers(self.sums + step)) for step in steps]
        squares = [np.square(each.imag / STEP) for each in moved]
        return np.real(moved[0]), np.sqrt(np.tensordot(self.variances, squares, 1))

    def of(self, entry: Entry) -> tuple[Floats, Floats, Floats]:
        """A figure with its errors by noise and by sampling, in its own units; NaN for none."""
        with np.errstate(all="ignore"):
            value, privacy = self.with_error(entry.value)
            few = clipping.too_few(self.sums[0], np.sqrt(self.variances[0]))
            sampling = np.full_like(value, np.nan)
            if entry.squares is not None:
                spread = np.real(entry.squares(Powers(self.sums))) - value**2
                sampling = np.sqrt(np.where(spread > 0, spread, np.nan) / self.sums[0])
        unit = self.protocol.half if entry.scaled else 1.0
        return np.where(few, np.nan, unit * value), unit * privacy, unit * sampling

    def estimate(self, entry: Entry) -> Estimate:
        """A figure of a single run, or why there is none."""
        if entry.needs is not None:
            with np.errstate(all="ignore"):
                needed, error = map(float, self.with_error(entry.needs))
            if not needed > max(DROWNED * error, 4.0 / self.protocol.one):
                return Estimate.absent(entry.reason)
        unit = self.protocol.half if entry.scaled else 1.0
        low, high = entry.limits
        value, privacy, sampling = map(float, self.of(entry))
        return Estimate(value, privacy, sampling).within((unit * low, unit * high))

    def others(self) -> dict[str, Estimate]:
        """All figures but the first."""
        middle, half = self.protocol.middle, self.protocol.half
        slope = CATALOGUE["calibration slope"]
        line = replace(slope, value=lambda powers: powers.intercept(middle, half))
        listed = {**CATALOGUE, "calibration intercept": line}
        return {name: self.estimate(each) for name, each in listed.items() if name != MAE}

    def curves(self) -> dict[str, BandedCurve]:
        """The calibration line, and that of Bland and Altman, over two standard deviations."""
        made = {
            "calibration line": self._curve(False, "Prediction", "Outcome"),
            "difference by mean": self._curve(
                True, "Mean of prediction and outcome", "Prediction less outcome"
            ),
        }
        return {name: curve for name, curve in made.items() if curve is not None}

    def _curve(self, of_errors: bool, across: str, up: str) -> BandedCurve | None:
        """A line with its band; None where noise hides how x varies."""
        spread, error = map(float, self.with_error(lambda powers: powers.line(of_errors).spread))
        if not spread > max(DROWNED * error, 4.0 / self.protocol.one):
            return None
        line, half = Powers(self.sums).line(of_errors), self.protocol.half
        reach = 2 * math.sqrt(spread)
        places = np.linspace(max(line.x - reach, -1.0), min(line.x + reach, 1.0), PLACES)
        value, privacy = self.with_error(lambda powers: powers.line(of_errors).at(places))
        around = REACH * np.sqrt(privacy**2 + line.sampling_variance(places, self.sums[0]))
        shift = 0.0 if of_errors else self.protocol.middle
        band = (shift + half * each for each in (value, value - around, value + around))
        return BandedCurve(across, up, self.protocol.middle + half * places, *band)
