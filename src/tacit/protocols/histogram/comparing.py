"""Two models on the same private scores: the difference of their AUCs by noisy sums.

Rounds count both classes in cells of either model's scores. From these counts follow the
distribution functions of either model, and with them the influences a and b of a record on either
AUC (``shared.influence_sum``). A last query asks for the sums of ``a - b``, of ``a + b`` and of the
squares of ``a - b`` over all records. The first of these has the noise of one number for the
difference of two AUCs, the second one tells the AUCs themselves, and the third how much the
difference of other records of the population would differ: with m the smaller class,
``sum (a - b)^2 / m^2`` is the variance of DeLong et al. (1988) for two AUCs on the same records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import influence, pooling, tree_budget, tree_results
from tacit.protocol import releases
from tacit.protocols.histogram import steps
from tacit.protocols.shared import counting, declared
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.server_result import ComparisonResult

MODELS = FIRST, SECOND = ("first", "second")
FUNCTIONS = (influence.POSITIVES, influence.NEGATIVES)
CLASSES, DIFFERENCE, LEVEL, SQUARES = "classes", "difference", "level", "squares"
"""Fields of replies besides both models' counts."""

FIRST_PARTS = 2
"""Fractions of epsilon (``tree_budget.PARTS``) of the first round."""

MORE_PARTS = (0, 2, 4, 6, 8, 12, 16, 20)
"""Fractions of epsilon that a second round may get; 0 for none."""

SHARES = {DIFFERENCE: 0.75, LEVEL: 0.15, SQUARES: 0.1}
"""How the last query divides its epsilon."""

LARGEST_SQUARE = 0.25
"""Squares are cut to this: models that rank a record apart by half of a class are told no better
apart. What is cut makes the sampling error too small where two models have little in common."""

SQUARE_UNITS = 2**20
"""Squares are whole multiples of one over this."""

MOST_RECORDS = 2**28
"""Most records of a client: a sum of fixed-point differences is at most 2**61."""


def _spent(query: tp.Query, *numbers: int) -> float:
    """The epsilon of a run's query of one of these numbers, by the parts that it lists."""
    parts = steps.listed_parts(query)
    if len(parts) not in numbers:
        known = " or ".join(map(str, numbers))
        raise ValueError(f"query {known} of a run lists {known} {steps.LISTED}, got {parts}")
    return steps.epsilon_of(query)


def round_fields(protocol: Any, epsilon: float) -> dict[str, releases.Released]:
    """Class sizes and both models' cells: a record is in one cell of either model."""
    cells = (1 - tree_budget.CLASS_FRACTION) * epsilon / 2
    counted = releases.Released((2 << protocol.height,), protocol.distance, cells)
    classes = releases.Released((2,), protocol.distance, tree_budget.CLASS_FRACTION * epsilon)
    return {CLASSES: classes, FIRST: counted, SECOND: counted}


def number_fields(epsilon: float) -> dict[str, releases.Released]:
    """The three sums of the last query, each in units of a part of its reach."""
    return {name: counting.number_field(epsilon * share) for name, share in SHARES.items()}


