"""Declarations of protocols that compute a certain AUC of encrypted or masked counts.

They concern audits, reports, laws and plans, with the threat model of masked counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, cast

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.identities import Identity, Roster
from tacit.metrics import curves
from tacit.protocol import audits, declared, forecast
from tacit.protocol.settings import settings_of
from tacit.protocols.encrypted.sessions import AGGREGATOR, PARTIES, RELEASED_FIELDS, pin
from tacit.protocols.shared import counting

PAPER_THRESHOLDS = 100
"""Number of thresholds by default where they are even ones of [0, 1], as in Baykara et al. 2024."""
LEAST_THRESHOLDS = 5
POINTS = (25, 50, 100, 200, 400)
"""Numbers of thresholds that a plan compares."""
SEMI_HONEST, MALICIOUS = "semi-honest", "malicious"
"""An aggregator that follows the protocol, and one whose answers are checked."""
PARTIES_ONLY = (
    "the AUC was told to the parties alone, each of which has it in a file of its own; from what "
    "the aggregator saw it does not follow"
)
UNPERTURBED_WARNING = (
    "answers were not perturbed: parties could compute the product of the class totals exactly"
)
WIDE_RANGE = (
    "the range is certain, and wider than {wanted:g} where scores are concentrated in few cells: "
    "about {more} thresholds in another session, or thresholds at agreed quantiles, narrow it, but "
    "not where scores are tied"
)
WIDE_HALF_RANGE = 0.01
"""Half-range above which a result has a warning, where none was wanted."""


PAGE = "threat-models/encrypted-auc.md"

AGGREGATOR_WITHOUT_AUC = "The aggregator sees {seen} only, and is told nothing of the AUC."

MASKED = tp.ThreatModel(
    "The aggregator follows the protocol and must not collude with any party: every party has the "
    "session's secret, and with one the aggregator reads the others' total counts. Parties follow "
    "the protocol.",
    "The aggregator sees uniform words only, and the AUC to seven places and its certain range to "
    "three digits because the parties tell it; with only hundreds of records the class totals may "
    "follow from that.",
    "The AUC and its certain range, and the product of the two class totals within a factor of 2 "
    "to the 4 or more; where fewer than 131,000 records were agreed on, parties may work that "
    "product out.",
    "The AUC is exact on its thresholds: masks hide who contributed what on the way, and nothing "
    "of what follows from the figure itself.",
    PAGE,
)

LYING = (
    "It can always refuse to answer, and one that lies learns whether the parties refused the "
    "answer, which they confirm to be one for all: one bit, for example whether a total is above a "
    "number. After one refusal, in any of its sessions, there is no other under these settings."
)


def told_to_parties(made: tp.ThreatModel, settings: Mapping[str, Any], seen: str) -> tp.ThreatModel:
    """The model where the parties may tell the aggregator nothing, which sees these messages."""
    if settings.get("reveal") == "parties":
        return replace(made, server=AGGREGATOR_WITHOUT_AUC.format(seen=seen))
    return made


SMALL = {"thresholds": 9, "most_records": 64}
"""The settings of a small session."""


def reveal_setting(figures: str = "AUC") -> Any:
    """The setting ``reveal`` of a protocol whose parties open an answer."""
    return tp.setting(
        default=AGGREGATOR,
        help=f"who learns the {figures}: the aggregator as well (the default), or the parties "
        "alone",
    )


class HiddenAUC(tp.ScaledScores, tp.Declarations):
    """Thresholds, terms and results of an AUC with its certain half-range; its cases and laws."""

    thresholds: int | tuple[float, ...] | None
    most_records: int
    perturbed: bool
    reveal: Literal["parties", "aggregator"]
    title_settings: ClassVar[tuple[str, ...]] = ()
    scores_by_class: ClassVar[bool] = False
    draws: ClassVar[int] = 24
    """Number of draws of messages in an audit; each takes milliseconds."""
    audit_settings = (SMALL,)
    guarantee = tp.UNPROTECTED
    """The figure is released as it is: no differential privacy."""
    gives_errors = False
    """Figures have a certain range and no standard error."""

    @property
    def checked(self) -> bool:
        """Whether the aggregator may be malicious: parties check its answer, one for all."""
        return False

    @property
    def needs_all(self) -> bool:
        """Whether all agreed parties have to take part, also in a run that begins again.

        A malicious aggregator could say of any party that it vanished.
        """
        return self.checked

    def enrol(
        self, state: tp.ClientState, identity: Identity, roster: Roster, least: int | None = None
    ) -> None:
        """Pin the parties' identities, so that relayed ones are not accepted.

        ``least`` of them may be a session, so that a run can begin again without a party that
        vanished, unless it needs them all.
        """
        pin(state, [identity], roster, None if self.needs_all else least)

    def take_thresholds(self, default: int) -> None:
        """Take as many thresholds as there are by default, where the setting is left open.

        Raises
        ------
        ValueError : for too few thresholds, and agreed ones that do not ascend, or do not go from 0
            to 1 where scores are probabilities.
        """
        if self.thresholds is None:
            object.__setattr__(self, "thresholds", default)
        if self.threshold_count < LEAST_THRESHOLDS:
            raise ValueError(
                f"thresholds must be at least {LEAST_THRESHOLDS}, got {self.threshold_count}"
            )
        if isinstance(self.thresholds, tuple):
            check_agreed(self.thresholds, bounded=self.score_range is not None)

    @property
    def threshold_count(self) -> int:
        """N, chosen or the default."""
        if isinstance(self.thresholds, tuple):
            return len(self.thresholds)
        return self.thresholds or 0

    @property
    def threshold_scores(self) -> Floats:
        """The thresholds, ascending, shape (N,): no score is outside them.

        Where scores have no bounds the first and the last are infinite, so that the certain range
        holds for every score.
        """
        if not isinstance(self.thresholds, tuple):
            return self.score_scale.scores(np.linspace(0.0, 1.0, self.threshold_count))
        thresholds = np.array(self.thresholds, dtype=np.float64)
        if self.score_range is None:
            thresholds[[0, -1]] = -np.inf, np.inf
        return thresholds

    @property
    def terms(self) -> bytes:
        """The settings as parties sign them, with the protocol's name."""
        named = {"name": self.name, **settings_of(self)}
        return json.dumps(named, sort_keys=True).encode("ascii")

    @property
    def auc_count(self) -> int:
        """How many AUCs an evaluation tells."""
        return 1

    def replicate_size(self, clients: tp.Clients) -> int:
        """The counts of every client for each AUC."""
        return 4 * self.threshold_count * clients.count * self.auc_count

    def concluded(self, reply: tp.Reply) -> tp.ServerResult:
        """What the server knows: what the parties report, where they tell it."""
        if self.reveal == PARTIES:
            return self.untold
        figures = np.stack([np.asarray(reply[name], dtype=np.float64) for name in RELEASED_FIELDS])
        first = np.broadcast_to(figures[..., :1], figures.shape)
        if not np.array_equal(figures, first, equal_nan=self.scores_by_class):
            raise HomomorphicError("the parties report different AUCs of one answer")
        return self.result_of(*figures[..., 0])

    @property
    def untold(self) -> tp.ServerResult:
        """What the server knows where only the parties are told."""
        unknown = self.result_of(math.nan, math.nan)
        return replace(unknown, warnings=(*unknown.warnings, PARTIES_ONLY))

    def revealed_result(self, revealed: declared.Revealed) -> tp.ServerResult:
        """The result of a party that received the AUC."""
        return self.result_of(revealed.value, revealed.half_range)

    def result_of(self, area: Any, half_range: Any) -> tp.ServerResult:
        """The AUC that the parties report, with its certain range; a wide one has a warning."""
        warnings, wanted = self.standing_warnings, self.wanted_half_range
        if half_range > wanted:
            more = math.ceil(self.threshold_count * half_range / wanted)
            warnings = (*warnings, WIDE_RANGE.format(wanted=wanted, more=more))
        return certain_result(area, half_range, warnings)

    @property
    def wanted_half_range(self) -> float:
        """The half-range above which a result has a warning."""
        return WIDE_HALF_RANGE

    @property
    def standing_warnings(self) -> tuple[str, ...]:
        """What a reader must know of the settings."""
        return () if self.perturbed else (UNPERTURBED_WARNING,)

    @property
    def law_traits(self) -> tp.LawTraits:
        """Ciphertexts and masked values are no sums."""
        return tp.LawTraits(
            indivisible="only the session of a hidden count opens its answer",
            unmeasured_loss="messages differ by their keys, and not by noise",
            min_clients=2,
            batches=(2,),
            tolerance=1e-7,
        )

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> tp.AuditCase:
        """Clients of one record, as a session takes two clients."""
        return tp.AuditCase(cls.name, settings, apart=True, one_by_one=cls.draws, tight=False)

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """None: messages are hidden."""
        return ()

    def noiseless_value(self, clients: tp.Clients) -> float:
        """The area under the linear pieces between the thresholds: pairs of a cell count half."""
        areas = []
        for each in self.problems(clients):
            positives, records = counting.cell_counts(each, self.threshold_scores)
            areas.append(float(curves.cell_area(positives.sum(-1), (records - positives).sum(-1))))
        return float(np.mean(areas))

    def problems(self, clients: tp.Clients) -> Iterable[tp.Clients]:
        """The records with the labels of each AUC."""
        return (clients,)

    def sized_for(self, clients: tp.Clients) -> tp.Protocol:
        """The same, agreed for so many records."""
        return replace(cast(Any, self), most_records=clients.records)


