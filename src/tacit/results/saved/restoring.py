"""Evaluations from the JSON that they were written as."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import numpy as np

from tacit.data import units
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.shuffling import Shuffled
from tacit.results import parts
from tacit.results.curves.curve import Curve
from tacit.results.curves.histogram import Histogram
from tacit.results.measures.catalogue import THRESHOLDS, names
from tacit.results.run import LeftOut, Traffic
from tacit.results.saved.integrity import software_entry
from tacit.results.saved.reading import Result, estimate_of, number

Made = TypeVar("Made")


def restored(make: Callable[..., Made], content: Any, label: str) -> Made:
    """The evaluation that content states.

    Parameters
    ----------
    make : the class of evaluations, which imports this module.
    content : a result's JSON.
    label : what errors call it.

    Raises
    ------
    ValueError : for content that is no result, was changed, or does not follow the schema.
    """
    result = Result.of(content, label)
    try:
        return _evaluation(make, result)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{label} is no result of tacit: an entry lacks {error}") from None
    except ValueError as error:
        raise ValueError(f"{label} is no result of tacit: {error}") from None


def _evaluation(make: Callable[..., Made], result: Result) -> Made:
    known = result.content
    histogram = Histogram.restored(known["histogram"]) if "histogram" in known else None
    return make(
        protocol=dict(known["protocol"]),
        estimate=result.estimate,
        roc=_curve(known["roc"]) if "roc" in known else None,
        spent=_cost(known["spent"]),
        traffic=_traffic(known),
        **{name: known.get(name) for name in ("clients", "noise", "exact", "choice", "division")},
        **{name: number(known.get(name)) for name in ("positives", "negatives")},
        figure=result.figure,
        warnings=tuple(known["warnings"]),
        histogram=histogram,
        protection=_cost(known["protection"]) if "protection" in known else None,
        participants=_names(known),
        federation=known["federation"]["name"],
        simulated=known["simulation"],
        time=datetime.fromisoformat(known["time"]) if "time" in known else None,
        unit=known.get("unit", units.PROBABILITY),
        per_person=known.get("person", {}).get("records", 0),
        decisions=_decisions(known),
        shuffled=Shuffled(**known["shuffled"]) if "shuffled" in known else None,
        breakdown=_breakdown(known, histogram is not None),
        sites=_sites(known) if "between_sites" in known else None,
        left_out=_left_out(known["missing"]) if "missing" in known else None,
        # a result of these very versions equals the one that was saved
        software=None if known["software"] == software_entry() else dict(known["software"]),
    )


def _breakdown(known: Mapping[str, Any], has_histogram: bool) -> parts.Breakdown | None:
    """The figures of classes or groups; None where there are none."""
    by = next((by for by, entry in parts.ENTRIES.items() if entry in known), "")
    if not by and (has_histogram or "measures" not in known):
        return None
    listed = known[parts.ENTRIES[by]] if by else []
    # beside a histogram's own measures
    own = set(names(_decisions(known))) if has_histogram else set()
    measured = {name: each for name, each in known.get("measures", {}).items() if name not in own}
    return parts.Breakdown(
        by,
        tuple(map(_part, listed)),
        {name: estimate_of(measure) for name, measure in measured.items()},
        tuple(map(_difference, known.get("differences", []))),
        {name: parts.BandedCurve.restored(each) for name, each in known.get("curves", {}).items()},
    )


def _part(entry: Mapping[str, Any]) -> parts.Part:
    figures = {name: estimate_of(measure) for name, measure in entry["measures"].items()}
    sizes = number(entry.get("positives")), number(entry.get("negatives"))
    return parts.Part(str(entry["name"]), *sizes, figures, entry.get("reason", ""))


def _difference(entry: Mapping[str, Any]) -> parts.Difference:
    first, second = str(entry["first"]), str(entry["second"])
    return parts.Difference(entry["measure"], first, second, estimate_of(entry), entry["called"])


def _sites(known: Mapping[str, Any]) -> parts.Sites:
    """The figures of all sites, with what all of them together tell."""
    listed, figures = known["sites"], []
    if len(listed) != known["clients"]:
        raise ValueError(
            f"there must be {known['clients']} sites, a client each, got {len(listed)}"
        )
    for figure, together in known["between_sites"].items():
        measures = [each["measures"][figure] for each in listed]
        sites = tuple(
            parts.Site(index, estimate_of(measure), **_fields(measure, parts.OF_ONE))
            for index, measure in enumerate(measures)
        )
        reason = {"reason": together["reason"]} if "reason" in together else None
        told = reason or _fields(together, parts.TOGETHER)
        figures.append(parts.SiteFigure(figure, together["scale"], sites, **told))
    return parts.Sites.of(tuple(figures))


def _fields(entry: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Numbers and intervals of an entry; null is NaN."""
    return {
        name: tuple(map(number, entry[name])) if name.endswith("interval") else number(entry[name])
        for name in names
    }


def _left_out(entry: Mapping[str, Any]) -> LeftOut:
    """How many records were left out, as far as the file says it."""
    if not entry["private"]:
        listed = entry.get("by_client", [entry])
        return LeftOut(np.array([[each[name] for each in listed] for name in ("scores", "labels")]))
    if "spent" not in entry:
        return LeftOut()
    beside = {"value": entry["records"], "sampling_error": 0.0, "approximation_error": 0.0}
    return LeftOut(estimate=estimate_of(beside | dict(entry)), spent=_cost(entry["spent"]))


def _curve(entry: Mapping[str, Any]) -> Curve:
    """A ROC curve; a threshold that is null lies below every score."""
    names = [name for name in Curve.__dataclass_fields__ if name in entry]
    columns = {name: np.array([number(each) for each in entry[name]]) for name in names}
    thresholds = columns.pop("thresholds")
    return Curve(np.where(np.isnan(thresholds), -np.inf, thresholds), **columns)


def _cost(entry: Mapping[str, Any]) -> Cost:
    named = entry["adjacency"]
    return Cost(
        math.inf if entry["epsilon"] is None else entry["epsilon"],
        entry["delta"],
        None if named == "none" else Adjacency(named),
    )


def _traffic(known: Mapping[str, Any]) -> Traffic:
    """Bytes by client, where the file lists every client."""
    rounds, listed = known["traffic"]["rounds"], known.get("participants", [])
    if len(listed) != known["clients"]:
        return Traffic(rounds, np.zeros(0, dtype=np.int64), dict(known["traffic"]))
    return Traffic(rounds, np.array([each["bytes_sent"] for each in listed], dtype=np.int64))


def _names(known: Mapping[str, Any]) -> tuple[str, ...]:
    """The clients' names, where every one has one."""
    names = [each.get("name") for each in known.get("participants", [])]
    return tuple(map(str, names)) if names and None not in names else ()


def _decisions(known: Mapping[str, Any]) -> tuple[float, ...]:
    """The probabilities at which figures of a decision are given."""
    measured = known.get("measures", {})
    thresholds = [
        entry["threshold"]
        for name, entry in measured.items()
        if name.startswith("net_benefit_at") and entry.get("threshold") is not None
    ]
    return tuple(thresholds) or THRESHOLDS
