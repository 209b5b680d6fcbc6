"""An evaluation by class, after the parties met: their steps, keys, and the aggregator's side.

The figures of an evaluation by class: C certain ranges, and that of their mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.crypto import masking
from tacit.crypto.homomorphic import keys
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.privacy.cost import UNPROTECTED
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocol.revealed import Revealed
from tacit.protocols.encrypted import sessions
from tacit.protocols.encrypted.confirming import Exchange, opened_once
from tacit.protocols.encrypted.counts import Certain, cumulative_counts
from tacit.protocols.encrypted.hidden import certain_result
from tacit.protocols.encrypted.masked import steps
from tacit.protocols.encrypted.masked.sides import MaskedParty
from tacit.protocols.shared.class_scores import one_against_rest
from tacit.results.estimate import Estimate
from tacit.results.parts.breakdown import Breakdown, Part
from tacit.results.server_result import ServerResult

ABSENT = (
    "it has too few records, or all but too few, for the agreed bound of records; agree on a bound "
    "nearer to their number"
)
UNWEIGHTED_NOTE = (
    "there is no average weighted by the classes' sizes: nobody learns them, and the macro AUC "
    "weighs all classes alike"
)


@dataclass(frozen=True, eq=False)
class ClassesRevealed(Revealed):
    """The figures as a client computed them: those of all classes, and of their mean.

    Parameters
    ----------
    value, half_range : of the macro AUC.
    areas, half_ranges : of every class, shape (C,) each; NaN for a class without an AUC.
    """

    areas: Floats
    half_ranges: Floats

    @classmethod
    def of(cls, areas: Floats, half_ranges: Floats) -> ClassesRevealed:
        """The figures of all classes, with their mean."""
        return cls(*macro(areas, half_ranges), areas, half_ranges)


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
) -> ServerResult:
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
    return replace(certain_result(value, half_range, warnings), breakdown=Breakdown("class", parts))


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


@step(once=True)
def send_masked_classes(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
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
        counts = cumulative_counts(each, settings.threshold_scores)
        sent = class_party(party, number).uploads(counts, seat.indices)
        uploads = [before + message for before, (message,) in zip(uploads, sent, strict=True)]
    return {"counts": sessions.as_field(uploads)}


@step(cost=lambda clients, query, state: UNPROTECTED, refuses_once=True)
def open_masked_classes(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Take the pads off the aggregator's answers, divide, and tell whom the settings name.

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

    figures = opened_once(query, state, opened)
    areas = np.array([each.value for each in figures])
    half_ranges = np.array([each.half_range for each in figures])
    revealed = ClassesRevealed.of(areas, half_ranges)
    return sessions.tell(revealed, (areas, half_ranges), clients, query, state)


def _opened(party: MaskedParty, answer: bytes, query: Query) -> Certain:
    """One class's AUC and half-range, rounded; unknown where it has too few records."""
    try:
        return sessions.released(party.decrypted([answer]), query)
    except DataError:
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
    return keys.derived(key, session, CLASS + number.to_bytes(4, "little"), 32)


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
    MaskedValueError : for no bytes, or such as cannot be divided so.
    """
    if not isinstance(message, bytes):
        raise masking.MaskedValueError(f"masked values travel as bytes, got {message!r:.40}")
    size, rest = divmod(len(message), count)
    if rest or not size:
        raise masking.MaskedValueError(f"{len(message)} bytes are not those of {count} classes")
    return [message[start : start + size] for start in range(0, len(message), size)]


def on_masked_classes(protocol: Any) -> Exchange:
    """The same for every class in one session: a message has the masked counts of all classes.

    Raises
    ------
    HomomorphicError : for introductions that are not signed.
    MaskedValueError : for bytes that are no masked values of this session.
    """
    uploads, aggregator = yield from steps.masked_uploads(protocol, send_masked_classes)
    count = len(protocol.classes)
    by_class = zip(*(pieces(message, count) for message in uploads), strict=True)
    answers = [aggregator.answers([[each] for each in sent])[0] for sent in by_class]
    return (yield Query(open_masked_classes, protocol, broadcast={"answer": b"".join(answers)}))


STEPS = (steps.meet, steps.seal_secret, send_masked_classes, open_masked_classes)
