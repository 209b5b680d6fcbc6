"""FheAUC: the AUC under homomorphic encryption, by Baykara et al. (2024).

Predictions for FheAUC, which adds no noise. Who sees what when an aggregator computes the AUC from
ciphertexts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import tacit.protocol as tp
from tacit.crypto.homomorphic import keys
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol import audits, declared
from tacit.protocol.scenario import round_seconds
from tacit.protocol.settings import chosen
from tacit.protocols.encrypted import hidden, masked_scheme, sessions, steps
from tacit.protocols.encrypted.confirming import Exchange, confirm_answer, opened, tell_opened
from tacit.protocols.published.fhe import ckks
from tacit.protocols.published.fhe.bfv import SHARES, ExactAggregator, ExactParty, ExactScheme
from tacit.protocols.published.fhe.packing import MAX_PRODUCTS, Scale, cumulative_counts

SECRET_BYTES = 32
"""The session's secret, from which the secret key is derived."""


@tp.step(once=True)
def introduce(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send a fresh key agreement key, signed by the party's identity.

    It depends on no record. The aggregator learns the parties' public keys. A run has one session:
    another would decrypt another answer, and only the first one's debit says that all was released.
    """
    return steps.meet.answer(clients, query, noise, state)


@tp.step(once=True)
def share_keys(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """The first party sends evaluation keys, and the session's secret encrypted for every other
    one.

    It depends on no record. The aggregator learns the evaluation keys, which decrypt nothing; only
    their receivers can decrypt the boxes. All other parties check the introductions and send
    nothing.

    Raises
    ------
    HomomorphicError : for a second meeting of one session: a key seals one message.
    """
    boxes, seat = steps.shared_secret(clients, query, state, SECRET_BYTES)
    public = [b""] * clients.count
    if seat.secret is not None:
        made = _party(query.protocol, seat).evaluation_keys()
        sent = keys.write(keys.Kind.KEYS, seat.known_meeting.session, keys.FIRST, made)
        public[seat.indices.index(keys.FIRST)] = sent
    return {"keys": sessions.as_field(public), "boxes": sessions.as_field(boxes)}


@tp.step(once=True)
def send_counts(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the encrypted counts at every threshold and in every cell, and both classes' totals.

    It costs nothing: without the key, which the aggregator does not have, a ciphertext reveals its
    size only (RLWE, at 128 bits of security).

    Counts are sent once a session. Two uploads of one party have the same masks and differ in its
    perturbations alone: their difference, added to a total a thousand times, would move the AUC by
    a thousand perturbations, and pass every check.

    Raises
    ------
    DataError : for a score outside [0, 1], or a client with more records than were agreed.
    HomomorphicError : for a box that the first party did not encrypt for its receiver, or a second
        time in one session.
    """
    settings = query.protocol
    sessions.check_records(clients, settings.most_records)
    seat = sessions.with_secret(sessions.seat_of(state), query.per_client["box"])
    state.keep(sessions.NOTE, seat)
    counts = cumulative_counts(clients, settings.threshold_scores)
    uploads = _party(settings, seat).uploads(counts, seat.indices)
    session = seat.known_meeting.session
    messages = [
        keys.write(keys.Kind.COUNTS, session, index, ciphertexts)
        for index, ciphertexts in zip(seat.indices, uploads, strict=True)
    ]
    return {"counts": sessions.as_field(messages)}


@tp.step(cost=lambda clients, query, state: tp.UNPROTECTED, refuses_once=True)
def open_answer(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Decrypt the aggregator's answer, check it, divide, and tell whom the settings name.

    Both are released without noise: they have no differential privacy. The AUC is rounded to
    ``DIGITS`` decimals, and the half-range up, to three digits: the aggregator knows its multiplier
    and perturbations, and could compute the class totals from a quotient with all digits. Nothing
    else is sent. Where ``reveal`` is ``"parties"`` the party keeps both, and says that it has them.

    The client deletes the session before it reads the answer: there is one attempt. A run between
    real parties ends with the first refused answer, and does not give the reason
    (``Step.refuses_once``); where the aggregator may be malicious the party begins no other one
    under these settings (``SessionNote``), and all open one answer (``confirming``). So a lying
    aggregator learns one bit of a session, the same of all parties in what depends on the totals,
    and of all sessions at most one is refused.

    Raises
    ------
    CheatingError : where a check shows that the aggregator did not compute as agreed.
    HomomorphicError : for bytes that are not an answer to this session, and where not all parties
        confirmed this one.
    DataError : where a class is absent.
    """
    return tell_opened(
        clients, query, state, lambda seat, answer: _decrypted(query.protocol, seat, answer)
    )


def _decrypted(settings: Any, seat: sessions.Seat, answer: bytes) -> masked_scheme.Certain:
    answers = keys.read(answer, keys.Kind.ANSWER, seat.known_meeting.session, keys.EVERYBODY)
    return _party(settings, seat).decrypted(answers)


def _party(settings: Any, seat: sessions.Seat) -> Any:
    """The scheme with which the batch's parties compute."""
    meeting = seat.known_meeting
    return settings.scheme_party(seat.known_secret, meeting.session, len(meeting.introductions))


def on_ciphertexts(protocol: Any) -> Exchange:
    """Introductions, keys, encrypted counts, the answer; nothing is decrypted on this side.

    Raises
    ------
    HomomorphicError : for messages that are not those of this session.
    """
    session, boxes, sent = yield from steps.met_parties(
        protocol, introduce, share_keys, SECRET_BYTES
    )
    public = sessions.as_parts(sent["keys"])[keys.FIRST]
    evaluation = keys.read(public, keys.Kind.KEYS, session, keys.FIRST)
    counted = yield tp.Query(send_counts, protocol, per_client={"box": boxes})
    uploads = [
        keys.read(message, keys.Kind.COUNTS, session, index)
        for index, message in enumerate(sessions.as_parts(counted["counts"]))
    ]
    answers = protocol.scheme_aggregator(evaluation).answers(uploads)
    answer = keys.write(keys.Kind.ANSWER, session, keys.EVERYBODY, answers)
    return (yield from opened(open_answer, protocol, answer))


STEPS = (introduce, share_keys, send_counts, open_answer)
CHECKED_STEPS = (introduce, share_keys, send_counts, confirm_answer, open_answer)
"""Those where the aggregator may be malicious."""


SEMI_HONEST_AGGREGATOR = tp.ThreatModel(
    "The aggregator must not collude with any party: every party has the secret key. Parties "
    "follow the protocol.",
    "The aggregator sees ciphertexts only, and the AUC to seven places and its certain range "
    "to three digits because the parties tell it; with only hundreds of records the class "
    "totals may follow from that.",
    "The AUC and its certain range, and the product of the two class totals within a factor of "
    "4; where fewer than 65,536 records were agreed on, parties may work that product out.",
    "The AUC is exact but for encoding: encryption hides who contributed what on the way, and "
    "nothing of what follows from the figure itself.",
    hidden.PAGE,
)

MALICIOUS_AGGREGATOR = replace(
    SEMI_HONEST_AGGREGATOR,
    trust="The aggregator must not collude with any party: every party has the secret key. It may "
    f"compute wrongly; the parties' checks are there to notice that. {hidden.LYING}",
)


@dataclass(frozen=True)
class Bfv(tp.Choice):
    """Ciphertexts of exact integers (Fan and Vercauteren 2012).

    Parameters
    ----------
    adversary : ``"semi-honest"``, or ``"malicious"``: an aggregator that computes another AUC or
        half-range is detected, except with probability below 2^-57 (``bfv``).

    Raises
    ------
    ValueError : for another word.
    """

    adversary: str = hidden.SEMI_HONEST

    word = "bfv"

    def __post_init__(self) -> None:
        if self.adversary not in (hidden.SEMI_HONEST, hidden.MALICIOUS):
            raise ValueError(
                f"adversary must be {hidden.SEMI_HONEST} or {hidden.MALICIOUS}, "
                f"got {self.adversary!r}"
            )


@dataclass(frozen=True)
class Ckks(tp.Choice):
    """The paper's approximate numbers (Cheon et al. 2017), for a semi-honest aggregator."""

    word = "ckks"


@dataclass(frozen=True)
class FheAUC(hidden.HiddenAUC, tp.Protocol):
    """The AUC of encrypted counts (Baykara et al. 2024), exact on the thresholds.

    Parties share one secret key and send encrypted counts. The aggregator, which has evaluation
    keys only, computes numerator and denominator under a secret multiplier, and the number of pairs
    of a positive and a negative in one cell; parties decrypt and divide. The AUC is released as it
    is, without differential privacy, with its certain half-range (``EncryptedAUC``). Parties also
    learn the product of the class totals within the multiplier's range, a factor of 4; below 65,536
    agreed records they may work that product out (``packing.Scale``).

    No collusion between the aggregator and any party is assumed: every party has the key. An
    aggregator may always refuse to answer.

    Parameters
    ----------
    thresholds : N, at even positions of the scale, or the agreed ones themselves, as in
        ``EncryptedAUC``. None takes the paper's 100 with ``scale="even"`` or CKKS, else as many as
        a ciphertext holds: they cost no bytes, and cells of the log-odds are wide in the middle.
    scheme : ``Bfv(adversary)``, by default for a semi-honest aggregator, or the paper's ``Ckks()``.
        Where a malicious one is refused an answer, the run gives no AUC, and its parties begin no
        other session under the same settings. Parties are semi-honest.
    most_records : a public bound of all parties' records together, from which the numbers are
        scaled, near their number. Where there are more, a checked run refuses the answer; the
        others do too, unless the numbers happen to wrap around to plausible ones. In BFV, above
        11,863,283 records a semi-honest run sends two ciphertexts, one for each of two plain
        moduli, and a checked one is refused.
    perturbed : False leaves the perturbation out: for tests.
    scale : the map of scores to positions at which thresholds are even; ``"even"`` as in the paper.
    reveal : ``"aggregator"``, which learns the AUC as well, or ``"parties"`` alone.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Notes
    -----
    Baykara et al. send separate ciphertexts of CKKS for all counts; BFV packs them into one.
    """

    thresholds: int | tuple[float, ...] | None = tp.setting(
        default=None,
        help="thresholds, or the agreed ones themselves; as many as one ciphertext holds by "
        "default: 909, or 226 against a malicious aggregator; 100 with scale even or scheme ckks",
    )
    scheme: Bfv | Ckks | str = tp.setting(
        default=Bfv(),
        help="bfv (exact) by default, bfv(adversary=malicious) where the aggregator may compute "
        "wrongly, or the paper's ckks",
    )
    most_records: int = tp.setting(default=2**20, help="a public bound of all records, 2**20")
    perturbed: bool = tp.setting(default=True, help=None)
    scale: str = tp.scale_setting()
    reveal: Literal["parties", "aggregator"] = hidden.reveal_setting()

    name = "published-fhe"
    planning_module = __name__
    title_settings = ("scheme",)
    law_settings: ClassVar[audits.Configurations] = {
        f"published-fhe-{scheme}": {**hidden.SMALL, "scheme": scheme} for scheme in ("bfv", "ckks")
    }
    """Both schemes; the checked one has tests of its own."""
    state_types = (*sessions.STATE_TYPES, declared.Revealed)
    needs_all = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.take_thresholds(self._default_thresholds)
        _ = self._approximate if self._is_approximate else self._exact.layout

    @property
    def checked(self) -> bool:
        """Whether the aggregator may be malicious."""
        return isinstance(self.scheme, Bfv) and self.scheme.adversary == hidden.MALICIOUS

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """Those of ciphertexts; all parties confirm one answer of a malicious aggregator."""
        return CHECKED_STEPS if self.checked else STEPS

    @property
    def _is_approximate(self) -> bool:
        return isinstance(self.scheme, Ckks)

    @property
    def _default_thresholds(self) -> int:
        if self.scale == EVEN or self._is_approximate:
            return hidden.PAPER_THRESHOLDS
        return MAX_PRODUCTS // SHARES - 1 if self.checked else MAX_PRODUCTS

    def scheme_party(self, secret: bytes, session: bytes, parties: int) -> Any:
        """The scheme with which parties that share a session's secret compute."""
        if self._is_approximate:
            return ckks.ApproximateParty(self._approximate, secret, session, parties)
        return ExactParty(self._exact, secret, session, parties)

    def scheme_aggregator(self, keys: Sequence[bytes]) -> Any:
        """The scheme with which an aggregator with evaluation keys computes."""
        if self._is_approximate:
            return ckks.ApproximateAggregator(self._approximate, keys)
        return ExactAggregator(self._exact, keys)

    def conversation(self, clients: int) -> tp.Conversation:
        """Introductions, keys, hidden counts, and the answer, which parties open."""
        return self.concluded((yield from on_ciphertexts(self)))

    @property
    def _exact(self) -> ExactScheme:
        most, checked = self.most_records, self.checked
        scale = Scale(most) if checked else Scale.fitting(most)
        return ExactScheme(self.threshold_count, scale, checked, self.perturbed)

    @property
    def _approximate(self) -> ckks.ApproximateScheme:
        return ckks.ApproximateScheme(self.threshold_count, self.most_records, self.perturbed)

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> tp.ThreatModel:
        """The threat model of these settings."""
        scheme = chosen("scheme", settings.get("scheme", Bfv()), (Bfv, Ckks))
        by_adversary = (
            MALICIOUS_AGGREGATOR if scheme == Bfv(hidden.MALICIOUS) else SEMI_HONEST_AGGREGATOR
        )
        return hidden.told_to_parties(by_adversary, settings, "ciphertexts")

    @property
    def law_traits(self) -> tp.LawTraits:
        """The answers of CKKS are off: by their perturbations, 2e-7 of a quotient at most, and by
        the scheme itself, which shows where classes are small compared with ``most_records``.
        """
        traits = super().law_traits
        if not isinstance(self.scheme, Ckks):
            return traits
        return replace(traits, tolerance=5e-7, spread=1e-6)


CIPHERTEXT_BYTES = 197_000
"""What a client sends of one encrypted polynomial with keys and introductions; measured."""
CIPHERTEXT_SECONDS, KEY_SECONDS = 0.001, 0.6
"""The aggregator's time for a client's ciphertext, and making keys once; measured."""


def fhe_forecast(protocol: FheAUC, scenario: tp.Scenario, shape: tp.Shape) -> tp.Forecast:
    """That of exact figures, where there are enough pairs for the agreed bound of records."""
    is_small = 2 * scenario.positives * scenario.negatives < protocol.most_records**2 / 1024
    if is_small and Scale.fitting(protocol.most_records).width > 1:
        return tp.Forecast(math.inf)
    return hidden.hidden_forecast(protocol, scenario, shape)


def fhe_traffic(protocol: FheAUC, scenario: tp.Scenario) -> tp.Traffic:
    """One or two ciphertexts a client by measured sizes: a dry run would need TenSEAL and keys."""
    rounds = 5 if protocol.checked else 4
    runs = 1 if Scale.fitting(protocol.most_records).moduli == 1 and not protocol.checked else 2
    computing = KEY_SECONDS + runs * CIPHERTEXT_SECONDS * scenario.clients
    return tp.Traffic(runs * CIPHERTEXT_BYTES, rounds, round_seconds(rounds, scenario) + computing)


PLANNING = tp.Planning.of_figure(
    partial(hidden.hidden_families, partial(FheAUC, scheme=Bfv(hidden.MALICIOUS))),
    fhe_forecast,
    fhe_traffic,
)
"""Of a malicious aggregator; for another one ``EncryptedAUC`` takes a hundredth of the bytes."""
