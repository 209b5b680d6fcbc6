"""Units of the scores in one owner's files: as named, or detected where none is named.

Maps scores by what is public: bounds, or names of units.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.scales import files_apart
from tacit.data.units import (
    LOG_ODDS,
    PERCENT,
    PROBABILITY,
    UNITS,
    LinearMap,
    check_unit,
    conversion,
    converted,
    is_exact,
)


def rescale(clients: Clients, low: float, high: float) -> Clients:
    """The clients with every score mapped from [low, high] to [0, 1].

    The bounds must be public: chosen without looking at the data, since the data's own minimum and
    maximum are two records' scores.

    Raises
    ------
    DataError : for bounds that do not ascend or are too far apart, and for a score outside them,
        naming client and row.

    Examples
    --------
    >>> clients = Clients.from_arrays([-5.0, 0.0, 5.0], [0, 1, 1])
    >>> rescale(clients, -5.0, 5.0).scores.tolist()
    [0.0, 0.5, 1.0]
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise DataError(f"the bounds of scores must be finite and ascend, got {low} and {high}")
    if math.isinf(high - low):
        raise DataError(
            f"the bounds of scores must be less than 1.8e308 apart, got {low} and {high}"
        )
    wrong = clients.outlier(low, high)
    if wrong is not None:
        raise DataError(
            f"scores must be from {low} to {high}, the public bounds, got {wrong[0]} in {wrong[1]}"
            "; take wider bounds, or name the unit log-odds or real, which need no bounds"
        )
    return clients.rescored(LinearMap(low, high - low))


def in_unit(clients: Clients, target: str) -> Clients:
    """The clients with their scores converted from the unit that they name to another.

    Raises
    ------
    DataError : for clients that name no unit, or one that cannot be converted.

    Examples
    --------
    >>> hospital = Clients.from_arrays([20.0, 90.0], [0, 1], unit="percent")
    >>> in_unit(hospital, "probability").scores
    array([0.2, 0.9])
    """
    if clients.unit is None:
        raise DataError(f"scores without a named unit cannot be converted to {target}")
    unit = clients.unit
    converted(np.zeros(0), unit, target)  # refuses units that cannot be converted
    return clients.rescored(conversion(unit, target), target, is_exact(unit, target))


Units = str | Mapping[str, str] | None
"""One unit for all files, or a unit for each of some files by its path as given."""

REMEDY = "name every file's unit: --unit FILE=UNIT, in Python unit={{FILE: UNIT}}; {units}"


class ScaleWarning(UserWarning):
    """Files whose scores may be of another scale than they are taken for."""


Kind = TypeVar("Kind")

ByFile = str | Mapping[str, str]
"""A word for all files, or a mapping from paths as given; files that it leaves out have the usual
one."""


def by_file(
    sources: Sequence[str], given: Kind | Mapping[str, Kind], usual: Kind, called: str
) -> tuple[Kind, ...]:
    """What was named for every file.

    Parameters
    ----------
    sources : the files' paths as given.
    given : for all of them, or a mapping from paths.
    usual : for files that a mapping leaves out.
    called : what is named, for a refusal.

    Raises
    ------
    DataError : for a path that is not among the files.

    Examples
    --------
    >>> by_file(["north.csv", "south.csv"], {"north.csv": "risk"}, "score", "a column of scores")
    ('risk', 'score')
    """
    if not isinstance(given, Mapping):
        return (given,) * len(sources)
    named = {os.fspath(path): each for path, each in given.items()}
    for path in named:
        if path not in sources:
            raise DataError(f"{called} was named for {path}, which is none of the files")
    return tuple(named.get(source, usual) for source in sources)


def units_of(sources: Sequence[str], unit: Units) -> tuple[str | None, ...]:
    """The unit of every file; None throughout where none is named.

    Parameters
    ----------
    sources : the files' paths as given.
    unit : what was named. Files that a mapping leaves out hold probabilities.

    Raises
    ------
    DataError : for another word, and for a path that is not among the files.

    Examples
    --------
    >>> units_of(["north.csv", "south.csv"], {"north.csv": "percent"})
    ('percent', 'probability')
    """
    if unit is None:
        return (None,) * len(sources)
    for word in unit.values() if isinstance(unit, Mapping) else (unit,):
        check_unit(word)
    return by_file(sources, unit, PROBABILITY, "a unit")


def in_one_unit(parts: Sequence[Clients], units: Sequence[str | None]) -> list[Clients]:
    """Every file's clients in one unit: the one that all have, or else probabilities.

    Raises
    ------
    DataError : for a score that cannot be of its unit, and for units that do not go together.
    """
    named = [part.in_named_unit(unit) for part, unit in zip(parts, units, strict=True)]
    if len(set(units)) == 1:
        return named
    return [in_unit(part, PROBABILITY) for part in named]


def check_scales(
    sources: Sequence[str], parts: Sequence[Clients], units: Sequence[str | None]
) -> None:
    """Refuse files that are evidently of different scales, and warn of doubtful ones.

    Where no unit is named, files are compared with each other; a named unit is believed, with a
    warning where all scores of a file lie in [0, 1] and are said to be percent or log-odds.

    Raises
    ------
    DataError : naming the files, their ranges and the remedy.

    Warns
    -----
    ScaleWarning : for a doubt.
    """
    for source, part, unit in zip(sources, parts, units, strict=True):
        scores = part.all_scores
        if unit in (PERCENT, LOG_ODDS) and scores.min() >= 0 and scores.max() <= 1:
            _warn(f"{source} is read as {unit}, and all of its scores are from 0 to 1")
    if len(parts) == 1 or None not in units:
        return
    of_files = [part.all_scores for part in parts]
    ends = np.cumsum([0, *(each.size for each in of_files)])
    difference, is_evident = files_apart(Ragged(np.concatenate(of_files), ends.astype(np.int64)))
    if difference is None:
        return
    remedy = REMEDY.format(units=", ".join(UNITS))
    sentence = f"{difference.sentence(tuple(sources))}; {remedy}"
    if is_evident:
        raise DataError(sentence)
    _warn(sentence)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, ScaleWarning, stacklevel=6)
