"""The metric whose error a plan predicts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tacit.results.figure import AUC_FIGURE, Figure
from tacit.results.measures.measure import REACH
from tacit.results.measures.names import label, named

AREA, ECE, PRECISION = "auc", "ece", "precision@"

UNPLANNED = ("e50", "e90", "emax", "ici")
"""Measures that depend on which records are drawn more than on their distribution."""

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
        elif measure[0] in UNPLANNED:
            raise ValueError(f"e50, e90, emax and ici are not planned, got {self.name!r}")
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
        wrong = (
            "metric must be 'auc', 'ece', 'precision@t', t from 0 to 1, or a measure such as "
            f"'calibration slope' or 'net benefit at 0.2', got {self.name!r}"
        )
        if not self.name.startswith(PRECISION):
            raise ValueError(wrong)
        try:
            threshold = float(self.name.removeprefix(PRECISION))
        except ValueError:
            raise ValueError(wrong) from None
        if not 0 <= threshold <= 1:
            raise ValueError(wrong)
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
