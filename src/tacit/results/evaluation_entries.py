"""Entries of an evaluation's JSON: software, figure, participants, privacy."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from tacit.privacy.cost import Cost
from tacit.results.estimate import Estimate, finite
from tacit.results.figure import Figure
from tacit.results.shuffled import Shuffled
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
    population = estimate.interval(0.95, about="population")
    entry = estimate.to_dict() | {"population_interval": [finite(x) for x in population]}
    entry["limits"] = [finite(limit) for limit in estimate.limits]
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
