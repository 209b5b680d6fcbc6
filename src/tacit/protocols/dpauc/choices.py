"""What follows the looks so far: another look, the number, or a histogram for all the rest.

The server decides from noisy counts and public settings alone. After the first look, whose part is
fixed, it knows about how large the classes are. Where they are too small for two rounds it spends
the rest on a histogram. Where ties in its cells could outweigh the noise it counts again in cells
that are centred on round numbers (``fine_cells``), and where mass crowds into few cells it splits
these (``zoomed_cells``). Else a second look at the same cells is taken where that makes the AUC's
variance least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.curves import (
    HIDDEN_TIES,
    crowding_variance,
    curvature_error,
    lone_crowds,
    placement_variance,
)
from tacit.metrics.score_scale import EVEN
from tacit.privacy.cost import Adjacency
from tacit.protocols.dpauc.estimate import hidden_variance
from tacit.protocols.dpauc.looks import (
    FIRST_LOOK,
    MAX_LOOKS,
    MORE_LOOKS,
    Cells,
    Counts,
    combined_noise,
    fine_cells,
    left_of,
    left_variance,
    lone_variances,
    look_levels,
)
from tacit.protocols.dpauc.second_round import influences_of, published
from tacit.protocols.shared.fine_cells import best_scales, recounted
from tacit.protocols.shared.influence_sum import FIXED_POINT
from tacit.protocols.shared.levels import CellNoise, best_levels
from tacit.protocols.shared.zoomed_cells import (
    HIDDEN_TO_NOISE,
    NOISE_ERRORS,
    crowded_cells,
    shares_of,
    zoomed,
)
from tacit.results.class_sizes import MIN_CLASS_SIZE_IN_ERRORS

if TYPE_CHECKING:
    from tacit.protocols.dpauc.protocol import DPAUC

ASSUMED_NOISE_GAIN = 1.5
"""Least ratio of a class to six of its errors that is planned for: the sizes are noisy."""

WORTHWHILE = 0.95
"""Largest ratio of the predicted standard errors with finer cells and without at which they are
counted in."""

LEAST_FINE = 0.05
"""Least part of epsilon of a look at fine cells where crowds are not seen."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What follows a look.

    Parameters
    ----------
    look : the part of another look; 0 for none.
    number : the part that is left for the number; 0 where a histogram for ``look`` ends the run.
    place : the cells of that look; None for the same as before.
    variance : of the AUC, as predicted.
    """

    look: float
    number: float
    place: Cells | None = None
    variance: float = math.inf


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
    scale : the name of the scale on which cells may be placed anew; empty where none may.
    spent : the part of epsilon of each look so far.
    """

    clients: int
    epsilon: float
    distance: float
    reach: float
    counts: Floats
    noise: CellNoise
    place: Cells
    scale: str = ""
    spent: tuple[float, ...] = (FIRST_LOOK,)

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
        if smaller <= ASSUMED_NOISE_GAIN * MIN_CLASS_SIZE_IN_ERRORS * math.sqrt(self.noise.total):
            return math.inf
        by_number = 2 * self.clients * (self.reach / (self.rest * self.epsilon * smaller)) ** 2
        return by_number + left_variance(self.counts, self.noise, self.place)

    @property
    def hidden(self) -> float:
        """What the cells hide of the AUC, as a variance."""
        variance = np.asarray(self.variance)
        return float(hidden_variance(self.counts, self.noise, self.place, variance))

    def choice(self) -> Choice:
        """The way with the least predicted variance of the AUC."""
        if float(self.sizes.min()) <= 0:
            return Choice(self.rest, 0.0)
        now = Choice(0.0, self.rest, None, self.variance)
        if len(self.spent) > 1:
            return self._zoom(now) or now
        closing = Choice(self.rest, 0.0, None, self.closing_variance(self.rest))
        again = [self._followed(look, None) for look in MORE_LOOKS]
        best = min([closing, now, *again], key=lambda choice: choice.variance)
        return best if not best.number else self._fine(best) or self._zoom(best) or best

    def after(self, look: float, place: Cells | None) -> Outlook:
        """The same after a look at other cells, or the same; counts are taken as evenly spread."""
        count = self.counts.shape[-1] if place is None else place.count
        drawn = look_levels(count, look * self.epsilon).noise(self.clients, self.distance)
        noise, spent = combined_noise(self.noise, drawn, place is None), (*self.spent, look)
        if place is None:
            return replace(self, noise=noise, spent=spent)
        counts = recounted(np.maximum(self.counts, 0.0), self.place.scale, place.scale)
        return replace(self, counts=counts, noise=noise, place=place, spent=spent)

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

    def _followed(self, look: float, place: Cells | None) -> Choice:
        """Another look, with what is predicted after it."""
        ahead = self.after(look, place)
        return Choice(look, ahead.rest, place, ahead.variance)

    def _placed(self, place: Cells, looks: Sequence[float]) -> Choice:
        """The best of some looks at other cells."""
        choices = [self._followed(look, place) for look in looks]
        return min(choices, key=lambda choice: choice.variance)

    def _fine(self, best: Choice) -> Choice | None:
        """A look at fine cells, where noise is less than what ties could hide in those of before.

        Where crowds are seen another look will follow, and the least part is enough for this one.
        """
        if not self.scale:
            return None
        layout = best_scales(self.scale, self.counts[np.newaxis], self.place.scale)[0]
        looks = [look for look in MORE_LOOKS if look >= LEAST_FINE]
        if self.crowded(best.variance).any():
            looks = list(MORE_LOOKS[:1])
        fine = self._placed(Cells(layout.cells, layout, published=True, parts_ties=True), looks)
        return fine if fine.variance < WORTHWHILE**2 * (best.variance + HIDDEN_TIES**2) else None

    def _zoom(self, best: Choice) -> Choice | None:
        """A look at cells of which crowded ones are split."""
        if not self.scale or len(self.spent) == MAX_LOOKS:
            return None
        crowded = self.crowded(best.variance)
        if not crowded.any():
            return None
        count = max(fine_cells(self.clients, self.epsilon), self.place.count)
        error = math.sqrt(float(self.noise.cells[0]))
        layout = zoomed(self.place.scale, self.counts, crowded, count, error)
        if layout is None:
            return None
        place = Cells(count, layout, published=True, parts_ties=self.place.parts_ties)
        finer = self._placed(place, MORE_LOOKS)
        return finer if math.isfinite(finer.variance) else None

    def crowded(self, variance: float) -> NDArray[np.bool_]:
        """Which cells hide too much beside this variance of the AUC, shape (B,)."""
        cell_error, auc_error = math.sqrt(float(self.noise.cells[0])), math.sqrt(variance)
        straight = self.place.published
        crowded = crowded_cells(self.counts, cell_error, np.asarray(auc_error), straight)
        if straight:
            by_noise = np.sqrt(lone_variances(self.counts, self.noise, self.place))
            return (crowded | (by_noise > HIDDEN_TO_NOISE * auc_error)) & ~self.place.single
        shares = np.prod(shares_of(self.counts, NOISE_ERRORS * cell_error), axis=-2)
        uniform = np.where(lone_crowds(*self.counts), shares, 0.0) / math.sqrt(12)
        return np.asarray(crowded | (uniform > HIDDEN_TO_NOISE * auc_error))


def outlook_of(
    protocol: DPAUC, counts: Counts, clients: int, spent: tuple[float, ...] = (FIRST_LOOK,)
) -> Outlook:
    """From what the server chooses; of several replicates the mean counts decide."""
    cells, fixed = counts.mean, protocol.thresholds is not None or protocol.scale == EVEN
    influences = influences_of(published(cells), counts.place.published)
    reach = float(influences.sensitivity(Adjacency(protocol.adjacency))) / FIXED_POINT
    return Outlook(
        clients,
        protocol.epsilon,
        protocol.record_distance,
        reach,
        counts=cells,
        noise=counts.noise,
        place=counts.place,
        scale="" if fixed else protocol.scale,
        spent=spent,
    )


def expected_way(ahead: Outlook) -> tuple[Outlook, Choice]:
    """Where the choices lead if counts are as expected: the last look, and what follows it."""
    choice = ahead.choice()
    while choice.look and choice.number:
        ahead = ahead.after(choice.look, choice.place)
        choice = ahead.choice()
    return ahead, choice
