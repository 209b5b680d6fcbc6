"""One set of records on several scales: an AUC does not change under an increasing map of scores.

The records and their order stay, so that equal seeds draw equal noise for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TypeVar

import numpy as np
from scipy.special import expit, logit

from tacit.data.clients import Clients
from tacit.data.units import LOG_ODDS, PROBABILITY
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.protocol.conversation import Protocol
from tacit_studies.sources import EDGE, Floats

Settled = TypeVar("Settled", bound=Protocol)


@dataclass(frozen=True)
class ScoreMap:
    """An increasing map of probabilities.

    Parameters
    ----------
    name : what tables call it.
    of : the map.
    unit : of the mapped scores.
    """

    name: str
    of: Callable[[Floats], Floats]
    unit: str = PROBABILITY

    def mapped(self, clients: Clients) -> Clients:
        """The clients with mapped scores."""
        return replace(clients, scores=self.of(clients.scores), unit=self.unit)

    def protocol_for(self, protocol: Settled) -> Settled:
        """The protocol with the scale of the mapped scores' unit."""
        return protocol if self.unit == PROBABILITY else with_settings(protocol, scale=self.unit)


def with_settings(protocol: Settled, **settings: object) -> Settled:
    """The protocol with those of the settings that it has."""
    known = {field.name for field in fields(protocol)}  # type: ignore[arg-type]
    return replace(  # type: ignore[type-var]
        protocol, **{name: value for name, value in settings.items() if name in known}
    )


def log_odds(scores: Floats) -> Floats:
    """The log-odds of probabilities; those within ``EDGE`` of an end are moved to it first.

    Examples
    --------
    >>> log_odds(np.array([0.5, 1.0])).round(3).tolist()
    [0.0, 13.816]
    """
    return np.asarray(logit(np.clip(scores, EDGE, 1 - EDGE)), dtype=np.float64)


def _moved(by: float, scores: Floats) -> Floats:
    return np.asarray(expit(log_odds(scores) + by))


def _times(factor: float, scores: Floats) -> Floats:
    return np.asarray(expit(factor * log_odds(scores)))


def _ranks(scores: Floats) -> Floats:
    return doubled_mid_ranks(scores) / (2.0 * scores.size)


def _two_digits(scores: Floats) -> Floats:
    return np.round(scores, 2)


def _same(scores: Floats) -> Floats:
    return scores


AS_THEY_ARE = ScoreMap("as they are", _same)
SHIFTS = (0.0, -3.0, -5.0)
MOVED = tuple(ScoreMap(f"log-odds {shift:+g}", partial(_moved, shift)) for shift in SHIFTS)
"""Moved log-odds: the median score of Criteo with 2 % of its positives is then down to 0.004."""

OTHER_SCALES = (
    ScoreMap("log-odds times 0.1", partial(_times, 0.1)),
    ScoreMap("log-odds times 6", partial(_times, 6.0)),
    ScoreMap("raw log-odds", log_odds, LOG_ODDS),
    ScoreMap("ranks over n", _ranks),
)
DENSE = ScoreMap("expit(6 logit s)", partial(_times, 6.0))
"""Scores that crowd at 0 and 1, as those of confident networks do."""

TWO_DIGITS = ScoreMap("two digits", _two_digits)
"""Rounded scores, of which many are equal."""
