"""Targets of this package for histograms and for the local model: errors, coverage, calibration.

Absolute bounds are about the 458,407 Criteo scores, on which they were set, or the synthetic ones
that replace them. Every record is one client unless a row says otherwise.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from tacit.data.clients import Clients
from tacit.local.hierarchical.protocol import HierarchicalAUC
from tacit.local.two_round.protocol import TwoRoundAUC
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol.conversation import Protocol
from tacit.protocol.trust import SecureSum
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.protocols.published.calibration import PublishedHistogram
from tacit.running.evaluating import repeat, repeat_results
from tacit_studies.measuring import Bench, Job, quotient
from tacit_studies.papers.federated import (
    BUCKETS,
    DISTORTIONS,
    FINE_HEIGHT,
    MEASURED_RATES,
    Records,
    all_records,
    bucket_errors,
    calibration_errors,
    histogram_of,
    mean_of,
    protocol_for,
    rate_errors,
    slope,
)
from tacit_studies.references import federated as paper
from tacit_studies.rows import Measured, Row, Target
from tacit_studies.sources import Floats
from tacit_studies.spelling import table_name, table_settings

PLAIN_AUC, DENSITY_AUC = 3.4e-5, 1e-5
"""Maximum AUC errors of 100 equi-depth buckets: pairs inside counted half, and densities."""

STEEPEST = -1.8
"""Maximum slope of the AUC's log error over the log number of buckets."""

EXACT_RATES = 1e-4
TARGET_THRESHOLDS = tuple(step / 10 for step in range(1, 10))

DISTRIBUTED_AUC, SECOND_ROUND_AUC = 2.5e-5, 1.3e-5
DISTRIBUTED_CLIENTS = (10, 1_000)
DISTRIBUTED_RATES = 2e-4

LOCAL_HISTOGRAM = {1.0: 0.0068, 2.0: 0.0034, 5.0: 0.0014}
LOCAL_HIERARCHY = {1.0: 0.0130, 2.0: 0.0078}
LOCAL_TWO_ROUNDS = {1.0: 0.0033, 2.0: 0.0016, 5.0: 0.0008}
"""Maximum mean absolute errors of the AUC, by epsilon."""

RECALIBRATED = 0.01
CALIBRATION_RECORDS = 100_000
METHODS = ("binning", "isotonic", "platt", "bbq")
OUTSIDE_FAMILY = ("platt", "squared")
"""Platt scaling is linear in log-odds and cannot undo a square: that error is not the noise's."""

CURVE_POINTS = np.linspace(0.0, 1.0, 10_001)

COVERAGE = (0.92, 0.98)
LOCAL_EPSILONS = tuple(LOCAL_HISTOGRAM)

ERROR, SECOND_ROUND = "mean |AUC error|", "second round"


def histogram(table: str) -> list[Job]:
    """The histogram under all three trust models, and the other protocols of the local model."""
    return [
        Job(partial(_exact_sums, table)),
        *(Job(partial(_distributed_auc, table, count)) for count in DISTRIBUTED_CLIENTS),
        Job(partial(_distributed_auc, table, None)),
        Job(partial(_distributed_rates, table)),
        Job(partial(_curve_areas, table)),
        *(
            Job(partial(_local_error, table, protocol, most))
            for protocol, most in _local_protocols()
        ),
        *(Job(partial(_private_labels, table, epsilon)) for epsilon in LOCAL_HISTOGRAM),
        *(Job(partial(_calibration, table, distortion)) for distortion in DISTORTIONS),
    ]


def _exact_sums(table: str, bench: Bench) -> list[Target]:
    row, last = paper.FEDERATED, paper.AUC_BUCKETS
    plain = dict(zip(BUCKETS, bucket_errors(bench, BUCKETS), strict=True))
    (dense,) = bucket_errors(bench, (last,), density=True)
    protocol = protocol_for(paper.FEDERATED, height=FINE_HEIGHT, buckets=10)
    rates = np.nanmax(rate_errors(bench, protocol, thresholds=TARGET_THRESHOLDS), axis=(0, 2))
    falling = slope(BUCKETS, list(plain.values()))
    fitted = f"slope over {BUCKETS[0]} to {BUCKETS[-1]} buckets"
    return [
        Target(table, row, f"|AUC error|, {last} buckets", plain[last], at_most=PLAIN_AUC),
        Target(table, row, f"|AUC error|, {last} buckets, densities", dense, at_most=DENSITY_AUC),
        Target(table, row, fitted, falling, at_most=STEEPEST),
        *(
            Target(table, row, f"largest {name} error, h=14", float(error), at_most=EXACT_RATES)
            for name, error in zip(MEASURED_RATES, rates, strict=True)
        ),
    ]


