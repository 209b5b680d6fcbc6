"""EncryptedAUC: the exact AUC of masked counts.

Every party sends its counts in every cell under masks that cancel over all parties, and products
with others' masks (``masked_scheme``). The aggregator, which has no key, computes numerator and
denominator under a secret multiplier, and under the same one the number of pairs of a positive and
a negative in one cell; parties take the pads off and divide. The two quotients are the AUC and its
certain half-range, since pairs in one cell may all count or none. The aggregator learns the AUC, to
seven decimals, and the half-range, to three digits, because the parties send them; where there are
only hundreds of records the class totals may follow from that. Parties learn the same to a little
more, and the product of the class totals within the multiplier's octaves (``MaskedScheme``).

No collusion between the aggregator and any party is assumed: every party has the session's secret.
An aggregator may always refuse to answer. After Baykara et al. 2024, whose own form is
``published.fhe``.

Predictions for EncryptedAUC. Who sees what when an aggregator computes from masked counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import tacit.protocol as tp
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol import audits, declared, fields
from tacit.protocol.scenario import round_seconds
from tacit.protocols.encrypted import confirming, hidden, sessions, steps
from tacit.protocols.encrypted.masked_scheme import MaskedScheme

MASKED_THRESHOLDS = 1000
"""Number of thresholds by default, of 26 bytes each."""
SPREADS = {EVEN: 0.5}
"""The certain half-range times the number of thresholds, by scale: of 458,407 scores of
advertisements 0.49 with even thresholds, and 2.35 with those of the log-odds."""
SPREAD = 2.5
"""The same on every other scale."""
LEAST_HALF_RANGE, MOST_HALF_RANGE = 1e-5, 0.1
EXPERIMENTAL_WARNING = (
    "the check of a malicious aggregator on masked values is experimental: its proof is not "
    "reviewed yet; published-fhe with scheme 'bfv(adversary=malicious)' is the one to rely on"
)

VERIFIED = replace(
    hidden.MASKED,
    trust="Experimental: the proof that the parties' check notices every wrong answer is not "
    "reviewed yet. The aggregator may compute wrongly, and must not collude with any party: every "
    f"party has the session's secret. {hidden.LYING}",
)


def threats_of(settings: Mapping[str, Any]) -> tp.ThreatModel:
    """The threat model of these settings."""
    made = VERIFIED if settings.get("adversary") == "malicious" else hidden.MASKED
    return hidden.told_to_parties(made, settings, "uniform words")


@dataclass(frozen=True)
class SemiHonest(tp.Choice):
    """It follows the protocol, and colludes with no party."""

    word = "semi-honest"


@dataclass(frozen=True)
class Malicious(tp.Choice):
    """It may compute wrongly; it colludes with no party."""

    word = "malicious"


@dataclass(frozen=True)
class EncryptedAUC(hidden.HiddenAUC, tp.Protocol):
    """The AUC of masked counts, exact on the thresholds.

    There is no differential privacy: the AUC is released as it is, with its certain half-range: the
    exact AUC of the records is at most that far from it, whatever the scores
    (``results.estimate.Estimate``). With an epsilon it is one of noisy sums over all parties, which
    is ``ScoreHistogram`` with trust ``secure-sum``.

    Parameters
    ----------
    thresholds : N, at even positions of the scale from its least to its largest score, both
        included; or the thresholds themselves, ascending from 0 to 1: quantiles of scores that were
        agreed beforehand, from public scores or an earlier private run. Where scores have no bounds
        (``scale`` is ``"log-odds"`` or ``"real"``) the first and the last are any numbers, and
        scores beyond them count in the cells at the ends. None takes what ``half_range`` needs;
        without it 1000, with ``scale="even"`` the paper's 100.
    adversary : what the aggregator may do. ``SemiHonest()``: it follows the protocol and colludes
        with no party. ``Malicious()``: an aggregator that computes another AUC or half-range is
        detected (``masked_sides``, experimental). The run then gives no AUC, and its parties
        begin no other session under the same settings. Parties are semi-honest. Parties without
        each other's identities (``encrypted.sessions.pin``) accept those that the aggregator
        relays.
    most_records : a public bound of all parties' records together, from which the numbers are
        scaled. Answers are perturbed by at most ``2^-30 most_records^2 / (2 P N)`` of the
        denominator; above 1e-6 they are refused, so the bound should not be far above the number
        of records. Up to 256 times as many are counted rightly or refused, and only above can
        numbers wrap around.
    perturbed : False leaves the perturbation out, so that an AUC is exact to the last digit and
        the parties learn the product of the class totals: for tests.
    scale : the map of scores to positions at which thresholds are even: ``"probability"``,
        ``"log-odds"``, ``"real"``, or ``"even"`` as in the paper (``metrics.cells.score_scale``).
        It also says in which unit scores and thresholds are.
    reveal : ``"aggregator"``, which learns the AUC as well, or ``"parties"`` alone.
    half_range : the wanted half-range of the interval, from which N follows for scores that are
        spread as those of advertisements are (``SPREADS``). Where scores concentrate more it comes
        out wider, and a warning names the number of thresholds for another session.

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

    thresholds: int | tuple[float, ...] | None = tp.setting(
        default=None,
        help="thresholds, or the agreed ones themselves; 1000 by default, at 26 bytes each; 100 "
        "with scale even",
    )
    adversary: SemiHonest | Malicious | str = tp.setting(
        default=SemiHonest(), help="what the aggregator may do; semi-honest by default"
    )
    most_records: int = tp.setting(default=2**20, help="a public bound of all records, 2**20")
    perturbed: bool = tp.setting(default=True, help=None)
    scale: str = tp.scale_setting()
    reveal: Literal["parties", "aggregator"] = hidden.reveal_setting()
    half_range: float | None = tp.setting(
        default=None,
        help="the wanted half-range of the interval, by which the thresholds are chosen",
    )

    name = "encrypted-auc"
    planning_module = __name__
    title_settings = ("adversary",)
    state_types = (*sessions.STATE_TYPES, declared.Revealed)
    threats = staticmethod(threats_of)
    law_settings: ClassVar[audits.Configurations] = {"encrypted": hidden.SMALL}
    """The plain variant; the checked one has tests of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.take_thresholds(self._default_thresholds)
        _ = self.masked_scheme

    @property
    def checked(self) -> bool:
        """Whether the aggregator may be malicious."""
        return isinstance(self.adversary, Malicious)

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """Those of masked values, with a check of the aggregator where it may be malicious."""
        return steps.CHECKED_STEPS if self.checked else steps.STEPS

    @property
    def _default_thresholds(self) -> int:
        if self.half_range is not None:
            return thresholds_for(self.half_range, self.scale)
        return hidden.PAPER_THRESHOLDS if self.scale == EVEN else MASKED_THRESHOLDS

    def conversation(self, clients: int) -> tp.Conversation:
        """Introductions, a secret, masked counts, and an answer to open."""
        uploads, aggregator = yield from steps.masked_uploads(self, steps.send_masked)
        answer = aggregator.answer(uploads)
        return self.concluded((yield from confirming.opened(steps.open_masked, self, answer)))

    @property
    def masked_scheme(self) -> MaskedScheme:
        """The settings of masked values."""
        return MaskedScheme(self.threshold_count, self.most_records, self.perturbed, self.checked)

    @property
    def wanted_half_range(self) -> float:
        """The wanted half-range, or a default."""
        return super().wanted_half_range if self.half_range is None else self.half_range

    @property
    def standing_warnings(self) -> tuple[str, ...]:
        """Also that the check of a malicious aggregator is experimental."""
        return (*super().standing_warnings, *((EXPERIMENTAL_WARNING,) * self.checked))


def thresholds_for(half_range: float, scale: str) -> int:
    """The number of thresholds with which the half-range of spread scores comes out so wide.

    It follows from public numbers alone. ``sum p n / (2 P N)`` falls as the cells narrow, but where
    scores are tied.

    Parameters
    ----------
    half_range : the wanted half-range.
    scale : the name of the scale.

    Raises
    ------
    ValueError : for a half-range outside its range.

    Examples
    --------
    >>> thresholds_for(0.005, "even"), thresholds_for(0.0025, "probability")
    (100, 1000)
    """
    if not LEAST_HALF_RANGE <= half_range <= MOST_HALF_RANGE:
        raise ValueError(
            f"half_range must be from {LEAST_HALF_RANGE} to {MOST_HALF_RANGE}, got {half_range}"
        )
    return math.ceil(round(SPREADS.get(scale, SPREAD) / half_range, 6))


FIGURES_BYTES, FIGURE_BYTES = 25, 16
"""Of a client's last reply: its fields, and an AUC with its half-range."""


