"""What protocols have in common that tell a certain AUC of counts which keys hide on the way."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.arrays import Floats
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.identities import Identity, Roster
from tacit.data.clients import Clients
from tacit.privacy.cost import UNPROTECTED, Cost
from tacit.protocol.conversation import ClientState, Reply
from tacit.protocol.revealed import Revealed, RevealsFigure
from tacit.protocol.settings.declaring import setting, settings_of
from tacit.protocol.settings.scaled import ScaledScores
from tacit.protocols.encrypted.sessions import AGGREGATOR, PARTIES, RELEASED_FIELDS, pin
from tacit.results.server_result import ServerResult

PAPER_THRESHOLDS = 100
"""Number of thresholds by default where they are even ones of [0, 1], as in Baykara et al. 2024."""
LEAST_THRESHOLDS = 5
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
    "the range is certain, and wider than {wanted:g} where scores crowd into few cells: about "
    "{more} thresholds in another session, or thresholds at agreed quantiles, narrow it, but not "
    "where scores are tied"
)
WIDE_HALF_RANGE = 0.01
"""Half-range above which a result has a warning, where none was wanted."""


def reveal_setting(figures: str = "AUC") -> Any:
    """The setting ``reveal`` of a protocol whose parties open an answer."""
    return setting(
        default=AGGREGATOR,
        help=f"who learns the {figures}: the aggregator as well (the default), or the parties "
        "alone",
    )


class HiddenAUC(ScaledScores, RevealsFigure):
    """Thresholds, terms and results of an AUC with its certain half-range."""

    thresholds: int | tuple[float, ...] | None
    most_records: int
    perturbed: bool
    reveal: Literal["parties", "aggregator"]
    name: ClassVar[str]
    title_settings: ClassVar[tuple[str, ...]] = ()

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

    @property
    def guarantee(self) -> Cost:
        """The figure is released as it is: no differential privacy."""
        return UNPROTECTED

    def enrol(
        self, state: ClientState, identity: Identity, roster: Roster, least: int | None = None
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

    def replicate_size(self, clients: Clients) -> int:
        """The counts of every client."""
        return 4 * self.threshold_count * clients.count

    def concluded(self, reply: Reply) -> ServerResult:
        """What the server knows: what the parties report, where they tell it."""
        if self.reveal == PARTIES:
            unknown = self.result_of(math.nan, math.nan)
            return replace(unknown, warnings=(*unknown.warnings, PARTIES_ONLY))
        figures = np.stack([np.asarray(reply[name], dtype=np.float64) for name in RELEASED_FIELDS])
        if np.any(figures != figures[:, :1]):
            raise HomomorphicError("the parties report different AUCs of one answer")
        return self.result_of(*figures[:, 0])

    def revealed_result(self, revealed: Revealed) -> ServerResult:
        """The result of a party that received the AUC."""
        return self.result_of(revealed.value, revealed.half_range)

    def result_of(self, area: float, half_range: float) -> ServerResult:
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


def certain_result(area: float, half_range: float, warnings: tuple[str, ...]) -> ServerResult:
    """A figure with its certain range; class sizes are unknown.

    The approximation error is the standard deviation of a number of which only the range is known,
    ``half_range / sqrt(3)`` (JCGM 100:2008, 4.3.7).
    """
    unknown = np.asarray(np.nan)
    return ServerResult(
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
