"""A sum of whole numbers that follow from each record's class and score, as pieces of cubics.

An engine finds the piece of a score, evaluates one cubic, rounds it to a whole number and adds up:
whole numbers add up to the same sum in every order.

The least scores at which a rising map of scores reaches given values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.metrics.cells.score_distribution import ScoreDistribution
from tacit.metrics.cells.score_scale import OpenEnd, ScoreScale, signed_codes, signed_scores

LARGEST = float(np.finfo(np.float64).max)


def least_scores(
    rising: Callable[[Floats], Floats],
    levels: Floats,
    low: float = -LARGEST,
    high: float = LARGEST,
) -> Floats:
    """The least double whose image reaches each level, shape (B,): plus infinity where none does.

    So ``score >= least`` says the same of a score as ``rising(score) >= level``, to the last bit,
    for any map that does not fall, and an engine needs neither the map nor a logarithm.

    Parameters
    ----------
    rising : a map that does not fall, of arrays of shape (B,).
    levels : shape (B,).
    low, high : the least and the largest score there can be; no score is below the first.

    Examples
    --------
    >>> least_scores(lambda score: score / 100, np.array([0.5, 2.0]), 0.0, 100.0).tolist()
    [50.0, inf]
    """
    ends = signed_codes([low, high])
    below = np.full(levels.shape, ends[0] - 1, dtype=np.int64)
    reached = np.full(levels.shape, ends[1] + 1, dtype=np.int64)
    # differences of codes of different signs would overflow, and halves do not
    while np.any(open_still := below + 1 < reached):
        middle = (below >> 1) + (reached >> 1) + (below & reached & 1)
        middle = np.where(open_still, middle, np.clip(reached, *ends))
        enough = rising(signed_scores(middle)) >= levels
        reached = np.where(open_still & enough, middle, reached)
        below = np.where(open_still & ~enough, middle, below)
    return np.where(reached > ends[1], np.inf, signed_scores(np.minimum(reached, ends[1])))


@dataclass(frozen=True, eq=False)
class ScorePieces:
    """A whole number for every class and score: a rounded cubic in each piece of the scores.

    Parameters
    ----------
    edges : the inner edges of B pieces, ascending, shape (B-1,).
    origins : what is subtracted from a score of each piece, shape (B,).
    coefficients : of the powers 3 to 0 of the difference, negatives' and then positives', shape
        (2, 4, B).
    least, largest : what the whole numbers are clipped to.
    open_ends : of the scale (``ScoreScale``): beyond, the part of the cell is in the score's place.
    """

    edges: Floats
    origins: Floats
    coefficients: Floats
    least: int
    largest: int
    open_ends: tuple[OpenEnd | None, OpenEnd | None] = (None, None)


@dataclass(frozen=True, eq=False)
class ClassFunctions:
    """What is summed over positions: ``a F + b`` of the distribution function of the other class.

    Parameters
    ----------
    functions : of the positions of negatives and of positives, on the same cells of [0, 1]. F of
        the positives is summed over negatives, that of the negatives over positives.
    factors, offsets : a and b of negatives and of positives, shape (2,).
    least, largest : what the rounded numbers are clipped to.
    """

    functions: tuple[ScoreDistribution, ScoreDistribution]
    factors: Floats
    offsets: Floats
    least: int
    largest: int

    def on(self, scale: ScoreScale) -> ScorePieces | None:
        """The same as pieces of scores; None where a coefficient is no number.

        A cubic of a position, which is a line of a score, is a cubic of the score. The pieces cover
        all scores there can be, and follow from public values alone: so a record's whole number
        does not depend on other records, in its last unit neither, and a neighbour moves the sum by
        what one record adds.

        Parameters
        ----------
        scale : gives the positions.
        """
        inner = self.functions[0].edges
        low = -LARGEST if scale.low is None else scale.low
        high = LARGEST if scale.high is None else scale.high
        with np.errstate(over="ignore"):
            edges = np.union1d(scale.knots, least_scores(scale, inner, low, high))
            edges = edges[(edges > low) & (edges <= high)]
            lefts = np.concatenate(([low], edges))
            origins, positions = _starts_of_pieces(scale, lefts)
            cells, _ = self.functions[0].places(scale(lefts))
        starts, widths = _cells_of_unit(inner)
        with np.errstate(over="ignore", invalid="ignore"):
            # the part of a cell below a position is slope * difference + shift
            slope = scale.slopes(lefts) / widths[cells]
            shift = (positions - starts[cells]) / widths[cells]
            made = np.stack([self._cubics(label, cells, slope, shift) for label in (0, 1)])
        if not np.all(np.isfinite(made)):
            return None
        return ScorePieces(edges, origins, made, self.least, self.largest, scale.open_ends)

    def _cubics(self, label: int, cells: Integers, slope: Floats, shift: Floats) -> Floats:
        """Coefficients of the powers 3 to 0 of a difference of scores, shape (4, B)."""
        third, second, first, start = self.functions[1 - label].coefficients[:, cells]
        # Taylor's formula at the shift, with the line's slope for each power
        cubic = np.stack(
            [
                slope**3 * third,
                slope**2 * (second + shift * 3 * third),
                slope * (first + shift * (2 * second + shift * 3 * third)),
                start + shift * (first + shift * (second + shift * third)),
            ]
        )
        made = self.factors[label] * cubic
        made[3] += self.offsets[label]
        return np.asarray(made)


def _starts_of_pieces(scale: ScoreScale, lefts: Floats) -> tuple[Floats, Floats]:
    """What is subtracted from scores of each piece, and the position of that, shape (B,) each.

    A piece starts at its least score, and an open cell at the part 0: differences stay small, and
    so does what rounding does to a cubic of them.
    """
    below, above = scale.open_ends
    is_below = np.full(lefts.shape, False) if below is None else lefts < below[0]
    is_above = np.full(lefts.shape, False) if above is None else lefts >= above[0]
    origins = np.where(is_below | is_above, 0.0, lefts)
    last = (scale.cells - 1) / scale.cells
    return origins, np.where(is_below, 0.0, np.where(is_above, last, scale(lefts)))


def _cells_of_unit(inner: Floats) -> tuple[Floats, Floats]:
    """Where the cells of [0, 1] between inner edges start, and their widths, shape (B,) each."""
    knots = np.concatenate(([0.0], inner, [1.0]))
    return knots[:-1], np.diff(knots)
