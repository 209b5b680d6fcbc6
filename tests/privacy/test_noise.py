"""Draws of every distribution against exact probabilities; what samplers refuse and guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.privacy import exact
from tacit.privacy.exact import GAUSSIAN_GRID_BITS, GRID_BITS, Stairs, power_of_two_grid
from tacit.privacy.mechanisms.gaussian import DiscreteGaussian, Gaussian, Normal
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace, PolyaShare, Staircase
from tacit.privacy.mechanisms.response import Bits, Choices, RandomisedResponse, UniformIntegers
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise, SystemNoise
from tests.privacy import reference
from tests.privacy.reference import categories

Draws = NDArray[Any]
Maker = Callable[[Any], Distribution]

SCALED: dict[str, Maker] = {
    "laplace": lambda scale: Laplace(scale, 1.0),
    "gaussian": Normal,
    "discrete_laplace": lambda scale: DiscreteLaplace(scale, 1.0),
    "discrete_gaussian": lambda sigma: DiscreteGaussian(1, sigma),
    "share": lambda scale: PolyaShare(scale, 1.0, Fraction(1, 3)),
}
SHARES = (Fraction(1, 7), Fraction(4, 5), Fraction(7, 3))
RARE = {(1, 8.0): 120_000, (2, 8.0): 90_000, (7, 8.0): 30_000}
"""Draws that show a 30 % change of epsilon where almost all of them are zero; else 8,000 do."""


@dataclass(frozen=True)
class Sampler:
    """A distribution, the test of its draws, and a number of draws that shows a wrong scale."""

    name: str
    right: Distribution
    p_value: Callable[[Draws], float]
    size: int = 8000
    other: Distribution | None = None
    """The distribution with a probability 30 % off, where it has no scale."""

    def __str__(self) -> str:
        return self.name

    def wrong(self, factor: float) -> Distribution:
        return self.other or self.right.scaled(factor)


def continuous(law: Any, scale: float) -> Callable[[Draws], float]:
    return lambda draws: reference.continuous_p_value(draws, law(scale=scale).cdf)


def discrete(name: str, mechanism: Distribution, size: int = 8000) -> Sampler:
    return Sampler(name, mechanism, reference.law_of(mechanism).p_value, size)


def scaled() -> Iterator[Sampler]:
    """Noise of a scale, by name and parameters."""
    for scale in (0.01, 1.0, 3e6):
        yield Sampler(f"laplace-{scale:g}", Laplace(scale, 1.0), continuous(stats.laplace, scale))
        yield Sampler(f"gaussian-{scale:g}", Normal(scale), continuous(stats.norm, scale))
    private = Gaussian(3, 1.0, 1e-6)
    yield Sampler("private", private, continuous(stats.norm, float(private.sigma)))
    for scale in (0.4, 1.0, 20.0):
        for name in ("discrete_laplace", "discrete_gaussian"):
            yield discrete(f"{name}-{scale:g}", SCALED[name](scale))
        for share in SHARES:
            yield discrete(f"share-{share}-{scale:g}", PolyaShare(scale, 1.0, share), 50_000)
    for width, epsilon in product((1, 2, 7, 1000), (0.5, 1.0, 4.0, 8.0)):
        size, name = RARE.get((width, epsilon), 8000), f"staircase-{width}-{epsilon:g}"
        yield discrete(name, Staircase(width, epsilon), size)


def categorical() -> Iterator[Sampler]:
    """Bits, integers and choices."""
    for p in (0.02, 0.5, 0.7):
        yield Sampler(f"bits-{p:g}", Bits(p), categories(1 - p, p), 200_000)
    for epsilon in (0.5, 2.0, 5.0):
        flips = categories(np.exp(epsilon), 1)
        yield Sampler(f"flips-{epsilon:g}", RandomisedResponse(epsilon), flips, 200_000)
    for bound in (2, 3, 10):
        test, other = categories(*[1] * bound), Choices((7, *[10] * (bound - 1)))
        yield Sampler(f"integers-{bound}", UniformIntegers(bound), test, 20_000, other)
    weights, other = (5, 0, 3, 2), Choices((50, 0, 30, 26))
    yield Sampler("choices", Choices(weights), categories(*weights), 20_000, other)


SAMPLERS = [*scaled(), *categorical()]
SPLITS = {
    "two": [Fraction(1, 2)] * 2,
    "seven": [Fraction(1, 7)] * 7,
    "batches": [Fraction(2, 7), Fraction(5, 7)],
}


# --- chi-square tests against exact probabilities


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_simulated_draws_fit(sampler: Sampler) -> None:
    """False alarm: 1e-4 over the seed."""
    draws = SimulatedNoise(11).draw(sampler.right, (max(sampler.size, 50_000),))
    assert sampler.p_value(draws) > reference.SEEDED_LEVEL


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(each, marks=pytest.mark.thorough) if "-8" in each.name else each
        for each in SAMPLERS
    ],
    ids=str,
)
def test_system_draws_fit(sampler: Sampler) -> None:
    """False alarm: below 1e-6. Rare losses take seconds; wider steps show in fewer draws."""
    draws = SystemNoise().draw(sampler.right, (sampler.size,))
    assert sampler.p_value(draws) > reference.UNSEEDED_LEVEL


@pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_a_scale_30_percent_off_does_not_fit(sampler: Sampler, factor: float) -> None:
    """The same statistic and size reject, even at the stricter level of the system's test."""
    draws = SimulatedNoise(12).draw(sampler.wrong(factor), (sampler.size,))
    assert sampler.p_value(draws) < reference.UNSEEDED_LEVEL


