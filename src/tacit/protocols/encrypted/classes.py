"""EncryptedClassAUC: one-versus-rest AUCs of several classes, from masked counts.

An evaluation by class, after the parties met: their steps, keys, and the aggregator's side. The
figures: C certain ranges, and that of their mean. Predictions, and who sees what.

One session, as in ``masked_scheme``, has C one-versus-rest problems. Parties meet once and share
one secret. For class c the secret, the key of every pair of parties, and the key that a party has
alone are replaced by

    HKDF(key, session, "class" || c)

and what follows is a session on masked values for two classes: its masks a, b, g and h, its pads,
the numbers r_i of the parties, and the aggregator's c, u, v and w are drawn for each class.

What is revealed. HKDF's outputs for C distinct labels cannot be told from independent keys, nor
ChaCha20's streams under these from uniform words. Put uniform masks in their places, which changes
nothing that anybody could notice. Then, given the counts of all classes, the views of C classes
are independent of each other, and each is that of a session of two classes:

- The aggregator's words of a class are uniform, and independent but for their sums, which are
  uniform too. So are the words of all classes together: its view follows from nothing but the
  number of parties, and the C rounded AUCs and half-ranges that the parties tell it.
- The parties open ``c X + u``, ``c Y + v`` and ``c Z + w`` of each class. These follow from X, Y
  and Z of the class and draws of its alone: C ratios ``X / (2 Y)`` and ``Z / (2 Y)``, and the size
  of each ``Y = P N`` under a multiplier of its own.
- The aggregator with t parties has the other parties' total counts in every cell of every class's
  score: how many records of the class, and of all others. No count of two classes' scores together
  exists, so none follows.

With one multiplier for all classes the parties would divide its products ``c P N`` by each other,
and have the classes' shares. With C of them the range of all products together narrows: totals a
factor 2 apart in each product are distinguished with advantage at most ``C / k`` (the distance of
product distributions is at most the sum of the distances), and parties that know the classes'
shares know the square of the number of records within 2 to the ``2 k / (C + 1)`` in the mean.

Whole numbers must betray no more than that. ``P_c + N_c`` is the same number for all classes. If
perturbations were narrower than products of totals, few multipliers would give whole ``P_c N_c``
that agree in it. They are wider than every product (``MaskedScheme``), so of each class every
``Y'`` within the octaves is as likely as any other, and so is every vector of class sizes with the
right sum. A classifier of two classes has the same X, Y and Z twice, and two answers about them:
take ``EncryptedAUC`` there.

No average weighted by the classes' sizes is given: ``sum_c P_c A_c / M`` needs the shares ``P_c /
M``, which no one learns. The macro AUC is the mean of C figures that are released anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, Literal

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.crypto import masking
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.secure_sum.masking import derive
from tacit.data.categories import check_names
from tacit.protocol import audits, declared
from tacit.protocols.encrypted import confirming, hidden, protocol, sessions, steps
from tacit.protocols.encrypted.masked_scheme import Certain, MaskedScheme, class_cells
from tacit.protocols.encrypted.masked_sides import MaskedParty
from tacit.protocols.shared.declared import ScoresByClass, one_against_rest
from tacit.results.estimate import Estimate
from tacit.results.parts import Breakdown, Part

ABSENT = (
    "it has too few records, or all but too few, for the agreed bound of records; agree on a bound "
    "nearer to their number"
)
UNWEIGHTED_NOTE = (
    "there is no average weighted by the classes' sizes: no party learns them, and the macro AUC "
    "weighs all classes alike"
)
BY_CLASS = replace(
    hidden.MASKED,
    trust="The aggregator follows the protocol and must not collude with any party: every party "
    "has the session's secret, and with one the aggregator reads the others' total counts of every "
    "class. Parties follow the protocol.",
    server="The aggregator sees uniform words only, and of every class the AUC against the rest to "
    "seven places and its certain range to three digits because the parties tell it; with only "
    "hundreds of records the class totals may follow from that.",
    others="The AUCs and their certain ranges, and of every class the product of its records and "
    "all others within a factor of 2 to the 4 or more, each under a multiplier of its own: of C "
    "products together the range narrows to 1 in C + 1 or so. Where fewer than 131,000 records "
    "were agreed on, parties may work the products out.",
    left_open="Every class's AUC is exact on its thresholds: masks hide who contributed what on "
    "the way, and nothing of what follows from the figures themselves.",
)


@dataclass(frozen=True, eq=False)
class ClassesRevealed(declared.Revealed):
    """The figures as a client computed them: those of all classes, and of their mean.

    Parameters
    ----------
    value, half_range : of the macro AUC.
    areas, half_ranges : of every class, shape (C,) each; NaN for a class without an AUC.
    """

    areas: Floats
    half_ranges: Floats


def macro(areas: Floats, half_ranges: Floats) -> tuple[float, float]:
    """The mean of the AUCs, and how far the exact mean is from it at most.

    ``|sum (A_c - a_c)| / C <= sum h_c / C``, and a sum of C numbers in [0, 1] is off by at most
    ``C^2 2^-53``, so each of both means by ``C 2^-53``.

    Parameters
    ----------
    areas, half_ranges : of every class, shape (C,) each.

    Examples
    --------
    >>> import numpy as np
    >>> value, reach = macro(np.array([0.7, 0.9]), np.array([0.01, 0.03]))
    >>> round(value, 12), round(reach, 12)
    (0.8, 0.02)
    """
    rounding = areas.size * 2.0**-52
    return float(areas.mean()), float(half_ranges.mean()) + rounding


def result_by_class(
    classes: Sequence[str], areas: Floats, half_ranges: Floats, warnings: tuple[str, ...]
) -> tp.ServerResult:
    """The macro AUC and every class's AUC, with their certain ranges.

    Parameters
    ----------
    classes : their names.
    areas, half_ranges : of every class, shape (C,) each; NaN for a class without an AUC.
    warnings : what a reader must know of the settings.
    """
    parts = tuple(map(_part, classes, areas.tolist(), half_ranges.tolist()))
    absent = [part.name for part in parts if part.reason]
    if absent:
        warnings = (*warnings, f"no figure: class {absent[0]} has no AUC, {ABSENT}")
    value, half_range = macro(areas, half_ranges)
    return replace(
        hidden.certain_result(value, half_range, warnings), breakdown=Breakdown("class", parts)
    )


def _part(name: str, area: float, half_range: float) -> Part:
    """One class's AUC against the rest, or why there is none."""
    if math.isnan(area):
        return Part(name, math.nan, math.nan, {}, ABSENT)
    figure = Estimate(area, 0.0, math.nan, half_range / math.sqrt(3), half_range=half_range)
    return Part(name, math.nan, math.nan, {"AUC": figure.within((0.0, 1.0))})


