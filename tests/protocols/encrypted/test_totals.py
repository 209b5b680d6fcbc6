"""What an opened answer says of the class totals to a party that knows the number of records."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import pytest

from tacit.arrays import Floats
from tacit.crypto.masking import log_uniform
from tacit.protocols.encrypted import masked_scheme as settings
from tacit.protocols.encrypted.counts import Products
from tacit.protocols.encrypted.masked_scheme import MaskedScheme

MOST, RECORDS, POSITIVES = 2**20, 800_009, 240_011
STATED = 2.0 ** (1 - settings.SPARE_BITS)
"""Total variation of a posterior of the class sizes from the prior, within the octaves."""
SIZES = [POSITIVES, *map(int, np.random.default_rng(0).integers(170_000, 630_000, 24))]
"""Sizes that a party considers, whose products are within an octave of the true one."""


def shown(scheme: MaskedScheme, multiplier: int, area: float = 0.75) -> Products:
    """What parties open, perturbed as the aggregator does, in the docstring's formula."""
    pairs = POSITIVES * (RECORDS - POSITIVES)
    tied = pairs // 491
    numerator = int(2 * area * pairs) + (int(2 * area * pairs) - tied) % 2
    true = (numerator, pairs, tied)
    return Products(
        *(
            multiplier * number + extra
            for number, extra in zip(true, scheme.perturbations(multiplier), strict=True)
        )
    )


