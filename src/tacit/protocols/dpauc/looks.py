"""How two rounds divide epsilon: looks at the histogram, and then one number a client.

A look is a release of both classes' counts in equal cells of positions, and of the class totals,
for a part of epsilon. After the first look, whose part is fixed, the server knows about how large
the classes are. By these noisy sizes alone it takes a second look for a part of ``SECOND_LOOKS``
or none, and then asks for the number with all the rest; or it spends all the rest on a histogram,
where the classes are too small for two rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.curves import (
    cell_influences,
    crowding_variance,
    curvature_error,
    placement_variance,
)
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.protocols.shared.levels import CellNoise, Levels, best_levels
from tacit.results.class_sizes import MIN_CLASS_SIZE_IN_ERRORS

LOOK_CELLS = (48, 64)
"""Numbers of cells of a look, where none is given: more of them hide less and are noisier."""

FINE_CLIENTS = 20
"""Largest number of clients over epsilon squared with which looks have the finer cells."""

FIRST_LOOK = 0.12
"""Part of epsilon for the first look, where the number's part is not given."""

SECOND_LOOKS = (0.05, 0.1, 0.2, 0.3, 0.4)
"""Parts of epsilon between which the server chooses for a second look, beside none at all."""

TOTALS_PART = 0.2
"""Part of a look's epsilon for the class totals; with none their noise would bias the AUC."""

ASSUMED_NOISE_GAIN = 1.5
"""Least ratio of a class to six of its errors that is planned for: the sizes are noisy."""


@dataclass(frozen=True)
class Parts:
    """The parts of epsilon that a party answers to, all fixed by the settings.

    Parameters
    ----------
    looks : what a look may cost.
    closing : what a histogram costs that ends the run after the first look; None where none may.
    numbers : what the number may cost.
    """

    looks: tuple[float, ...]
    closing: float | None
    numbers: tuple[float, ...]

    @classmethod
    def of(cls, second_round: float | None) -> Parts:
        """The menu of a setting: None leaves the choice to the noisy sizes.

        Examples
        --------
        >>> Parts.of(0.75)
        Parts(looks=(0.25,), closing=None, numbers=(0.75,))
        """
        if second_round is not None:
            return cls((1 - second_round,), None, (second_round,))
        rest = 1 - FIRST_LOOK
        return cls(
            (FIRST_LOOK, *SECOND_LOOKS), rest, (rest, *(rest - look for look in SECOND_LOOKS))
        )


def look_cells(clients: int, epsilon: float) -> int:
    """The number of cells of a look, from public figures only.

    Examples
    --------
    >>> look_cells(10, 1.0), look_cells(1000, 1.0)
    (64, 48)
    """
    return LOOK_CELLS[clients <= FINE_CLIENTS * epsilon**2]


def look_levels(cells: int, epsilon: float) -> Levels:
    """A look's cells, and one group of all cells, which is the class total."""
    return Levels(cells, 1, (1 - TOTALS_PART) * epsilon, TOTALS_PART * epsilon)


@dataclass(frozen=True)
class Choice:
    """What follows the first look.

    Parameters
    ----------
    look : the part of a second look; 0 for none.
    number : the part of the number; 0 where the rest goes to a closing histogram.
    """

    look: float
    number: float


@dataclass(frozen=True, eq=False)
class Outlook:
    """From what the choice is made: public settings, and the noisy first look.

    Parameters
    ----------
    clients, epsilon, distance : K, the whole budget, and counts a neighbour changes.
    counts : consistent noisy counts of positives and negatives, shape (2, B).
    reach : how far a neighbour moves the number.
    """

    clients: int
    epsilon: float
    distance: float
    counts: Floats
    reach: float

    @property
    def sizes(self) -> Floats:
        """The noisy P and N."""
        return np.asarray(self.counts.sum(axis=-1))

    def choice(self) -> Choice:
        """The part of the number with the least predicted variance of the AUC.

        Parts after which a class would not show are left out.
        """
        rest, smaller = 1 - FIRST_LOOK, float(self.sizes.min())
        if smaller <= 0:
            return Choice(rest, 0.0)
        options = [(self.closing_variance(rest), Choice(rest, 0.0))]
        for look in (0.0, *SECOND_LOOKS):
            noise = self.noise(look)
            if smaller > ASSUMED_NOISE_GAIN * MIN_CLASS_SIZE_IN_ERRORS * math.sqrt(noise.total):
                options.append((self.variance(noise, rest - look), Choice(look, rest - look)))
        return min(options, key=lambda option: option[0])[1]

    def noise(self, look: float) -> CellNoise:
        """The noise after a second look."""
        first, second = (
            look_levels(self.counts.shape[-1], part * self.epsilon).noise(
                self.clients, self.distance
            )
            for part in (FIRST_LOOK, look or FIRST_LOOK)
        )
        return combined_noise(first, second) if look else first

    def variance(self, noise: CellNoise, number: float) -> float:
        """Of the AUC: the number's ``2 D^2 K / (f epsilon m)^2``, and what the looks leave."""
        spent = number * self.epsilon * float(self.sizes.min())
        return 2 * self.reach**2 * self.clients / spent**2 + left_variance(self.counts, noise)

    def closing_variance(self, part: float) -> float:
        """Of the AUC by a histogram: influences that fall evenly, the product of the noises, and
        what the cells hide.
        """
        cells = self.counts.shape[-1]
        levels = best_levels(cells, part * self.epsilon, self.distance)
        noise = levels.noise(self.clients, self.distance)
        falling = 0.5 - (np.arange(cells) + 0.5) / cells
        first = float(noise.variance_of(falling)) * float(np.sum(1 / self.sizes**2))
        filled = np.maximum(self.counts, 0.0)
        hidden = placement_variance(*filled) + crowding_variance(*filled)
        hidden = hidden + curvature_error(*filled) ** 2
        return first + noise.total**2 / 2 / float(self.sizes.prod()) ** 2 + float(hidden)


