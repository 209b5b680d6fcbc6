"""EncryptedAUC: the AUC under homomorphic encryption (Baykara et al. 2024).

Parties share one secret key and send encrypted counts. The aggregator, which has evaluation keys
only, computes numerator and denominator under a secret multiplier, and under the same one the
number of pairs of a positive and a negative in one cell; parties decrypt and divide. The two
quotients are the AUC and its certain half-range, since pairs in one cell may all count or none. The
aggregator learns the AUC, to seven decimals, and the half-range, to three digits, because the
parties send them; where there are only hundreds of records the class totals may follow from that.
Parties learn the same to a little more, and the product of the class totals within the multiplier's
range, a factor of 4; below 65,536 agreed records they may work that product out
(``encrypted.packing.Scale``).

No collusion between the aggregator and any party is assumed: every party has the key. An aggregator
may always refuse to answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.homomorphic.keys import FIRST, Introduction, Meeting, Member
from tacit.crypto.homomorphic.messages import EVERYBODY, Kind, read, write
from tacit.crypto.identities import Identity, Roster
from tacit.data.clients import Clients
from tacit.metrics.score_scale import EVEN
from tacit.privacy.cost import UNPROTECTED, Cost
from tacit.protocol.conversation import ClientState, Conversation, Protocol, Query, Reply
from tacit.protocol.scaled import ScaledScores, scale_setting
from tacit.protocol.settings import setting
from tacit.protocols.encrypted.bfv import ExactAggregator, ExactParty, ExactScheme
from tacit.protocols.encrypted.ckks import (
    ApproximateAggregator,
    ApproximateParty,
    ApproximateScheme,
)
from tacit.protocols.encrypted.declared import EncryptedDeclarations
from tacit.protocols.encrypted.packing import MAX_PRODUCTS, Scale
from tacit.protocols.encrypted.steps import (
    Seat,
    as_field,
    as_parts,
    introduce,
    open_answer,
    pin,
    send_counts,
    share_keys,
)
from tacit.results.server_result import ServerResult

SHARES = 4
THRESHOLDS = 100
"""Number of thresholds by default where they are even ones of [0, 1], as in the paper, or where
more of them take more keys (CKKS)."""
RELEASED_FIELDS = ("auc", "half_range")
ADVERSARIES = ("semi-honest", "malicious")
UNPERTURBED_WARNING = (
    "answers were not perturbed: parties could compute the product of the class totals exactly"
)
WIDE_RANGE_WARNING = (
    "the range is certain, and wide where scores crowd into few cells: more thresholds, or "
    "thresholds at agreed quantiles (edges), narrow it"
)
WIDE_HALF_RANGE = 0.01
"""Half-range above which a result has the warning ``WIDE_RANGE_WARNING``."""


@dataclass(frozen=True)
class EncryptedAUC(ScaledScores, EncryptedDeclarations, Protocol):
    """The AUC of encrypted counts, exact on the thresholds.

    There is no differential privacy: the AUC is released as it is, with its certain half-range: the
    exact AUC of the records is at most that far from it, whatever the scores
    (``results.Estimate``).

    Parameters
    ----------
    thresholds : N, at even positions of the scale from its least to its largest score, both
        included, unless ``edges`` says where they are. None takes as many as there are ``edges``;
        without them the paper's 100 with ``scale="even"`` or ``scheme="ckks"``, else as many as a
        ciphertext holds: they cost no bytes, and cells of the log-odds are wide in the middle.
    adversary : ``"semi-honest"``, or ``"malicious"``: an aggregator that computes another AUC or
        half-range is detected, except with probability below 2^-57 (see ``encrypted.checks``), and
        the run gives no AUC. Parties are semi-honest. Parties without each other's identities
        (``encrypted.steps.pin``) accept those that the aggregator relays.
    scheme : ``"bfv"``, exact integers, or the paper's ``"ckks"``, for a semi-honest aggregator.
    most_records : a public bound of all parties' records together, from which the numbers are
        scaled. Answers are perturbed by at most ``2^-30 most_records^2 / (2 P N)`` of the
        denominator; above 1e-6 they are refused, so the bound should not be far above the number
        of records. Where there are more records than agreed, a checked run refuses the answer; a
        semi-honest one does too, unless the numbers happen to wrap around to plausible ones. Above
        11,863,283 records a semi-honest run sends two ciphertexts, one for each of two plain
        moduli, and a checked one is refused.
    edges : the N thresholds, ascending from 0 to 1: quantiles of scores that were agreed
        beforehand, from public scores or an earlier private run. None takes those of the scale.
        Where scores have no bounds (``scale`` is ``"log-odds"`` or ``"real"``) the first and the
        last are any numbers, and scores beyond them count in the cells at the ends.
    perturbed : False leaves the perturbation out, so that an AUC is exact to the last digit and
        the parties learn the product of the class totals: for tests.
    scale : the map of scores to positions at which thresholds are even: ``"probability"``,
        ``"log-odds"``, ``"real"``, or ``"even"`` as in the paper (``metrics.score_scale``). It also
        says in which unit scores and edges are.

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
        help="thresholds or cells; by default as many as one ciphertext holds, 909, or 226 against "
        "a malicious aggregator; 100 with scale even or scheme ckks",
    )
    adversary: Literal["semi-honest", "malicious"] = setting(
        default="semi-honest",
        help="what the aggregator may do; semi-honest by default",
    )
    scheme: Literal["bfv", "ckks"] = setting(default="bfv", help="bfv (exact) by default")
    most_records: int = setting(default=2**20, help="a public bound of all records, 2**20")
    perturbed: bool = setting(default=True, help=None)
    edges: tuple[float, ...] | None = setting(
        default=None,
        help="the thresholds themselves, agreed beforehand; those of the scale by default",
        metavar="0,A,...,1",
    )
    scale: str = scale_setting()

    name = "encrypted-auc"
    planning_module = f"{__package__}.forecast"
    title_settings = ("adversary",)
    state_types = (Seat, Member, Meeting, Introduction)
    steps = (introduce, share_keys, send_counts, open_answer)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scheme == "ckks" and self.adversary == "malicious":
            raise ValueError("scheme 'ckks' is for a semi-honest adversary: use scheme='bfv'")
        if self.thresholds is None:
            object.__setattr__(self, "thresholds", self._default_thresholds)
        if self.threshold_count < 5:
            raise ValueError(f"thresholds must be at least 5, got {self.thresholds}")
        if self.edges is not None:
            _check_edges(self.edges, self.threshold_count, bounded=self.score_range is not None)
        _ = self._approximate if self.scheme == "ckks" else self._exact.layout

    @property
    def guarantee(self) -> Cost:
        """The AUC is released without noise: no differential privacy."""
        return UNPROTECTED

    @property
    def threshold_count(self) -> int:
        """N, chosen or the default."""
        return self._default_thresholds if self.thresholds is None else self.thresholds

    @property
    def _default_thresholds(self) -> int:
        if self.edges is not None:
            return len(self.edges)
        if self.scale == EVEN or self.scheme == "ckks":
            return THRESHOLDS
        checked = self.adversary == "malicious"
        return MAX_PRODUCTS // SHARES - 1 if checked else MAX_PRODUCTS

    @property
    def threshold_scores(self) -> NDArray[np.float64]:
        """The thresholds, ascending, shape (N,): no score is outside them.

        Where scores have no bounds the first and the last are infinite, so that the certain range
        holds for every score.
        """
        if self.edges is None:
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
        """The counts of every client."""
        return 4 * self.threshold_count * clients.count

    def enrol(self, state: ClientState, identity: Identity, roster: Roster) -> None:
        """Pin the parties' identities, so that relayed ones are not accepted."""
        pin(state, [identity], roster)

    def scheme_party(self, secret: bytes, session: bytes, parties: int) -> Any:
        """The scheme with which parties that share a session's secret compute."""
        if self.scheme == "ckks":
            return ApproximateParty(self._approximate, secret, session, parties)
        return ExactParty(self._exact, secret, session, parties)

    def scheme_aggregator(self, keys: Sequence[bytes]) -> Any:
        """The scheme with which an aggregator with evaluation keys computes."""
        if self.scheme == "ckks":
            return ApproximateAggregator(self._approximate, keys)
        return ExactAggregator(self._exact, keys)

    def conversation(self, clients: int) -> Conversation:
        """Introductions, keys, encrypted counts, the answer; nothing is decrypted on this side."""
        introduced = yield Query(introduce, self)
        introductions = as_parts(introduced["introduction"])
        session = self._session(introductions)
        sent = yield Query(share_keys, self, broadcast={"introductions": introductions})
        keys = read(as_parts(sent["keys"])[FIRST], Kind.KEYS, session, FIRST)
        boxes = self._boxes(sent, session, len(introductions))
        counted = yield Query(send_counts, self, per_client={"box": as_field(boxes)})
        uploads = [
            read(message, Kind.COUNTS, session, index)
            for index, message in enumerate(as_parts(counted["counts"]))
        ]
        answers = self.scheme_aggregator(keys).answers(uploads)
        answer = write(Kind.ANSWER, session, EVERYBODY, answers)
        reply = yield Query(open_answer, self, broadcast={"answer": answer})
        figures = np.stack([np.asarray(reply[name], dtype=np.float64) for name in RELEASED_FIELDS])
        if np.any(figures != figures[:, :1]):
            raise HomomorphicError("the parties report different AUCs of one answer")
        return self._server_result(*figures[:, FIRST])

    @property
    def _exact(self) -> ExactScheme:
        checked = self.adversary == "malicious"
        scale = Scale(self.most_records) if checked else Scale.fitting(self.most_records)
        return ExactScheme(self.threshold_count, scale, checked, SHARES, self.perturbed)

    @property
    def _approximate(self) -> ApproximateScheme:
        return ApproximateScheme(self.threshold_count, self.most_records, self.perturbed)

    def _session(self, introductions: Sequence[bytes]) -> bytes:
        parsed = [Introduction.from_bytes(each) for each in introductions]
        return Meeting.of(parsed, self.terms).session

    def _boxes(self, sent: Reply, session: bytes, parties: int) -> list[bytes]:
        boxes = read(as_parts(sent["boxes"])[FIRST], Kind.BOX, session, EVERYBODY)
        if len(boxes) != parties:
            raise HomomorphicError(f"there are {parties} boxes, got {len(boxes)}")
        return boxes

    def _server_result(self, area: float, half_range: float) -> ServerResult:
        """The AUC that the parties report, with its certain range; the class sizes are unknown.

        The approximation error is the standard deviation of a number of which only the range is
        known, ``half_range / sqrt(3)`` (JCGM 100:2008, 4.3.7).
        """
        unknown = np.asarray(np.nan)
        warnings = [] if self.perturbed else [UNPERTURBED_WARNING]
        if half_range > WIDE_HALF_RANGE:
            warnings.append(WIDE_RANGE_WARNING)
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


def _check_edges(edges: tuple[float, ...], thresholds: int, bounded: bool) -> None:
    if len(edges) != thresholds:
        raise ValueError(f"edges must be as many as thresholds, {thresholds}, got {len(edges)}")
    ascend = all(low < high for low, high in pairwise(edges))
    if bounded and not (ascend and edges[0] == 0 and edges[-1] == 1):
        raise ValueError(f"edges must ascend from 0 to 1, got {edges[0]} to {edges[-1]}")
    if not (ascend and all(map(math.isfinite, edges))):
        raise ValueError(f"edges must be finite and ascend, got {edges[0]} to {edges[-1]}")