def likelihood(scheme: MaskedScheme, answer: Products, pairs: int) -> float:
    """Of one product of totals, nothing being known of X and Z but that they have one parity.

    By enumeration of every multiplier that fits, and of X and Z by their definition.
    """
    total, first = 0.0, 1 << scheme.least_bits
    last = min(answer.denominator // pairs, (first << scheme.octaves) - 1)
    most = 1 + scheme.reach // max(last, 1)
    for multiplier in range(max(answer.denominator // (pairs + most + 1), first), last + 1):
        width = scheme.width(multiplier)
        if not 0 <= answer.denominator - multiplier * pairs < width:
            continue
        rising = fitting(answer.numerator, multiplier, settings.WIDTHS[0] * (width - 1) + 1)
        tied = fitting(answer.tied, multiplier, settings.WIDTHS[2] * width)
        ways = sum(one * other for one, other in zip(rising, tied, strict=True))
        total += ways / multiplier / float(width) ** 3 / float(pairs) ** 2
    return total


def fitting(number: int, multiplier: int, width: int) -> tuple[int, int]:
    """How many even and odd whole numbers n have ``0 <= number - n multiplier < width``."""
    least, most = -((width - 1 - number) // multiplier), number // multiplier
    evens = most // 2 - (least - 1) // 2
    return evens, most - least + 1 - evens


def posterior(scheme: MaskedScheme, answer: Products, sizes: Sequence[int]) -> Floats:
    """Of the sizes of one class, all alike beforehand, shape (sizes,)."""
    weights = np.array([likelihood(scheme, answer, size * (RECORDS - size)) for size in sizes])
    return weights / weights.sum()


def distance(scheme: MaskedScheme, area: float = 0.75, multiplier: int = 0) -> float:
    """Of the posterior from the prior, in total variation."""
    drawn = multiplier or log_uniform(scheme.least_bits + 1, scheme.octaves - 2)
    found = posterior(scheme, shown(scheme, drawn, area), SIZES)
    return float(np.abs(found - 1 / len(SIZES)).sum() / 2)


@pytest.mark.parametrize(("part", "area"), [(0.15, 0.3), (0.5, 0.75), (0.95, 0.3), (0.95, 0.75)])
def test_who_knows_the_number_of_records_learns_no_size(part: float, area: float) -> None:
    """Multipliers in all parts of their range; the sizes' products are within an octave."""
    scheme = MaskedScheme(100, MOST)
    exact = 2 ** (scheme.least_bits + part * scheme.octaves)
    assert distance(scheme, area, int(exact)) < STATED


def test_multipliers_below_the_products_would_betray_the_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack has power: with the shorter multipliers of before, from 2^12 on, few sizes fit."""
    monkeypatch.setattr(settings, "SPARE_BITS", -40)
    short = MaskedScheme(100, MOST)
    assert (short.least_bits, short.octaves) == (12, 10)
    assert distance(short) > 0.9
    answer = shown(short, log_uniform(short.least_bits + 1, short.octaves - 2))
    sizes = [
        size
        for size in range(1, RECORDS // 2)
        if answer.denominator // (pairs := size * (RECORDS - size))
        > (answer.denominator - short.reach) // pairs
        and likelihood(short, answer, pairs) > 0
    ]
    assert POSITIVES in sizes
    assert len(sizes) < 60


def test_one_guess_of_a_size_is_tested_no_better_than_the_prior() -> None:
    """The true size and a wrong one: the odds of both stay what they were, for 20 answers."""
    scheme = MaskedScheme(100, MOST)
    for _ in range(20):
        multiplier = log_uniform(scheme.least_bits + 1, scheme.octaves - 2)
        other = 200_000 + secrets.randbelow(200_000)
        found = posterior(scheme, shown(scheme, multiplier), [POSITIVES, other])
        assert abs(found[0] - 0.5) < STATED


def test_the_numerators_perturbation_hides_the_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    """As wide as the others it would exclude sizes, whose numbers would be even and odd."""
    scheme = MaskedScheme(100, MOST)
    multiplier = int(2 ** (scheme.least_bits + scheme.octaves - 0.4))
    assert distance(scheme, 0.1, multiplier) < STATED
    monkeypatch.setattr(settings, "WIDTHS", (1, 1, 1))
    assert distance(scheme, 0.1, multiplier) > 0.1


def test_perturbations_that_are_no_multiple_of_the_multiplier_would_tell_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some multipliers would fit twice as often as others, and with them sizes."""
    scheme = MaskedScheme(100, MOST)
    multiplier = int(2 ** (scheme.least_bits + scheme.octaves - 0.5))
    assert distance(scheme, 0.1, multiplier) < STATED
    monkeypatch.setattr(MaskedScheme, "width", lambda self, multiplier: self.reach)
    assert distance(scheme, 0.1, multiplier) > 5 * STATED


@pytest.mark.parametrize("most", [2**17, 458_407, 2**20, 2**24, 2**32])
def test_the_conditions_of_the_statement_hold_for_every_bound(most: int) -> None:
    """V exceeds every product of totals by SPARE_BITS + 1, and every multiplier; accepted sizes."""
    scheme = MaskedScheme(100, most)
    assert scheme.reach >= (most**2 // 4) << (settings.SPARE_BITS + 1)
    assert scheme.reach == 1 << (scheme.least_bits + scheme.octaves)
    assert scheme.accepts(most**2 // 1000)
    for part in (0.0, 0.3, 0.99):
        multiplier = int(2 ** (scheme.least_bits + part * scheme.octaves))
        width = scheme.width(multiplier)
        assert width % multiplier == 0
        assert scheme.reach // 2 < width <= scheme.reach
    assert settings.MARGIN * scheme.honest_most < scheme.field.prime


def unevenness(parties: int, unknown: int, octaves: int) -> float:
    """By how much parties can tell whole numbers that fit from others, where parties perturb.

    ``unknown`` of them drew parts that a coalition of the others does not know. A sum of uniform
    parts has the density f; of numbers n the weights are ``f(x - n c)``. Their sum over n varies
    with x, which a wrong size makes random: the total variation from its mean, over x and over c,
    each of two such sums counted.
    """
    bins = 24
    part = 2**settings.SPREAD_BITS / parties
    found = []
    for place in np.arange(0.05, octaves, 0.1):
        step = max(round(bins * min(part * 2**place, 40.0)), 1)
        density, one = np.ones(1), np.full(step, 1 / step)
        spacing = round(step / (part * 2**place)) or 1
        for _ in range(unknown):
            density = np.convolve(density, one)
        padded = np.pad(density, (0, -density.size % spacing))
        sums = padded.reshape(-1, spacing).sum(axis=0) * spacing
        found.append(float(np.abs(sums - 1).mean() / 2))
    return 2 * float(np.mean(found))


@pytest.mark.parametrize(
    ("parties", "unknown", "stated"), [(3, 3, 0.01), (3, 1, 0.06), (15, 8, 0.01), (100, 100, 0.01)]
)
def test_what_parts_of_parties_leave_to_tell(parties: int, unknown: int, stated: float) -> None:
    """The figures of the threat model, for six octaves; a perturbation no wider would tell much."""
    assert unevenness(parties, unknown, 6) < stated


def test_a_narrow_sum_of_parts_would_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SPREAD_BITS", 0)
    assert unevenness(100, 100, 10) > 0.3
