"""Files of every kind with entries that somebody changed, and fingerprints that fit them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

import tacit
from tacit.results.saved.integrity import with_fingerprint
from tests.federations import binormal_clients

Path = tuple[str | int, ...]

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\r\n\x00\u202e"
"""A text that is markup, and that a terminal obeys."""
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "x", MARKUP, "x" * 6000, "NaN", "\ud800"),
    *(0, -1, 1, 2, 10**19, -(10**19), 1e308, -1e308, 5e-324, 0.5, 1e-9, 1e17),
    *([], [[]], {}, {"name": "x"}, [None, None], [1, 0], [0, 1e308], ["x"], [1.0] * 2001),
    *({MARKUP: MARKUP}, [{}], [None], [{"name": MARKUP, "measures": {}}]),
)
"""What an entry is replaced with."""
DEPTH = 200
"""How deep lists are nested."""


@cache
def documents() -> Mapping[str, Any]:
    """Files of every kind that a report takes, by what they are."""
    clients = binormal_clients(400, 600, 5)
    half = tacit.Clients.from_arrays(
        clients.scores, clients.labels, np.arange(clients.records) % 5
    )
    other = 0.5 * clients.scores + 0.5 * np.random.default_rng(0).random(clients.records)
    wards = tacit.Groups.from_arrays(np.array(["east", "west"])[np.arange(clients.records) % 2])
    single = {
        "noisy sum": tacit.ScoreHistogram("secure-sum", 1.0, height=5),
        "exact sum": tacit.ScoreHistogram("exact-sum", height=4),
        "local": tacit.ScoreHistogram("local", 5.0, height=4),
        "curve": tacit.DPAUC(1.0, thresholds=10),
        "labels": tacit.FedAUC(1.0),
        "flipped": tacit.FedAUC(1.0, mechanism="randomised-response"),
        "bits": tacit.HierarchicalAUC(4.0),
        "two rounds": tacit.TwoRoundAUC(4.0),
        "certain": tacit.EncryptedAUC(most_records=2000),
        "statistic": tacit.UStatistic("gini", 4.0),
        "paired": tacit.PairedUStatistic("gini", 4.0),
        "baseline": tacit.ExactAUC(),
    }
    made: dict[str, Any] = {}
    for name, protocol in single.items():
        try:
            made[name] = tacit.evaluate(half, protocol, seed=1, exact=True, federation="a trial").to_dict()
        except Exception as e:
            print(name, e)
    from tests.reporting.test_parts import of_classes, of_groups, of_sites
    made["classes"] = of_classes().content
    made["private groups"] = of_groups().content
    made["sites"] = of_sites().content
    from tacit.results.missing import LeftOut
    made["person"] = tacit.evaluate(tacit.Clients.from_arrays(half.scores, half.labels, np.arange(half.records)%5, persons=np.arange(half.records)//2), tacit.DPAUC(1.0,thresholds=10), seed=1, per_person=2).to_dict()
    made["models"] = tacit.compare(half, other, tacit.FedAUC(8.0), seed=1, exact=True).to_dict()
    made["groups"] = tacit.evaluate_groups(half, wards, tacit.DPAUC(8.0, thresholds=5), seed=1).to_dict()
    return json.loads(json.dumps(made))


def places(content: Any, path: Path = ()) -> Iterator[Path]:
    """Every entry's place; of a long list the first three and the last."""
    if path:
        yield path
    if isinstance(content, dict):
        for key, value in content.items():
            yield from places(value, (*path, key))
    elif isinstance(content, list):
        for index in sorted({0, 1, 2, len(content) - 1} & set(range(len(content)))):
            yield from places(content[index], (*path, index))


def at(content, path):
    for k in path: content = content[k]
    return content

def refingered(name, content):
    if name == "groups":
        content["groups"] = [
            g | {"result": with_fingerprint(g["result"])} if isinstance(g, dict) and isinstance(g.get("result"), dict) else g for g in content["groups"]
        ] if isinstance(content.get("groups"), list) else content.get("groups")
    return with_fingerprint(content)

def mutations(docs, n, seed):
    rng = np.random.default_rng(seed)
    allp = {name: list(places(c)) for name, c in docs.items()}
    names = list(docs)
    for i in range(n):
        name = names[i % len(names)]
        content = copy.deepcopy(docs[name])
        paths = allp[name]
        path = paths[rng.integers(len(paths))]
        # favour top levels
        if rng.random() < 0.5:
            path = path[: rng.integers(1, len(path) + 1)]
        parent, key = at(content, path[:-1]), path[-1]
        how = rng.integers(6)
        if how == 0:
            del parent[key]; said = "gone"
        elif how == 1:
            q = paths[rng.integers(len(paths))]
            parent[key] = copy.deepcopy(at(docs[name], q)); said = ("copy of", q)
        elif how == 2 and isinstance(parent[key], list) and parent[key]:
            parent[key] = parent[key] * 2 if rng.random() < 0.5 else parent[key][1:]; said = "length"
        elif how == 3 and isinstance(parent, dict):
            parent["more"] = VALUES[rng.integers(len(VALUES))]; said = "more"
        else:
            v = VALUES[rng.integers(len(VALUES))]
            parent[key] = copy.deepcopy(v); said = repr(v)[:40]
        try:
            content = refingered(name, content)
        except Exception as e:
            print("FINGER", type(e), e)
        yield name, path, said, content