def _distributed_auc(table: str, count: int | None, bench: Bench) -> list[Target]:
    row = f"{paper.DISTRIBUTED} eps=1 " + ("K=M" if count is None else f"K={count}")
    known = all_records(bench)
    clients = _dealt(known, count, bench.seed("dealt", count))

    def error(protocol: Protocol) -> float:
        estimates = repeat(clients, protocol, bench.repeats, bench.seed(protocol, count))
        return float(np.mean(np.abs(estimates - known.auc)))

    one, two = error(protocol_for(paper.DISTRIBUTED)), error(_summed_twice())
    return [
        Target(table, row, ERROR, one, at_most=DISTRIBUTED_AUC),
        Target(table, row, f"{ERROR}, {SECOND_ROUND}", two, at_most=SECOND_ROUND_AUC),
    ]


def _summed_twice() -> ScoreHistogram:
    """This package's sum, which asks for the AUC again as one number; at the paper's epsilon."""
    return ScoreHistogram(SecureSum(), paper.EPSILON[paper.DISTRIBUTED], scale=EVEN)


def _dealt(records: Records, count: int | None, seed: int) -> Clients:
    """The records dealt out to ``count`` clients, at most one a record; None means one a record."""
    if count is None or count >= records.size:
        return records.clients
    return Clients.split(records.scores, records.labels, count, "uniform", seed)


def _distributed_rates(table: str, bench: Bench) -> list[Target]:
    protocol = protocol_for(paper.DISTRIBUTED, buckets=10, aim="curves")
    errors = rate_errors(bench, protocol, thresholds=TARGET_THRESHOLDS)
    return [
        Target(
            table,
            f"{paper.DISTRIBUTED} eps=1",
            f"mean |{name} error|",
            mean_of(errors[:, index]),
            at_most=DISTRIBUTED_RATES,
        )
        for index, name in enumerate(MEASURED_RATES)
    ]


def _curve_areas(table: str, bench: Bench) -> list[Row]:
    """The areas between private and exact curves, with as many buckets as are supported."""
    known, protocol = all_records(bench), protocol_for(paper.DISTRIBUTED)
    times = range(bench.repeats)
    histograms = [histogram_of(known, protocol, bench.seed(protocol, "curves", k)) for k in times]
    made = [entry for entry in histograms if entry is not None]
    exact = _exact_curves(known)
    roc = [entry.roc() for entry in made]
    beside = [entry.precision_recall() for entry in made]
    areas = {
        "ROC": [_area(exact["roc"], c.false_positive_rate, c.true_positive_rate) for c in roc],
        "PR": [_area(exact["pr"], c.recall.value, c.precision.value) for c in beside],
    }
    return [
        Row(
            table,
            f"{paper.DISTRIBUTED} eps=1",
            f"mean area between private and exact {name} curve",
            None,
            mean_of(np.array(values)),
        )
        for name, values in areas.items()
    ]


def _exact_curves(records: Records) -> dict[str, Floats]:
    """The true positive rate and the precision at ``CURVE_POINTS`` of the other coordinate."""
    labels = records.labels[np.argsort(-records.scores, kind="stable")].astype(np.float64)
    won, lost = np.cumsum(labels), np.cumsum(1 - labels)
    recall, false, precision = won / won[-1], lost / lost[-1], won / (won + lost)
    return {
        "roc": np.interp(CURVE_POINTS, false, recall),
        "pr": np.interp(CURVE_POINTS, recall, precision),
    }


def _area(exact: Floats, known_rates: Floats, heights: Floats) -> float:
    """The area between the exact curve and a private one, over the places that the latter has.

    Its points descend with rising thresholds; between them it is straight.
    """
    known = np.isfinite(heights)
    across, up = np.flip(known_rates[known]), np.flip(heights[known])
    inside = (across[0] <= CURVE_POINTS) & (across[-1] >= CURVE_POINTS)
    gaps = np.abs(np.interp(CURVE_POINTS[inside], across, up) - exact[inside])
    return float(gaps.sum() / (CURVE_POINTS.size - 1))


def _local_protocols() -> list[tuple[Protocol, float]]:
    """Protocols at their default heights, each with its maximum error."""
    return [
        *((_local(epsilon), most) for epsilon, most in LOCAL_HISTOGRAM.items()),
        *((_hierarchical(epsilon), most) for epsilon, most in LOCAL_HIERARCHY.items()),
        *((_two_rounds(epsilon, "public"), most) for epsilon, most in LOCAL_TWO_ROUNDS.items()),
    ]


