"""Reads results from files, and refuses those that are not what tacit wrote.

Checks a result against the published JSON schema, with the library jsonschema. Also reads files of
``tacit compare`` and of ``tacit evaluate --groups`` besides single results.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from tacit.data import units
from tacit.metrics import errors
from tacit.protocol.registry import check_written
from tacit.results.curves.score_axis import HALVES
from tacit.results.estimate import About, Estimate, Interval
from tacit.results.figure import AUC_FIGURE, Figure
from tacit.results.saved import integrity

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError


SCHEMA_FILES: Mapping[str, str] = {
    integrity.SCHEMA: "result.schema.json",
    integrity.GROUPS_SCHEMA: "groups.schema.json",
}
"""The files of the schemas of single results and of several groups."""

MAX_SHOWN = 60
"""Largest number of characters of a wrong value that a sentence shows."""

REQUIREMENTS: Mapping[str, str] = {
    "type": "be of type",
    "const": "be",
    "enum": "be one of",
    "minimum": "be at least",
    "maximum": "be at most",
    "minItems": "have at least so many items:",
    "maxItems": "have at most so many items:",
    "maxLength": "be no longer than",
    "pattern": "match",
    "not": "not fit",
}
"""What a keyword of JSON Schema requires, to be followed by its value."""


@cache
def result_schema(version: str = integrity.SCHEMA) -> dict[str, Any]:
    """The schema of a result, as a dictionary.

    Parameters
    ----------
    version : one of ``SCHEMA_FILES``; that of a single result by default.

    Examples
    --------
    >>> result_schema()["properties"]["schema"]["const"]
    'tacit-result/2'
    """
    text = files("tacit.results.saved").joinpath(SCHEMA_FILES[version]).read_text(encoding="utf-8")
    made: dict[str, Any] = json.loads(text)
    return made


@cache
def _validator(version: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # a tenth of a second to import

    return Draft202012Validator(result_schema(version))


def check_result(content: Any, version: str = integrity.SCHEMA) -> None:
    """Refuse content that does not fit a schema.

    Parameters
    ----------
    content : what somebody says is a result.
    version : one of ``SCHEMA_FILES``; that of a single result by default. The results of single
        groups in one of several groups are checked apart.

    Raises
    ------
    ValueError : naming the path, the requirement with its bound, and the value.

    Examples
    --------
    >>> check_result([])
    Traceback (most recent call last):
    ...
    ValueError: the result must be of type object, got []
    """
    from jsonschema.exceptions import best_match  # a tenth of a second to import

    error = best_match(_validator(version).iter_errors(content))
    if error is not None:
        path = error.json_path.removeprefix("$").removeprefix(".")
        raise ValueError(f"{path or 'the result'} {_sentence(error)}")


def _sentence(error: ValidationError) -> str:
    """The requirement that a value does not meet, and the value."""
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"must have {', '.join(missing)}"
    bound = error.validator_value
    wanted = " or ".join(bound) if error.validator == "type" and isinstance(bound, list) else bound
    requirement = REQUIREMENTS.get(str(error.validator), f"fit {error.validator}:")
    return f"must {requirement} {wanted}, got {_shown(error.instance)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


MAX_FILE = 32 * 2**20
"""The size in bytes above which a file is not read."""
MAX_INTEGER = 20
"""An integer of more digits is no count of anything."""
CURVES = (
    *("roc", "precision_recall", "reliability", "rates"),
    *("decision_curve", "calibration_curve", "score_distribution", "gain_curve"),
)

ALONE = "only a page or a table takes it, no model card"
OTHERS = {
    integrity.COMPARISON_SCHEMA: f"is a comparison of two models: {ALONE}",
    integrity.GROUPS_SCHEMA: f"has several groups: {ALONE}",
}
"""Files of other commands, by their schema, and why they are no single result."""

Bounds = tuple[float, float]


CLOSE = 1e-6
"""How far numbers may differ that follow from each other."""

ABOUT: Mapping[str, About] = {"interval": "data", "population_interval": "population"}
"""An entry's intervals."""

NO_LIMITS = (None, None)
"""Of a figure that can have any value."""


def estimate_of(entry: Mapping[str, Any]) -> Estimate:
    """The estimate in an entry of a checked result: a figure's, or that of a measure.

    Intervals follow from the errors; those of a measure are taken as stated where they do not. What
    is null or not said is NaN.
    """
    low, high = entry.get("limits", NO_LIMITS)
    intervals = bounds_of(entry, "interval"), bounds_of(entry, "population_interval")
    made = Estimate(
        number(entry["value"]),
        number(entry.get("privacy_error")),
        number(entry.get("sampling_error")),
        number(entry.get("approximation_error", entry.get("cell_error"))),
        number(entry.get("bias", 0.0)),
        entry.get("half_range"),
        (-math.inf if low is None else low, math.inf if high is None else high),
        number(entry.get("laplace_error", 0.0)),
        errors.law_of(entry["draws"]) if "draws" in entry else None,
        threshold=entry.get("threshold"),
        reason=str(entry.get("reason", "")),
    )
    known = made.interval(), made.interval(about="population")
    if "cell_error" not in entry or np.allclose(intervals, known, 1e-9, 1e-12, equal_nan=True):
        return made
    return replace(made, intervals=intervals)


