"""What is predicted of an estimate.

The metric whose error a plan predicts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats
from tacit.protocol.trust import Trust
from tacit.results.estimate import REACH
from tacit.results.figure import AUC_FIGURE, CLEAR_CLASS_SIZE_IN_ERRORS, Figure
from tacit.results.measures.catalogue import label, named, nearest

if TYPE_CHECKING:
    from tacit.protocol.conversation import Protocol
    from tacit.protocol.scenario import Scenario, Shape, Traffic


AREA, ECE, PRECISION = "auc", "ece", "precision@"

TITLES = {AREA: AUC_FIGURE, ECE: "expected calibration error"}


@dataclass(frozen=True)
class Metric:
    """What is to be measured.

    Parameters
    ----------
    name : ``"auc"``, ``"ece"``, ``"precision@t"`` with a threshold t in [0, 1], the name of a
        measure of score histograms, such as ``"net_benefit_at_0.2"``, or the figure that a protocol
        declares.
    declared : whether the name is a protocol's ``figure``, as it is written there.

    Raises
    ------
    ValueError : for another name that no protocol declares, or a threshold outside [0, 1].

    Examples
    --------
    >>> Metric("precision@0.3").threshold
    0.3
    >>> Metric().title
    'AUC'
    """

    name: str = AREA
    declared: bool = False

    def __post_init__(self) -> None:
        if self.declared or self.name in TITLES:
            return
        measure = named(self.name)
        if measure is None:
            _ = self.threshold
        else:
            object.__setattr__(self, "name", measure[0])

    @classmethod
    def of_figure(cls, figure: str) -> Metric:
        """The metric that a protocol's figure is.

        Examples
        --------
        >>> Metric.of_figure(AUC_FIGURE) == Metric("auc")
        True
        """
        return cls() if Figure.of(figure).is_auc else cls(figure, declared=True)

    @property
    def title(self) -> str:
        """The metric's name in a sentence, which is the figure of protocols that estimate it."""
        return label(self.name) if self.is_measure else TITLES.get(self.name, self.name)

    @property
    def max_error(self) -> float:
        """The error above which an estimate says nothing."""
        return Figure.of(self.title).max_error

    @property
    def is_measure(self) -> bool:
        """Whether it is a measure of score histograms (``tacit.results.measures``)."""
        return not self.declared and named(self.name) is not None

    @property
    def decisions(self) -> tuple[float, ...]:
        """The probability of a decision's measure; empty for others."""
        measure = named(self.name)
        return () if measure is None else measure[1]

    @property
    def threshold(self) -> float:
        """The t of ``precision@t``."""
        try:
            threshold = float(self.name.removeprefix(PRECISION))
        except ValueError:
            threshold = math.nan
        if not (self.name.startswith(PRECISION) and 0 <= threshold <= 1):
            near = nearest(self.name)
            meant = f" (did you mean {near!r}?)" if near else ""
            raise ValueError(
                "metric must be 'auc', 'ece', 'precision@t', t from 0 to 1, or a measure such as "
                f"'calibration slope' or 'net benefit at 0.2', got {self.name!r}{meant}"
            )
        return threshold


def wanted(text: str) -> tuple[str, float | None]:
    """The metric that a wish names, and the standard error that it asks for.

    Parameters
    ----------
    text : a metric, as ``Metric`` takes its name; with ``within`` and the largest distance of the
        ends of the 95 % interval from the figure, which is 1.96 standard errors.

    Raises
    ------
    ValueError : for a distance that is not a positive number.

    Examples
    --------
    >>> metric, error = wanted("net benefit at 0.2 within 0.002")
    >>> metric, round(error, 5)
    ('net benefit at 0.2', 0.00102)
    """
    name, within, distance = re.split(r"(\s+within\s+|$)", text.strip(), maxsplit=1)[:3]
    name = name.lower() if name.lower() in TITLES else name
    if not within:
        return name, None
    try:
        error = float(distance) / REACH
    except ValueError:
        error = 0.0
    if not 0 < error < float("inf"):
        raise ValueError(f"a distance after 'within' must be a positive number, got {distance!r}")
    return name, error


AUC = Metric()
"""The metric of a plan that asks for no other."""


@dataclass(frozen=True)
class Forecast:
    """The predicted error of an estimate about this data's own figure.

    Parameters
    ----------
    standard_error : by privacy noise, by drawing who reports what, and by records' unknown ranks
        within cells.
    bias : how far the mean lies above the exact figure.
    smaller_class, class_error : the smaller class's size, and the standard error with which the
        protocol knows class sizes; 0 where it knows them exactly.
    max_error : the error above which nothing could be said; a plan sets that of the figure.
    """

    standard_error: float
    bias: float = 0.0
    smaller_class: float = math.inf
    class_error: float = 0.0
    max_error: float = math.inf

    @property
    def error(self) -> float:
        """The root mean square error."""
        return math.hypot(self.standard_error, self.bias)

    @property
    def obstacle(self) -> str | None:
        """Why nothing could be said, or None."""
        if self.smaller_class < CLEAR_CLASS_SIZE_IN_ERRORS * self.class_error:
            return (
                f"the noise on class sizes, {self.class_error:.3g} records, drowns the smaller "
                f"class of {self.smaller_class:.0f}"
            )
        if not math.isfinite(self.error):
            return "a result would give no figure"
        if self.error > self.max_error:
            return f"the predicted error, {self.error:.2g}, is above {self.max_error}"
        return None


