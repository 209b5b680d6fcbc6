"""The words of the committed tables: rows and seeds keep those in which they were first written.

A seed follows from what is drawn, spelled out, so that another spelling would give other figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit import DPAUC, FedAUC, Protocol, PublishedFedAUC, ScoreHistogram
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol.trust import Local, SecureSum, trust_of
from tacit.protocols.published.calibration import PublishedHistogram
from tacit.protocols.published.dpauc import Gaussian, OnCounts, PublishedDPAUC

TRUSTS = {
    "exact-sum": "secure-aggregation",
    "secure-sum": "distributed-dp",
    "local": "local-dp",
}
"""The tables' word for each trust model of ``ScoreHistogram``."""

PLANNED_TRUSTS = {"each": "central", "mpc": "two-party"}
"""The words for trust models of plans by which seeds are drawn, where they differ."""

AIMS = {"report": "cdf", "curves": "cdf", "all": "even"}
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
    if isinstance(protocol, FedAUC):
        settings = {"epsilon": protocol.epsilon} | _fedauc_words(protocol)
    if isinstance(protocol, ScoreHistogram):
        settings |= _histogram_settings(protocol)
    return settings


def table_name(protocol: Protocol) -> str:
    """The protocol's name in the words of the tables."""
    return ScoreHistogram.name if isinstance(protocol, ScoreHistogram) else protocol.name


def _histogram_settings(protocol: ScoreHistogram) -> dict[str, Any]:
    """Trust, budget and aim of a histogram in the words of the tables."""
    sampled = isinstance(protocol, PublishedHistogram) and protocol.is_sampled
    return {
        "trust": TRUSTS[trust_of(protocol).word],
        "budget": "sample" if sampled or isinstance(protocol.trust, Local) else "split",
        "aim": AIMS.get(protocol.aim, protocol.aim),
    }


def _fedauc_words(protocol: FedAUC | PublishedFedAUC) -> dict[str, Any]:
    """How clients add noise, in the words of the tables."""
    if isinstance(protocol, PublishedFedAUC):
        return {"mechanism": protocol.rank_noise.mechanism}
    if isinstance(protocol.trust, SecureSum):
        return {"mechanism": "discrete-laplace", "trust": "secure-sum"}
    return {"mechanism": protocol.rank_noise.mechanism}


def _fedauc(protocol: FedAUC | PublishedFedAUC) -> str:
    """All settings as one class had them, of which most meant nothing under some others."""
    words = {"epsilon": protocol.epsilon, "mechanism": "", "allocation": "influence"}
    words |= {"sensitivity": "local", "alpha": 0.5, "beta": 0.5, "delta": 0.0}
    if isinstance(protocol, PublishedFedAUC):
        words["allocation"] = str(protocol.allocation).partition("(")[0]
        words |= vars(protocol.mechanism) | vars(protocol.allocation)
    words |= {"previous": None, "ranks": "server"} | _fedauc_words(protocol)
    return f"FedAUC({', '.join(f'{name}={value!r}' for name, value in words.items())})"


def named_for_seeds(names: tuple[object, ...]) -> str:
    """The representation of what a seed is for, in the words of the tables.

    Examples
    --------
    >>> named_for_seeds(("auc", ScoreHistogram("exact-sum", height=3)))[:50]
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
        mechanism, word = protocol.mechanism, str(protocol.mechanism).partition("(")[0]
        if isinstance(mechanism, OnCounts):
            accounting, clamp = mechanism.accounting, mechanism.points == "clamped"
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
    if isinstance(name, FedAUC | PublishedFedAUC):
        return _Verbatim(_fedauc(name))
    if isinstance(name, DPAUC | PublishedDPAUC):
        return _dpauc_of_tables(name)
    if not isinstance(name, ScoreHistogram):
        return _before_scales(name) if isinstance(name, Protocol) else name
    return _Verbatim(_spelled_histogram(name))


def _spelled_histogram(protocol: ScoreHistogram) -> str:
    """A histogram with the settings that there were when the tables were measured."""
    words = _histogram_settings(protocol)
    settings = {
        "trust": words["trust"],
        "epsilon": protocol.epsilon,
        "height": protocol.height,
        "buckets": getattr(protocol, "buckets", None),
        "adjacency": protocol.adjacency or "replace",
        "budget": words["budget"],
        "aim": words["aim"],
        "dropouts": protocol.trust.dropouts if isinstance(protocol.trust, SecureSum) else 0.0,
        "second_round": None if protocol.counts_in_rounds else 0.0,
    }
    if protocol.scale != EVEN:
        settings["scale"] = protocol.scale
    return f"ScoreHistogram({', '.join(f'{name}={value!r}' for name, value in settings.items())})"
