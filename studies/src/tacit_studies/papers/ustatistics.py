"""Figures 3 and 4 of Bell et al. 2020: AUC of scores and Kendall's tau of ratings, local model.

The paper's records are not published with it, so records of the same shape are made here: scores of
a smaller class of 693, and 246,000 pairs of ratings on a scale of six whose tau is 0.58. The text
does not say how the ratings are distributed over the scale. Two shapes are measured: every rating
as frequent as any other, and high ratings the most frequent. The paper's text does not give the
figures' values, so their rows have no paper's number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from tacit.data.clients import Clients
from tacit.data.splitting import binormal_scores
from tacit.local.paired.noise import LAPLACE, SHARED
from tacit.local.paired.protocol import PairedUStatistic
from tacit.local.ustatistic.kernels import Kendall, Listed
from tacit.metrics.pairwise import kendall_table, pair_mean
from tacit.protocols.published.ustatistics import (
    PublishedHierarchicalAUC,
    PublishedUStatistic,
)
from tacit.running.evaluating import repeat
from tacit_studies.measuring import Bench, Job, centre, quotient, standard_deviation
from tacit_studies.rows import Measured, Row, Target

Floats = NDArray[np.float64]
Symbols = NDArray[np.uint8]

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""The paper's text names 2 and 10, and no other epsilon of the figures."""

POSITIVES = 693
"""Figure 3: the smaller class, patients who were readmitted within 30 days."""

NEGATIVES = 5_517
"""Figure 3: the larger class, in the proportion of the data: 11,357 of 101,766 were readmitted."""

AREA = 0.64
"""Plausible AUC of a logistic regression on such data; the text gives none."""

HEIGHTS = (4, 6, 8, 10, 12)
"""Figure 3: domains of ``2 ** height`` scores."""

RATERS = 246_000
SCALE = 6
TAU = 0.58

SHAPES = {
    "even": (1 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6),
    "high": (0.02, 0.06, 0.08, 0.18, 0.31, 0.35),
}
"""Figure 4: how frequent each rating is, of either value, from the lowest."""

MATCHINGS = (1, 2, 4)
"""Figure 4: P, the number of pairs of each record in the subsampled two-party protocol."""

DELTA = 1e-8
"""Figure 4: the delta of the composition of all pairs."""

KERNEL_RANGE = 2.0
"""Sensitivity of a pair's value to one record: Kendall's kernel runs from -1 to 1."""

CHEAP_TIMES = 10
"""Factor on the repetitions of all pairs, each of which takes a single draw to simulate."""

PAIR_TIMES = 20
"""Maximum number of repetitions of matchings, which are slow to draw; the paper has as many."""

HIGH_PRIVACY = 2.0
"""Largest epsilon at which the text states an order of the three protocols."""

EVEN_ONLY_BELOW = 1.0
"""Below this epsilon randomised response must err less than all pairs on even ratings only.

Its noise grows with the variance of the kernel's mean over all symbols, also over those that are
rare, and that variance is larger where ratings are high. At epsilon 0.5 its error is a tenth
smaller on even ratings and a tenth larger on high ones.
"""


def figure_3(table: str) -> list[Job]:
    """The error of the hierarchical protocol by the size of the domain."""
    return [Job(partial(_hierarchical, table, epsilon)) for epsilon in EPSILONS]


def _hierarchical(table: str, epsilon: float, bench: Bench) -> list[Measured]:
    """A point for every domain, and what the text claims of them."""
    row = f"eps={epsilon:g}"
    errors = {height: _area_errors(epsilon, height, bench) for height in HEIGHTS}
    rows = [
        point
        for height, height_errors in errors.items()
        for point in _points(table, f"{row} d=2^{height}", height_errors)
    ]
    means = [centre(height_errors) for height_errors in errors.values()]
    claim = "claim: robust to d, worst/best domain"
    rows.append(Row(table, row, claim, None, quotient(max(means), min(means))))
    if epsilon > HIGH_PRIVACY:
        at_two = min(centre(_area_errors(HIGH_PRIVACY, height, bench)) for height in HEIGHTS)
        claim = f"claim: little gain beyond 2, best error/that at eps={HIGH_PRIVACY:g}"
        rows.append(Row(table, row, claim, None, quotient(min(means), at_two)))
    return rows


