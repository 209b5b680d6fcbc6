"""Who sees what, in words, for every protocol and its variants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Threats:
    """A protocol's threat model, a paragraph each.

    Parameters
    ----------
    trust : whom a client has to trust, and with what.
    server : what the server sees.
    others : what the other clients see.
    left_open : what stays unprotected.
    """

    trust: str
    server: str
    others: str
    left_open: str


NOBODY = (
    "Nobody: every client adds its own noise before anything leaves it. The server is expected to "
    "follow the protocol, and may look at all that it receives."
)
LOCAL = (
    "Nobody: every record randomises its own report before it leaves the client. The server is "
    "expected to follow the protocol, and may look at all that it receives."
)
OWN_RANKS = "The ranks of its own records among all, and nothing else of the others."
SCORES_OPEN = (
    "Scores: the server has them all, and whatever follows from a score about its label stays "
    "open. Numbers of records are not hidden either."
)
SUM_TRUST = (
    "The server is trusted to see sums only. Between real parties that takes secure aggregation; "
    "the command `tacit evaluate` adds up all replies in one process."
)

PAIRED = (
    "The two holders of a pair are trusted not to work together with the server beyond what is "
    "said below. Between real parties they compute by cryptography; where a trusted party took its "
    "place, a warning says so."
)
PAIRED_SERVER = (
    "Exactly: each client's number of records. With noise: the value of every pair, and for an AUC "
    "each client's count of positives."
)

VARIANTS: Mapping[tuple[str, ...], Threats] = {
    ("fedauc",): Threats(
        NOBODY,
        "Exactly: every client's scores and number of records. With noise: each client's count of "
        "positives and its sum of ranks, twice where there was a first round.",
        "The ranks of its own records among all, and pivots made of noisy totals.",
        SCORES_OPEN,
    ),
    ("fedauc", "randomised-response"): Threats(
        NOBODY,
        "Exactly: every client's scores and number of records. The count of positives and the sum "
        "of ranks are of labels that were flipped at random; of a client with one record the "
        "server sees the flipped label itself.",
        OWN_RANKS,
        SCORES_OPEN,
    ),
    ("dpauc",): Threats(
        NOBODY,
        "With noise: each client's positives and negatives in every cell of scores, or above every "
        "threshold.",
        "Nothing.",
        "What is true of a large client as a whole: a noisy count of many records is a good "
        "estimate of that count.",
    ),
    ("dpauc", "replace"): Threats(
        NOBODY,
        "With noise: each client's positives and negatives in every cell of scores, or above every "
        "threshold.",
        "Nothing.",
        "A client's number of records, though it is noisy, and what is true of a large client as a "
        "whole.",
    ),
    ("dpauc", "label"): Threats(
        NOBODY,
        "Scores are treated as known: each client's number of records in a cell may be exact. "
        "Its positives are noisy, or counted among flipped labels.",
        "Nothing.",
        "Scores, up to the width of a cell, and numbers of records.",
    ),
    ("score-histogram", "secure-aggregation"): Threats(
        f"{SUM_TRUST} No noise is added, so everybody who sees the result is trusted with what "
        "follows from exact sums.",
        "Exactly: how many positives and negatives of all clients together lie in every cell. Of "
        "each client: that it answered.",
        "Nothing.",
        "Everything that exact sums tell: a cell with one record is that record, and two sums over "
        "nearly the same clients differ by those that came or went.",
    ),
    ("score-histogram", "distributed-dp"): Threats(
        f"{SUM_TRUST} The other clients are trusted to draw their shares of the noise and to keep "
        "them secret.",
        "With noise: how many positives and negatives of all clients together lie in every cell. "
        "Exactly: how many clients answered.",
        "Both classes' published distributions where there was a second round; else nothing.",
        "Clients that vanish, or that tell the server their shares, take their part of the noise "
        "away. Colluders cannot be seen.",
    ),
    ("score-histogram", "local-dp"): Threats(
        LOCAL,
        "Exactly: each client's number of records, and about which level each record spoke. With "
        "noise: of every record some bits about its class and cell.",
        "Nothing.",
        "Numbers of records, and the order in which they were sent.",
    ),
    ("two-round-auc",): Threats(
        LOCAL,
        "Exactly: each client's number of records, and in which round each spoke. With noise: one "
        "report of every record.",
        "Both classes' distributions, as far as the first round's noisy reports tell them.",
        "Numbers of records, and the order in which they were sent.",
    ),
    ("two-round-auc", "public"): Threats(
        LOCAL,
        "Exactly: every label, each client's number of records, and in which round each spoke. "
        "With noise: one report about every record's score.",
        "Both classes' distributions, as far as the first round's noisy reports tell them.",
        "Labels: the server sees every one of them.",
    ),
    ("hierarchical-auc",): Threats(
        LOCAL,
        "Exactly: of every record its label, and which question it was asked. With noise: one "
        "answer, yes or no, or one on every level where a delta was given.",
        "Nothing.",
        "Labels: the server sees every one of them. Numbers of records.",
    ),
    ("ustatistic",): Threats(
        LOCAL,
        "Exactly: each client's number of records. With noise: of every record in which bin it "
        "lies.",
        "Nothing.",
        "Numbers of records.",
    ),
    ("paired-ustatistic",): Threats(
        PAIRED,
        PAIRED_SERVER,
        "Nothing.",
        "Numbers of records, and which pairs were drawn. Against a client that tells the server "
        "all it knows, the same epsilon is left.",
    ),
    ("paired-ustatistic", "shared"): Threats(
        PAIRED,
        PAIRED_SERVER,
        "Nothing.",
        "Numbers of records, and which pairs were drawn. A client that tells the server its half "
        "of the noise leaves its partner with less than the stated epsilon promises.",
    ),
    ("encrypted-auc",): Threats(
        "The aggregator must not collude with any party: every party has the secret key. Parties "
        "follow the protocol.",
        "The aggregator sees ciphertexts only, and the AUC to seven places and its certain range "
        "to three digits because the parties tell it; with only hundreds of records the class "
        "totals may follow from that.",
        "The AUC and its certain range, and the product of the two class totals within a factor of "
        "4; where fewer than 65,536 records were agreed on, parties may work that product out.",
        "The AUC is exact but for encoding: encryption hides who contributed what on the way, and "
        "nothing of what follows from the figure itself.",
    ),
    ("encrypted-auc", "malicious"): Threats(
        "The aggregator must not collude with any party: every party has the secret key. It may "
        "compute wrongly; the parties' checks are there to notice that. It can always refuse to "
        "answer.",
        "The aggregator sees ciphertexts only, and the AUC to seven places and its certain range "
        "to three digits because the parties tell it; with only hundreds of records the class "
        "totals may follow from that.",
        "The AUC and its certain range, and the product of the two class totals within a factor of "
        "4; where fewer than 65,536 records were agreed on, parties may work that product out.",
        "The AUC is exact but for encoding: encryption hides who contributed what on the way, and "
        "nothing of what follows from the figure itself.",
    ),
    ("exact",): Threats(
        "The server, with everything. This is the baseline without privacy.",
        "Exactly: every record, its score and its label.",
        "Nothing.",
        "Everything.",
    ),
    ("noisy-scores",): Threats(
        "The server, with the labels. Scores get noise before they leave a client.",
        "With noise: every score. Exactly: each client's count of positives, and its sum of ranks.",
        "The ranks of the noisy scores.",
        "Labels: counts and rank sums are exact. This is a baseline.",
    ),
}
"""By protocol and, where a setting changes who sees what, that setting's value."""

UNKNOWN = Threats(
    "This report has no description of the protocol; see the protocol's documentation.",
    "See the protocol's documentation.",
    "See the protocol's documentation.",
    "See the protocol's documentation.",
)


def threats_of(protocol: Mapping[str, Any]) -> Threats:
    """The threat model of a result's ``protocol`` entry.

    Examples
    --------
    >>> threats_of({"name": "hierarchical-auc", "epsilon": 1.0}).others
    'Nothing.'
    """
    name = str(protocol.get("name"))
    values = [value for key, value in protocol.items() if key != "name" and isinstance(value, str)]
    found = (VARIANTS[name, value] for value in values if (name, value) in VARIANTS)
    return next(found, VARIANTS.get((name,), UNKNOWN))