@dataclass(frozen=True)
class Result:
    """A checked result and what it is called in a report.

    Parameters
    ----------
    label : its name among several.
    content : its JSON.
    """

    label: str
    content: Mapping[str, Any]

    @classmethod
    def of(cls, content: Any, label: str) -> Result:
        """Check content that somebody says is a result.

        Raises
        ------
        ValueError : naming the result and the reason, for content that is no result, is of another
            version of the schema, was changed after it was written, or does not fit the schema.

        Examples
        --------
        >>> Result.of({"schema": "tacit-result/0"}, "old.json")
        Traceback (most recent call last):
        ...
        ValueError: old.json has the schema 'tacit-result/0', not tacit-result/2
        """
        if not isinstance(content, dict) or "schema" not in content:
            raise ValueError(f"{label} is no result of tacit: it has no schema")
        version = content["schema"]
        if version in list(OTHERS):
            raise ValueError(f"{label} {OTHERS[version]}")
        if version != integrity.SCHEMA:
            raise ValueError(f"{label} has the schema {repr(version)[:60]}, not {integrity.SCHEMA}")
        _check_fingerprint(content, label)
        with _following(version, label):
            check_result(content)
            _check_lengths(content)
            _check_estimates(content, "")
            check_written(content["protocol"])
        return cls(label, content)

    @property
    def figure(self) -> Figure:
        """What was estimated."""
        return AUC_FIGURE if "auc" in self.content else Figure(self.content["figure"])

    @property
    def estimate(self) -> Estimate:
        """The estimated figure."""
        return estimate_of(self.content.get("auc") or self.content["estimate"])

    @property
    def exact(self) -> float:
        """The exact figure, which is not private; NaN where the file has none."""
        return number(self.content.get("exact"))


def half_of(content: Mapping[str, Any]) -> float | None:
    """The score at which a result's ``at_half`` rates are, that of the probability 1/2.

    None where scores state no probability. A result without a unit has probabilities.
    """
    return HALVES.get(content.get("unit", units.PROBABILITY))


def bounds_of(entry: Mapping[str, Any], name: str) -> Interval:
    """An interval of an entry; NaN where it has none."""
    low, high = entry.get(name, (None, None))
    return Interval(number(low), number(high))


def number(value: float | None) -> float:
    """The number of a JSON entry, NaN for null."""
    return math.nan if value is None else float(value)