def _area_errors(epsilon: float, height: int, bench: Bench) -> Floats:
    def measured() -> Floats:
        clients = bench.once("patients", lambda: _patients(bench.seed("patients")))
        protocol = PublishedHierarchicalAUC(epsilon, height)
        estimates = repeat(clients, protocol, bench.repeats, bench.seed("area", epsilon, height))
        return np.abs(estimates - protocol.exact(clients))

    return bench.once(("area", epsilon, height), measured)


def _patients(seed: int) -> Clients:
    scores, labels = binormal_scores(POSITIVES, NEGATIVES, AREA, seed)
    return Clients.split(scores, labels, clients=scores.size, seed=seed)


def figure_4(table: str) -> list[Job]:
    """Kendall's tau by randomised response, and by two-party computation of some and all pairs."""
    return [
        Job(partial(_compared, table, shape, epsilon)) for shape in SHAPES for epsilon in EPSILONS
    ]


def _compared(table: str, shape: str, epsilon: float, bench: Bench) -> list[Measured]:
    """A point for every protocol, and the order of their errors.

    In the paper each pair has one draw of Laplace noise, the sum of two parties' shares.
    """
    row = f"{shape} ratings eps={epsilon:g}"
    response = _response_errors(shape, epsilon, bench)
    times = CHEAP_TIMES * bench.repeats
    everybody = np.abs(all_pairs_noise(epsilon, times, bench.seed("all pairs", row)))
    sampled = [_matched_errors(shape, count, epsilon, SHARED, bench) for count in MATCHINGS]
    whole = _matched_errors(shape, 1, epsilon, LAPLACE, bench)
    rows = [
        *_points(table, f"{row} randomised response", response),
        *_points(table, f"{row} 2PC all pairs", everybody),
    ]
    for matchings, matched in zip(MATCHINGS, sampled, strict=True):
        rows += _points(table, f"{row} 2PC P={matchings}", matched)
    rows += _points(table, f"{row} 2PC P=1, whole noise of both", whole)
    if epsilon > HIGH_PRIVACY:
        gain = quotient(min(centre(matched) for matched in sampled[1:]), centre(sampled[0]))
        return [
            *rows,
            Row(table, row, "claim: P > 1 helps, error of the best P / of P=1", None, gain),
        ]
    first = quotient(centre(sampled[0]), centre(response))
    rows.append(Target(table, row, "error of 2PC P=1 / of randomised response", first, at_most=1))
    column = "error of randomised response / of 2PC all pairs"
    second = quotient(centre(response), centre(everybody))
    if shape != "even" and epsilon < EVEN_ONLY_BELOW:
        return [*rows, Row(table, row, column, None, second)]
    return [*rows, Target(table, row, column, second, at_most=1)]


def _points(table: str, row: str, errors: Floats) -> list[Measured]:
    return [
        Row(table, row, "mean absolute error", None, centre(errors)),
        Row(table, row, "std of the absolute error", None, standard_deviation(errors)),
    ]


def _shaped(shape: str, bench: Bench) -> Symbols:
    seed = bench.seed("ratings", shape)
    return bench.once(("ratings", shape), lambda: made_ratings(SHAPES[shape], RATERS, seed))


