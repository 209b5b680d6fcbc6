"""The parties' steps of an evaluation by class, after those in which they meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.privacy.cost import UNPROTECTED
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocol.revealed import REVEALED
from tacit.protocols.encrypted.classes.keys import class_party, pieces
from tacit.protocols.encrypted.classes.result import ClassesRevealed
from tacit.protocols.encrypted.counts import Certain, cumulative_counts
from tacit.protocols.encrypted.masked.party import MaskedParty
from tacit.protocols.encrypted.masked.steps import counting_seat, meet, party_of, seal_secret
from tacit.protocols.encrypted.sessions import (
    DIGITS,
    NOTE,
    PARTIES,
    RANGE_DIGITS,
    as_field,
    bytes_of,
    seat_of,
)
from tacit.protocols.shared.class_scores import one_against_rest

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
    seat = counting_seat(clients, query, state)
    party = party_of(settings, seat)
    uploads = [b""] * clients.count
    for number, each in enumerate(one_against_rest(clients, scores, classes)):
        counts = cumulative_counts(each, settings.threshold_scores)
        sent = class_party(party, number).uploads(counts, seat.indices)
        uploads = [before + message for before, (message,) in zip(uploads, sent, strict=True)]
    return {"counts": as_field(uploads)}


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
    settings, seat = query.protocol, seat_of(state)
    state.take(NOTE)
    if not seat.counted:
        raise HomomorphicError("the counts of this session were not sent yet")
    party = party_of(settings, seat)
    answers = pieces(bytes_of(query, "answer"), len(settings.classes))
    figures = [
        _opened(class_party(party, number), answer, settings.perturbed)
        for number, answer in enumerate(answers)
    ]
    areas = np.array([each.value for each in figures])
    half_ranges = np.array([each.half_range for each in figures])
    if settings.reveal == PARTIES:
        state.keep(REVEALED, ClassesRevealed.of(areas, half_ranges))
        return {"opened": np.ones(clients.count, dtype=np.int8)}
    shape = (clients.count, len(figures))
    return {
        "auc": np.ascontiguousarray(np.broadcast_to(areas, shape).T),
        "half_range": np.ascontiguousarray(np.broadcast_to(half_ranges, shape).T),
    }


def _opened(party: MaskedParty, answer: bytes, perturbed: Any) -> Certain:
    """One class's AUC and half-range, rounded; unknown where it has too few records."""
    try:
        estimate = party.decrypted([answer])
    except DataError:
        return UNKNOWN
    return estimate.rounded(DIGITS, RANGE_DIGITS) if perturbed else estimate


STEPS = (meet, seal_secret, send_masked_classes, open_masked_classes)
