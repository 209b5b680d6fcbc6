"""Units of the scores in one owner's files: as named, or detected where none is named."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.scaling.rescaling import in_unit
from tacit.data.scaling.scales import files_apart
from tacit.data.scaling.units import LOG_ODDS, PERCENT, PROBABILITY, UNITS, check_unit

Units = str | Mapping[str, str] | None
"""One unit for all files, or a unit for each of some files by its path as given."""

REMEDY = "name every file's unit: --unit FILE=UNIT, in Python unit={{FILE: UNIT}}; {units}"


class ScaleWarning(UserWarning):
    """Files whose scores may be of another scale than they are taken for."""


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
    named = dict.fromkeys(sources, unit) if isinstance(unit, str) else dict(unit)
    named = {os.fspath(path): word for path, word in named.items()}
    for path, word in named.items():
        try:
            check_unit(word)
        except ValueError as error:
            raise DataError(str(error)) from None
        if path not in sources:
            raise DataError(f"a unit was named for {path}, which is none of the files")
    return tuple(named.get(source, PROBABILITY) for source in sources)


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
    by_file = [part.all_scores for part in parts]
    ends = np.cumsum([0, *(scores.size for scores in by_file)])
    difference, is_evident = files_apart(Ragged(np.concatenate(by_file), ends.astype(np.int64)))
    if difference is None:
        return
    remedy = REMEDY.format(units=", ".join(UNITS))
    sentence = f"{difference.sentence(tuple(sources))}; {remedy}"
    if is_evident:
        raise DataError(sentence)
    _warn(sentence)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, ScaleWarning, stacklevel=6)
