"""Reads files of ``tacit compare`` and of ``tacit evaluate --groups`` beside single results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.results.estimate import Estimate
from tacit.results.saved import integrity, reading

DIFFERENCE = "difference of the AUCs"
"""What the difference of two models is called where a result names its figure."""


@dataclass(frozen=True)
class Model:
    """One of two compared models.

    Parameters
    ----------
    name : what it is called.
    estimate : its AUC.
    exact : the exact AUC, which is not private; NaN where the file has none.
    """

    name: str
    estimate: Estimate
    exact: float


@dataclass(frozen=True)
class ComparedModels:
    """Two models on the same records.

    Parameters
    ----------
    label : the file's name among several.
    difference : the first model's AUC less the second's, with everything about the run.
    models : both.
    """

    label: str
    difference: reading.Result
    models: tuple[Model, Model]


@dataclass(frozen=True)
class PublicGroup:
    """One public group of records.

    Parameters
    ----------
    name : the group.
    records : its number of records as it was published, or as noisy counts say it; NaN for neither.
    exact_size : whether that number is public.
    reason : why there is no figure; empty where there is one.
    result : its own result; None where there is none.
    """

    name: str
    records: float
    exact_size: bool
    reason: str
    result: reading.Result | None


@dataclass(frozen=True)
class GroupedResult:
    """Every public group by itself.

    Parameters
    ----------
    label : the file's name among several.
    content : its JSON.
    groups : the groups, in order.
    """

    label: str
    content: Mapping[str, Any]
    groups: tuple[PublicGroup, ...]

    @property
    def figure(self) -> str:
        """What was estimated of each group."""
        return str(self.content["figure"])


Document = reading.Result | ComparedModels | GroupedResult
"""What a report can show."""


def document_of(content: Any, label: str) -> Document:
    """Check content that somebody says was written by ``tacit``.

    Raises
    ------
    ValueError : naming the file and the reason.
    """
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema == integrity.COMPARISON_SCHEMA:
        return _compared(content, label)
    if schema == integrity.GROUPS_SCHEMA:
        return _grouped(content, label)
    return reading.Result.of(content, label)


def read_documents(paths: Sequence[str]) -> list[Document]:
    """Read results, comparisons and results of groups; each is called by its file's name.

    Raises
    ------
    OSError : where a file cannot be read.
    ValueError : where one is larger than 32 MiB, no strict JSON, none of these, or was changed.
    """
    named = zip(paths, reading.labelled(paths), strict=True)
    return [replace(document_of(content, path), label=label) for path, (label, content) in named]


def _compared(content: Mapping[str, Any], label: str) -> ComparedModels:
    """A comparison: each of its figures fits where a result has one."""
    reading.check_fingerprint(content, label)
    entries = {name: content.get(name) for name in ("difference", "first", "second")}
    left_out = {*entries, "fingerprint"}
    run = {name: value for name, value in content.items() if name not in left_out}
    run |= {"schema": integrity.SCHEMA, "figure": DIFFERENCE, "estimate": entries["difference"]}
    try:
        for name in ("first", "second"):
            alone = {"auc": entries[name]} | _exact_of(entries[name])
            reading.check_result(integrity.with_fingerprint(run | alone))
    except ValueError as error:
        raise ValueError(
            f"{label} does not follow the schema {integrity.COMPARISON_SCHEMA}: {error}"
        ) from None
    difference = reading.Result.of(integrity.with_fingerprint(run), label)
    first, second = (_model(entries[name], name) for name in ("first", "second"))
    return ComparedModels(label, difference, (first, second))


def _exact_of(entry: Any) -> dict[str, Any]:
    """The exact figure of a model as a result has it."""
    return {"exact": entry["exact"]} if isinstance(entry, dict) and "exact" in entry else {}


def _model(entry: Any, name: str) -> Model:
    given = entry.get("name", name)
    called = given if isinstance(given, str) else name
    return Model(called[:200], reading.estimate_of(entry), reading.number(entry.get("exact")))


def _grouped(content: Mapping[str, Any], label: str) -> GroupedResult:
    """The groups, each with its checked result."""
    reading.check_fingerprint(content, label)
    try:
        reading.check_result(content, integrity.GROUPS_SCHEMA)
    except ValueError as error:
        raise ValueError(
            f"{label} does not follow the schema {integrity.GROUPS_SCHEMA}: {error}"
        ) from None
    groups = tuple(_group(entry, label) for entry in content["groups"])
    return GroupedResult(label, content, groups)


def _group(entry: Mapping[str, Any], label: str) -> PublicGroup:
    result, name = entry["result"], entry["name"]
    public_records, counted = (
        reading.number(entry["records"]),
        reading.number(entry["estimated_records"]),
    )
    return PublicGroup(
        name,
        public_records if math.isfinite(public_records) else counted,
        math.isfinite(public_records),
        entry["reason"] or "",
        None if result is None else reading.Result.of(result, f"{label}, group {name}"),
    )
