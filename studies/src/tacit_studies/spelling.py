"""The words of the committed tables: rows and seeds keep those in which they were first written.

A seed follows from what is drawn, spelled out, so that another spelling would give other figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit import DPAUC, FedAUC, Protocol, PublishedFedAUC, ScoreHistogram
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol.settings.trusts import SecureSum

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
    if isinstance(protocol, FedAUC):
        settings = {"epsilon": protocol.epsilon} | _fedauc_words(protocol)
    if isinstance(protocol, ScoreHistogram):
        words = {"trust": TRUSTS, "aim": AIMS}
        for name in words.keys() & settings.keys():
            settings[name] = words[name].get(settings[name], settings[name])
    return settings


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


def _spelled(name: object) -> object:
    if isinstance(name, FedAUC | PublishedFedAUC):
        return _Verbatim(_fedauc(name))
    if isinstance(name, DPAUC):
        later = f", second_round={name.second_round}, prior=None, scale='even'"
        # the tables were measured before these settings were there
        return _Verbatim(repr(name).replace(later, "")) if name.second_round == 0 else name
    if not isinstance(name, ScoreHistogram):
        return _before_scales(name) if isinstance(name, Protocol) else name
    text = repr(name).replace(f"trust={name.trust!r}", f"trust={TRUSTS[name.trust]!r}")
    # the tables were measured before the settings prior and scale were there
    text = text.replace(", prior=None", "").replace(f", scale={EVEN!r}", "")
    return _Verbatim(text.replace(f"aim={name.aim!r}", f"aim={AIMS.get(name.aim, name.aim)!r}"))
