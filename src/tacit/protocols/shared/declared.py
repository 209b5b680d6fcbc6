"""What several protocols declare: laws and audits, sentences on threats, attacks on scores.

What protocols declare in which every record answers alone, for audits, reports and laws.
Sentences that the threat models of several protocols share. Labels guessed from scores that the
server receives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.ranking import top_hits
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise
from tacit.protocol import audits
from tacit.protocol.conversation import ClientState, Protocol, Reply
from tacit.protocol.declared import LOCAL, LOCAL_PAGE, NOBODY, ThreatModel
from tacit.protocol.fields import ragged_of
from tacit.protocol.trust import Trust

SUM_TRUST = (
    "The server is trusted to see sums only. Between real parties that takes secure aggregation; "
    "the command `tacit evaluate` adds up all replies in one process."
)


NOTHING_PUBLISHED: Mapping[Trust, str] = {}


def forest_model(
    settings: Mapping[str, Any],
    summed: str,
    published: Mapping[Trust, str] = NOTHING_PUBLISHED,
    page: str = "",
) -> ThreatModel:
    """The threat model of a protocol whose records are counted.

    Parameters
    ----------
    settings : those of a result.
    summed : what is counted, for "of all clients together: ...".
    published : what a client sees of the others with noisy sums, or where the server sees each.
    page : where the model is written.
    """
    trust = Trust.of(str(settings.get("trust", Trust.SECURE_SUM.value)))
    others = published.get(trust, "Nothing.")
    if trust is Trust.EACH:
        return ThreatModel(
            NOBODY,
            f"With noise, of every client: {summed}.",
            others,
            "What is true of a large client as a whole: a noisy count of many records is a good "
            "estimate of that count.",
            page,
        )
    if trust is Trust.LOCAL:
        seen = (
            "Exactly, of every record: which of the counts it was dealt to. With noise: one report "
            f"about these counts. From all reports: {summed}."
        )
        one_client = "What is true of many records of one client."
        return ThreatModel(LOCAL, seen, others, one_client, LOCAL_PAGE)
    if trust is Trust.EXACT_SUM:
        return ThreatModel(
            f"{SUM_TRUST} No noise is added, so every reader of the result is trusted with what "
            "follows from exact sums.",
            f"Exactly, of all clients together: {summed}. Of each client: that it answered.",
            others,
            "Everything that exact sums tell: a cell with one record is that record, and two sums "
            "over nearly the same clients differ by the clients that came or went.",
            page,
        )
    return ThreatModel(
        f"{SUM_TRUST} The other clients are trusted to draw their shares of the noise and to keep "
        "them secret.",
        f"With noise, of all clients together: {summed}. Exactly: how many clients answered.",
        others,
        "Clients that vanish, or that tell the server their shares, take their part of the noise "
        "away. Colluders cannot be seen.",
        page,
    )


CLIENT_SIZES = ((1, "one record"), (100, "100 records"))
"""Numbers of records of clients whose scores the server receives in ascending order."""


def guesses_from_ascending_scores(
    protocol: Protocol, sizes: audits.AttackSizes, seed: int
) -> Iterator[audits.Guesses]:
    """Call the highest-scored hundredth positive, from scores sent in ascending order.

    The server does not know which record of a client has which score, unless a client has one
    record only.
    """
    scores, labels = audits.synthetic_records(sizes.records, seed, audits.POSITIVE_FRACTION)
    yield _guesses("scores with their records", False, scores, labels)
    for size, text in CLIENT_SIZES:
        clients = Clients.from_arrays(scores, labels, np.arange(scores.size) // size)
        received = received_scores(protocol, clients, NoNoise())
        yield _guesses(f"ascending scores of clients of {text}", size > 1, received, labels)


def guesses_from_plain_scores(
    protocol: Protocol, sizes: audits.AttackSizes, seed: int
) -> Iterator[audits.Guesses]:
    """Call the highest-scored hundredth positive, from the records' scores themselves.

    A protocol that shows no scores prevents this attack.
    """
    scores, labels = audits.synthetic_records(sizes.records, seed, audits.POSITIVE_FRACTION)
    yield _guesses("scores with their records", False, scores, labels)


def _guesses(
    release: str, protected: bool, received: Floats, labels: NDArray[np.int8]
) -> audits.Guesses:
    """Right guesses of the highest-scored hundredth (Sun et al. 2022a, Table 8; Sun et al. 2022b,
    Table 2)."""
    size = labels.size // 100
    hits = int(top_hits(received, labels, np.array([size]))[0])
    return audits.Guesses(
        "labels, from scores", release, protected, hits, size, float(labels.mean())
    )


def first_reply(protocol: Protocol, clients: Clients, noise: NoiseSource) -> Reply:
    """What clients answer to the first query."""
    query = next(protocol.conversation(clients.count))
    return query.step.answer(clients, query, noise, ClientState())


def received_scores(protocol: Protocol, clients: Clients, noise: NoiseSource) -> Floats:
    """The scores that the server receives, in the order in which it receives them."""
    return ragged_of(first_reply(protocol, clients, noise)["scores"], "scores").values


def guesses_from_noisy_scores(
    protocol: Protocol, sizes: audits.AttackSizes, seed: int
) -> Iterator[audits.Guesses]:
    """Call the highest-scored hundredth positive, from scores with noise."""
    scores, labels = audits.synthetic_records(sizes.records, seed, audits.POSITIVE_FRACTION)
    yield _guesses("scores with their records", False, scores, labels)
    received = received_scores(protocol, Clients.from_arrays(scores, labels), SimulatedNoise(seed))
    yield _guesses("scores with noise", True, received, labels)
