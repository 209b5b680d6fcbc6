"""What follows the looks so far: another look, the number, or a histogram for all the rest.

The server decides from noisy counts and public settings alone. After the first look, whose part is
fixed, it knows about how large the classes are. Where they are too small for two rounds it spends
the rest on a histogram. Else it compares the AUC's predicted variance, with what the cells hide,
after the number at once, after a look at the same cells, at fine or coarse ones, and at cells of
which crowded ones are split (``zoomed_cells``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.privacy.cost import Adjacency
from tacit.protocols.dpauc.estimate import hidden_in_equal, hidden_variance
from tacit.protocols.dpauc.looks import (
    MAX_LOOKS,
    MORE_LOOKS,
    SIZING_LOOK,
    SMALL_CELLS,
    Cells,
    Counts,
    combined_noise,
    fine_place,
    left_of,
    left_variance,
    lone_variances,
    look_levels,
    split_cells,
)
from tacit.protocols.dpauc.steps import influences_of, published
from tacit.protocols.shared.influence_sum import FIXED_POINT
from tacit.protocols.shared.trees.levels import CellNoise, best_levels
from tacit.protocols.shared.zoomed_cells import (
    HIDDEN_TO_NOISE,
    NOISE_ERRORS,
    best_scales,
    crowded_cells,
    recounted,
    shares_of,
    zoomed,
)
from tacit.results.figure import MIN_CLASS_SIZE_IN_ERRORS

if TYPE_CHECKING:
    from tacit.protocols.dpauc.protocol import DPAUC

DOUBT = 1.0
"""Number of standard errors of the sizes as they are known by which a class is taken as smaller
where it is asked whether it will show after a further look."""

HOPE = 2.0
"""The same by which it is taken as larger before two rounds are given up."""

FILLED_PART = 0.25
"""Part of the positions that scores are taken to fill where a histogram's error is predicted."""

WORTHWHILE = 0.95
"""Largest ratio of the predicted standard errors with finer cells and without at which they are
counted in."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What follows a look.

    Parameters
    ----------
    look : the part of another look; 0 for none.
    number : the part that is left for the number; 0 where a histogram for ``look`` ends the run.
    place : the cells of that look; None for the same as before.
    total : the AUC's variance by noise and by what cells hide, as predicted.
    """

    look: float
    number: float
    place: Cells | None = None
    total: float = math.inf


