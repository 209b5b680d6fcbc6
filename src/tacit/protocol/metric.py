"""The metric whose error a plan predicts."""

from __future__ import annotations

from dataclasses import dataclass

AREA, ECE, PRECISION = "auc", "ece", "precision@"

TITLES = {AREA: "AUC", ECE: "expected calibration error"}


@dataclass(frozen=True)
class Metric:
    """What is to be measured.

    Parameters
    ----------
    name : ``"auc"``, ``"ece"``, ``"precision@t"`` with a threshold t in [0, 1], or the figure that
        a protocol declares.
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
        if not self.declared and self.name not in TITLES:
            _ = self.threshold

    @classmethod
    def of_figure(cls, figure: str) -> Metric:
        """The metric that a protocol's figure is.

        Examples
        --------
        >>> Metric.of_figure("AUC") == Metric("auc")
        True
        """
        names = {title: name for name, title in TITLES.items()}
        return cls(names[figure]) if figure in names else cls(figure, declared=True)

    @property
    def title(self) -> str:
        """The metric's name in a sentence, which is the figure of protocols that estimate it."""
        return TITLES.get(self.name, self.name)

    @property
    def threshold(self) -> float:
        """The t of ``precision@t``."""
        wrong = f"metric must be 'auc', 'ece' or 'precision@t', t from 0 to 1, got {self.name!r}"
        if not self.name.startswith(PRECISION):
            raise ValueError(wrong)
        try:
            threshold = float(self.name.removeprefix(PRECISION))
        except ValueError:
            raise ValueError(wrong) from None
        if not 0 <= threshold <= 1:
            raise ValueError(wrong)
        return threshold


AUC = Metric()
"""The metric of a plan that asks for no other."""
