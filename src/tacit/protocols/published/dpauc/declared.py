"""What DPAUC as published declares for audits, reports and laws; and the noises of its paper."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.data.clients import Clients
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.mechanisms import gaussian, laplace
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.settings.choices import Choice
from tacit.protocols.dpauc.protocol import pooled_cells, threats_of

ACCOUNTINGS = ("tight", "paper")
POINTS = ("clamped", "plain")


@dataclass(frozen=True)
class OnCounts(Choice):
    """Noise on the four confusion counts of every threshold.

    Parameters
    ----------
    accounting : ``"tight"``, or ``"paper"``, which charges every count apart.
    points : ``"clamped"`` clamps noisy counts at 0 and orders the points as the paper does, which
        biases the area downwards when noise is large; ``"plain"`` leaves both out and pools the
        class totals.

    Raises
    ------
    ValueError : for another word.
    """

    accounting: str = "tight"
    points: str = "clamped"

    def __post_init__(self) -> None:
        for name, words in (("accounting", ACCOUNTINGS), ("points", POINTS)):
            if getattr(self, name) not in words:
                raise ValueError(f"{name} must be one of {words}, got {getattr(self, name)!r}")

    @property
    def clamps(self) -> bool:
        """Whether counts are clamped and points ordered."""
        return self.points == "clamped"

    def distance(self, thresholds: int, adjacency: str) -> int:
        """The L1 distance of the counts between neighbours; also their squared L2 distance."""
        if self.accounting == "paper":
            return 4 * thresholds
        return (1 if adjacency == "record" else 2) * thresholds

    @abstractmethod
    def drawn(
        self, thresholds: int, adjacency: str, epsilon: float
    ) -> laplace.Laplace | gaussian.Gaussian:
        """The mechanism of all counts together."""


@dataclass(frozen=True)
class Laplace(OnCounts):
    """Laplace noise.

    Examples
    --------
    >>> str(Laplace(accounting="paper"))
    'laplace(accounting=paper)'
    """

    word = "laplace"

    def drawn(self, thresholds: int, adjacency: str, epsilon: float) -> laplace.Laplace:
        """Of scale ``distance / epsilon``."""
        return laplace.Laplace(self.distance(thresholds, adjacency), epsilon)


@dataclass(frozen=True)
class Gaussian(OnCounts):
    """Gaussian noise.

    Parameters
    ----------
    delta : the chance that epsilon fails, above 0 and below 1; it has to be given.
    """

    delta: float = 0.0

    word = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta < 1:
            raise ValueError(
                f"gaussian needs a delta between 0 and 1, such as gaussian(delta=1e-6), got "
                f"{self.delta}"
            )

    def drawn(self, thresholds: int, adjacency: str, epsilon: float) -> gaussian.Gaussian:
        """Of the analytic calibration for the L2 distance."""
        distance = math.sqrt(self.distance(thresholds, adjacency))
        return gaussian.Gaussian(distance, epsilon, self.delta, 4 * thresholds)


@dataclass(frozen=True)
class RandomisedResponse(Choice):
    """Every label is flipped once, by a chance that epsilon gives."""

    word = "randomised-response"


IMITATED_REPEATS = 1200
"""Repetitions where errors are imitated, which takes longer."""

RESPONSE = RandomisedResponse.word


class PublishedDPAUCDeclarations(Declarations):
    """Cases, attacks, threats and laws of ``PublishedDPAUC``."""

    mechanism: Any
    gives_curve = True
    threats = staticmethod(threats_of)
    audit_settings = (
        {"mechanism": "laplace", "thresholds": 2},
        {"mechanism": f"gaussian(delta={audits.DELTA})", "thresholds": 2},
        {"mechanism": RESPONSE, "adjacency": "label"},
    )
    law_settings: ClassVar[audits.Configurations] = {
        name: {"thresholds": 20, "mechanism": mechanism, "adjacency": adjacency}
        for name, mechanism, adjacency in (
            ("dpauc-laplace", "laplace", "record"),
            ("dpauc-laplace-label", "laplace", "label"),
            ("dpauc-laplace-replace", "laplace", "replace"),
            ("dpauc-laplace-paper", "laplace(accounting=paper)", "label"),
            ("dpauc-laplace-unclamped", "laplace(points=plain)", "record"),
            ("dpauc-gaussian", "gaussian(delta=1e-6)", "record"),
            ("dpauc-gaussian-label", "gaussian(delta=1e-6)", "label"),
            ("dpauc-response", RESPONSE, "label"),
        )
    }

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """The counts of clients with one record."""
        from tacit.protocols.published.dpauc.protocol import guesses_from_published_counts

        return (guesses_from_published_counts,)

    @classmethod
    def error_cases(cls) -> Mapping[str, audits.ErrorCase]:
        """Every mechanism, with the paper's number of cells or at a larger epsilon."""
        kind: Any = cls
        mechanisms = {
            "dpauc-laplace": "laplace",
            "dpauc-laplace-unclamped": "laplace(points=plain)",
            "dpauc-gaussian": "gaussian(delta=1e-6)",
        }
        return {
            name: audits.ErrorCase(kind(2.0, 20, mechanism, scale=EVEN), IMITATED_REPEATS)
            for name, mechanism in mechanisms.items()
        } | {"dpauc-response": audits.ErrorCase(kind(1.0, 100, RESPONSE, "label", EVEN))}

    @property
    def law_traits(self) -> audits.LawTraits:
        """Flipped labels are debiased without noise too; the paper's accounting is loose."""
        flips = isinstance(self.mechanism, RandomisedResponse)
        charged = isinstance(self.mechanism, OnCounts) and self.mechanism.accounting == "paper"
        return audits.LawTraits(
            inexact="flipped labels are debiased all the same" if flips else "",
            loose="the paper charges every count apart" if charged else "",
        )

    def noiseless_value(self, clients: Clients) -> float:
        """The area of the counts between thresholds, by straight lines."""
        protocol: Any = self
        return float(curves.cell_area(*pooled_cells(protocol.on_scale(clients), protocol.edges)))