def certain_result(area: float, half_range: float, warnings: tuple[str, ...]) -> tp.ServerResult:
    """A figure with its certain range; class sizes are unknown.

    The approximation error is the standard deviation of a number of which only the range is known,
    ``half_range / sqrt(3)`` (JCGM 100:2008, 4.3.7).
    """
    unknown = np.asarray(np.nan)
    return tp.ServerResult(
        value=np.asarray(area),
        privacy_error=np.zeros(()),
        sampling_error=unknown,
        positives=unknown,
        negatives=unknown,
        approximation_error=np.asarray(half_range / math.sqrt(3)),
        half_range=np.asarray(half_range),
        warnings=warnings,
    )


def check_agreed(thresholds: tuple[float, ...], bounded: bool) -> None:
    """Refuse agreed thresholds that do not ascend.

    Parameters
    ----------
    bounded : whether they go from 0 to 1.

    Raises
    ------
    ValueError : naming the ends.
    """
    first, last = thresholds[0], thresholds[-1]
    ascend = all(low < high for low, high in pairwise(thresholds))
    if bounded and not (ascend and first == 0 and last == 1):
        raise ValueError(f"thresholds must ascend from 0 to 1, got {first} to {last}")
    if not (ascend and all(map(math.isfinite, thresholds))):
        raise ValueError(f"thresholds must be finite and ascend, got {first} to {last}")