def masked_forecast(protocol: Any, scenario: tp.Scenario, shape: tp.Shape) -> tp.Forecast:
    """That of hidden counts, where the scheme takes so many records.

    A class has no AUC where ``P (M - P)`` is too small compared with the bound of records squared.
    """
    is_accepted = protocol.masked_scheme.accepts(scenario.positives * scenario.negatives)
    return (
        hidden.hidden_forecast(protocol, scenario, shape) if is_accepted else tp.Forecast(math.inf)
    )


def masked_traffic(protocol: Any, scenario: tp.Scenario) -> tp.Traffic:
    """Masked values of all AUCs by their sizes.

    Examples
    --------
    >>> protocol = EncryptedAUC(100, most_records=1000)
    >>> masked_traffic(protocol, tp.Scenario(1000, 300, 10, 1.0)).bytes_per_client
    1952
    """
    aucs, rounds = protocol.auc_count, 5 if protocol.checked else 4
    sent = steps.session_bytes(scenario.clients, aucs * protocol.masked_scheme.upload_bytes)
    sent += FIGURES_BYTES + FIGURE_BYTES * aucs
    sent += fields.message_size(tag=confirming.TAG_BYTES) if protocol.checked else 0
    return tp.Traffic(round(sent), rounds, round_seconds(rounds, scenario))


PLANNING = tp.Planning.of_figure(
    partial(hidden.hidden_families, EncryptedAUC), masked_forecast, masked_traffic
)
"""Of an aggregator that follows the protocol: the check of another one is experimental."""