@pytest.mark.parametrize("scale", [0.4, 1.0, 20.0])
@pytest.mark.parametrize("split", SPLITS)
def test_shares_add_up_to_the_whole_noise(split: str, scale: float) -> None:
    """False alarm: below 1e-6. A share too few, and one too many, are noticed."""
    law = reference.law_of(DiscreteLaplace(scale, 1.0))

    def p_value(noise: NoiseSource, shares: list[Fraction]) -> float:
        drawn = [noise.draw(PolyaShare(scale, 1.0, share), (8000,)) for share in shares]
        return law.p_value(np.sum(drawn, axis=0))

    shares = SPLITS[split]
    for noise in (SimulatedNoise(21), SystemNoise()):
        assert p_value(noise, shares) > reference.UNSEEDED_LEVEL
    for wrong in (shares[1:], [*shares, shares[0]]) if split != "seven" else ():
        assert p_value(SimulatedNoise(23), wrong) < reference.UNSEEDED_LEVEL


def test_bits_that_are_certain_are_always_drawn() -> None:
    for noise in (SimulatedNoise(15), SystemNoise()):
        assert [noise.draw(Bits(p), (999,)).mean() for p in (0.0, 1.0)] == [0, 1]


# --- the pieces that the system's samplers are built from


def test_uniform_integers_have_no_modulo_bias() -> None:
    """Taking 64-bit words modulo 3 * 2**62 would halve the upper two thirds' share.

    False alarm: below 1e-6.
    """
    bounds = np.full(3000, 3 * 2**62, dtype=np.uint64)
    thirds = (exact.uniform_below(bounds) >> np.uint64(62)).astype(np.int64)
    assert categories(1, 1, 1)(thirds) > reference.UNSEEDED_LEVEL
    assert categories(2, 1, 1)(thirds) < reference.UNSEEDED_LEVEL


def test_the_sampler_gets_a_scale_that_is_not_below_the_one_asked_for() -> None:
    asked = np.geomspace(1e-6, 1e12, 50) / 3
    given_scales: list[float] = []

    def record(scale: float, size: int) -> NDArray[np.int64]:
        given_scales.append(scale)
        return np.zeros(size, dtype=np.int64)

    exact.by_parameter(asked, record)
    for used, wanted in zip(given_scales, asked.tolist(), strict=True):
        ratio = Fraction(used) / Fraction(wanted)
        assert 1 + Fraction(7, 2**53) <= ratio <= 1 + Fraction(9, 2**53)


# --- what the system's samplers guarantee, with their roundings


@settings(max_examples=100)
@given(width=st.integers(1, 30), epsilon=st.floats(1e-6, 40))
@example(width=10, epsilon=2.0**-30)
@example(width=2, epsilon=700.0)
@example(width=30, epsilon=1e4)
def test_the_staircase_as_drawn_costs_epsilon(width: int, epsilon: float) -> None:
    """With the ratio of its geometric draw and its rounded outer share, in 60 digits."""
    stairs = Stairs.broadcast(width, epsilon, (1,))
    inner, chosen = int(stairs.inner[0]), int(exact.outer_threshold(stairs)[0])
    with localcontext(prec=60):
        fall = -1 / Decimal(float(1 / stairs.epsilon[0]) * exact.SCALE_SLACK)
        drop = Decimal(0)
        if width > inner:
            odds = Decimal(chosen) / Decimal(2**64 - chosen)
            drop = (odds * inner / (width - inner)).ln()
            assert fall <= drop <= 0
        else:
            assert chosen == 0, "a part of no width is never taken"
        log_weight = [
            step * fall + (drop if place >= inner else 0)
            for step in range(3)
            for place in range(width)
        ]
        signed = log_weight[:0:-1] + log_weight
        worst = max(
            abs(signed[place + shift] - signed[place])
            for shift in range(1, width + 1)
            for place in range(len(signed) - shift)
        )
        assert Decimal("0.999") * Decimal(epsilon) <= worst <= Decimal(epsilon)


