"""Files of every kind in which somebody changed an entry, with fingerprints that fit."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

import numpy as np

import tacit
from tacit.privacy.shuffling import Shuffled
from tacit.protocol import Adjacency, Cost, Protocol
from tacit.results.estimate import Estimate
from tacit.results.run import LeftOut
from tacit.results.saved.integrity import with_fingerprint
from tacit.results.saved.reading import document_of
from tests.classified import CLASSES, GROUPS, class_clients, group_clients

Place = tuple[str | int, ...]

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\r\n\x00\u202e|`"
"""A text that would be markup, and that a terminal would obey."""
NESTED: Any = json.loads("[" * 150 + "]" * 150)
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "x", MARKUP, "x" * 6000, "NaN", "\ud800", "secure-sum", "label"),
    *(0, -1, 1, 2, 10**19, -(10**19), 10**400, 1e308, -1e308, 1e150, -1e150, 5e-324, 0.5, 1e17),
    *([], [[]], {}, [None, None], [1, 0], [0, 1e150], [-1e150, 1e150], ["x"], [1.0] * 2001),
    *({MARKUP: MARKUP}, [{}], [None], {"name": MARKUP}, [{"name": MARKUP, "measures": {}}], NESTED),
)
"""What an entry is replaced with."""

KINDS: Mapping[str, Protocol] = {
    "local": tacit.ScoreHistogram("local", 5.0, height=3),
    "curve": tacit.DPAUC(1.0, thresholds=5),
    "staircase": tacit.FedAUC(1.0),
    "flipped": tacit.FedAUC(1.0, trust="local"),
    "bits": tacit.HierarchicalAUC(4.0),
    "two rounds": tacit.TwoRoundAUC(4.0),
    "certain": tacit.EncryptedAUC(most_records=300),
    "statistic": tacit.UStatistic("gini", 4.0),
    "paired": tacit.PairedUStatistic("gini", 4.0),
    "baseline": tacit.ExactAUC(),
}


@cache
def records() -> tacit.Clients:
    """Of four clients, two records a person."""
    scores, labels = tacit.binormal_scores(90, 150, 0.8, seed=0)
    places, persons = np.arange(240) % 4, np.arange(240) // 8
    return tacit.Clients.from_arrays(scores, labels, places, persons=persons)


def everything() -> tacit.Evaluation:
    """A result that states all that a result may state beside its figures."""
    protocol = tacit.ScoreHistogram("secure-sum", 4.0, height=3)
    clients = replace(records(), persons=None)
    made = tacit.evaluate(clients, protocol, seed=1, exact=True, federation="a trial")
    return replace(
        made,
        protection=Cost(2.0, 0.0, Adjacency.RECORD),
        time=datetime(2026, 1, 1, tzinfo=UTC),
        shuffled=Shuffled(0.15, 1e-6, 3, 30_000, 10_000, 0.9, 2.0),
        choice="somebody chose",
        left_out=LeftOut(np.array([[1, 0, 2, 3], [0, 0, 1, 1]])),
    )


def noisy_count() -> tacit.Evaluation:
    """A result with a noisy number of records that were left out."""
    made = tacit.evaluate(records(), KINDS["curve"], seed=1)
    count = Estimate(12.0, 3.0, 0.0, 0.0, 0.0)
    return replace(made, left_out=LeftOut(None, count, Cost(0.5, 0.0, Adjacency.RECORD)))


@cache
def documents() -> Mapping[str, Any]:
    """Files of every kind that a report takes, by what they are; each is small."""
    clients = records()
    half = replace(clients, persons=None)
    sites = tacit.DPAUC(9.0, thresholds=20)
    classes = tacit.MulticlassHistogram(epsilon=4.0, classes=CLASSES)
    groups = tacit.GroupedHistogram(epsilon=4.0, group_names=GROUPS, thresholds=(0.4,))
    wards = np.array(["east", "west"])[np.arange(240) // 4 % 2]
    wards[0] = "tiny"
    by_ward = tacit.Groups.from_arrays(wards)
    makers: dict[str, Callable[[], Any]] = {
        **{
            kind: partial(tacit.evaluate, half, protocol, seed=1)
            for kind, protocol in KINDS.items()
        },
        "everything": everything,
        "noisy count": noisy_count,
        "person": lambda: tacit.evaluate(clients, KINDS["curve"], seed=1, per_person=2),
        "sites": lambda: tacit.evaluate(half, sites, seed=1),
        "classes": lambda: tacit.evaluate(class_clients(400), classes, seed=1),
        "private groups": lambda: tacit.evaluate(group_clients(400), groups, seed=1),
        "models": lambda: tacit.compare(
            half, half.scores**2, tacit.FedAUC(8.0), seed=1, exact=True
        ),
        "public groups": lambda: tacit.evaluate_groups(half, by_ward, KINDS["staircase"], seed=1),
    }
    made = {name: make().to_dict() for name, make in makers.items()}
    return json.loads(json.dumps(made))


def document(name: str) -> Any:
    """One of them as it is read for a report."""
    return document_of(documents()[name], name)


def changes(number: int, seed: int) -> Iterator[tuple[str, str, Any]]:
    """Documents with one entry changed: what it is, what was done, and its content.

    Parameters
    ----------
    number : how many; long documents, which take long, have fewer. Every place of one has the same
        chance, half the time cut at a random depth.
    seed : of the choices.
    """
    rng = np.random.default_rng(seed)
    known = {name: (each, list(places_in(each))) for name, each in documents().items()}
    chances = np.array([len(json.dumps(each)) ** -0.5 for each in documents().values()])
    for name in rng.choice(list(known), number, p=chances / chances.sum()).tolist():
        whole, places = known[name]
        place = places[rng.integers(len(places))]
        if rng.random() < 0.5:
            place = place[: rng.integers(1, len(place) + 1)]
        content = copy.deepcopy(whole)
        done = _change(_at(content, place[:-1]), place[-1], whole, places, rng)
        yield name, f"{place}: {done}", _fingerprinted(content)


def places_in(content: Any, place: Place = ()) -> Iterator[Place]:
    """Every entry's place; of a list the first two and the last."""
    if place:
        yield place
    if isinstance(content, dict):
        for key, value in content.items():
            yield from places_in(value, (*place, key))
    elif isinstance(content, list) and content:
        for index in sorted({0, min(1, len(content) - 1), len(content) - 1}):
            yield from places_in(content[index], (*place, index))