def _counts(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Class sizes, and the counts of both classes in cells of either model's scores."""
    protocol: ComparedHistograms = query.protocol
    made: dict[str, Integers] = {
        name: steps.leaf_counts(query, protocol.on_scale(each), protocol.height)
        for name, each in zip(MODELS, declared.both_models(clients), strict=True)
    }
    by_class = made[FIRST].reshape(2, 1 << protocol.height, *made[FIRST].shape[1:])
    return made | {CLASSES: by_class.sum(axis=1)}


@releases.release(
    lambda query: round_fields(query.protocol, _spent(query, 1)), admits=steps.pay, once=True
)
def first_pair_round(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the class sizes, and both classes' counts in cells of either model's scores.

    It begins a run. A record counts once among the class sizes and in one cell of either model:
    adding or removing it changes one number of each of the three fields by one, replacing it two.
    Each field costs its part of the query's epsilon (``tacit.protocol.releases``).

    The server learns the noisy sums of the counts, and how many clients answered.
    """
    return _counts(clients, query)


@releases.release(lambda query: round_fields(query.protocol, _spent(query, 2)), admits=steps.pay)
def second_pair_round(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the same counts again, with fresh noise, for another fraction of epsilon.

    The server learns the noisy sums of the counts, and how many clients answered.
    """
    return _counts(clients, query)


def _admits_numbers(query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState) -> None:
    """Check what a query publishes, as a client accepts it, and note what it costs.

    Raises
    ------
    ValueError : for fields of another type or shape, functions that fall or leave [0, 1], and sizes
        that are not above 0 and finite.
    """
    inner = ((1 << query.protocol.height) - 1,)
    shapes = {f"{model}_{name}": inner for model in MODELS for name in FUNCTIONS}
    influence.check_published(query.broadcast, shapes | {influence.SIZES: (2,)})
    _ = Pair.published(query.broadcast)
    steps.pay(query, noise, state)


@releases.release(lambda query: number_fields(_spent(query, 2, 3)), admits=_admits_numbers)
def summed_differences(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the sums of the records' differences of influences, of their sums, and of squares.

    The query publishes either model's distribution functions of both classes at the inner edges of
    equal cells, and one pair of class sizes. From these alone the client computes the influences a
    and b of every record, whole multiples of ``1 / FIXED_POINT`` between ``Pair``'s ends, whatever
    the record's two scores are. So a neighbour moves the sum of ``a - b`` by at most its reach
    there, and that of ``a + b`` by at most its own; a square is cut to ``LARGEST_SQUARE`` and moves
    its sum by at most that. The client rounds each sum once to units of ``reach / R``, R whole,
    after which a neighbour moves it by at most R units (``whole_units``), and each has discrete
    Laplace noise of scale ``R / epsilon_i`` with parts ``epsilon_i`` that add up to the query's
    (``tacit.protocol.releases``).

    The server learns three noisy sums over all clients, and how many clients answered.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities, and a client with more
        than ``MOST_RECORDS``.
    """
    influence.check_sizes(clients)
    protocol: ComparedHistograms = query.protocol
    pair = Pair.published(query.broadcast)
    reaches = pair.reaches(tp.Adjacency(protocol.adjacency))
    fields = number_fields(steps.epsilon_of(query))
    totals = clients.added(partial(_exact_sums, pair, protocol))
    return {
        name: releases.by_view(
            query, influence.whole_units(total, reaches[name], fields[name].per_record)
        )
        for name, total in zip(SHARES, totals, strict=True)
    }


def _exact_sums(pair: Pair, protocol: ComparedHistograms, clients: tp.Clients) -> Integers:
    """The three sums over each client's records, in the order of ``SHARES``, shape (3, K)."""
    first, second = (
        influences.of_records(protocol.on_scale(each).scores, each.labels)
        for influences, each in zip(pair, declared.both_models(clients), strict=True)
    )
    apart = first - second
    squares = np.minimum((apart / influence.FIXED_POINT) ** 2, LARGEST_SQUARE)
    by_record = {
        DIFFERENCE: apart,
        LEVEL: first + second,
        SQUARES: np.rint(squares * SQUARE_UNITS).astype(np.int64),
    }
    below = [np.concatenate([[0], np.cumsum(by_record[name])]) for name in SHARES]
    return np.stack([np.diff(each[clients.offsets]) for each in below])


class Pair(NamedTuple):
    """The influences of a record on either model's AUC, with one pair of class sizes."""

    first: influence.Influences
    second: influence.Influences

    @classmethod
    def published(cls, fields: Mapping[str, Any]) -> Pair:
        """Those that follow from published fields, at the server and at every client."""
        made = []
        for model in MODELS:
            positives, negatives = (fields[f"{model}_{name}"] for name in FUNCTIONS)
            sizes = fields[influence.SIZES]
            made.append(influence.Influences.on_cells(positives, negatives, sizes, False))
        return cls(*made)

    def reaches(self, adjacency: tp.Adjacency) -> dict[str, int]:
        """How far a neighbour moves each of the three sums, at least 1.

        Whatever a record's two scores are, a lies between ``a_1`` and ``a_2`` and b between
        ``b_1`` and ``b_2``, so that ``a - b`` is at least ``a_1 - b_2`` and at most ``a_2 - b_1``.
        """
        ends = [tuple(int(end) for end in each.ends) for each in self]
        (low, high), (least, largest) = ends
        bounds = {DIFFERENCE: (low - largest, high - least), LEVEL: (low + least, high + largest)}
        replaced = adjacency is tp.Adjacency.REPLACE
        made = {
            name: (upper - lower) if replaced else max(-lower, upper)
            for name, (lower, upper) in bounds.items()
        }
        return made | {SQUARES: int(LARGEST_SQUARE * SQUARE_UNITS)}


@dataclass(frozen=True)
class ComparedHistograms(tp.ScaledScores, declared.ComparesModels):
    """The difference of two models' AUCs, and both AUCs, on private scores and labels.

    Clients hold the first model's scores as their scores and the second's as their second values.

    Parameters
    ----------
    epsilon : the privacy budget of one record, with its label and both scores.
    trust : ``SecureSum()`` or ``Each()``, or their words, as for ``ScoreHistogram``.
    adjacency : ``"record"`` (added or removed) or ``"replace"``.
    scale : the public map of scores to the positions that equal cells cut.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> ComparedHistograms(1.0).guarantee.epsilon
    1.0
    """

    epsilon: float = tp.setting(help=tp.EPSILON)
    trust: tp.SecureSum | tp.Each | str = tp.trust_setting()
    adjacency: Literal["record", "replace"] = declared.adjacency_setting()
    scale: str = tp.scale_setting()

    name = "compared-histograms"
    steps = (first_pair_round, second_pair_round, summed_differences)
    height = tree_budget.ROUND_HEIGHT
    """Counts are in ``2**height`` cells of either model's scores."""

    @property
    def known_epsilon(self) -> float:
        """The budget."""
        return self.epsilon

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> tp.ThreatModel:
        """Who sees what."""
        summed = (
            "counts of both classes in cells of either model's scores, and three sums of how "
            "either model ranks the records"
        )
        published = dict.fromkeys(
            (tp.Trust.SECURE_SUM, tp.Trust.EACH), "Both models' noisy distribution functions."
        )
        return declared.forest_model(settings, summed, published, declared.HISTOGRAM_PAGE)

    def conversation(self, clients: int) -> tp.Conversation:
        """One round or two, and three numbers."""
        parts: tuple[int, ...] = (FIRST_PARTS,)
        sums = yield from releases.ask(first_pair_round, self, clients, _listed(parts))
        rounds, pool = [sums], _pooled(self, sums)
        more = _second_round(self, pool, float(sums.noises))
        if more:
            parts = (*parts, more)
            sums = yield from releases.ask(second_pair_round, self, clients, _listed(parts))
            counting.check_the_same_number(rounds[0].answered, sums.answered)
            rounds.append(sums)
            pool = [
                each.with_round(further, same_cells=True)
                for each, further in zip(pool, _pooled(self, sums), strict=True)
            ]
        published = _published(pool)
        parts = (*parts, tree_budget.PARTS - sum(parts))
        shared = _listed(parts) | published
        numbers = yield from releases.ask(summed_differences, self, clients, shared)
        counting.check_the_same_number(rounds[0].answered, numbers.answered)
        return _concluded(self, pool, published, numbers, rounds)


def _listed(parts: tuple[int, ...]) -> dict[str, Any]:
    return {steps.LISTED: np.array(parts, dtype=np.int64)}


def _pooled(protocol: ComparedHistograms, sums: releases.Sums) -> list[pooling.Pooled]:
    """What a round says of either model."""
    made = []
    for model in MODELS:
        variances = np.full(protocol.height + 2, np.inf)
        variances[tree_budget.CLASSES], variances[-1] = (
            sums.variance(CLASSES),
            sums.variance(model),
        )
        levels = {tree_budget.CLASSES: sums[CLASSES], protocol.height + 1: sums[model]}
        if np.ndim(sums[CLASSES]) > 1:
            raise ValueError("a comparison is simulated one run at a time, without replicates")
        one = {level: counts[np.newaxis] for level, counts in levels.items()}
        made.append(pooling.Pooled(protocol.score_scale, None, one, variances))
    return made


def _second_round(protocol: ComparedHistograms, pool: list[pooling.Pooled], noises: float) -> int:
    """The parts of a second round with the least predicted variance of the difference.

    The number's noise ``2 (D / (f m))^2`` grows as less of epsilon f is left for it, D the
    reach of a difference; the products of both functions' errors fall with the square of the cells'
    variance, ``v1 v2 / (v1 + v2)`` after both rounds.
    """
    reach = Pair.published(_published(pool)).reaches(tp.Adjacency(protocol.adjacency))[DIFFERENCE]
    smaller = min(float(each.smaller[0]) for each in pool)
    products = sum(float(pooling.product_variance(each)[0]) for each in pool)

    def predicted(more: int) -> float:
        left = protocol.epsilon * (tree_budget.PARTS - FIRST_PARTS - more) / tree_budget.PARTS
        number = (
            2
            * noises
            * (reach / influence.FIXED_POINT / (SHARES[DIFFERENCE] * left * smaller)) ** 2
        )
        # variances fall with the square of epsilon, and precisions add up
        ratio = 1 / (1 + (more / FIRST_PARTS) ** 2)
        return number + products * ratio**2

    return min(MORE_PARTS, key=predicted)


def _published(pool: list[pooling.Pooled]) -> dict[str, Floats]:
    """Either model's functions, and the class sizes that both rounds of the same records tell."""
    sizes = np.mean([each.published[influence.SIZES][0] for each in pool], axis=0)
    functions = {
        f"{model}_{name}": each.published[name][0]
        for model, each in zip(MODELS, pool, strict=True)
        for name in FUNCTIONS
    }
    return functions | {influence.SIZES: sizes}


def _concluded(
    protocol: ComparedHistograms,
    pool: list[pooling.Pooled],
    published: Mapping[str, Floats],
    numbers: releases.Sums,
    rounds: list[releases.Sums],
) -> ComparisonResult:
    """Both AUCs, their difference, and the errors of all three."""
    pair, smaller = Pair.published(published), float(published[influence.SIZES].min())
    reaches = pair.reaches(tp.Adjacency(protocol.adjacency))
    scales = {
        DIFFERENCE: influence.FIXED_POINT,
        LEVEL: influence.FIXED_POINT,
        SQUARES: SQUARE_UNITS,
    }
    read = {
        name: counting.on_scale(
            numbers[name], numbers.fields[name], reaches[name] / scale, float(numbers.noises)
        )
        for name, scale in scales.items()
    }
    values = {name: float(value) for name, (value, _) in read.items()}
    errors = {name: math.sqrt(variance) for name, (_, variance) in read.items()}
    areas = [float(each.area) for each in pair]
    difference = areas[0] - areas[1] + values[DIFFERENCE] / smaller
    level = sum(areas) + values[LEVEL] / smaller
    by_number = (errors[DIFFERENCE] / smaller) ** 2
    by_half = (by_number + (errors[LEVEL] / smaller) ** 2) / 4
    known = [
        pooling.number_area(
            each, np.array([(level + sign * difference) / 2]), np.array([by_half]), False
        )
        for sign, each in zip((1, -1), pool, strict=True)
    ]
    protection = releases.total_protection([*rounds, numbers])
    first, second = (
        _one_model(protocol, each, area, protection) for each, area in zip(pool, known, strict=True)
    )
    variance = by_number + sum(float(each.variance[0]) - by_half for each in known)
    hidden = math.sqrt(sum(float(each.by_cells[0]) for each in known))
    # a sum of squares below its noise is taken as large as that
    squares = max(values[SQUARES], errors[SQUARES])
    draw = numbers.answered == 1 or not isinstance(protocol.trust, tp.Each)
    cells = pool[0].both_classes[0]
    return ComparisonResult(
        value=np.array(difference),
        privacy_error=np.sqrt(variance),
        sampling_error=np.array(math.sqrt(squares) / smaller),
        positives=first.positives,
        negatives=first.negatives,
        positives_error=np.sqrt(tree_results.class_variance(cells, pool[0].noise)),
        approximation_error=np.array(hidden),
        laplace_error=np.sqrt(by_number) if draw else 0.0,
        limits=(-1.0, 1.0),
        warnings=first.warnings,
        protection=protection,
        first=first,
        second=second,
    )


def _one_model(
    protocol: ComparedHistograms,
    pool: pooling.Pooled,
    known: tree_results.KnownArea,
    protection: tp.Cost | None,
) -> tp.ServerResult:
    """One model's AUC."""
    axis = ScoreAxis(pool.scale, protocol.unit)
    return tree_results.result_from_tree(
        pool.leaves[0], pool.noise, None, protection, known.of(0), axis
    )