def hidden_forecast(protocol: HiddenAUC, scenario: tp.Scenario, shape: tp.Shape) -> tp.Forecast:
    """No noise: interpolation between thresholds, and unknown positions of records between them.

    This is the error that the shape predicts. The interval of a result assumes no shape and is the
    certain range, ``sum p n / (2 P N)`` on either side. Positions of records in the scores of
    different classes are taken to be independent, so that the error of a mean of C AUCs is that of
    one over ``sqrt(C)``; the bias is the same in all.
    """
    cells = scenario.counts(shape, protocol.threshold_count - 1, protocol.scale)
    error = math.sqrt(forecast.placement(cells) / protocol.auc_count)
    return tp.Forecast(error, float(curves.cell_area(*cells)) - shape.auc)


def sized_family(
    made: Iterable[Callable[[], tp.Protocol]], given_up: str, metric: tp.Metric = tp.AUC
) -> tp.Family:
    """Configurations whose bound of records is that of the scenario.

    Parameters
    ----------
    made : the configurations.
    given_up : what is given up by using them.
    metric : what they measure.
    """
    return tp.Family(
        tp.accepted(made),
        (tp.Trust.ENCRYPTED,),
        given_up,
        metric,
        rough=lambda protocol, scenario: replace(protocol, most_records=scenario.records),
    )


def hidden_families(make: Callable[..., tp.Protocol], scenario: tp.Scenario) -> list[tp.Family]:
    """One, over numbers of thresholds.

    Parameters
    ----------
    make : the protocol of a number of thresholds and ``most_records``.
    """
    made = (partial(make, points, most_records=scenario.records) for points in POINTS)
    given_up = (
        "there is no differential privacy: the AUC is released as it is, epsilon is not kept, "
        "and an aggregator that colludes with a client learns everything; its interval is the "
        "certain range of its thresholds, many times as wide as this error"
    )
    return [sized_family(made, given_up)]
