"""Scales of scores: units of one owner's files, public maps, and evident differences.

Files are read in units as named, or detected where none is named. Differences are for those that
may see the scores: the owner of several files, or a server if scores are public. Between clients
whose scores are private, names of units are compared instead (``units``).
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.data.errors import DataError, DataWarning
from tacit.data.ragged import Ragged, StoredScores, ascending_order
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

ROUNDING = 1e-6
"""Largest distance of a probability beyond 0 or 1 that rounding explains."""
EVIDENT_FRACTION = 0.05
"""Fraction of scores outside [0, 1] from which a scale is evidently another one. A single wrong
record is no scale; log-odds and percent have most or many scores there."""
MAX_FALSE_ALARM = 1e-3
"""Probability of an alarm where all clients' scores are draws from one distribution, at most."""
MIN_SCORES = 20
"""Least number of scores of a client whose width is compared."""
MAX_WIDTH_RATIO = 8.0
"""Ratio of widths from which two scales are evidently different: percent are some 15 times as wide
as log-odds."""
WIDTH_FRACTIONS = (0.05, 0.95)
"""The ends of a width, as fractions of a client's records."""
MAX_LISTED = 3


@dataclass(frozen=True)
class ScaleDifference:
    """Two groups of clients whose scores seem to be of different scales.

    Parameters
    ----------
    usual : the indices of those with the usual scale: [0, 1], where some have it.
    unusual : the indices of the others.
    usual_range, unusual_range : the least and the largest score of each group.
    """

    usual: tuple[int, ...]
    unusual: tuple[int, ...]
    usual_range: tuple[float, float]
    unusual_range: tuple[float, float]

    def sentence(self, names: tuple[str, ...]) -> str:
        """The difference as a sentence for a reader.

        Parameters
        ----------
        names : what clients or files are called, by index; where empty they are numbered.
        """
        usual, unusual = (_listed(group, names) for group in (self.usual, self.unusual))
        (low, high), (least, largest) = self.usual_range, self.unusual_range
        return (
            f"scores seem to be of different scales: those of {unusual} are from {least:g} to "
            f"{largest:g}, those of {usual} from {low:g} to {high:g}"
        )


def files_apart(scores: Ragged[np.float64]) -> tuple[ScaleDifference | None, bool]:
    """Which files of one owner differ in scale, and whether that is evident.

    Some files lie within [0, 1], and others have scores outside: it is evident where at least
    ``EVIDENT_SHARE`` of one of them lie outside. Where all have scores outside, widths that are far
    apart are reported, and never as evident. Files that all lie within [0, 1] are never reported.
    """
    fractions = _fractions_outside(scores)
    beyond = fractions > 0
    if beyond.any() and not beyond.all():
        return _difference(scores, ~beyond, beyond), bool((fractions >= EVIDENT_FRACTION).any())
    return _widths_apart(scores, beyond), False


def clients_apart(scores: Ragged[np.float64]) -> ScaleDifference | None:
    """Which clients differ evidently in scale, where a server sees all scores.

    Some clients lie within [0, 1], and others have at least ``EVIDENT_SHARE`` of their scores
    outside. That is reported where chance does not explain how many lie within. Where all have
    scores outside, widths that are far apart are reported.
    """
    fractions = _fractions_outside(scores)
    within, beyond = fractions == 0, fractions >= EVIDENT_FRACTION
    if not beyond.any():
        return None
    if not within.any():
        return _widths_apart(scores, beyond)
    if _chance_of_within(fractions, np.diff(scores.offsets)) >= MAX_FALSE_ALARM:
        return None
    return _difference(scores, within, beyond)


