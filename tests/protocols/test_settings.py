"""Settings and scores outside their range are refused by a sentence that names the value."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from tacit import Clients, ComparedAUC, DataError, evaluate
from tacit.protocol import kind_of, protocol_names, protocol_of
from tacit.protocol.settings import known_settings
from tests.protocols.encrypted.variants import CHECKED

MANY = tuple(map(str, range(200)))
"""As many classes as there may be."""

PAIRED, LOG_ODDS = {"kernel": "auc"}, {"scale": "log-odds"}

REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "dpauc": [
        ({"thresholds": 1}, "thresholds must be between 2 and"),
    ],
    "fedauc": [
        ({"epsilon": 0.0}, "epsilon must be positive and finite, got 0.0"),
        ({"epsilon": 1e-9}, "epsilon must be at least 0.001, got 1e-09"),
        ({"trust": "mpc(alpha=1)"}, "alpha must be between 0 and 1, both excluded, got 1.0"),
        ({"trust": "secure-sum(dropouts=0.2)"}, "needs every client that was ranked: dropouts"),
    ],
    "published-dpauc": [
        ({"thresholds": 1}, "thresholds must be between 2 and"),
        ({"mechanism": "gaussian"}, "gaussian(delta=1e-6), must be between 0 and 1, both excluded"),
        ({"mechanism": "gaussian(delta=1e-20)"}, "delta must be at least"),
        ({"mechanism": "randomised-response"}, "randomised response protects labels only"),
    ],
    "published-fedauc": [
        ({"mechanism": "gaussian"}, "gaussian(delta=1e-6), must be between 0 and 1, both excluded"),
        ({"mechanism": "gaussian(delta=1e-20)"}, "delta must be at least"),
        ({"allocation": "fixed(sensitivity=big)"}, "must be local or global, got 'big'"),
        ({"allocation": "fixed(alpha=1)"}, "alpha must be between 0 and 1"),
        ({"allocation": "orthogonal(beta=0)"}, "beta must be between 0 and 1"),
    ],
    "published-histogram": [
        ({"buckets": 0}, "buckets must be at least 1, got 0"),
        ({"trust": "secure-sum(budget=both)"}, "budget must be split or sample, got 'both'"),
    ],
    "hierarchical-auc": [
        ({"height": 0}, "height must be a whole number between 1 and 24, got 0"),
        ({"height": 25}, "height must be a whole number between 1 and 24, got 25"),
        ({"height": 6.5}, "height must be a whole number, got 6.5"),
        ({"levels": "every(delta=1)"}, "delta must be between 0 and 1, both excluded, got 1.0"),
    ],
    "paired-ustatistic": [
        (PAIRED | {"matchings": -1}, "matchings must be a whole number from 1 to 65536, got -1"),
        (PAIRED | {"matchings": 1.5}, "matchings must be a whole number, got 1.5"),
        (PAIRED | {"matchings": 10**22}, "a whole number from 1 to 65536, got 1000"),
        ({"kernel": "kendall", "noise": "randomised-response"}, "flips values of 0 and 1"),
        ({"kernel": "gini(low=1)"}, "from a lower to a higher end, got 1.0 to 1.0"),
        ({"kernel": "gini", "epsilon": 0.05, "noise": "shared"}, "a scale of at most 65536"),
    ],
    "multiclass-histogram": [
        ({"classes": ("a",)}, "classes must be 2 to 200 names that differ, got 1: a"),
        ({"classes": ("a", "a")}, "names that differ, got 2: a, a"),
        ({"height": 0}, "height must be from 1 to 12, got 0"),
        ({"trust": "secure-sum(dropouts=1)"}, "dropouts must be from 0 to below 1, got 1.0"),
        ({"trust": "exact-sum"}, "exact-sum takes no epsilon, got 1.0"),
        ({"epsilon": None}, "secure-sum needs an epsilon"),
        ({"epsilon": 0.001, "classes": MANY}, "shared noise has a scale of at most"),
    ],
    "score-histogram": [
        ({"trust": "secure-sum(dropouts=0.1)"}, "secure-sum(dropouts=0.1) needs an epsilon"),
        ({"trust": "local"}, "local needs an epsilon"),
        ({"epsilon": 1.0, "height": 0}, "height must be from 1 to 24, got 0"),
        ({"epsilon": 1.0, "height": 25}, "height must be from 1 to 24, got 25"),
        ({"trust": "local", "epsilon": 1.0, "adjacency": "record"}, "('replace',) for local"),
        ({"epsilon": 1.0, "adjacency": "label"}, "one of ('record', 'replace'), got 'label'"),
        ({"epsilon": 1.0, "thresholds": (0.0,)}, "between 0 and 1, got 0"),
        ({"epsilon": 1.0, "thresholds": ()}, "thresholds must be 1 to 50, got 0"),
        ({"epsilon": 1.0, "thresholds": (0.5,) * 51}, "1 to 50, got 51"),
    ],
    "grouped-histogram": [
        ({"group_names": ()}, "group_names must be 1 to 200 names that differ, got 0"),
        ({"group_names": ("a", "a")}, "names that differ, got 2: a, a"),
        ({"thresholds": (1.5,)}, "thresholds must be between 0 and 1, got 1.5"),
    ],
    "encrypted-auc": [
        ({"thresholds": 4}, "thresholds must be at least 5, got 4"),
        ({"most_records": 1}, "most_records must be from 2 to 4294967296"),
        ({"most_records": 2**60}, "must be from 2 to 4294967296 with masked values"),
        ({"thresholds": (0.0, 1.0)}, "thresholds must be at least 5, got 2"),
        ({"thresholds": (0.0, 0.2, 0.4, 0.6, 0.99)}, "ascend from 0 to 1"),
        ({"thresholds": (0.0, 0.6, 0.4, 0.2, 1.0)}, "ascend from 0 to 1"),
        ({"thresholds": (-2.0, -1.0, 0.0, 1.0, 2.0)}, "from 0 to 1, got -2.0 to 2.0"),
        (LOG_ODDS | {"thresholds": (-inf, -1.0, 0.0, 1.0, 2.0)}, "and ascend, got -inf to 2.0"),
        (LOG_ODDS | {"thresholds": (-2.0, 0.0, -1.0, 1.0, 2.0)}, "must be finite and ascend"),
    ],
    "published-fhe": [
        ({"scheme": "bfv(adversary=rude)"}, "adversary must be semi-honest or malicious"),
        ({"thresholds": 4}, "thresholds must be at least 5, got 4"),
        ({"thresholds": 910}, "from 5 to 909 products, got 910"),
        ({"thresholds": 227, "scheme": CHECKED}, "from 5 to 909 products, got 912"),
        ({"thresholds": 5000, "scheme": "ckks"}, "at most 4095, got 5000"),
        ({"most_records": 1}, "most_records must be at least 2, got 1"),
        ({"most_records": 11_863_284, "scheme": CHECKED}, "most_records must be at most 11863283"),
        ({"most_records": 2**60}, "or 2 P N c overflows the plain modulus"),
    ],
}
"""Settings by protocol, with epsilon 1 where there is one, and what is said of them."""

WITHOUT_EPSILON = ("encrypted-auc", "published-fhe", "score-histogram")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [(name, *case) for name, cases in REFUSED.items() for case in cases],
)
def test_settings_outside_their_range_are_refused(
    name: str, settings: dict[str, Any], message: str
) -> None:
    budget = {} if name in WITHOUT_EPSILON else {"epsilon": 1.0}
    with pytest.raises(ValueError, match=re.escape(message)):
        protocol_of(name, budget | settings)


CHOICES = [
    (name, known.name)
    for name in protocol_names()
    for known in known_settings(kind_of(name)).values()
    if known.choices
]


@pytest.mark.parametrize(("name", "setting"), CHOICES)
def test_a_word_that_is_no_choice_is_refused(name: str, setting: str) -> None:
    case = next(iter(kind_of(name).law_cases().values()))
    with pytest.raises(ValueError, match=f"{setting} must be one of .*, got 'nothing'"):
        replace(case, **{setting: "nothing"})


@pytest.mark.parametrize("score", [-0.1, 1.5])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("dpauc", {}),
        ("fedauc", {"trust": "mpc"}),
        ("published-noisy-scores", {}),
    ],
)
def test_scores_outside_the_unit_interval_are_refused(
    score: float, name: str, settings: dict[str, Any]
) -> None:
    budget = {} if name in WITHOUT_EPSILON else {"epsilon": 1.0}
    clients = Clients.from_arrays([0.5, score, 0.2, 0.3], [1, 0, 1, 0], [0, 0, 1, 1])
    with pytest.raises(DataError, match=rf"scores must be in \[0, 1\].*{score}"):
        evaluate(clients, protocol_of(name, budget | settings))


@pytest.mark.parametrize(
    ("trust", "message"),
    [
        ("gaussian", "trust must be one of .* got 'gaussian'"),
        ("each(emphasis=1)", "emphasis must be from 0.1 to 0.99, got 1.0"),
    ],
)
def test_settings_of_a_comparison_are_refused_too(trust: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ComparedAUC(1.0, trust)