def made_ratings(frequencies: Sequence[float], records: int, seed: int) -> Symbols:
    """Pairs of ratings, each as ``SCALE * first + second``, whose tau is ``TAU``, shape (records,).

    Both are cut from normal latent values, whose correlation is found by bisection.

    Parameters
    ----------
    frequencies : how frequent every rating is, of either value, from the lowest.
    """
    latent, independent = np.random.default_rng(seed).standard_normal((2, records))
    cuts = ndtri(np.cumsum(frequencies)[:-1])
    first = SCALE * np.searchsorted(cuts, latent)

    def made(correlation: float) -> Symbols:
        mixed = correlation * latent + math.sqrt(1 - correlation**2) * independent
        return (first + np.searchsorted(cuts, mixed)).astype(np.uint8)

    return made(brentq(lambda correlation: tau_of(made(correlation)) - TAU, 0.0, 1.0, xtol=1e-7))


def tau_of(ratings: Symbols) -> float:
    """The exact tau of pairs of ratings."""
    counts = np.bincount(ratings, minlength=SCALE**2)
    return pair_mean(kendall_table(SCALE, SCALE), counts)


def raters(ratings: Symbols) -> Clients:
    """Clients of one record each: the two ratings."""
    first, second = np.divmod(ratings, SCALE)
    records = ratings.size
    return Clients(
        first.astype(np.float64),
        np.zeros(records, dtype=np.int8),
        np.arange(records + 1, dtype=np.int64),
        simulated=True,
        second=second.astype(np.float64),
    )


def _response_errors(shape: str, epsilon: float, bench: Bench) -> Floats:
    clients = bench.once(("raters", shape), lambda: raters(_shaped(shape, bench)))
    protocol = PublishedUStatistic(Kendall(Listed(range(SCALE))), epsilon)
    estimates = repeat(clients, protocol, bench.repeats, bench.seed("response", shape, epsilon))
    return np.abs(estimates - protocol.exact(clients))


def _matched_errors(shape: str, matchings: int, epsilon: float, noise: str, bench: Bench) -> Floats:
    """Errors of P random matchings, whose pairs are computed by an ideal two-party computation."""
    clients = bench.once(("raters", shape), lambda: raters(_shaped(shape, bench)))
    protocol = PairedUStatistic("kendall", epsilon, matchings, noise)
    seed = bench.seed("pairs", shape, matchings, epsilon, noise)
    estimates = repeat(clients, protocol, min(bench.repeats, PAIR_TIMES), seed)
    return np.abs(estimates - protocol.exact(clients))


def all_pairs_noise(epsilon: float, times: int, seed: int) -> Floats:
    """The error of all pairs, shape (times,): no pair is left out, so noise is the only error."""
    pairs = RATERS * (RATERS - 1) // 2
    scale = KERNEL_RANGE / pair_epsilon(epsilon, RATERS - 1)
    return laplace_means(np.random.default_rng(seed), pairs, scale, times)


def pair_epsilon(epsilon: float, releases: int) -> float:
    """The epsilon of each of so many releases that cost (epsilon, ``DELTA``) together.

    Advanced composition, as the paper uses: ``sqrt(2 m ln(1 / delta)) e + m e (exp(e) - 1)`` for m
    releases of e (Dwork, Rothblum and Vadhan 2010, Theorem III.3).

    Examples
    --------
    >>> round(pair_epsilon(1.0, 245_999) * 1e4, 2)
    3.24
    """

    def excess(release_epsilon: float) -> float:
        spent = math.sqrt(2 * releases * math.log(1 / DELTA)) * release_epsilon
        return spent + releases * release_epsilon * math.expm1(release_epsilon) - epsilon

    return float(brentq(excess, 0.0, 1.0, xtol=1e-15))


def laplace_means(rng: np.random.Generator, draws: int, scale: float, times: int) -> Floats:
    """The mean of so many Laplace draws, shape (times,).

    A Laplace draw is the difference of two exponential ones, so the sum of many is the difference
    of two gamma draws, exactly.
    """
    gammas = rng.standard_gamma(draws, (2, times))
    return np.asarray(scale * (gammas[0] - gammas[1]) / draws)