NO_FORECAST = Forecast(math.inf)
"""Settings of which nothing is predicted."""


@dataclass(frozen=True)
class Family:
    """Configurations of a protocol that hide the same, of which a plan takes the best.

    Parameters
    ----------
    protocols : the settings to compare; one that the protocol refuses is left out.
    trusts : the trust models under which they may be used.
    given_up : what is given up by using it, to end a sentence; empty for nothing.
    metric : what they estimate.
    rough : a protocol whose error stands in a fixed ratio to that of another, but is predicted
        faster: it is used to search for settings and targets.
    tuned : whether a target is searched for with the best settings of every epsilon and number of
        records, instead of those that are best for the scenario.
    """

    protocols: Sequence[Protocol]
    trusts: tuple[Trust, ...]
    given_up: str = ""
    metric: Metric = AUC
    rough: Callable[[Any, Scenario], Any] = lambda protocol, scenario: protocol
    tuned: bool = False

    def forecast(self, protocol: Protocol, scenario: Scenario, shape: Shape) -> Forecast:
        """What one of them predicts; an infinite error where it predicts nothing."""
        forecast = protocol.forecast(scenario, shape, self.metric)
        if forecast is None:
            return NO_FORECAST
        return replace(forecast, max_error=min(forecast.max_error, self.metric.max_error))


@dataclass(frozen=True)
class Planning:
    """What a plan asks of a protocol, in a module that is imported when a plan asks.

    Parameters
    ----------
    families : the configurations that a plan tries for a metric; None for those that the class
        declares (``Protocol.planned``).
    forecast : the predicted error of one of them; None where nothing is predicted.
    traffic : the bytes and rounds of an evaluation; None to measure them in a small dry run.
    """

    families: Callable[[Scenario, Metric], Sequence[Family]] | None
    forecast: Callable[[Any, Scenario, Shape, Metric], Forecast | None]
    traffic: Callable[[Any, Scenario], Traffic] | None = None

    @classmethod
    def of_figure(
        cls,
        families: Callable[[Scenario], Sequence[Family]] | None,
        forecast: Callable[[Any, Scenario, Shape], Forecast | None],
        traffic: Callable[[Any, Scenario], Traffic] | None = None,
        figure: str = AUC_FIGURE,
    ) -> Planning:
        """The planning of a protocol that is planned for one figure only, mostly the AUC."""
        planned = Metric.of_figure(figure)
        return cls(
            families and (lambda scenario, metric: families(scenario) if metric == planned else ()),
            lambda protocol, scenario, shape, metric: (
                forecast(protocol, scenario, shape) if metric == planned else None
            ),
            traffic,
        )


def accepted(made: Iterable[Callable[[], Protocol]]) -> tuple[Protocol, ...]:
    """The protocols that can be made: those whose settings are refused are left out."""
    protocols = []
    for make in made:
        with suppress(ValueError):
            protocols.append(make())
    return tuple(protocols)


def placement(cells: tuple[Floats, Floats], corrected: bool = False) -> float:
    """The variance of not knowing where in their cells records lie, from expected counts.

    A cell's pairs, p positives and n negatives placed at random, win with variance ``p n (p + n +
    1) / 12`` of their number (Mann and Whitney 1947); over Poisson counts that is ``p n (p + n + 3)
    / 12`` of the expected ones.

    Parameters
    ----------
    cells : expected positives and negatives, shapes (B,).
    corrected : whether ``density_correction`` is added, which sparse counts make vary: it is
        ``sum n_j (p_{j+1} - p_{j-1}) / 12``, and the variance of each product ``n p``.

    Examples
    --------
    >>> round(placement((np.full(10, 10.0), np.full(10, 10.0))), 7)
    1.92e-05
    """
    positives, negatives = cells
    variance = float(np.sum(positives * negatives * (positives + negatives + 3))) / 12
    if corrected:
        products = np.sum(negatives[1:] * positives[:-1]) + np.sum(negatives[:-1] * positives[1:])
        steps = np.sum(negatives * _steps(positives) ** 2)
        steps += np.sum(positives * _steps(negatives) ** 2)
        variance += float(products + steps) / 144
    return variance / float(positives.sum() * negatives.sum()) ** 2


def _steps(cells: Floats) -> Floats:
    """How much more the next cell holds than the one before."""
    padded = np.pad(cells, 1, mode="edge")
    return padded[2:] - padded[:-2]
