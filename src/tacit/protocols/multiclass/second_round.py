"""The second round of several classes: a number a class, the summed influences on its AUC.

The first round gives, for every class c against the rest, the distribution functions F- (of the
others) and F+ (of the class's own records), the sizes P_c and N_c, and the AUC A_c of these
functions. With m_c = min(P_c, N_c) the second round measures for every class

    S_c = sum over own records of (F-(s_c) - A_c) m_c/P_c
        + sum over all others of (1 - F+(s_c) - A_c) m_c/N_c

and ``A_c + S_c/m_c`` is the class's AUC but for the noise on S_c and for products of two errors of
the first round. Scores enter exactly.

**Sensitivity.** A record of class y moves S_y by at most ``r_y m_y/P_y``, with r_c = max(A_c,
1 - A_c), and S_c of every other class by at most ``r_c m_c/N_c``. So the L1 sensitivity of all C
numbers together is

    D = max over y of (r_y m_y/P_y + sum over c other than y of r_c m_c/N_c).

One fraction of epsilon serves all numbers: Laplace noise of scale D / epsilon_2 on each.

**What is possible with C classes.** Take n records of each class. Then m_c = P_c = n and
``m_c/N_c = 1/(C - 1)``: D = r + (C - 1) r/(C - 1) = 2r, whatever C is, where a single number of two
classes has r. So each class's AUC has twice the error of two classes with n records each, and the
mean of C AUCs, whose noises are independent, ``2 / sqrt(C)`` times: 0.89 with C = 5. Were the macro
AUC the only number, its sensitivity would be ``(1/C) (r/n + (C - 1) r/((C - 1) n)) = 2r/(C n)``, or
``2 / C`` times that of two classes; C - 1 classes' AUCs could then not be given.

**What is left** of the first round's errors f of F+ and g of F- is their product: the integral of g
over f (``remaining_errors``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import class_forests, influence, noisy_areas
from tacit.metrics import curves, trees
from tacit.metrics.cells.score_distribution import rising_fractions, with_ends
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.protocol import releases
from tacit.protocols.shared.declared import one_against_rest

FIELDS = OWN_BELOW, OTHER_BELOW, SIZES = ("own_below", "other_below", "class_sizes")
"""Fields of the query: the part of each class's own records, and of all others, below every inner
edge of its score's cells, shape (C, B-1) each; and their numbers, shape (C, 2)."""

MOST_UNITS = 2**27
"""Largest number of units times classes: products of units and sensitivities fit 64 bits."""


LINE_BIAS = (8.0, 4)
"""What linear pieces in cells of width w hide of an AUC: the first times w to the power of the
second, in units of the scores' spread. The depth is chosen with it; no error is stated by it."""


def published(first: class_forests.ClassForests) -> dict[str, Floats]:
    """What the server publishes of the first round; a class that came out empty gets the size 1."""
    positives, negatives = first.positives, first.negatives
    cells = class_forests.both_classes(positives, negatives)
    products = noisy_areas.noise_products(*class_forests.variances_of(positives, negatives))
    depth = max(noisy_areas.area_depth(cells, products, first.even, LINE_BIAS), 1)

    def functions(forest: class_forests.Forest) -> Floats:
        return rising_fractions(noisy_areas.at_depth(forest.leaves, depth))[..., 1:-1]

    return {
        OWN_BELOW: functions(positives),
        OTHER_BELOW: functions(negatives),
        SIZES: np.maximum(first.sizes()[0], 1.0),
    }