@settings(max_examples=100)
@given(epsilon=st.floats(1e-12, 44))
def test_a_flipped_bit_costs_at_most_epsilon(epsilon: float) -> None:
    probability = float(np.exp(-epsilon) / (1 + np.exp(-epsilon)))
    drawn = reference.drawn_probability(probability)
    with localcontext(prec=60):
        ratio = (1 - drawn) / drawn
        exact_cost = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        assert 0 <= exact_cost <= Decimal(epsilon)


@pytest.mark.parametrize(
    ("asked", "drawn"), [(0.5, Fraction(1, 2)), (0.5 - 2.0**-54, Fraction(1, 2)), (0.0, 0)]
)
def test_a_bit_is_never_rounded_past_one_half(asked: float, drawn: Fraction) -> None:
    assert reference.drawn_probability(asked) == drawn


@pytest.mark.parametrize("bits", [GRID_BITS, GAUSSIAN_GRID_BITS])
@settings(max_examples=100)
@given(scale=st.floats(1e-300, 2.0**44))
def test_the_grid_is_a_fine_power_of_two(bits: int, scale: float) -> None:
    grid = Fraction(float(power_of_two_grid(scale, bits)))
    assert grid.numerator == 1 or grid == 1
    assert grid.denominator & (grid.denominator - 1) == 0
    if scale < 1e-280:
        assert grid >= Fraction(1, 2**1022)
    elif grid < 1:
        assert Fraction(scale) / 2 ** (bits + 1) < grid <= Fraction(scale) / 2**bits
    else:
        assert scale >= 2**bits


@pytest.mark.parametrize("scale", [1e-5, 0.37, 1.0, 1234.5, 7.7e8])
@pytest.mark.parametrize(
    ("name", "bits"), [("laplace", GRID_BITS), ("gaussian", GAUSSIAN_GRID_BITS)]
)
def test_draws_lie_on_the_grid_and_sums_are_rounded_once(
    name: str, bits: int, scale: float
) -> None:
    grid = Fraction(float(power_of_two_grid(scale, bits)))
    for drawn in SystemNoise().draw(SCALED[name](scale), (200,)).tolist():
        assert (Fraction(drawn) / grid).denominator == 1
        for value in (0, 1, 3**20, 2**40):
            assert float(value) + drawn == float(Fraction(value) + Fraction(drawn))


def test_the_gaussian_grid_fits_in_the_delta_kept_back() -> None:
    a_coordinate = (2.0**-GAUSSIAN_GRID_BITS) ** 2 / 4
    total = 1000 * (1 + np.exp(8.0)) * a_coordinate
    assert exact.gaussian_delta(8.0, 1e-12, 1000) <= 1e-12 - 0.999 * total
    with pytest.raises(ValueError, match=r"delta must be at least .* got 1e-13"):
        exact.gaussian_delta(8.0, 1e-13, 1000)


ONE_OF_EACH = list({type(each.right): each.right for each in SAMPLERS}.values())


# --- shapes, the replicate axis, seeds, and what is refused


@pytest.mark.parametrize("right", ONE_OF_EACH, ids=lambda each: type(each).__name__)
def test_every_source_draws_the_same_shape_and_type(right: Distribution) -> None:
    for shape in ((), (0,), (4, 3)):
        sources = (SimulatedNoise(1), SystemNoise(), NoNoise())
        drawn = [source.draw(right, shape) for source in sources]
        assert {each.shape for each in drawn} == {shape}
        assert {each.dtype for each in drawn} == {np.dtype(right.kind)}
        assert not drawn[-1].any()
    leading = (4, 3) if right.shared else (6, 4, 3)
    for source in (SimulatedNoise(1, replicates=6), NoNoise(replicates=6)):
        assert source.draw(right, (4, 3)).shape == leading


@pytest.mark.parametrize("name", [*SCALED, "staircase"])
@pytest.mark.parametrize("source", [SimulatedNoise(2, replicates=400), SystemNoise()])
def test_parameters_broadcast_and_scales_may_be_zero_or_far_apart(
    name: str, source: NoiseSource
) -> None:
    """Against the full shape, with the replicate axis."""
    make: Maker = SCALED.get(name, lambda widths: Staircase(widths, [0.0, 1.0, 2.0]))
    scales = np.array([0.0, 1.0, 30.0 if name == "share" else 1e9])
    shape = (400, 3) if source.replicates is None else (3,)
    for each in (scales, np.broadcast_to(scales, (400, 3))):
        draws = source.draw(make(each), shape)
        assert draws.shape == (400, 3)
        assert not draws[:, 0].any()
        assert np.abs(draws[:, 1]).max() < np.abs(draws[:, 2]).max()
    if name not in ("share", "staircase"):
        draws = source.draw(make([5e-324, 1e-200, 1e-3, 2.0**44]), (4,))
        assert np.all(np.isfinite(draws))
        assert np.abs(draws[..., 3]).max() < 2.0**53


