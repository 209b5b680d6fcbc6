"""EncryptedAUC: the AUC under homomorphic encryption (Baykara et al. 2024).

Parties share one secret key and send encrypted counts. The aggregator, which has evaluation keys
only, computes numerator and denominator under a secret multiplier, and under the same one the
number of pairs of a positive and a negative in one cell; parties decrypt and divide. The two
quotients are the AUC and its certain half-range, since pairs in one cell may all count or none. The
aggregator learns the AUC, to seven decimals, and the half-range, to three digits, because the
parties send them; where there are only hundreds of records the class totals may follow from that.
Parties learn the same to a little more, and the product of the class totals within the multiplier's
range, a factor of 4; below 65,536 agreed records they may work that product out
(``encrypted.ciphertexts.packing.Scale``).

No collusion between the aggregator and any party is assumed: every party has the key. An aggregator
may always refuse to answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.homomorphic.keys import FIRST, Introduction, Meeting, Member
from tacit.crypto.identities import Identity, Roster
from tacit.crypto.masking.masks import Pairing
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost
from tacit.protocol.conversation import ClientState, Conversation, Protocol, Reply, Step
from tacit.protocol.revealed import Revealed, RevealsFigure
from tacit.protocol.settings.declaring import setting
from tacit.protocol.settings.scaled import ScaledScores, scale_setting
from tacit.protocols.encrypted.ciphertexts.bfv import ExactAggregator, ExactParty, ExactScheme
from tacit.protocols.encrypted.ciphertexts.ckks import (
    ApproximateAggregator,
    ApproximateParty,
    ApproximateScheme,
)
from tacit.protocols.encrypted.ciphertexts.packing import MAX_PRODUCTS, Scale
from tacit.protocols.encrypted.ciphertexts.steps import CHECKED_STEPS as CHECKED_CIPHERTEXT_STEPS
from tacit.protocols.encrypted.ciphertexts.steps import STEPS as CIPHERTEXT_STEPS
from tacit.protocols.encrypted.conversations import on_ciphertexts, on_masked_values
from tacit.protocols.encrypted.declared import EncryptedDeclarations
from tacit.protocols.encrypted.masked.party import MaskedParty
from tacit.protocols.encrypted.masked.scheme import MaskedScheme
from tacit.protocols.encrypted.masked.steps import CHECKED_STEPS as CHECKED_MASKED_STEPS
from tacit.protocols.encrypted.masked.steps import STEPS as MASKED_STEPS
from tacit.protocols.encrypted.masked.steps import SeenSession
from tacit.protocols.encrypted.private.result import on_noisy_sums
from tacit.protocols.encrypted.private.steps import STEPS as NOISY_STEPS
from tacit.protocols.encrypted.private.steps import PrivateSums
from tacit.protocols.encrypted.sessions import (
    AGGREGATOR,
    PARTIES,
    ConfirmedAnswer,
    RefusedAnswer,
    Seat,
    pin,
)
from tacit.protocols.encrypted.thresholds import check_edges, thresholds_for, wide_range_warning
from tacit.results.server_result import ServerResult

SHARES = 4
THRESHOLDS = 100
"""Number of thresholds by default where they are even ones of [0, 1], as in the paper, or where
more of them take more keys (CKKS)."""
MASKED = "masked"
MASKED_THRESHOLDS = 1000
"""Number of thresholds by default on masked values, of 26 bytes each."""
RELEASED_FIELDS = ("auc", "half_range")
ADVERSARIES = ("semi-honest", "malicious")
PARTIES_ONLY = (
    "the AUC was told to the parties alone, each of which has it in a file of its own; from what "
    "the aggregator saw it does not follow"
)
UNPERTURBED_WARNING = (
    "answers were not perturbed: parties could compute the product of the class totals exactly"
)
EXPERIMENTAL_WARNING = (
    "the check of a malicious aggregator on masked values is experimental: its proof is not "
    "reviewed yet; scheme='bfv' is the one to rely on"
)
WIDE_HALF_RANGE = 0.01
"""Half-range above which a result has a warning, where none was wanted."""


def _is_private(protocol: EncryptedAUC) -> bool:
    """Whether sums have noise."""
    return protocol.epsilon is not None


def _has_edges(protocol: EncryptedAUC) -> bool:
    """Whether thresholds were given, or are the even ones."""
    return protocol.edges is not None or protocol.scale == EVEN


@dataclass(frozen=True)
class EncryptedAUC(ScaledScores, EncryptedDeclarations, RevealsFigure, Protocol):
    """The AUC of encrypted counts, exact on the thresholds.

    Without ``epsilon`` there is no differential privacy: the AUC is released as it is, with its
    certain half-range: the exact AUC of the records is at most that far from it, whatever the
    scores (``results.Estimate``). With it only noisy sums are released (``encrypted.private``).

    Parameters
    ----------
    thresholds : N, at even positions of the scale from its least to its largest score, both
        included, unless ``edges`` says where they are. None takes as many as there are ``edges``;
        without them the paper's 100 with ``scale="even"`` or ``scheme="ckks"``, else as many as a
        ciphertext holds: they cost no bytes, and cells of the log-odds are wide in the middle.
    adversary : ``"semi-honest"``, or ``"malicious"``: an aggregator that computes another AUC or
        half-range is detected, except with probability below 2^-57 (``ciphertexts.checks``). The
        run then gives no AUC, and its parties begin no other session under the same settings.
        Parties are semi-honest. Parties without each other's identities
        (``encrypted.sessions.pin``) accept those that the aggregator relays.
    scheme : ``"masked"``, kilobytes, the default for a semi-honest aggregator and experimental
        for a malicious one (``masked.verified``); ``"bfv"``, ciphertexts of exact integers, the
        default for a malicious one; or the paper's ``"ckks"``, for a semi-honest one.
    most_records : a public bound of all parties' records together, from which the numbers are
        scaled. Answers are perturbed by at most ``2^-30 most_records^2 / (2 P N)`` of the
        denominator; above 1e-6 they are refused, so the bound should not be far above the number
        of records. Where there are more records than agreed, a checked run refuses the answer; one
        on ciphertexts and a semi-honest one does too, unless the numbers happen to wrap around to
        plausible ones. On masked values up to 256 times as many are counted rightly or refused, and
        only above can numbers wrap around. In ciphertexts, above 11,863,283 records a semi-honest
        run sends two, one for each of two plain moduli, and a checked one is refused.
    edges : ``"even"``, which is ``scale="even"``, or the N thresholds, ascending from 0 to 1:
        quantiles of scores that were agreed beforehand, from public scores or an earlier private
        run. None takes those of the scale. Where scores have no bounds (``scale`` is
        ``"log-odds"`` or ``"real"``) the first and the last are any numbers, and scores beyond them
        count in the cells at the ends.
    perturbed : False leaves the perturbation out, so that an AUC is exact to the last digit and
        the parties learn the product of the class totals: for tests.
    scale : the map of scores to positions at which thresholds are even: ``"probability"``,
        ``"log-odds"``, ``"real"``, or ``"even"`` as in the paper (``metrics.score_scale``). It also
        says in which unit scores and edges are.

    reveal : ``"aggregator"``, which learns the AUC as well, or ``"parties"`` alone.
    half_range : the wanted half-range of the interval, from which N follows for scores that are
        spread as those of advertisements are (``thresholds.SPREADS``). Where scores crowd more it
        comes out wider, and a warning names the number of thresholds for another session.
    epsilon : the privacy budget of one record. The aggregator then has noisy sums over all parties
        and computes the AUC from them; no product, range or exact count is released. It goes with
        ``scheme="masked"``, ``adversary="semi-honest"`` and ``reveal="aggregator"``, and the
        cells follow from it and ``most_records``.
    colluding : with ``epsilon``, the part of the parties that may collude with the aggregator: the
        noise of the others suffices.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> import tacit
    >>> scores, labels = tacit.binormal_scores(300, 700, 0.8, seed=0)
    >>> clients = tacit.Clients.split(scores, labels, clients=3, seed=0)
    >>> protocol = EncryptedAUC(thresholds=50, most_records=1000)
    >>> result = tacit.evaluate(clients, protocol)
    >>> low, high = result.auc.interval()
    >>> low <= tacit.evaluate(clients, tacit.ExactAUC()).auc.value <= high
    True
    """

    thresholds: int | None = setting(
        default=None,
        help="thresholds or cells; 1000 by default, at 26 bytes each, or as many as one ciphertext "
        "holds with scheme bfv: 909, or 226 against a malicious aggregator; 100 with scale even or "
        "scheme ckks",
    )
    adversary: Literal["semi-honest", "malicious"] = setting(
        default="semi-honest",
        help="what the aggregator may do; semi-honest by default",
    )
    scheme: Literal["masked", "bfv", "ckks"] | None = setting(
        default=None,
        help="masked values (kilobytes) by default, bfv (exact) against a malicious aggregator; "
        "masked is experimental there",
    )
    most_records: int = setting(default=2**20, help="a public bound of all records, 2**20")
    perturbed: bool = setting(default=True, help=None)
    edges: tuple[float, ...] | Literal["even"] | None = setting(
        default=None,
        used=_has_edges,
        objects="the thresholds themselves",
        help="the thresholds themselves, agreed beforehand, or even for those of scale even; those "
        "of the scale by default",
        metavar="0,A,...,1|even",
    )
    scale: str = scale_setting()
    reveal: Literal["parties", "aggregator"] = setting(
        default=AGGREGATOR,
        help="who learns the AUC: the aggregator as well (the default), or the parties alone",
    )
    half_range: float | None = setting(
        default=None,
        help="the wanted half-range of the interval, by which the thresholds are chosen",
    )
    epsilon: float | None = setting(
        default=None,
        help="privacy budget of an AUC by masked sums with noise, in two rounds; none by default",
    )
    colluding: float = setting(
        default=0.2,
        help="the part of the parties whose noise the aggregator may know, 0.2 by default",
        used=_is_private,
    )

    name = "encrypted-auc"
    planning_module = f"{__package__}.forecast"
    title_settings = ("adversary",)
    state_types = (
        Seat,
        Member,
        Meeting,
        Introduction,
        SeenSession,
        ConfirmedAnswer,
        RefusedAnswer,
        Revealed,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._take_even_edges()
        if self.scheme is None:
            object.__setattr__(self, "scheme", "bfv" if self._checked else MASKED)
        if self.scheme == "ckks" and self._checked:
            raise ValueError(
                f"scheme {self.scheme!r} is for a semi-honest adversary: use scheme='bfv'"
            )
        if self.epsilon is not None:
            self._check_private()
            return
        if self.thresholds is None:
            object.__setattr__(self, "thresholds", self._default_thresholds)
        if self.threshold_count < 5:
            raise ValueError(f"thresholds must be at least 5, got {self.thresholds}")
        if self.half_range is not None and self.thresholds != self._default_thresholds:
            raise ValueError(
                f"half_range={self.half_range} takes {self._default_thresholds} thresholds, "
                f"got thresholds={self.thresholds}"
            )
        if isinstance(self.edges, tuple):
            check_edges(self.edges, self.threshold_count, bounded=self.score_range is not None)
        _ = self.masked_scheme if self.scheme == MASKED else None
        _ = self._approximate if self.scheme == "ckks" else None
        _ = self._exact.layout if self.scheme == "bfv" else None

    def _take_even_edges(self) -> None:
        """``edges="even"`` is ``scale="even"``.

        Raises
        ------
        ValueError : for scores in a unit that has no even edges.
        """
        if self.edges != EVEN:
            return
        if self.scale not in (PROBABILITY, EVEN):
            raise ValueError(f"edges 'even' are of probabilities, got scale={self.scale!r}")
        object.__setattr__(self, "scale", EVEN)
        object.__setattr__(self, "edges", None)

    def _check_private(self) -> None:
        """Refuse what noisy sums do not have.

        Raises
        ------
        ValueError : naming the setting and its value.
        """
        needed = {
            "scheme": MASKED,
            "adversary": ADVERSARIES[0],
            "reveal": AGGREGATOR,
            "thresholds": None,
            "edges": None,
            "half_range": None,
            "perturbed": True,
        }
        for name, value in needed.items():
            if (got := getattr(self, name)) != value:
                raise ValueError(f"{name} must be {value!r} with an epsilon, got {got!r}")
        _ = self.private_sums

    @property
    def private_sums(self) -> PrivateSums:
        """How noisy sums are divided.

        Raises
        ------
        ValueError : without an epsilon.
        """
        if self.epsilon is None:
            raise ValueError("there are no noisy sums without an epsilon")
        return PrivateSums(self.epsilon, self.most_records, self.colluding)

    @property
    def _checked(self) -> bool:
        return self.adversary == "malicious"

    @property
    def steps(self) -> tuple[Step, ...]:
        """Those of noisy sums, of masked values, or of ciphertexts."""
        if self.epsilon is not None:
            return NOISY_STEPS
        if self._checked:
            return CHECKED_MASKED_STEPS if self.scheme == MASKED else CHECKED_CIPHERTEXT_STEPS
        return MASKED_STEPS if self.scheme == MASKED else CIPHERTEXT_STEPS

    @property
    def guarantee(self) -> Cost:
        """Without an epsilon the AUC is released as it is: no differential privacy."""
        if self.epsilon is None:
            return UNPROTECTED
        return Cost(self.epsilon, adjacency=Adjacency.RECORD)

    def min_clients(self, clients: int) -> int:
        """All of them, where each draws a part of the noise."""
        return super().min_clients(clients) if self.epsilon is None else clients

    @property
    def threshold_count(self) -> int:
        """N, chosen or the default."""
        return self._default_thresholds if self.thresholds is None else self.thresholds

    @property
    def _default_thresholds(self) -> int:
        if isinstance(self.edges, tuple):
            return len(self.edges)
        if self.half_range is not None:
            return thresholds_for(self.half_range, self.scale)
        if self.scale == EVEN or self.scheme == "ckks":
            return THRESHOLDS
        if self.scheme == MASKED:
            return MASKED_THRESHOLDS
        return MAX_PRODUCTS // SHARES - 1 if self._checked else MAX_PRODUCTS

    @property
    def threshold_scores(self) -> NDArray[np.float64]:
        """The thresholds, ascending, shape (N,): no score is outside them.

        Where scores have no bounds the first and the last are infinite, so that the certain range
        holds for every score.
        """
        if not isinstance(self.edges, tuple):
            return self.score_scale.scores(np.linspace(0.0, 1.0, self.threshold_count))
        thresholds = np.array(self.edges, dtype=np.float64)
        if self.score_range is None:
            thresholds[[0, -1]] = -np.inf, np.inf
        return thresholds

    @property
    def terms(self) -> bytes:
        """The settings as parties sign them."""
        return json.dumps(self.settings, sort_keys=True).encode("ascii")

    def replicate_size(self, clients: Clients) -> int:
        """The counts of every client; those of all where only sums are sent."""
        if self.epsilon is not None:
            return 16 * self.private_sums.cells
        return 4 * self.threshold_count * clients.count

    def enrol(
        self, state: ClientState, identity: Identity, roster: Roster, least: int | None = None
    ) -> None:
        """Pin the parties' identities, so that relayed ones are not accepted.

        On masked values ``least`` of them may be a session, so that a run can begin again without
        a party that vanished. In ciphertexts all have to take part, and where the aggregator may be
        malicious: it could say of any party that it vanished.
        """
        fewer = self.scheme == MASKED and not self._checked
        pin(state, [identity], roster, least if fewer else None)

    def scheme_party(
        self, secret: bytes, session: bytes, parties: int, pairing: Pairing | None = None
    ) -> Any:
        """The scheme with which parties that share a session's secret compute.

        Masked values need the keys that parties share two by two.
        """
        if self.scheme == MASKED:
            if pairing is None:
                raise ValueError("masked values need the keys of every two parties")
            return MaskedParty(self.masked_scheme, secret, session, parties, pairing)
        if self.scheme == "ckks":
            return ApproximateParty(self._approximate, secret, session, parties)
        return ExactParty(self._exact, secret, session, parties)

    def scheme_aggregator(self, keys: Sequence[bytes]) -> Any:
        """The scheme with which an aggregator with evaluation keys computes."""
        if self.scheme == "ckks":
            return ApproximateAggregator(self._approximate, keys)
        return ExactAggregator(self._exact, keys)

    def conversation(self, clients: int) -> Conversation:
        """Noisy sums; or introductions, keys, hidden counts, and the answer, which parties open."""
        if self.epsilon is not None:
            return (yield from on_noisy_sums(self, clients))
        talk = on_masked_values if self.scheme == MASKED else on_ciphertexts
        return self._concluded((yield from talk(self)))

    def _concluded(self, reply: Reply) -> ServerResult:
        """What the server knows: what the parties report, where they tell it."""
        if self.reveal == PARTIES:
            unknown = self._server_result(math.nan, math.nan)
            return replace(unknown, warnings=(*unknown.warnings, PARTIES_ONLY))
        figures = np.stack([np.asarray(reply[name], dtype=np.float64) for name in RELEASED_FIELDS])
        if np.any(figures != figures[:, :1]):
            raise HomomorphicError("the parties report different AUCs of one answer")
        return self._server_result(*figures[:, FIRST])

    def revealed_result(self, revealed: Revealed) -> ServerResult:
        """The result of a party that received the AUC."""
        return self._server_result(revealed.value, revealed.half_range)

    @property
    def _exact(self) -> ExactScheme:
        checked = self._checked
        scale = Scale(self.most_records) if checked else Scale.fitting(self.most_records)
        return ExactScheme(self.threshold_count, scale, checked, SHARES, self.perturbed)

    @property
    def masked_scheme(self) -> MaskedScheme:
        """The settings of masked values."""
        return MaskedScheme(self.threshold_count, self.most_records, self.perturbed, self._checked)

    @property
    def _approximate(self) -> ApproximateScheme:
        return ApproximateScheme(self.threshold_count, self.most_records, self.perturbed)

    def _server_result(self, area: float, half_range: float) -> ServerResult:
        """The AUC that the parties report, with its certain range; the class sizes are unknown.

        The approximation error is the standard deviation of a number of which only the range is
        known, ``half_range / sqrt(3)`` (JCGM 100:2008, 4.3.7).
        """
        unknown = np.asarray(np.nan)
        warnings = [] if self.perturbed else [UNPERTURBED_WARNING]
        if self.scheme == MASKED and self._checked:
            warnings.append(EXPERIMENTAL_WARNING)
        wanted = WIDE_HALF_RANGE if self.half_range is None else self.half_range
        if half_range > wanted:
            warnings.append(wide_range_warning(half_range, wanted, self.threshold_count))
        return ServerResult(
            value=np.asarray(area),
            privacy_error=np.zeros(()),
            sampling_error=unknown,
            positives=unknown,
            negatives=unknown,
            approximation_error=np.asarray(half_range / math.sqrt(3)),
            half_range=np.asarray(half_range),
            warnings=tuple(warnings),
        )