@dataclass(frozen=True, eq=False)
class ClassInfluences:
    """The influences on every class's AUC, and how far a record moves all sums together.

    Parameters
    ----------
    by_class : of every class against the rest.
    """

    by_class: tuple[influence.Influences, ...]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> ClassInfluences:
        """The influences that follow from the published fields, at the server and at every client.

        Functions are linear between edges: a cell whose records all have one score then hides
        nothing.
        """
        positives, negatives, sizes = (fields[name] for name in FIELDS)
        return cls(
            tuple(
                influence.Influences.on_cells(
                    positives[..., number, :],
                    negatives[..., number, :],
                    sizes[..., number, :],
                    linear=True,
                )
                for number in range(positives.shape[-2])
            )
        )

    @property
    def areas(self) -> Floats:
        """The AUC of every class's functions, shape (..., C)."""
        return np.stack([each.area for each in self.by_class], axis=-1)

    def sensitivity(self, adjacency: tp.Adjacency) -> Integers:
        """The L1 sensitivity of all fixed-point sums together, shape (...).

        Added or removed: the sum over all classes of the largest size as one of the others, with
        the own class's in the place of the one where that gains most. Replaced: of any two records
        the largest distances, likewise; two own classes may gain.
        """
        bounds = np.stack([_moves(each, adjacency) for each in self.by_class], axis=-1)
        negative, positive, changed = bounds[..., 0, :], bounds[..., 1, :], bounds[..., 2, :]
        gain = (positive - negative).max(axis=-1)
        if adjacency is tp.Adjacency.REPLACE:
            pair = np.sort(changed - negative, axis=-1)[..., -2:].sum(axis=-1)
            gain = np.maximum(gain, pair)
        return np.asarray(negative.sum(axis=-1) + gain)

    def totals(self, scores: Floats, classes: Integers, clients: tp.Clients) -> Integers:
        """The fixed-point sums over each client's records, shape (..., C, K).

        Parameters
        ----------
        scores : positions from 0 to 1, shape (M, C).
        classes : of the records, shape (M,).
        clients : whose records they are.
        """
        against_rest = one_against_rest(clients, scores, classes)
        return np.stack(
            [
                influences.totals(each)
                for influences, each in zip(self.by_class, against_rest, strict=True)
            ],
            axis=-2,
        )


def _moves(influences: influence.Influences, adjacency: tp.Adjacency) -> Integers:
    """How far a record moves one class's sum, in fixed point, shape (..., 3).

    Of a record of another class, of one of this class, and, where records are replaced, of one of
    this class that becomes another's or the other way round.
    """
    # from -A w to (1 - A) w, with w = m/P of own records and m/N of others
    low = _fixed(-influences.area[..., np.newaxis] * influences.weights)
    high = _fixed((1 - influences.area[..., np.newaxis]) * influences.weights)
    positive_low, negative_low = low[..., 0], low[..., 1]
    positive_high, negative_high = high[..., 0], high[..., 1]
    if adjacency is tp.Adjacency.REPLACE:
        changed = np.maximum(positive_high - negative_low, negative_high - positive_low)
        return np.stack(
            [negative_high - negative_low, positive_high - positive_low, changed], axis=-1
        )
    positive = np.maximum(-positive_low, positive_high)
    negative = np.maximum(-negative_low, negative_high)
    return np.stack([negative, positive, positive], axis=-1)


def _fixed(influences: Floats) -> Integers:
    """In fixed point, away from zero: no influence is larger."""
    away = np.sign(influences) * np.ceil(np.abs(influences) * influence.FIXED_POINT)
    return np.asarray(away.astype(np.int64))