@dataclass(frozen=True, eq=False)
class Outlook:
    """From what the choice is made: public settings, and the noisy looks.

    Parameters
    ----------
    clients, epsilon, distance : K, the whole budget, and counts a neighbour changes.
    reach : how far a neighbour moves the number.
    counts : consistent noisy counts of positives and negatives, shape (2, B).
    noise : in these counts.
    place : where the cells lie.
    coarse : equal cells of the protocol's scale, in which a histogram ends the run.
    scale : the name of the scale on which cells may be placed anew; empty where none may.
    spent : the part of epsilon of each look so far.
    seen : whether there was a look at these cells, so that crowds would show.
    in_equal : what equal cells hide at these counts, where it is already known.
    known : the standard error of the sizes when the choice is made; 0 where no look is to come.
    """

    clients: int
    epsilon: float
    distance: float
    reach: float
    counts: Floats
    noise: CellNoise
    place: Cells
    coarse: Cells
    scale: str = ""
    spent: tuple[float, ...] = ()
    seen: bool = True
    in_equal: Floats | None = None
    known: float = 0.0

    @property
    def sizes(self) -> Floats:
        """The noisy P and N."""
        return np.asarray(self.counts.sum(axis=-1))

    @property
    def rest(self) -> float:
        """The part of epsilon that is left."""
        return left_of(sum(self.spent))

    @property
    def variance(self) -> float:
        """Of the AUC where the number follows; infinite where a class would not show.

        The number's ``2 D^2 K / (f epsilon m)^2``, and what the looks leave.
        """
        smaller = float(self.sizes.min())
        if smaller - DOUBT * self.known <= self.least_size:
            return math.inf
        by_number = 2 * self.clients * (self.reach / (self.rest * self.epsilon * smaller)) ** 2
        return by_number + left_variance(self.counts, self.noise, self.place if self.seen else None)

    @property
    def least_size(self) -> float:
        """The size that a class must exceed to show in all looks."""
        return MIN_CLASS_SIZE_IN_ERRORS * math.sqrt(self.noise.total)

    @property
    def total(self) -> float:
        """The variance, with what the cells hide."""
        variance = np.asarray(self.variance)
        if not np.isfinite(variance):
            return math.inf
        hidden = hidden_variance(self.counts, self.noise, self.place, variance, self.in_equal)
        return float(variance + hidden)

    def choice(self) -> Choice:
        """The way with the least predicted variance of the AUC."""
        if len(self.spent) > 1:
            now = Choice(0.0, self.rest, None, self.total)
            if self.place.count == SMALL_CELLS:
                return self._among_small(now)
            return self._elsewhere(now, self._split()) or now
        if not self._may_show:
            return Choice(self.rest, 0.0)
        best = self._at_these_cells() if self._suit else Choice(0.0, 0.0)
        best = self._elsewhere(best, [*self._laid_out(), *self._split()]) or best
        if not math.isfinite(best.total) and self.scale:
            return self._followed(SIZING_LOOK, self._small)
        return min(self._closing, best, key=lambda choice: choice.total)

    def _among_small(self, now: Choice) -> Choice:
        """The number, a last look at the same few cells, or a histogram for the rest."""
        if float(self.sizes.min()) <= 0:
            return self._closing
        looks = MORE_LOOKS if len(self.spent) < MAX_LOOKS else ()
        again = [self._followed(look, None) for look in looks]
        ways = [now, *again, self._closing] if looks else [now]
        return min(ways, key=lambda choice: choice.total)

    @property
    def _closing(self) -> Choice:
        """A histogram for all the rest."""
        total = self.closing_variance(self.rest) if float(self.sizes.min()) > 0 else math.inf
        return Choice(self.rest, 0.0, None, total)

    @property
    def _small(self) -> Cells:
        """Few equal cells, for small classes."""
        return replace(self.coarse, count=SMALL_CELLS)

    @property
    def _may_show(self) -> bool:
        """Whether the smaller class may show after the largest look at few cells."""
        best = self.after(MORE_LOOKS[-1], self._small)
        smaller = float(self.sizes.min()) + HOPE * math.sqrt(self.noise.total)
        return smaller > best.least_size

    def after(self, look: float, place: Cells | None) -> Outlook:
        """The same after a look at other cells, or the same; counts are taken as evenly spread."""
        count = self.counts.shape[-1] if place is None else place.count
        drawn = look_levels(count, look * self.epsilon).noise(self.clients, self.distance)
        noise, spent = combined_noise(self.noise, drawn, place is None), (*self.spent, look)
        there = self if place is None else self._moved(place)
        return replace(there, noise=noise, spent=spent, known=math.sqrt(self.noise.total))

    def _moved(self, place: Cells) -> Outlook:
        """The same counts spread evenly over other cells."""
        if place not in self._recounted:
            self._recounted[place] = recounted(self._filled, self.place.scale, place.knotted)
        counts = self._recounted[place]
        in_equal = None if place.published else hidden_in_equal(counts)
        return replace(self, counts=counts, place=place, seen=False, in_equal=in_equal)

    @property
    def _filled(self) -> Floats:
        """The counts, at least 0, with the sizes that they had before."""
        filled, sizes = np.maximum(self.counts, 0.0), np.maximum(self.sizes, 1.0)
        return filled * (sizes / np.maximum(filled.sum(axis=-1), 1.0))[:, np.newaxis]

    @cached_property
    def _recounted(self) -> dict[Cells, Floats]:
        """The counts spread over other cells, as far as they were asked for."""
        return {}

    def closing_variance(self, part: float) -> float:
        """Of the AUC by a histogram: influences that fall over a part of the positions, the product
        of the noises, and what the cells hide.
        """
        cells = self.coarse.count
        levels = best_levels(cells, part * self.epsilon, self.distance)
        noise = levels.noise(self.clients, self.distance)
        falling = np.clip((0.5 - (np.arange(cells) + 0.5) / cells) / FILLED_PART, -0.5, 0.5)
        first = float(noise.variance_of(falling)) * float(np.sum(1 / self.sizes**2))
        filled = recounted(self._filled, self.place.scale, self.coarse.knotted)
        hidden = curves.placement_variance(*filled) + curves.crowding_variance(*filled)
        hidden = hidden + curves.curvature_error(*filled) ** 2
        return first + noise.total**2 / 2 / float(self.sizes.prod()) ** 2 + float(hidden)

    def _at_these_cells(self) -> Choice:
        """The number at once, or after another look at the same cells."""
        here = self if self.place.published else self._with_hidden()
        again = [here._followed(look, None) for look in MORE_LOOKS]
        now = Choice(0.0, self.rest, None, here.total)
        return min([now, *again], key=lambda choice: choice.total)

    def _with_hidden(self) -> Outlook:
        """The same, with what equal cells hide, which noise does not change."""
        return replace(self, in_equal=hidden_in_equal(self.counts))

    def _followed(self, look: float, place: Cells | None) -> Choice:
        """Another look, with what is predicted after it."""
        ahead = self.after(look, place)
        return Choice(look, ahead.rest, place, ahead.total)

    def _elsewhere(self, best: Choice, places: Sequence[Cells]) -> Choice | None:
        """The best look at one of these cells; None where none is worth while."""
        if len(self.spent) == MAX_LOOKS or not places:
            return None
        looks = [self._followed(look, place) for place in places for look in MORE_LOOKS]
        other = min(looks, key=lambda choice: choice.total)
        return other if other.total < WORTHWHILE**2 * best.total else None

    @cached_property
    def _layout(self) -> ScoreScale:
        """The fine cells that suit the counts best."""
        return best_scales(self.scale, self.counts[np.newaxis], self.place.scale)[0]

    @property
    def _suit(self) -> bool:
        """Whether fine cells suit the counts best; others are wide where scores crowd."""
        return not (self.scale and self.place.published) or np.array_equal(
            self._layout.knots, self.place.scale.knots
        )

    def _laid_out(self) -> list[Cells]:
        """The fine cells that suit the counts best, and coarse ones, where these are others."""
        if not self.scale:
            return []
        places = []
        if not (self.place.published and self._suit):
            places.append(fine_place(self.scale, self._layout))
        if self.place.count > self.coarse.count:
            places.append(replace(self.coarse, scale=self.coarse.knotted, published=True))
        return [*places, self._small]

    def _split(self) -> list[Cells]:
        """Cells of which crowded ones are split, where there are such."""
        if not (self.scale and math.isfinite(self.variance)):
            return []
        crowded = self.crowded(self.variance)
        if not crowded.any():
            return []
        count = max(split_cells(self.clients, self.epsilon), self.place.count)
        error = math.sqrt(float(self.noise.cells[0]))
        layout = zoomed(self.place.scale, self.counts, crowded, count, error)
        if layout is None:
            return []
        return [Cells(count, layout, published=True, parts_ties=self.place.parts_ties)]

    def crowded(self, variance: float) -> NDArray[np.bool_]:
        """Which cells hide too much beside this variance of the AUC, shape (B,)."""
        cell_error, auc_error = math.sqrt(float(self.noise.cells[0])), math.sqrt(variance)
        straight = self.place.published
        crowded = crowded_cells(self.counts, cell_error, np.asarray(auc_error), straight)
        if straight:
            by_noise = np.sqrt(lone_variances(self.counts, self.noise, self.place))
            return (crowded | (by_noise > HIDDEN_TO_NOISE * auc_error)) & ~self.place.single
        shares = np.prod(shares_of(self.counts, NOISE_ERRORS * cell_error), axis=-2)
        uniform = np.where(curves.lone_crowds(*self.counts), shares, 0.0) / math.sqrt(12)
        return np.asarray(crowded | (uniform > HIDDEN_TO_NOISE * auc_error))


def outlook_of(protocol: DPAUC, counts: Counts, clients: int, spent: tuple[float, ...]) -> Outlook:
    """From what the server chooses; of several replicates the mean counts decide."""
    cells = counts.mean
    straight = counts.place.published
    influences = influences_of(published(cells, straight), straight)
    reach = float(influences.sensitivity(Adjacency(protocol.adjacency))) / FIXED_POINT
    return Outlook(
        clients,
        protocol.epsilon,
        protocol.record_distance,
        reach,
        counts=cells,
        noise=counts.noise,
        place=counts.place,
        coarse=protocol.coarse_place(clients),
        scale=protocol.scale if protocol.places_cells else "",
        spent=spent,
    )


def expected_way(ahead: Outlook) -> tuple[Outlook, Choice]:
    """Where the choices lead if counts are as expected: the last look, and what follows it."""
    choice = ahead.choice()
    while choice.look and choice.number:
        ahead = replace(ahead.after(choice.look, choice.place), known=0.0)
        choice = ahead.choice()
    return ahead, choice
