"""How far two results differ, with intervals that say about what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.metrics import errors
from tacit.results.curves.histogram import Histogram
from tacit.results.estimate import MEANING, Estimate, bounds_line, estimate_line, measure_of
from tacit.results.measures.catalogue import label
from tacit.results.measures.distances import drift_between
from tacit.results.parts import difference
from tacit.results.saved import reading


@dataclass(frozen=True)
class Difference:
    """How far one result's figure lies above another's.

    Parameters
    ----------
    first, second : what the two results are called; the difference is second less first.
    estimate : the difference of the estimates, each less its known bias, with its errors.
    paired : whether both are taken to be about the same records.
    shared_noise : whether one of them may have used the other's noise again.
    """

    first: str
    second: str
    estimate: Estimate
    paired: bool
    shared_noise: bool

    @property
    def known(self) -> bool:
        """Whether there is a difference with an interval."""
        return self.estimate.given and self.estimate.has_interval

    @property
    def significant(self) -> bool:
        """Whether zero lies outside the interval about the records."""
        return self.known and 0 not in self.estimate.interval()


def differences(results: Sequence[reading.Result]) -> list[Difference]:
    """The difference of every further result from the first.

    Privacy noise is drawn again in every evaluation, so its variances add. Errors of measuring on
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
    return [_difference(results[0], other) for other in results[1:]]


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
    made, draws = difference(other, one), np.array([one.laplace_error, other.laplace_error])
    if shared:
        draws = draws.sum(keepdims=True)
        made = replace(made, privacy_error=one.privacy_error + other.privacy_error)
    if draws.any():
        made = replace(made, law=errors.laplace_law(draws[draws > 0]))
    most = 1.0 if first.figure.is_auc else math.inf
    paired = first.content["federation"]["name"] is not None
    return Difference(first.label, second.label, made.within((-most, most)), paired, shared)


def _reused(result: reading.Result) -> bool:
    """Whether a private protocol spent nothing, as it does with labels that were flipped before."""
    return result.content["spent"]["epsilon"] == 0


CALIBRATION = ("calibration_intercept", "calibration_slope", "observed_over_expected", "brier")
"""The figures of calibration whose drift is told."""
SHIFTS = {
    "population_stability": "shift of scores (population stability index)",
    "kolmogorov_smirnov": "shift of scores (Kolmogorov-Smirnov)",
}
"""Distances between both releases' scores, which are never below 0."""


@dataclass(frozen=True)
class Drift:
    """How a model's figures and scores moved between two results about different records.

    Parameters
    ----------
    figure : the results' figure.
    moved : the later less the earlier, by figure, and the shifts of the scores. What cannot be
        known has the reason.
    """

    figure: str
    moved: Mapping[str, Estimate]

    @classmethod
    def between(cls, earlier: reading.Result, later: reading.Result) -> Drift:
        """The drift of the results' figure, of ``CALIBRATION`` where both have it, and of scores.

        Both noises, and both samplings about the population, are independent, so their variances
        add. Calibration's intervals are normal; the scores' drift is that of ``drift_between``.

        Raises
        ------
        ValueError : for one result given twice, and results of different figures.
        """
        if earlier.content["fingerprint"] == later.content["fingerprint"]:
            raise ValueError(f"{earlier.label} and {later.label} are one and the same result")
        if earlier.figure != later.figure:
            raise ValueError(f"one is a {earlier.figure}, the other a {later.figure}")
        figure = str(later.figure)
        moved = {figure: _difference(earlier, later).estimate}
        contents = earlier.content, later.content
        first, second = (each.get("measures", {}) for each in contents)
        for name in CALIBRATION:
            if name in first and name in second:
                one, other = map(reading.estimate_of, (first[name], second[name]))
                unknown = next((each.reason for each in (one, other) if not each.given), None)
                made = difference(other, one).within((-math.inf, math.inf))
                moved[name] = made if unknown is None else Estimate.absent(unknown)
        without = [each["protocol"]["name"] for each in contents if "histogram" not in each]
        try:
            if without:
                raise ValueError(f"{without[0]} gives no score histogram")
            releases = [Histogram.restored(each["histogram"]) for each in contents]
            return cls(figure, moved | vars(drift_between(*releases)))
        except ValueError as error:
            return cls(figure, moved | {"population_stability": Estimate.absent(str(error))})

    @property
    def has_signal(self) -> bool:
        """Whether the drift of the figure has an estimate."""
        return self.moved[self.figure].given

    def to_dict(self) -> dict[str, Any]:
        """The drift as JSON holds it."""
        entries = {name: measure_of(estimate) for name, estimate in self.moved.items()}
        return {"figure": self.figure, "drift": entries}

    def to_rows(self) -> list[tuple[str, str]]:
        """The drift as labelled lines, with both intervals."""
        rows = []
        for name, estimate in self.moved.items():
            sign = "" if name in SHIFTS else "+"
            line = estimate_line(estimate, sign)
            if estimate.given:
                bounds = estimate.interval(about="population")
                line += f", (population) {bounds_line(bounds, sign)}"
            rows.append((SHIFTS.get(name, f"drift of {label(name)}"), line))
        return [*rows, ("intervals", f"these records: {MEANING}")]