def test_a_staircase_may_have_any_epsilon() -> None:
    epsilons = [2.0**-30, 1e-6, 1e-3, 50.0, 700.0, 1e300]
    for source in (SimulatedNoise(1), SystemNoise()):
        for width in (1, 2, 10_000):
            assert source.draw(Staircase(width, epsilons), (6,)).shape == (6,)


@pytest.mark.parametrize("source", [SimulatedNoise(3), SystemNoise()])
def test_each_integer_keeps_its_own_bound(source: NoiseSource) -> None:
    drawn = source.draw(UniformIntegers([1, 5, 2**44]), (3000, 3))
    assert drawn.min() >= 0
    assert (drawn < [1, 5, 2**44]).all()
    assert set(drawn[:, 1].tolist()) == set(range(5))
    assert drawn[:, 2].max() > 2**43


@pytest.mark.parametrize("source", [SimulatedNoise(4), SystemNoise(), NoNoise()])
def test_a_single_weight_is_always_chosen(source: NoiseSource) -> None:
    for place in (0, 2):
        weights = [7 if at == place else 0 for at in range(3)]
        assert source.draw(Choices(weights), (50,)).tolist() == [place] * 50


def test_replicates_are_independent() -> None:
    """Correlations of 20,000 pairs; false alarm: 1e-8 for each, and duplicates would show."""
    for each in ONE_OF_EACH:
        if not each.shared:
            draws = SimulatedNoise(4, replicates=2).draw(each, (20_000,)).astype(np.float64)
            assert abs(np.corrcoef(draws)[0, 1]) < stats.norm.isf(5e-9) / np.sqrt(20_000)


def test_a_seed_repeats_the_draws() -> None:
    first, again, other = (SimulatedNoise(k).draw(Normal(4.0), (50,)) for k in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    with pytest.raises(ValueError, match="replicates must be at least 1, got 0"):
        SimulatedNoise(replicates=0)


def test_system_noise_takes_no_seed_and_keeps_nothing() -> None:
    """Equal draws under equal seeds of NumPy have probability below 1e-200."""
    with pytest.raises(TypeError):
        SystemNoise(seed=1)  # type: ignore[call-arg]
    noise, draws = SystemNoise(), list[Draws]()
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 -- the global state is the point
        draws.append(noise.draw(Normal(1.0), (50,)))
    assert not np.array_equal(draws[0], draws[1])
    assert vars(noise) == {}


@pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise()])
@pytest.mark.parametrize(
    ("make", "refused", "said"),
    [
        *(
            (make, [-1.0, -1e-300, np.nan, np.inf, -np.inf, 2.0**45], r"must be from 0 to 2")
            for make in SCALED.values()
        ),
        (lambda width: Staircase(width, 1.0), [0.5, -1, np.nan, np.inf], "a whole number from"),
        (lambda e: Staircase([3, 3], e), [0.0, -1.0, np.nan, np.inf, 2.0**-31], r"2\*\*-30"),
        (lambda _: Staircase(2**40, 1e-3), [0], r"sensitivity / epsilon must be from 0 to"),
        (lambda p: Bits(p[1]), [-0.1, 1.1, np.nan, np.inf], "must be from 0 to 1, got"),
        (UniformIntegers, [0, -3], "bounds must be at least 1, got"),
        (lambda _: Choices((0, 0)), [0], "at least 1, got 0|high <= 0"),
        (lambda _: PolyaShare(1.0, 1.0, Fraction(-1, 2)), [0], "share must be above 0, got -1"),
        (lambda _: PolyaShare(1.0, 1.0, Fraction(0)), [0], "share must be above 0, got 0"),
    ],
)
def test_bad_parameters_are_refused(
    source: NoiseSource, make: Maker, refused: list[float], said: str
) -> None:
    for bad in refused:
        with pytest.raises(ValueError, match=said):
            source.draw(make([1.0, bad]), (2,))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_no_epsilon_is_needed_where_there_is_no_noise(bad: float) -> None:
    for source in (SimulatedNoise(1), SystemNoise()):
        assert source.draw(Staircase([3, 0], [1.0, bad]), (2,))[1] == 0