def _local(epsilon: float) -> PublishedHistogram:
    return protocol_for(paper.LOCAL, epsilon)


def _hierarchical(epsilon: float) -> HierarchicalAUC:
    """With the even cells of the committed tables."""
    return HierarchicalAUC(epsilon, scale=EVEN)


def _two_rounds(epsilon: float, labels: Literal["private", "public"]) -> TwoRoundAUC:
    """With the even cells of the committed tables."""
    return TwoRoundAUC(epsilon, labels, scale=EVEN)


def _local_error(table: str, protocol: Protocol, most: float, bench: Bench) -> list[Target]:
    error = _auc_error(bench, protocol)
    return [Target(table, _called(protocol), ERROR, error, at_most=most)]


def _private_labels(table: str, epsilon: float, bench: Bench) -> list[Measured]:
    """Both keep score and label private; the histogram's report serves all other figures too."""
    protocol = _two_rounds(epsilon, "private")
    two_round_error, histogram_error = (
        _auc_error(bench, candidate) for candidate in (protocol, _local(epsilon))
    )
    row = _called(protocol)
    return [
        Row(table, row, ERROR, None, two_round_error),
        Target(
            table,
            row,
            f"{ERROR} / histogram's",
            quotient(two_round_error, histogram_error),
            at_most=1.0,
        ),
    ]


def _auc_error(bench: Bench, protocol: Protocol) -> float:
    """The mean absolute error of a protocol's AUC of all records."""

    def measured() -> float:
        known = all_records(bench)
        estimates = repeat(known.clients, protocol, bench.repeats, bench.seed(protocol))
        return float(np.mean(np.abs(estimates - known.auc)))

    return bench.once(("auc error", protocol), measured)


def _called(protocol: Protocol) -> str:
    """A protocol's name with the settings that distinguish it from others of its kind."""
    settings = table_settings(protocol)
    parts = [str(settings[name]) for name in ("trust", "budget") if name in settings]
    parts += [f"labels={settings['labels']}"] if settings.get("labels") else []
    parts += (
        [SECOND_ROUND] if isinstance(protocol, ScoreHistogram) and protocol.counts_in_rounds else []
    )
    return " ".join([table_name(protocol), *parts, f"eps={settings['epsilon']:g}"])


def _calibration(table: str, distortion: str, bench: Bench) -> list[Measured]:
    protocol, size = protocol_for(paper.DISTRIBUTED), CALIBRATION_RECORDS
    errors_by_method = calibration_errors(bench, protocol, size, METHODS, distortion)
    errors = {method: mean_of(values) for method, values in errors_by_method.items()}
    row = f"{paper.DISTRIBUTED} eps=1 M={size} {distortion}"
    rows: list[Measured] = [
        Row(table, row, f"ECE after {method}", None, error)
        if (method, distortion) == OUTSIDE_FAMILY
        else Target(table, row, f"ECE after {method}", error, at_most=RECALIBRATED)
        for method, error in errors.items()
    ]
    ratio = quotient(errors["bbq"], errors["binning"])
    return [*rows, Target(table, row, "ECE after bbq / after binning", ratio, at_most=1.0)]


def coverage(table: str) -> list[Job]:
    """Whether 95 % intervals cover the exact AUC of these records."""
    split, sampled = (protocol_for(paper.DISTRIBUTED, budget=each) for each in ("split", "sample"))
    local = [
        protocol
        for epsilon in LOCAL_EPSILONS
        for protocol in (
            _local(epsilon),
            _hierarchical(epsilon),
            _two_rounds(epsilon, "public"),
            _two_rounds(epsilon, "private"),
        )
    ]
    return [
        Job(partial(_coverage, table, protocol), name=_called(protocol))
        for protocol in (split, _summed_twice(), sampled, *local)
    ]


def _coverage(table: str, protocol: Protocol, bench: Bench) -> list[Measured]:
    known = all_records(bench)
    results = repeat_results(known.clients, protocol, bench.repeats, bench.seed(protocol))
    fraction = float(results.covers(known.auc, 0.95).mean())
    row = _called(protocol)
    ratio = quotient(
        float(np.sqrt(np.mean(results.standard_error**2))), float(np.std(results.value))
    )
    return [
        Target(table, row, "coverage of the 95 % interval", fraction, *COVERAGE),
        Row(table, row, "predicted error / measured std", None, ratio),
    ]
