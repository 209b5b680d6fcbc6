"""How far two results differ, with intervals that say about what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.metrics import errors
from tacit.results.estimate import LEVEL, REACH
from tacit.results.saved import reading


@dataclass(frozen=True)
class Difference:
    """How far one result's figure lies above another's.

    Parameters
    ----------
    first, second : what the two results are called; the difference is second less first.
    value : the difference of the estimates, each less its known bias; NaN without a signal.
    interval : 95 %, about the difference of the exact figures of the records evaluated.
    population_interval : 95 %, about the difference of the populations' figures.
    paired : whether both are taken to be about the same records.
    shared_noise : whether one of them may have used the other's noise again.
    """

    first: str
    second: str
    value: float
    interval: reading.Bounds
    population_interval: reading.Bounds
    paired: bool
    shared_noise: bool

    @property
    def known(self) -> bool:
        """Whether there is a difference with an interval."""
        return all(math.isfinite(bound) for bound in (self.value, *self.interval))

    @property
    def significant(self) -> bool:
        """Whether zero lies outside the interval about the records."""
        low, high = self.interval
        return self.known and not low <= 0 <= high


def differences(results: Sequence[reading.Result]) -> list[Difference]:
    """The difference of every further result from the first.

    Privacy noise is drawn anew in every evaluation, so its variances add. Errors of measuring on
    cells may go together, so these errors themselves add. Both make the interval about the records:

        s = sqrt( p1**2 + p2**2 + (a1 + a2)**2 )

    About the population sampling errors come on top, as variances ``s1**2 + s2**2``. For results
    about the same records that is a choice: their covariance is not released. Two classifiers that
    rank alike have a positive one, and then the interval is wider than it need be.

    Where a result spent nothing although its protocol draws noise, it used the labels again that
    another evaluation flipped. Noise may then be shared, and ``p1 + p2`` replaces
    ``sqrt(p1**2 + p2**2)``, which holds whatever the correlation.

    Intervals are normal but for single draws of Laplace noise, each a part of its result's noise:
    they are quantiles of the sum of these draws and of a normal error that is all the rest.

    Raises
    ------
    ValueError : for results of different figures or different federations, and for one result
        given twice.
    """
    check_comparable(results)
    return [_difference(results[0], other) for other in results[1:]]


def check_comparable(results: Sequence[reading.Result]) -> None:
    """Refuse to compare what cannot be compared, with the reason.

    Raises
    ------
    ValueError : as ``differences`` says.
    """
    seen: dict[str, str] = {}
    for result in results:
        mark = str(result.content["fingerprint"])
        if mark in seen:
            raise ValueError(f"{seen[mark]} and {result.label} are one and the same result")
        seen[mark] = result.label
    for other in results[1:]:
        reason = _obstacle(results[0], other)
        if reason is not None:
            raise ValueError(f"{results[0].label} and {other.label} cannot be compared: {reason}")


def _obstacle(first: reading.Result, second: reading.Result) -> str | None:
    """Why two results cannot be compared."""
    if first.figure != second.figure:
        return f"one is a {first.figure}, the other a {second.figure}"
    federations = (first.content["federation"], second.content["federation"])
    if federations[0]["fingerprint"] == federations[1]["fingerprint"]:
        return None
    return f"they are about different federations, {_federation_reason(*federations)}"


def _federation_reason(first: dict[str, Any], second: dict[str, Any]) -> str:
    names = [entry["name"] for entry in (first, second)]
    if None in names and names[0] != names[1]:
        named = next(name for name in names if name is not None)
        return f"or it is not known that they are not: one names {named!r}, the other none"
    if names[0] != names[1]:
        return f"{names[0]!r} and {names[1]!r}"
    if first["clients"] != second["clients"]:
        return f"of {first['clients']} and of {second['clients']} clients"
    return (
        "whose clients have different names; if their records are the same, evaluate with the same "
        "--federation NAME"
    )


def _difference(first: reading.Result, second: reading.Result) -> Difference:
    one, other = first.estimate, second.estimate
    shared = _reused(first) or _reused(second)
    privacy = one.privacy_error, other.privacy_error
    noise = sum(privacy) if shared else math.hypot(*privacy)
    error = math.hypot(noise, one.approximation_error + other.approximation_error)
    wider = math.hypot(error, one.sampling_error, other.sampling_error)
    draws = [one.laplace_error, other.laplace_error]
    draws = [sum(draws)] if shared else draws
    value = other.centre - one.centre
    most = 1.0 if first.figure.is_auc else math.inf
    return Difference(
        first.label,
        second.label,
        min(max(value, -most), most),
        _around(value, _reach(error, draws), most),
        _around(value, _reach(wider, draws), most),
        first.content["federation"]["name"] is not None,
        shared,
    )


def _reused(result: reading.Result) -> bool:
    """Whether a private protocol spent nothing, as it does with labels that were flipped before."""
    return result.content["spent"]["epsilon"] == 0


def _reach(error: float, draws: Sequence[float]) -> float:
    """Half the width of an interval, where parts of an error are one Laplace draw each."""
    drawn = np.array([draw for draw in draws if draw > 0])
    if not drawn.size or not math.isfinite(error):
        return REACH * error
    law = errors.laplace_law(drawn)
    rest = math.sqrt(max(error**2 - float(law.variance), 0.0))
    return float(law.reach(np.asarray(rest), LEVEL))


def _around(value: float, reach: float, most: float) -> reading.Bounds:
    """The interval, within what a difference can be; NaN stays."""
    low, high = value - reach, value + reach
    if math.isnan(low):
        return low, high
    return min(max(low, -most), most), min(max(high, -most), most)
