"""Which settings of a protocol are attacked, so that every client step answers in one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.auditing.neighbours import federation
from tacit.data.clients import Clients
from tacit.protocols.conversation import Protocol
from tacit.protocols.registry import protocol_of

DELTA = 0.05
"""Of Gaussian noise: at a delta far below, no feasible number of draws comes near epsilon."""

SAMPLED = 6_000
"""Draws of records that choose in private what they answer."""

ENCRYPTED = 24
"""Draws of ciphertexts, each of which takes milliseconds."""

UNIT = (0.0, 1.0)

LOCAL = ("two-round-auc", "hierarchical-auc", "ustatistic", "paired-ustatistic", "encrypted-auc")
"""Protocols whose clients are taken to hold one record each."""


@dataclass(frozen=True)
class Case:
    """A protocol's settings, and the federation on which it is attacked.

    Parameters
    ----------
    name : the protocol.
    settings : its settings without epsilon.
    records : how many records there are, of one client unless ``apart``.
    apart : whether every record has a client of its own.
    one_by_one : how many replies are drawn one at a time, where records choose in private what
        they answer, or replies are ciphertexts; 0 to draw many at once.
    tight : whether the declared epsilon should be within an attack's reach.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    records: int = 4
    apart: bool = False
    one_by_one: int = 0
    tight: bool = True

    def protocol(self, epsilon: float | None) -> Protocol:
        """The protocol at this epsilon, where it takes one.

        Raises
        ------
        SettingError : where it needs an epsilon and none is given.
        """
        given = {} if epsilon is None or not self.takes_epsilon else {"epsilon": epsilon}
        return protocol_of(self.name, {**self.settings, **given})

    @property
    def takes_epsilon(self) -> bool:
        """Whether these settings have a privacy budget."""
        return self.name not in ("exact", "encrypted-auc") and (
            self.settings.get("trust") != "secure-aggregation"
        )

    def clients(self, protocol: Protocol) -> Clients:
        """The federation, with scores in the protocol's domain."""
        low, high = getattr(protocol, "domain", UNIT)
        return federation(self.records, self.apart, low, high, getattr(protocol, "values", None))


def _cases(name: str, *several: Mapping[str, Any], **common: Any) -> tuple[Case, ...]:
    return tuple(Case(name, settings, **common) for settings in several)


_TREE = {"trust": "distributed-dp", "height": 2}
_GAUSS = {"mechanism": "gaussian", "delta": DELTA}

CASES: Mapping[str, tuple[Case, ...]] = {
    "fedauc": (
        *_cases(
            "fedauc",
            {},
            {"allocation": "adaptive"},
            {"mechanism": "laplace", "allocation": "fixed"},
            {**_GAUSS, "allocation": "adaptive"},
            {"ranks": "mpc"},
        ),
        Case("fedauc", {"mechanism": "randomised-response"}, records=2),
        Case("fedauc", {"mechanism": "staircase"}, records=600),
    ),
    "dpauc": _cases(
        "dpauc",
        {},
        {"adjacency": "label"},
        {"adjacency": "replace", "thresholds": 20},
        {"mechanism": "laplace", "thresholds": 2},
        {**_GAUSS, "thresholds": 2},
        {"mechanism": "randomised-response", "adjacency": "label"},
    ),
    "score-histogram": (
        *_cases(
            "score-histogram",
            _TREE,
            {**_TREE, "adjacency": "replace"},
            {**_TREE, "second_round": 0.5},
        ),
        Case("score-histogram", {**_TREE, "budget": "sample"}, one_by_one=SAMPLED),
        Case("score-histogram", {"trust": "local-dp", "height": 2}, apart=True),
        Case("score-histogram", {"trust": "secure-aggregation", "height": 2}),
    ),
    "two-round-auc": _cases("two-round-auc", {}, {"labels": "public"}, records=8, apart=True),
    "hierarchical-auc": _cases("hierarchical-auc", {}, {"height": 2, "delta": DELTA}, apart=True),
    "ustatistic": _cases(
        "ustatistic", {"kernel": "auc"}, {"kernel": "gini", "bins": 4}, apart=True
    ),
    "paired-ustatistic": (
        *_cases(
            "paired-ustatistic",
            {"kernel": "auc"},
            {"kernel": "gini", "noise": "shared"},
            records=2,
            apart=True,
        ),
        Case("paired-ustatistic", {"kernel": "gini"}, records=2, apart=True, tight=False),
    ),
    "encrypted-auc": _cases(
        "encrypted-auc",
        {"thresholds": 9, "most_records": 64},
        apart=True,
        one_by_one=ENCRYPTED,
    ),
    "exact": _cases("exact", {}),
    "noisy-scores": _cases("noisy-scores", {}, records=2),
}
"""What is attacked of each protocol, where no other settings are asked for.

Sizes are small where that leaves the guarantee as it is: an event in which many counts err the same
way is too rare to be counted.
"""


def own_case(name: str, settings: Mapping[str, Any]) -> Case:
    """A case of settings that somebody chose, with the federation that suits the protocol."""
    trust = settings.get("trust")
    apart = name in LOCAL or trust == "local-dp"
    records = {"two-round-auc": 8, "paired-ustatistic": 2}.get(name, 4)
    sampled = settings.get("budget") == "sample" and trust != "local-dp"
    one_by_one = ENCRYPTED if name == "encrypted-auc" else SAMPLED * sampled
    return Case(name, settings, records, apart, one_by_one, tight=False)