CLASS = b"tacit masked evaluation 1 class "
"""The label of a class's keys, before its number."""
UNKNOWN = Certain(np.nan, np.nan)
"""Of a class without an AUC."""


@tp.step(once=True)
def send_masked_classes(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send, for each class, the counts of its records and of all others in every cell, masked.

    It costs nothing as long as the aggregator has none of the session's keys: the words of all
    classes are uniform, and independent but for their sums, which are uniform too
    (``protocols.encrypted.classes``). Nothing follows for any records from them alone; what the
    answers release costs in ``open_masked_classes``. An aggregator with some of the parties learns
    the sums of the others' counts in every cell, of each class.

    A party sends masked values once a session, and keeps the names of sessions in which it did.

    Raises
    ------
    DataError : for a score outside the range of its unit, other classes than the agreed ones, or a
        client with more records than were agreed.
    HomomorphicError : for a box that the first party did not encrypt for its receiver, or a second
        time in one session.
    """
    settings = query.protocol
    scores, classes = settings.classified(clients)
    seat = steps.counting_seat(clients, query, state)
    party = steps.party_of(settings, seat)
    uploads = [b""] * clients.count
    for number, each in enumerate(one_against_rest(clients, scores, classes)):
        cells = class_cells(each, settings.threshold_scores)
        sent = class_party(party, number).uploads(*cells, seat.indices)
        uploads = [before + message for before, message in zip(uploads, sent, strict=True)]
    return {"counts": sessions.as_field(uploads)}


@tp.step(cost=lambda clients, query, state: tp.UNPROTECTED, refuses_once=True)
def open_masked_classes(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Open the aggregator's answers, divide, and send the results if the settings say so.

    The AUCs and their half-ranges are released without noise: they have no differential privacy.
    The party learns them, and the product of each class's totals against the rest within k octaves
    (``MaskedScheme``), each under a multiplier of its own. It sends the figures, rounded, or
    nothing but that it has them, where ``reveal`` is ``"parties"``. A class with too few records
    for the agreed bound has no AUC, which is seen; the others have theirs.

    The session is deleted before the answers are read: there is one attempt.

    Raises
    ------
    MaskedValueError : for bytes or numbers that no honest aggregator answers.
    HomomorphicError : where this party is in no session.
    """

    def opened(seat: sessions.Seat, answer: bytes) -> list[Certain]:
        party = steps.party_of(query.protocol, seat)
        answers = pieces(answer, len(query.protocol.classes))
        return [
            _opened(class_party(party, number), each, query) for number, each in enumerate(answers)
        ]

    figures = confirming.opened_once(query, state, opened)
    areas = np.array([each.value for each in figures])
    half_ranges = np.array([each.half_range for each in figures])
    revealed = ClassesRevealed(*macro(areas, half_ranges), areas, half_ranges)
    return sessions.tell(revealed, (areas, half_ranges), clients, query, state)


def _opened(party: MaskedParty, answer: bytes, query: tp.Query) -> Certain:
    """One class's AUC and half-range, rounded; unknown where it has too few records."""
    try:
        return sessions.released(party.decrypted(answer), query)
    except tp.DataError:
        return UNKNOWN


def class_key(key: bytes, session: bytes, number: int) -> bytes:
    """The key of a class from one of the session, of 32 bytes.

    Labels of classes differ, so their keys are independent (HKDF-SHA256, RFC 5869).

    Examples
    --------
    >>> keys = {class_key(bytes(16), bytes(16), number) for number in range(200)}
    >>> len(keys)
    200
    """
    return derive(key, session, CLASS + number.to_bytes(4, "little"))


def class_party(party: MaskedParty, number: int) -> MaskedParty:
    """What the parties know of one class: as of the session, under keys of the class.

    Parameters
    ----------
    party : of the session.
    number : of the class.
    """

    @cache
    def pairing(first: int, second: int) -> bytes:
        return class_key(party.pairing(first, second), party.session, number)

    secret = class_key(party.secret, party.session, number)
    return MaskedParty(party.scheme, secret, party.session, party.parties, pairing)


def pieces(message: bytes, count: int) -> list[bytes]:
    """The equal parts of a message, one a class.

    Raises
    ------
    MaskedValueError : for bytes that cannot be divided so, or none.
    """
    size, rest = divmod(len(message), count)
    if rest or not size:
        raise masking.MaskedValueError(f"{len(message)} bytes are not those of {count} classes")
    return [message[start : start + size] for start in range(0, len(message), size)]


@dataclass(frozen=True)
class EncryptedClassAUC(ScoresByClass, hidden.HiddenAUC, tp.Protocol):
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

    classes: tuple[str, ...] = tp.setting(
        default=("0", "1"), help="the agreed names of the classes, as their columns are ordered"
    )
    thresholds: int | tuple[float, ...] | None = tp.setting(
        default=None, help="thresholds of each class, or agreed ones; 1000 by default"
    )
    most_records: int = tp.setting(default=2**20, help="a public bound of all records, 2**20")
    perturbed: bool = tp.setting(default=True, help=None)
    scale: str = tp.scale_setting()
    reveal: Literal["parties", "aggregator"] = hidden.reveal_setting("AUCs")

    name = "encrypted-class-auc"
    planning_module = __name__
    state_types = (*sessions.STATE_TYPES, ClassesRevealed)
    steps = (steps.meet, steps.seal_secret, send_masked_classes, open_masked_classes)
    threats = staticmethod(partial(hidden.told_to_parties, BY_CLASS, seen="uniform words"))
    draws = 48
    law_settings: ClassVar[audits.Configurations] = {"encrypted-classes": hidden.SMALL}
    """Two classes, which clients without classes have."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names("classes", self.classes)
        self.take_thresholds(protocol.MASKED_THRESHOLDS)
        _ = self.masked_scheme

    @property
    def masked_scheme(self) -> MaskedScheme:
        """The settings of masked values, the same for every class."""
        return MaskedScheme(self.threshold_count, self.most_records, self.perturbed)

    @property
    def auc_count(self) -> int:
        """That of every class."""
        return len(self.classes)

    def conversation(self, clients: int) -> tp.Conversation:
        """Introductions, a secret, masked counts of all classes, and answers that parties open."""
        uploads, aggregator = yield from steps.masked_uploads(self, send_masked_classes)
        by_class = zip(*(pieces(message, self.auc_count) for message in uploads), strict=True)
        asked = {"answer": b"".join(aggregator.answer(sent) for sent in by_class)}
        return self.concluded((yield tp.Query(open_masked_classes, self, broadcast=asked)))

    @property
    def untold(self) -> tp.ServerResult:
        """What the server knows where only the parties are told."""
        nothing = np.full(self.auc_count, math.nan)
        unknown = result_by_class(self.classes, nothing, nothing, (hidden.PARTIES_ONLY,))
        return replace(unknown, breakdown=None)

    def revealed_result(self, revealed: declared.Revealed) -> tp.ServerResult:
        """The result that a party has, where it was told."""
        if not isinstance(revealed, ClassesRevealed):
            raise HomomorphicError("a party of this protocol is told the AUCs of all classes")
        return self.result_of(revealed.areas, revealed.half_ranges)

    def result_of(self, area: Any, half_range: Any) -> tp.ServerResult:
        """The AUCs of all classes, shape (C,) each, with their mean."""
        warnings = (UNWEIGHTED_NOTE, *self.standing_warnings)
        return result_by_class(self.classes, area, half_range, warnings)


def classes_families(scenario: tp.Scenario) -> list[tp.Family]:
    """One: an aggregator that follows the protocol."""
    given_up = (
        "there is no differential privacy: the AUCs of all classes are released as they are, "
        "epsilon is not kept, and an aggregator that colludes with a client learns everything"
    )
    sized = partial(EncryptedClassAUC, classes=scenario.class_names, most_records=scenario.records)
    metric = tp.Metric.of_figure(EncryptedClassAUC.figure)
    return [hidden.sized_family([sized], given_up, metric)]


PLANNING = tp.Planning.of_figure(
    classes_families, protocol.masked_forecast, protocol.masked_traffic, EncryptedClassAUC.figure
)