def parsed(path: str) -> Any:
    """The JSON of a file, strict and not too large.

    Raises
    ------
    OSError : where it cannot be read.
    ValueError : where it is larger than 32 MiB, or no strict JSON.
    """
    with Path(path).open("rb") as file:
        raw = file.read(MAX_FILE + 1)
    if len(raw) > MAX_FILE:
        raise ValueError(f"{path} is larger than {MAX_FILE // 2**20} MiB")
    try:
        return json.loads(
            raw.decode("utf-8-sig"),
            parse_int=_whole,
            parse_constant=_refuse_constant,
            object_pairs_hook=_no_twins,
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON that can be read: {error}") from None


def _check_fingerprint(content: Mapping[str, Any], label: str) -> None:
    """Refuse content that does not fit its own fingerprint."""
    try:
        # half of a pair of surrogates is in no text that can be written
        json.dumps(content, ensure_ascii=False).encode("utf-8")
        computed = integrity.fingerprint(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{label} is no result of tacit: {error}") from None
    if content.get("fingerprint") != computed:
        raise ValueError(
            f"{label} was changed after it was written: its content does not fit its fingerprint"
        )


@contextmanager
def _following(version: str, label: str) -> Iterator[None]:
    """Say of what is refused here whose content it is, and which schema it does not follow."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{label} does not follow the schema {version}: {error}") from None


def _whole(text: str) -> int:
    if len(text) > MAX_INTEGER:
        raise ValueError(f"an integer has {len(text)} digits")
    return int(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


def _no_twins(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    listed = list(pairs)
    made = dict(listed)
    if len(made) < len(listed):
        raise ValueError("an entry appears twice")
    return made


def _check_estimates(content: Any, path: str) -> None:
    """Refuse estimates whose entries contradict each other, wherever they stand."""
    if isinstance(content, list) and content and isinstance(content[0], dict):
        for place, each in enumerate(content):
            _check_estimates(each, f"{path}[{place}]")
    if not isinstance(content, dict):
        return
    if "value" in content and "privacy_error" in content:
        try:
            _check_estimate(content)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path.removeprefix('.')}: {error}") from None
    for name, each in content.items():
        _check_estimates(each, f"{path}.{name}")


def _check_estimate(entry: Mapping[str, Any]) -> None:
    """Refuse limits and intervals that do not ascend, and intervals that errors do not give.

    The errors of a measure need not give its interval; those of another figure do, but for what the
    last digits of other machines' numbers change.
    """
    made = estimate_of(entry)
    low, high = made.limits
    if not low <= high or (made.given and not low - CLOSE <= made.value <= high + CLOSE):
        raise ValueError(
            f"the value must lie within its limits, got {made.value} and {low}, {high}"
        )
    for name, about in ABOUT.items():
        stated, known = bounds_of(entry, name), made.interval(about=about)
        if stated.low > stated.high:
            raise ValueError(f"{name} must ascend, got {list(stated)}")
        follows = np.allclose(stated, known, CLOSE, CLOSE, equal_nan=True)
        if name in entry and "cell_error" not in entry and not follows:
            raise ValueError(f"{name} must follow from the errors, got {list(stated)}")
    if "cell_error" in entry and "approximation_error" in entry:
        raise ValueError("an entry is of a figure or of a measure, got both")


def _check_lengths(content: Mapping[str, Any]) -> None:
    """Refuse curves whose columns do not belong together."""
    banded = content.get("curves", {})
    known = {name: content.get(name, {}) for name in CURVES} | banded
    for name, curve in known.items():
        axes = ("across", "up") if name in banded else ()
        columns = {key: len(values) for key, values in curve.items() if key not in axes}
        if len(set(columns.values())) > 1:
            raise ValueError(f"the columns of {name} must have one length, got {columns}")
    if "participants" in content and len(content["participants"]) != content["clients"]:
        entry_count = len(content["participants"])
        raise ValueError(f"participants must have one entry a client, got {entry_count}")


DIFFERENCE = "difference of the AUCs"
"""What the difference of two models is called where a result names its figure."""


@dataclass(frozen=True)
class ComparedModels:
    """Two models on the same records.

    Parameters
    ----------
    label : the file's name among several.
    difference : the first model's AUC less the second's, with everything about the run.
    models : the result of each, which is called by its name.
    """

    label: str
    difference: Result
    models: tuple[Result, Result]


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
    result: Result | None


@dataclass(frozen=True)
class GroupedResult:
    """Every public group separately.

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


Document = Result | ComparedModels | GroupedResult
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
    return Result.of(content, label)


Read = TypeVar("Read", bound=Document)


def read_documents(paths: Sequence[str], check: Callable[[Any, str], Read]) -> list[Read]:
    """Read files of results; each is called by its file's name without the ending.

    Parameters
    ----------
    paths : the files; where two have one name, each is called by its path.
    check : ``document_of`` for all that a report can show, ``Result.of`` for single results alone.

    Raises
    ------
    OSError : where a file cannot be read.
    ValueError : where one is larger than 32 MiB, no strict JSON, refused by the check, or changed.
    """
    stems = [Path(path).stem for path in paths]
    labels = stems if len(set(stems)) == len(stems) else paths
    return [
        replace(check(parsed(path), path), label=label)
        for path, label in zip(paths, labels, strict=True)
    ]


def _compared(content: Mapping[str, Any], label: str) -> ComparedModels:
    """A comparison: each of its figures fits where a result has one."""
    _check_fingerprint(content, label)
    entries = {name: content.get(name) for name in ("difference", "first", "second")}
    left_out = {*entries, "fingerprint"}
    run = {name: value for name, value in content.items() if name not in left_out}
    run |= {"schema": integrity.SCHEMA, "figure": DIFFERENCE, "estimate": entries["difference"]}
    with _following(integrity.COMPARISON_SCHEMA, label):
        models = [_model(run, entries[name], name) for name in ("first", "second")]
    difference = Result.of(integrity.with_fingerprint(run), label)
    return ComparedModels(label, difference, (models[0], models[1]))


def _model(run: Mapping[str, Any], entry: Any, name: str) -> Result:
    """The result of one model of a run."""
    given = entry if isinstance(entry, dict) else {}
    exact = {"exact": given["exact"]} if "exact" in given else {}
    content = integrity.with_fingerprint({**run, "auc": entry, **exact})
    check_result(content)
    called = given.get("name", name)
    return Result((called if isinstance(called, str) else name)[:200], content)


def _grouped(content: Mapping[str, Any], label: str) -> GroupedResult:
    """The groups, each with its checked result."""
    _check_fingerprint(content, label)
    with _following(integrity.GROUPS_SCHEMA, label):
        check_result(content, integrity.GROUPS_SCHEMA)
    groups = tuple(_group(entry, label) for entry in content["groups"])
    return GroupedResult(label, content, groups)


def _group(entry: Mapping[str, Any], label: str) -> PublicGroup:
    result, name = entry["result"], entry["name"]
    public_records, counted = (number(entry["records"]), number(entry["estimated_records"]))
    return PublicGroup(
        name,
        public_records if math.isfinite(public_records) else counted,
        math.isfinite(public_records),
        entry["reason"] or "",
        None if result is None else Result.of(result, f"{label}, group {name}"),
    )