def left_variance(counts: Floats, noise: CellNoise) -> float:
    """What the noise of looks leaves in the AUC by both rounds: products of two errors.

    One product is that of both functions' errors, ``integral of dF- d(dF+)``. The others are those
    of a class size's relative error with that of its function.

    Parameters
    ----------
    counts : consistent counts of positives and negatives, shape (2, B).
    noise : in each class's cells.
    """
    sizes = np.maximum(counts.sum(axis=-1), 1.0)
    by_class = cell_influences(counts[0], counts[1])
    relative = sum(
        noise.total / size**2 * float(noise.variance_of(np.nan_to_num(each)))
        for size, each in zip(sizes, by_class, strict=True)
    )
    return relative + _product_variance(counts, noise) / float(sizes.prod()) ** 2


def _product_variance(counts: Floats, noise: CellNoise) -> float:
    """The variance of ``integral of dF- d(dF+)``, times ``(P N)^2``.

    With S the sums over lower cells and half a cell, and f the classes' fractions in cells, noise z
    moves F- by ``(S - (S f-) 1') z- / N`` and the steps of F+ by ``(I - f+ 1') z+ / P``. Their
    product is a form ``z-' Q z+``, of variance ``trace(C Q C Q')``, C the covariance of a class's
    noise.
    """
    cells = counts.shape[-1]
    ones, even = np.ones(cells), np.full((cells, cells), 1 / cells)
    covariance = noise.cells[0] * (np.eye(cells) - even) + noise.total / cells * even
    filled = np.maximum(counts, 0.0)
    steps, below = filled / np.maximum(filled.sum(axis=-1, keepdims=True), 1.0), np.tri(cells, k=-1)
    sums = below + np.eye(cells) / 2
    by_negatives = sums - np.outer(sums @ steps[1], ones)
    form = by_negatives.T @ (np.eye(cells) - np.outer(steps[0], ones))
    return float(np.sum((covariance @ form @ covariance) * form))


@dataclass(frozen=True, eq=False)
class Counts:
    """The noisy counts of one look, or of several together.

    Parameters
    ----------
    cells : of positives and negatives, summed over clients, shape (..., 2, B).
    totals : of both classes, shape (..., 2, 1).
    noise : the noise in each class's cells and total.
    """

    cells: Floats
    totals: Floats
    noise: CellNoise

    @property
    def consistent(self) -> Floats:
        """The cells that agree best with both."""
        return self.noise.reconciled(self.cells, self.totals)

    def with_look(self, other: Counts) -> Counts:
        """The inverse-variance means with another look at the same cells."""
        own, its = self.noise, other.noise
        by_cells = float(its.cells[0] / (own.cells[0] + its.cells[0]))
        by_totals = its.group / (own.group + its.group)
        return Counts(
            by_cells * self.cells + (1 - by_cells) * other.cells,
            by_totals * self.totals + (1 - by_totals) * other.totals,
            combined_noise(own, its),
        )


def combined_noise(first: CellNoise, second: CellNoise) -> CellNoise:
    """The noise of the inverse-variance means of two looks at the same cells."""
    cells = 1 / (1 / first.cells + 1 / second.cells)
    return CellNoise(cells, 1 / (1 / first.group + 1 / second.group), first.starts)


def number_variance(clients: int, units: int, epsilon: float) -> float:
    """Of the noise in a sum over clients of numbers in units, with their rounding."""
    return clients * (float(discrete_laplace_variance(units / epsilon)) + 1 / 12)
