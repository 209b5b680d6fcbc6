"""The words of the committed tables: rows and seeds keep those in which they were first written.

A seed follows from what is drawn, spelled out, so that another spelling would give other figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit import DPAUC, FedAUC, Protocol, ScoreHistogram
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocols.published.dpauc.noises import Gaussian, OnCounts
from tacit.protocols.published.dpauc.protocol import PublishedDPAUC

TRUSTS = {
    "exact-sum": "secure-aggregation",
    "secure-sum": "distributed-dp",
    "local": "local-dp",
}
"""The tables' word for each trust model of ``ScoreHistogram``."""

AIMS = {"curves": "cdf", "all": "even"}
"""The tables' words for its aims, where they differ."""


@dataclass(frozen=True, repr=False)
class _Verbatim:
    """A text whose representation it is itself."""

    text: str

    def __repr__(self) -> str:
        return self.text


def table_settings(protocol: Protocol) -> dict[str, Any]:
    """The protocol's settings in the words of the tables.

    Examples
    --------
    >>> table_settings(ScoreHistogram("local", 1.0))["trust"]
    'local-dp'
    """
    settings = dict(protocol.settings)
    if settings.get("scale") == EVEN:
        del settings["scale"]
    if isinstance(protocol, DPAUC):
        settings["mechanism"] = "histogram"
    if isinstance(protocol, ScoreHistogram):
        words = {"trust": TRUSTS, "aim": AIMS}
        for name in words.keys() & settings.keys():
            settings[name] = words[name].get(settings[name], settings[name])
    return settings


def spelled_for_seeds(names: tuple[object, ...]) -> str:
    """The representation of what a seed is for, in the words of the tables.

    Examples
    --------
    >>> spelled_for_seeds(("auc", ScoreHistogram("exact-sum", height=3)))[:50]
    "('auc', ScoreHistogram(trust='secure-aggregation',"
    """
    return repr(tuple(map(_spelled, names)))


def _before_scales(protocol: Protocol) -> object:
    """Even cells without the setting, as tables were measured before it was there."""
    return _Verbatim(repr(protocol).replace(f", scale={EVEN!r}", ""))


def _dpauc_of_tables(protocol: DPAUC | PublishedDPAUC) -> _Verbatim:
    """The one class of the tables, which had all forms."""
    accounting, delta, clamp, word = "tight", 0.0, True, "histogram"
    if isinstance(protocol, PublishedDPAUC):
        mechanism, word = protocol.mechanism, protocol.mechanism.word
        if isinstance(mechanism, OnCounts):
            accounting, clamp = mechanism.accounting, mechanism.clamps
        delta = mechanism.delta if isinstance(mechanism, Gaussian) else 0.0
    text = (
        f"DPAUC(epsilon={protocol.epsilon}, thresholds={protocol.thresholds}, mechanism={word!r}, "
        f"accounting={accounting!r}, adjacency={protocol.adjacency!r}, delta={delta}, clamp={clamp}"
    )
    second_round = None if protocol.thresholds is None else 0.0
    if second_round is None or protocol.scale != EVEN:
        text += f", second_round={second_round}, prior=None, scale={protocol.scale!r}"
    return _Verbatim(f"{text})")


def _spelled(name: object) -> object:
    if isinstance(name, FedAUC):
        text = repr(name).replace("prior=", "previous=")
        # the tables were measured before the setting trust was there
        return _Verbatim(text.replace(", trust='each'", ""))
    if isinstance(name, DPAUC | PublishedDPAUC):
        return _dpauc_of_tables(name)
    if not isinstance(name, ScoreHistogram):
        return _before_scales(name) if isinstance(name, Protocol) else name
    text = repr(name).replace(f"trust={name.trust!r}", f"trust={TRUSTS[name.trust]!r}")
    # the tables were measured before the settings prior and scale were there
    text = text.replace(", prior=None", "").replace(f", scale={EVEN!r}", "")
    return _Verbatim(text.replace(f"aim={name.aim!r}", f"aim={AIMS.get(name.aim, name.aim)!r}"))