def _at(content: Any, place: Place) -> Any:
    for key in place:
        content = content[key]
    return content


def _change(
    parent: Any, key: Any, whole: Any, places: list[Place], rng: np.random.Generator
) -> str:
    """Change one entry in place; the answer says how."""
    drawn = VALUES[rng.integers(len(VALUES))]
    how = rng.integers(7)
    if how == 0:
        del parent[key]
        return "taken away"
    if how == 1:
        other = places[rng.integers(len(places))]
        parent[key] = copy.deepcopy(_at(whole, other))
        return f"a copy of {other}"
    if how == 2 and isinstance(parent[key], list):
        parent[key] = parent[key] * 2 if rng.random() < 0.5 else parent[key][1:]
        return "another length"
    if how == 3 and isinstance(parent, dict):
        parent["more"] = drawn
        return f"beside it {drawn!r:.60}"
    parent[key] = drawn
    return f"{drawn!r:.60}"


def _fingerprinted(content: Any) -> Any:
    """The content, and the results inside it, with fingerprints that fit."""
    groups = content.get("groups")
    if content.get("schema") == "tacit-groups/1" and isinstance(groups, list):
        for group in groups:
            if isinstance(group, dict) and isinstance(group.get("result"), dict):
                group["result"] = with_fingerprint(group["result"])
    return with_fingerprint(content)
