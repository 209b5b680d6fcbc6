"""EncryptedClassAUC: one-versus-rest AUCs of several classes, from masked counts.

Predictions for EncryptedClassAUC, which adds no noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.data.categories import check_names
from tacit.data.clients import Clients
from tacit.metrics import curves
from tacit.metrics.ranking import auc
from tacit.protocol.conversation import Conversation, Protocol, Reply, Step
from tacit.protocol.declarations import forecast, traffic
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.revealed import Revealed
from tacit.protocol.settings.declaring import setting
from tacit.protocol.settings.scaled import scale_setting
from tacit.protocols.encrypted.classes.steps import (
    STEPS,
    UNWEIGHTED_NOTE,
    ClassesRevealed,
    on_masked_classes,
    result_by_class,
)
from tacit.protocols.encrypted.declared import ClassDeclarations
from tacit.protocols.encrypted.hidden import PARTIES_ONLY, HiddenAUC, reveal_setting
from tacit.protocols.encrypted.masked.scheme import MaskedScheme
from tacit.protocols.encrypted.masked.steps import SeenSession, session_bytes
from tacit.protocols.encrypted.protocol import MASKED_THRESHOLDS
from tacit.protocols.encrypted.sessions import PARTIES, RELEASED_FIELDS, STATE_TYPES
from tacit.protocols.shared.class_scores import scores_by_class
from tacit.results.figure import MACRO_AUC
from tacit.results.server_result import ServerResult


@dataclass(frozen=True)
class EncryptedClassAUC(ClassDeclarations, HiddenAUC, Protocol):
    """One-versus-rest AUC of every class and their mean, exact on the thresholds, without noise.

    One session on masked values over all classes (``encrypted.classes``, which derives what it
    reveals). There is no differential privacy: the AUCs are released as they are, each with its
    certain half-range, for an aggregator that follows the protocol and colludes with no party.

    The aggregator learns the C AUCs to seven decimals and their half-ranges to three digits, or
    nothing where ``reveal`` is ``"parties"``. Parties learn the same to a little more, and of each
    class the product of its records and all others within the octaves of a multiplier of its own.
    The aggregator and any party together read the other parties' total counts in every cell of
    every class's score. Class sizes are not revealed, so the mean is not weighted by them.

    Parameters
    ----------
    classes : the agreed names of the classes, in the order of the columns of scores.
    thresholds : N, at even positions of the scale from its least to its largest score, or agreed
        ones themselves (``EncryptedAUC``), the same for all classes; 1000 by default. A party sends
        26 bytes for each of them and each class, 38 at most.
    most_records : a bound of all records of all parties, near their number: a class of which there
        are P records among M has an AUC where ``P (M - P)`` is above ``most_records^2 / 1024``.
    perturbed : False leaves the perturbation out, so that AUCs are exact to the last digit and the
        parties learn the product of the class totals: for tests.
    scale : the map of scores to positions at which thresholds are even.
    reveal : ``"aggregator"``, which learns the AUCs as well, or ``"parties"`` alone.

    Clients without classes are taken to have two, with the scores 1 - s and s: a binary classifier.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> random = np.random.default_rng(0)
    >>> labels, scores = random.integers(0, 3, 900), random.random((900, 3))
    >>> scores[np.arange(900), labels] **= 0.5
    >>> names = ("cat", "dog", "bird")
    >>> clients = tacit.Clients.from_classes(scores, labels, names, np.arange(900) % 3)
    >>> protocol = EncryptedClassAUC(names, most_records=1000)
    >>> result = tacit.evaluate(clients, protocol, exact=True)
    >>> low, high = result.estimate.interval()
    >>> low <= result.exact <= high, [part.name for part in result.breakdown.parts]
    (True, ['cat', 'dog', 'bird'])
    """

    classes: tuple[str, ...] = setting(
        default=("0", "1"), help="the agreed names of the classes, as their columns are ordered"
    )
    thresholds: int | tuple[float, ...] | None = setting(
        default=None, help="thresholds of each class, or agreed ones; 1000 by default"
    )
    most_records: int = setting(default=2**20, help="a public bound of all records, 2**20")
    perturbed: bool = setting(default=True, help=None)
    scale: str = scale_setting()
    reveal: Literal["parties", "aggregator"] = reveal_setting("AUCs")

    name = "encrypted-class-auc"
    figure = MACRO_AUC
    categories_setting = "classes"
    scores_by_class = True
    planning_module = __name__
    state_types = (*STATE_TYPES, SeenSession, ClassesRevealed)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names("classes", self.classes)
        self.take_thresholds(MASKED_THRESHOLDS)
        _ = self.masked_scheme

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in which parties meet, send masked counts, and open the answers."""
        return STEPS

    @property
    def masked_scheme(self) -> MaskedScheme:
        """The settings of masked values, the same for every class."""
        return MaskedScheme(self.threshold_count, self.most_records, self.perturbed)

    def replicate_size(self, clients: Clients) -> int:
        """The counts of every client and class."""
        return super().replicate_size(clients) * len(self.classes)

    def classified(self, clients: Clients) -> tuple[Floats, Integers]:
        """The scores of all classes, shape (M, C), and the records' classes, shape (M,).

        Raises
        ------
        DataError : for clients of other classes than the agreed ones.
        """
        return scores_by_class(clients, self.classes, bounded=self.score_range is not None)

    def conversation(self, clients: int) -> Conversation:
        """Introductions, a secret, masked counts of all classes, and answers that parties open."""
        return self.concluded((yield from on_masked_classes(self)))

    def concluded(self, reply: Reply) -> ServerResult:
        """What the server knows: what the parties report, where they tell it."""
        if self.reveal == PARTIES:
            nothing = np.full(len(self.classes), math.nan)
            unknown = result_by_class(self.classes, nothing, nothing, (PARTIES_ONLY,))
            return replace(unknown, breakdown=None)
        areas, half_ranges = (np.asarray(reply[name]) for name in RELEASED_FIELDS)
        for figures in (areas, half_ranges):
            if not np.array_equal(
                figures, np.repeat(figures[:, :1], figures.shape[1], axis=1), True
            ):
                raise HomomorphicError("the parties report different AUCs of one answer")
        return self._result(areas[:, 0], half_ranges[:, 0])

    def revealed_result(self, revealed: Revealed) -> ServerResult:
        """The result that a party has, where it was told."""
        if not isinstance(revealed, ClassesRevealed):
            raise HomomorphicError("a party of this protocol is told the AUCs of all classes")
        return self._result(revealed.areas, revealed.half_ranges)

    def _result(self, areas: Floats, half_ranges: Floats) -> ServerResult:
        warnings = (UNWEIGHTED_NOTE, *self.standing_warnings)
        return result_by_class(self.classes, areas, half_ranges, warnings)

    def exact(self, clients: Clients) -> float:
        """The mean of the exact one-versus-rest AUCs, which is not private."""
        return float(np.mean(self.exact_by_class(clients)))

    def exact_by_class(self, clients: Clients) -> Sequence[float]:
        """The exact one-versus-rest AUC of every class, which is not private."""
        scores, classes = self.classified(clients)
        return [
            auc(scores[:, number], (classes == number).astype(np.int8))
            for number in range(len(self.classes))
        ]