def number_units(epsilon: float, classes: int) -> int:
    """By how many units a record may move all rounded sums together, R.

    Raises
    ------
    ValueError : for an epsilon that leaves fewer than two units a class.
    """
    units = min(influence.units_for(epsilon), MOST_UNITS // classes)
    if units < 2 * classes:
        raise ValueError(
            f"the second round of {classes} classes needs a larger epsilon than {epsilon:.3g}"
        )
    return units


def rounded_sums(settings: Any, clients: tp.Clients, influences: ClassInfluences) -> Integers:
    """The sums of every client, each rounded to units of ``D / (R - C)``, shape (..., C, K)."""
    influence.check_sizes(clients)
    totals = clients.added(partial(_totals, settings, influences))
    reach = influences.sensitivity(tp.Adjacency(settings.adjacency))[..., np.newaxis, np.newaxis]
    count = len(settings.classes)
    return influence.whole_units(
        totals, reach, number_units(settings.number_cost.epsilon, count) - count
    )


def _totals(settings: Any, influences: ClassInfluences, clients: tp.Clients) -> Integers:
    """The fixed-point sums of every client, shape (..., C, K)."""
    scores, classes = settings.classified(clients)
    return influences.totals(settings.score_scale.positions(scores), classes, clients)


def agreed_influences(query: tp.Query) -> ClassInfluences:
    """The influences of a query, as a client accepts them.

    Raises
    ------
    ValueError : for fields of another type or shape, for cells that are no level of the agreed
        trees, for functions that fall or leave [0, 1], and for sizes that are not above 0 and
        finite.
    """
    fields, classes = query.broadcast, len(query.protocol.classes)
    inner = influence.inner_edges(fields[OWN_BELOW], query.protocol.tree_height)
    lead = np.shape(fields[SIZES])[:-2]
    shapes = {OWN_BELOW: (classes, inner), OTHER_BELOW: (classes, inner), SIZES: (classes, 2)}
    influence.check_published(fields, {name: (*lead, *shape) for name, shape in shapes.items()})
    return ClassInfluences.of(fields)


def _fields(query: tp.Query) -> dict[str, releases.Released]:
    """The sums of all classes, in units of which a neighbour moves them by so many together."""
    settings, epsilon = query.protocol, query.protocol.number_cost.epsilon
    units = number_units(epsilon, len(settings.classes))
    return {"sums": releases.Released((len(settings.classes),), units, epsilon, units)}


@releases.release(_fields)
def summed_class_influences(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the sums of the records' influences on every class's AUC, with this batch's noise.

    The query publishes for every class the distribution functions of its own records and of all
    others at the inner edges of equal cells of positions, and the sizes. From these alone the
    client computes every record's influences and the L1 sensitivity D of all C sums together (the
    module's docstring derives it). Each client rounds every sum to units of ``D / (R - C)``, R
    whole: a neighbour, who changes one client's sums, moves the exact sums by at most D together,
    that is R - C units, and rounding adds less than 1 to each of C sums; so the rounded sums move
    by at most R units together. The shares of all clients that were asked add up to discrete
    Laplace noise of scale ``R / epsilon_2`` on every sum, which costs epsilon_2 by the Laplace
    mechanism on the integers for an L1 sensitivity of R. What is published follows from noisy sums,
    so the rounds' costs add up. The guarantee is about the sums over all clients, and holds against
    a server that sees these only and colludes with no one.

    The server learns the noisy sum of every class over all clients, and how many clients answered.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities, or other classes.
    ValueError : for published functions or sizes that could not come from a first round.
    """
    settings, influences = query.protocol, agreed_influences(query)
    settings.check_range(clients)
    return {"sums": rounded_sums(settings, clients, influences).sum(axis=-1)}


DRAWS = 32
"""Imitated first rounds by which the products of their errors are measured; all replicates have the
same."""


def refined(
    first: class_forests.ClassForests,
    fields: Mapping[str, Floats],
    sums: Floats,
    cost: tp.Cost,
    noises: float,
) -> class_forests.ClassForests:
    """The AUCs of all classes by both rounds, with errors of which none is linear in the counts.

    Parameters
    ----------
    first : the first round.
    fields : what was published of it.
    sums : the noisy sums in units, shape (..., C).
    cost : of the second round.
    noises : the noise that arrived, as a multiple of what its epsilon needs.
    """
    influences, classes = ClassInfluences.of(fields), sums.shape[-1]
    smaller, units = (fields[SIZES].min(axis=-1), number_units(cost.epsilon, classes))
    reach = (
        influences.sensitivity(tp.Adjacency(cost.adjacency))[..., np.newaxis]
        / influence.FIXED_POINT
    )
    # A_c + S_c / m_c, with S_c in units of D / (R - C)
    unit = reach / ((units - classes) * smaller)
    by_noise = noises * float(discrete_laplace_variance(units / cost.epsilon)) * unit**2
    bias, remaining = remaining_errors(fields, first)
    areas = replace(
        first.areas,
        value=influences.areas + sums * unit - bias,
        other_variance=by_noise + remaining,
        one_draw=by_noise,
        cell_variance=_hidden_variance(fields, first),
        weights=np.zeros_like(first.areas.weights),
    )
    return replace(first, areas=areas)


def remaining_errors(
    fields: Mapping[str, Floats], first: class_forests.ClassForests
) -> tuple[Floats, Floats]:
    """The mean and the mean square of what products of two errors leave, shape (..., C) each.

    Functions that rise and stay within [0, 1] are off to one side on average, and so do their
    products. Mean and mean square are measured (a parametric bootstrap, Efron and Tibshirani 1993):
    noise as that of the first round is added once more to what came out of it, and functions and
    sizes follow as they did. With true F+ and F- of P and N records, the first round's own f+, f-,
    p and n, and a = A(f+, f-), both rounds state

        a + (A(F+, f-) - a) P/p + (A(f+, F-) - a) N/n

    for A(F+, F-). This is arithmetic of what was published, and costs nothing. The mean is taken
    off the AUC; its square still counts as an error, as it is itself about another truth.
    """
    cells, random = fields[OWN_BELOW].shape[-1] + 1, np.random.default_rng(0)
    noises = [
        each.noise.drawn(random, DRAWS).reshape(DRAWS, cells, -1).sum(axis=-1)
        for each in (first.positives, first.negatives)
    ]
    errors, (_, variances) = random.normal(size=(DRAWS, 2)), first.sizes()
    left = np.stack(
        [
            _left_of(
                [fields[name][..., number, :] for name in (OWN_BELOW, OTHER_BELOW)],
                fields[SIZES][..., number, :],
                noises,
                errors * np.sqrt(variances[..., number, np.newaxis, :]),
            )
            for number in range(fields[SIZES].shape[-2])
        ],
        axis=-2,
    )
    return left.mean(axis=-1), np.mean(left**2, axis=-1)


def _left_of(
    below: list[Floats], sizes: Floats, noises: list[Floats], size_errors: Floats
) -> Floats:
    """What ``remaining_errors`` leaves of one class, shape (..., draws)."""
    true, functions, ratios = [], [], []
    for row in (0, 1):
        counts = _shares(below[row]) * sizes[..., row, np.newaxis]
        noisy = counts[..., np.newaxis, :] + noises[row]
        size = sizes[..., row, np.newaxis]
        true.append(with_ends(below[row])[..., np.newaxis, :])
        functions.append(rising_fractions(noisy))
        ratios.append(size / np.maximum(size + size_errors[..., row], 1.0))
    area = _line_area(functions[0], functions[1])
    return np.asarray(
        area
        + (_line_area(true[0], functions[1]) - area) * ratios[0]
        + (_line_area(functions[0], true[1]) - area) * ratios[1]
        - _line_area(true[0], true[1])
    )


def _line_area(positives: Floats, negatives: Floats) -> Floats:
    """The AUC of two functions that are linear between equal edges, given at all of these."""
    middles = (negatives[..., 1:] + negatives[..., :-1]) / 2
    return np.asarray(np.sum(np.diff(positives, axis=-1) * middles, axis=-1))


def _hidden_variance(fields: Mapping[str, Floats], first: class_forests.ClassForests) -> Floats:
    """What linear pieces inside cells hide from an AUC, as a variance, shape (..., C).

    Of a pair of records in one cell at the parts u and v, both rounds state ``u - v + 1/2`` for
    ``1[u > v]``. That has the variance 1/12 where both are uniform, and no part that one record
    explains: of p P and q N records of a cell, placed at random, the variances of all pairs add up
    to ``p q / (12 P N)`` of the AUC. A concentration that stands clear of the noise counts as one
    record of either kind.
    """
    counts, errors = [], []
    for row, (name, forest) in enumerate(
        ((OWN_BELOW, first.positives), (OTHER_BELOW, first.negatives))
    ):
        counts.append(_shares(fields[name]) * fields[SIZES][..., row, np.newaxis])
        depth = counts[-1].shape[-1].bit_length() - 1
        errors.append(math.sqrt(float(trees.node_variances(forest.noise.weighting)[depth])))
    pairs = np.prod(fields[SIZES], axis=-1)
    placed = np.sum(counts[0] * counts[1], axis=-1) / 12 / pairs**2
    return placed + curves.lone_concentration_variance(counts[0], counts[1], (errors[0], errors[1]))


def _shares(below: Floats) -> Floats:
    """The share of a class in every cell."""
    return np.diff(with_ends(below), axis=-1)
