"""What an evaluation says of itself: entries of its JSON, and printed lines.

Entries of an evaluation's JSON: software, figure, participants, privacy. A histogram in a result's
JSON: the cells, the errors of their tree, and where they lie. Lines of a printed evaluation:
protocol, errors, privacy, traffic.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.privacy import composition
from tacit.privacy.cost import Cost, cost_line
from tacit.privacy.shuffling import Shuffled
from tacit.results.curves.histogram import Histogram
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.estimate import (
    CERTAIN_RANGE,
    POPULATION_INTERVAL,
    RECORDS_ERROR,
    RECORDS_INTERVAL,
    About,
    Estimate,
    bounds_line,
    finite,
    numbers,
)
from tacit.results.figure import Figure
from tacit.results.traffic import Traffic


def software_entry() -> dict[str, str]:
    """The versions that computed a result."""
    try:
        tacit_version = version("tacit")
    except PackageNotFoundError:
        tacit_version = "not installed"
    return {"tacit": tacit_version, "python": platform.python_version(), "numpy": np.__version__}


def figure_entry(figure: str, estimate: Estimate) -> dict[str, Any]:
    """The estimate with its errors, called ``auc`` where it is one."""
    population = numbers(estimate.interval(0.95, about="population"))
    entry = estimate.to_dict() | {"population_interval": population}
    if Figure.of(figure).is_auc:
        return {"auc": entry}
    return {"figure": figure, "estimate": entry}


def participant_entries(names: tuple[str, ...], traffic: Traffic) -> list[dict[str, Any]]:
    """What each client sent, with its name where names may be written down."""
    sent: list[int] = traffic.bytes_sent.tolist()
    if not names:
        return [{"bytes_sent": size} for size in sent]
    named = zip(names, sent, strict=True)
    return [{"name": name, "bytes_sent": size} for name, size in named]


def privacy_entries(
    spent: Cost, protection: Cost | None, per_person: int, shuffled: Shuffled | None
) -> dict[str, Any]:
    """The entries beside what was spent; the parameters are an evaluation's fields."""
    made: dict[str, Any] = {}
    if protection is not None:
        made["protection"] = protection.to_dict()
    if per_person:
        made["person"] = {
            "records": per_person,
            "epsilon_of_a_record": finite(spent.epsilon / per_person),
        }
    if shuffled is not None:
        made["shuffled"] = shuffled.to_dict()
    return made


MAX_CELLS = 2**14
"""The most cells that are written; with more a file has the figures that follow from them."""


def histogram_entry(histogram: Histogram) -> dict[str, Any]:
    """The ``histogram`` entry, where there are not too many cells. It says nothing new: all was
    released.

    Parameters
    ----------
    histogram : of a result.
    """
    if histogram.counts.shape[-1] > MAX_CELLS:
        return {}
    noise, scale = histogram.noise, histogram.axis.scale
    by_level = {"variances": noise.variances, "assumed": noise.assumed, "factors": noise.factors}
    return {
        "histogram": {
            "counts": histogram.counts.tolist(),
            "supported": histogram.supported,
            "buckets": histogram.buckets,
            "noise": {
                # infinity, which an unobserved level has, is null
                **{name: None if x is None else numbers(x) for name, x in by_level.items()},
                "extra": float(noise.extra),
                "centred": bool(noise.centred),
            },
            "axis": {
                "knots": scale.knots.tolist(),
                "low": scale.low,
                "high": scale.high,
                "unit": histogram.axis.unit,
            },
        }
    }


def histogram_of(entry: Mapping[str, Any]) -> Histogram:
    """The histogram of an entry.

    Raises
    ------
    ValueError : for an entry whose parts do not fit together.
    """
    noise, axis = entry["noise"], entry["axis"]
    positives, negatives = map(len, entry["counts"])
    if positives != negatives:
        raise ValueError(f"both classes must have as many cells, got {positives} and {negatives}")
    counts, variances = np.array(entry["counts"], dtype=np.float64), _array(noise["variances"])
    assumed, factors = (
        None if noise[name] is None else _array(noise[name]) for name in ("assumed", "factors")
    )
    # the root, both classes, and every level below them
    for levels in (variances, assumed, factors):
        if levels is not None and 2 ** (levels.size - 1) != counts.size:
            raise ValueError(f"{counts.size} cells cannot have {levels.size} levels")
    tree = trees.TreeNoise(variances, assumed, factors, noise["extra"], noise["centred"])
    scale = ScoreScale(np.array(axis["knots"], dtype=np.float64), axis["low"], axis["high"])
    return Histogram(
        counts, tree, entry["supported"], entry["buckets"], ScoreAxis(scale, axis["unit"])
    )


def _array(values: list[float | None]) -> Floats:
    return np.array([math.inf if value is None else value for value in values])


Row = tuple[str, str]
"""A label and what it says."""


def protocol_line(protocol: Mapping[str, Any]) -> str:
    """A protocol's name with its settings."""
    settings = ", ".join(f"{k} {v}" for k, v in protocol.items() if k != "name")
    return f"{protocol['name']} ({settings})" if settings else str(protocol["name"])


def error_rows(estimate: Estimate) -> list[Row]:
    """The estimate's intervals and its error, each named for what it is about."""
    rows = []
    if estimate.half_range is None:
        rows += _interval_row(estimate, RECORDS_INTERVAL, "data")
    else:
        # Ends of a certain range have at most seven decimals: none is rounded inwards.
        rows.append((CERTAIN_RANGE, bounds_line(estimate.interval(), digits=7)))
    rows += _interval_row(estimate, POPULATION_INTERVAL, "population")
    if math.isfinite(estimate.standard_error) and estimate.half_range is None:
        rows.append((RECORDS_ERROR, f"{estimate.standard_error:.2e}"))
    return rows


def _interval_row(estimate: Estimate, name: str, about: About) -> list[Row]:
    bounds = estimate.interval(0.95, about)
    return [(name, bounds_line(bounds))] if all(map(math.isfinite, bounds)) else []


def privacy_rows(
    spent: Cost, protection: Cost | None, per_person: int, shuffled: Shuffled | None
) -> list[Row]:
    """What was spent, and what is said beside it; the parameters are an evaluation's fields."""
    rows = [("privacy spent", cost_line(spent.to_dict(), "a client"))]
    if per_person:
        rows.append(("unit of privacy", composition.person_line(per_person, spent.epsilon)))
    if protection is not None:
        rows.append(("noise supports", cost_line(protection.to_dict(), "a client")))
    if shuffled is not None:
        rows.append(("sealed batches", shuffled.line))
    return rows


def traffic_row(traffic: Traffic) -> Row:
    """What a client sent, and in how many rounds."""
    sent = traffic.to_dict()["bytes_sent_per_client"]
    rounds = f"{traffic.rounds} round{'s' if traffic.rounds > 1 else ''}"
    return (
        "sent by a client",
        f"{sent['median']:,.0f} bytes (median), {sent['max']:,} (most), {rounds}",
    )