ROUNDS = 4
"""Introductions, the secret, masked counts, and the figures."""
FIGURES_BYTES, FIGURE_BYTES = 25, 16
"""Of a client's last reply: its fields, and an AUC with its half-range."""


def classes_forecast(
    protocol: EncryptedClassAUC, scenario: Scenario, shape: Shape
) -> forecast.Forecast:
    """No noise: straight lines between thresholds, and unknown positions of records between them.

    Positions of records in the scores of different classes are taken to be independent, so that the
    error of a mean of C AUCs is that of one over ``sqrt(C)``; the bias is the same in all. The
    interval of a result assumes neither and is the mean of the certain ranges.

    A class has no AUC where ``P (M - P)`` is too small beside the bound of records squared.
    """
    if not protocol.masked_scheme.accepts(scenario.positives * scenario.negatives):
        return forecast.Forecast(math.inf)
    cells = scenario.counts(shape, protocol.threshold_count - 1, protocol.scale)
    error = math.sqrt(forecast.placement(cells) / scenario.classes)
    return forecast.Forecast(error, float(curves.cell_area(*cells)) - shape.auc)


def classes_families(scenario: Scenario, metric: forecast.Metric) -> list[forecast.Family]:
    """One: an aggregator that follows the protocol."""
    if metric != forecast.Metric.of_figure(EncryptedClassAUC.figure):
        return []
    sized = partial(EncryptedClassAUC, classes=scenario.class_names, most_records=scenario.records)
    return [
        forecast.Family(
            forecast.accepted([sized]),
            (Trust.ENCRYPTED,),
            "there is no differential privacy: the AUCs of all classes are released as they are, "
            "epsilon is not kept, and an aggregator that colludes with a client learns everything",
            metric,
            rough=lambda protocol, scenario: replace(protocol, most_records=scenario.records),
        )
    ]


def classes_traffic(protocol: EncryptedClassAUC, scenario: Scenario) -> traffic.Traffic:
    """Masked values of all classes, by their sizes.

    Examples
    --------
    >>> protocol = EncryptedClassAUC(("a", "b", "c"), 100, most_records=1000)
    >>> classes_traffic(protocol, Scenario(1000, 300, 10, 1.0, 3)).rounds
    4
    """
    classes = len(protocol.classes)
    uploads = session_bytes(scenario.clients, classes * protocol.masked_scheme.upload_bytes)
    sent = uploads + FIGURES_BYTES + FIGURE_BYTES * classes
    return traffic.Traffic(round(sent), ROUNDS, traffic.round_seconds(ROUNDS, scenario))


PLANNING = forecast.Planning(
    classes_families,
    lambda protocol, scenario, shape, metric: (
        classes_forecast(protocol, scenario, shape)
        if metric == forecast.Metric.of_figure(protocol.figure)
        else None
    ),
    classes_traffic,
)
