"""Results to report on."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from scipy.special import logit

import tacit
from tacit.results.saved.integrity import with_fingerprint
from tacit.results.saved.reading import Result
from tests.federations import binormal_clients

PROTOCOLS: dict[str, tacit.Protocol] = {
    "histogram": tacit.ScoreHistogram("secure-sum", 1.0, height=8),
    "exact-histogram": tacit.ScoreHistogram("exact-sum", height=8),
    "fedauc": tacit.FedAUC(1.0),
    "dpauc": tacit.DPAUC(1.0),
    "many-thresholds": tacit.DPAUC(1.0, thresholds=3000),
    "silent": tacit.DPAUC(0.001, 5),
    "noisy-scores": tacit.NoisyScores(1.0),
    "log-odds": tacit.ScoreHistogram("exact-sum", height=8, scale="log-odds"),
    "real": tacit.ScoreHistogram("exact-sum", height=8, scale="real"),
    "exact": tacit.ExactAUC(),
    "gini": tacit.UStatistic("gini", 4.0),
}
FEDERATION = "five hospitals, test set 3"


@cache
def evaluation(
    name: str, seed: int = 0, federation: str | None = None, exact: bool = False
) -> tacit.Evaluation:
    clients = binormal_clients(400, 600, 5)
    if name in ("log-odds", "real"):
        clients = replace(clients, scores=logit(clients.scores))
    return tacit.evaluate(clients, PROTOCOLS[name], seed=seed, federation=federation, exact=exact)


def content(name: str, **options: Any) -> dict[str, Any]:
    """A result's JSON as it is read from a file."""
    return json.loads(json.dumps(evaluation(name, **options).to_dict()))


@cache
def result(name: str, label: str | None = None, **options: Any) -> Result:
    """The same as it is read for a report; it is not to be changed."""
    return Result.of(content(name, **options), label or name)


def edited(observed: Mapping[str, Any], way: Sequence[str | int], value: Any) -> dict[str, Any]:
    """A copy of a document with another value at a place; none where the value is ``...``."""
    made: dict[str, Any] = copy.deepcopy(dict(observed))
    *outer, last = way
    node: Any = made
    for key in outer:
        node = node[key]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return made


def changed(observed: Mapping[str, Any], **entries: Any) -> dict[str, Any]:
    """A result with other entries, and a fingerprint that fits them."""
    return with_fingerprint({**observed, **entries})