def _chance_of_within(fractions: NDArray[np.float64], sizes: NDArray[np.int64]) -> float:
    """A bound on the probability that chance puts this many clients within [0, 1].

    Were all records dealt out to the clients at random, a client of n records would be within with
    a probability of at most ``f**n``, f the fraction of all records within (a hypergeometric draw
    has fewer than a binomial one). Such events are negatively associated (Joag-Dev and Proschan
    1983), so the number t of them, of which E are expected, has Chernoff's tail: ``exp(-E) (e E /
    t)**t`` for t above E (1952).
    """
    fraction = 1.0 - float(np.average(fractions, weights=sizes))
    expected = float(np.sum(fraction ** sizes.astype(np.float64)))
    within_count = int(np.count_nonzero(fractions == 0))
    if within_count <= expected:
        return 1.0
    if expected == 0:
        return 0.0
    return float(np.exp(within_count - expected + within_count * np.log(expected / within_count)))


def _fractions_outside(scores: Ragged[np.float64]) -> NDArray[np.float64]:
    """Every client's fraction of scores outside [0, 1], shape (K,)."""
    if isinstance(scores, StoredScores):
        return scores.ranges.outside / scores.sizes
    wrong = (scores.values < -ROUNDING) | (scores.values > 1 + ROUNDING)
    counts = np.add.reduceat(wrong, scores.offsets[:-1], dtype=np.int64)
    return counts / np.diff(scores.offsets)


def _widths_apart(
    scores: Ragged[np.float64], compared: NDArray[np.bool_]
) -> ScaleDifference | None:
    """Clients whose scores vary far more, or far less, than those of the others."""
    compared = compared & (np.diff(scores.offsets) >= MIN_SCORES)
    if compared.sum() < 2:
        return None
    widths = _widths(scores)
    least, largest = widths[compared].min(), widths[compared].max()
    if largest <= MAX_WIDTH_RATIO * least:
        return None
    wide = compared & (widths > np.sqrt(least * largest))
    few_are_wide = 2 * wide.sum() <= compared.sum()
    unusual = wide if few_are_wide else compared & ~wide
    return _difference(scores, compared & ~unusual, unusual)


def _widths(scores: Ragged[np.float64]) -> NDArray[np.float64]:
    """From each client's 5th to its 95th percentile, shape (K,)."""
    if isinstance(scores, StoredScores):
        return scores.ranges.widths
    sizes = scores.sizes
    ordered = scores.values[ascending_order(scores.values, sizes)]
    low, high = ((fraction * (sizes - 1)).astype(np.int64) for fraction in WIDTH_FRACTIONS)
    starts = scores.offsets[:-1]
    return ordered[starts + high] - ordered[starts + low]


def _difference(
    scores: Ragged[np.float64], usual: NDArray[np.bool_], unusual: NDArray[np.bool_]
) -> ScaleDifference:
    low, high = scores.minimum(), scores.maximum()
    groups = [np.flatnonzero(group) for group in (usual, unusual)]
    ranges = [(float(low[group].min()), float(high[group].max())) for group in groups]
    indices = [tuple(int(index) for index in group) for group in groups]
    return ScaleDifference(indices[0], indices[1], ranges[0], ranges[1])


def _listed(indices: tuple[int, ...], names: tuple[str, ...]) -> str:
    called = [names[index] if names else f"client {index}" for index in indices[:MAX_LISTED]]
    more = len(indices) - MAX_LISTED
    return ", ".join(called) + (f" and {more} others" if more > 0 else "")


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


class ScaleWarning(DataWarning):
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

    Of records that are not in memory, the first batch is looked at. Where no unit is named, files
    are compared with each other; a named unit is believed, with a
    warning where all scores of a file lie in [0, 1] and are said to be percent or log-odds.

    Raises
    ------
    DataError : naming the files, their ranges and the remedy.

    Warns
    -----
    ScaleWarning : for a doubt.
    """
    of_files = [next(part.batches()).all_scores for part in parts]
    for source, scores, unit in zip(sources, of_files, units, strict=True):
        if unit in (PERCENT, LOG_ODDS) and scores.min() >= 0 and scores.max() <= 1:
            _warn(f"{source} is read as {unit}, and all of its scores are from 0 to 1")
    if len(parts) == 1 or None not in units:
        return
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
