"""The noise sources against exact distributions; what they draw, refuse and guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.privacy import exact
from tacit.privacy.exact import (
    GAUSSIAN_GRID_BITS,
    GRID_BITS,
    Stairs,
    gaussian_delta,
    outer_threshold,
    power_of_two_grid,
)
from tacit.privacy.mechanisms.gaussian import DiscreteGaussian, Normal
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.laplace import (
    DiscreteLaplace,
    Laplace,
    Staircase,
)
from tacit.privacy.mechanisms.response import Bits
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise, SystemNoise
from tests.privacy import reference

Draws = NDArray[Any]

METHODS: dict[str, Callable[[Any], Distribution]] = {
    "laplace": lambda scale: Laplace(scale, 1.0),
    "gaussian": Normal,
    "discrete_laplace": lambda scale: DiscreteLaplace(scale, 1.0),
    "discrete_gaussian": lambda sigma: DiscreteGaussian(1, sigma),
}
WIDTHS = (1, 2, 7, 1000)
EPSILONS = (0.5, 1.0, 4.0, 8.0)
RARE = {(1, 8.0): 120_000, (2, 8.0): 90_000, (7, 8.0): 30_000}
"""Draws that show a 30 % change of epsilon where almost all of them are zero; else 8,000 do."""


@dataclass(frozen=True)
class Sampler:
    """A sampler whose noise grows with ``factor``, and the test of its draws at factor 1."""

    name: str
    draw: Callable[[NoiseSource, int, float], Draws]
    p_value: Callable[[Draws], float]
    size: int = 8000


def scaled(method: str, scale: float, p_value: Callable[[Draws], float]) -> Sampler:
    def draw(noise: NoiseSource, size: int, factor: float) -> Draws:
        return noise.draw(METHODS[method](scale * factor), (size,))

    return Sampler(f"{method}-{scale:g}", draw, p_value)


def staircase(width: int, epsilon: float) -> Sampler:
    def draw(noise: NoiseSource, size: int, factor: float) -> Draws:
        return noise.draw(Staircase(width, epsilon / factor), (size,))

    expected = reference.best_staircase(width, epsilon)
    size = RARE.get((width, epsilon), 8000)
    return Sampler(f"staircase-{width}-{epsilon:g}", draw, expected.p_value, size)


def continuous(cdf: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Any:
    return lambda draws: reference.continuous_p_value(draws, cdf)


SAMPLERS = [
    *(
        scaled("laplace", scale, continuous(reference.laplace_cdf(scale)))
        for scale in (0.01, 1.0, 3e6)
    ),
    *(
        scaled("gaussian", sigma, continuous(reference.gaussian_cdf(sigma)))
        for sigma in (0.01, 1.0, 3e6)
    ),
    *(
        scaled("discrete_laplace", scale, reference.discrete_laplace(scale).p_value)
        for scale in (0.4, 1.0, 20.0)
    ),
    *(
        scaled("discrete_gaussian", sigma, reference.discrete_gaussian(sigma).p_value)
        for sigma in (0.5, 1.0, 20.0)
    ),
    *(staircase(width, epsilon) for width in WIDTHS for epsilon in EPSILONS),
]
FROM_SYSTEM = [
    pytest.param(sampler, marks=pytest.mark.thorough) if sampler.size >= 30_000 else sampler
    for sampler in SAMPLERS
]
"""Those of rare losses take the system seconds; wider steps are as rare, and show in fewer."""
ONE_OF_EACH = [
    sampler
    for sampler in SAMPLERS
    if sampler.name.endswith(("laplace-1", "gaussian-1")) or sampler.name == "staircase-7-1"
]


def named(sampler: Sampler) -> str:
    return sampler.name


class TestDistributions:
    """Chi-square tests against exact probabilities."""

    @pytest.mark.parametrize("sampler", SAMPLERS, ids=named)
    def test_simulated_draws_fit(self, sampler: Sampler) -> None:
        """False alarm: 1e-4 over the seed."""
        draws = sampler.draw(SimulatedNoise(11), max(sampler.size, 50_000), 1.0)
        assert sampler.p_value(draws) > reference.SEEDED_LEVEL

    @pytest.mark.parametrize("sampler", FROM_SYSTEM, ids=named)
    def test_system_draws_fit(self, sampler: Sampler) -> None:
        """False alarm: below 1e-6."""
        draws = sampler.draw(SystemNoise(), sampler.size, 1.0)
        assert sampler.p_value(draws) > reference.UNSEEDED_LEVEL

    @pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
    @pytest.mark.parametrize("sampler", SAMPLERS, ids=named)
    def test_a_scale_30_percent_off_does_not_fit(self, sampler: Sampler, factor: float) -> None:
        """The same statistic and size reject, even at the stricter level of the system's test."""
        draws = sampler.draw(SimulatedNoise(12), sampler.size, factor)
        assert sampler.p_value(draws) < reference.UNSEEDED_LEVEL

    @pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
    @pytest.mark.parametrize("sampler", ONE_OF_EACH, ids=named)
    def test_system_draws_30_percent_off_do_not_fit(self, sampler: Sampler, factor: float) -> None:
        """False alarm: below 1e-6."""
        draws = sampler.draw(SystemNoise(), sampler.size, factor)
        assert sampler.p_value(draws) < reference.UNSEEDED_LEVEL

    @pytest.mark.parametrize("sampler", ONE_OF_EACH, ids=named)
    def test_simulated_and_system_draws_agree(self, sampler: Sampler) -> None:
        """Two-sample Kolmogorov-Smirnov test; false alarm: 1e-8."""
        simulated = sampler.draw(SimulatedNoise(13), 50_000, 1.0)
        agreeing = stats.ks_2samp(simulated, sampler.draw(SystemNoise(), 8000, 1.0))
        assert agreeing.pvalue > reference.UNSEEDED_LEVEL

    @pytest.mark.parametrize("source", [SimulatedNoise(15), SystemNoise()])
    @pytest.mark.parametrize("probability", [0.0, 0.02, 0.2689, 0.5, 0.9, 1.0])
    def test_bernoulli(self, source: NoiseSource, probability: float) -> None:
        """Exact binomial test; false alarm: 1e-8."""
        ones = int(source.draw(Bits(probability), (200_000,)).sum())
        level = reference.UNSEEDED_LEVEL
        assert stats.binomtest(ones, 200_000, probability).pvalue > level
        if 0 < probability < 1:
            for wrong in (min(probability * 1.3, 1.0), probability / 1.3):
                assert stats.binomtest(ones, 200_000, wrong).pvalue < level


class TestExactDraws:
    """The pieces that the system's samplers are built from."""

    def test_uniform_integers_have_no_modulo_bias(self) -> None:
        """Taking 64-bit words modulo 3 * 2**62 would halve the upper two thirds' share.

        False alarm: below 1e-6.
        """
        bounds = np.full(3000, 3 * 2**62, dtype=np.uint64)
        thirds = (exact.uniform_below(bounds) >> np.uint64(62)).astype(np.int64)
        observed = np.bincount(thirds, minlength=3)
        level = reference.UNSEEDED_LEVEL
        assert stats.chisquare(observed).pvalue > level
        assert stats.chisquare(observed, [1500, 750, 750]).pvalue < level

    def test_uniform_integers_fill_their_own_bound(self) -> None:
        bounds = np.tile(np.array([1, 2, 7, 1000, 2**44], dtype=np.uint64), 2000)
        draws = exact.uniform_below(bounds)
        assert np.all(draws < bounds)
        for bound in (1, 2, 7):
            assert set(draws[bounds == bound].tolist()) == set(range(bound))

    @pytest.mark.parametrize("rate", [0.1, 1.0, 3.0])
    def test_geometric(self, rate: float) -> None:
        """False alarm: below 1e-6; power checked at rates 30 % off."""
        draws = exact.geometric(np.full(8000, rate))

        def p_value(other: float) -> float:
            expected = reference.Discrete(
                int(40 / other), lambda z: np.where(z >= 0, np.exp(-other * z), 0.0)
            )
            return expected.p_value(draws)

        level = reference.UNSEEDED_LEVEL
        assert p_value(rate) > level
        assert p_value(rate * 1.3) < level
        assert p_value(rate / 1.3) < level

    def test_each_parameter_keeps_its_place(self) -> None:
        scales = np.array([[0.0, 1e12, 1e-3], [1e12, 0.0, 1e-3]])
        draws = exact.by_parameter(scales, exact.discrete_laplace)
        assert draws.shape == (2, 3)
        assert np.array_equal(draws != 0, scales == 1e12)

    def test_the_sampler_gets_a_scale_that_is_not_below_the_one_asked_for(self) -> None:
        asked = np.geomspace(1e-6, 1e12, 50) / 3
        given_scales: list[float] = []

        def record(scale: float, size: int) -> NDArray[np.int64]:
            given_scales.append(scale)
            return np.zeros(size, dtype=np.int64)

        exact.by_parameter(asked, record)
        ratios = [
            Fraction(used) / Fraction(wanted)
            for used, wanted in zip(given_scales, asked.tolist(), strict=True)
        ]
        assert all(1 + Fraction(7, 2**53) <= ratio <= 1 + Fraction(9, 2**53) for ratio in ratios)

    def test_many_sensitivities_take_few_calls(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes: list[int] = []
        whole = exact.discrete_laplace

        def counted(scale: float, size: int) -> NDArray[np.int64]:
            sizes.append(size)
            return whole(scale, size)

        monkeypatch.setattr(exact, "discrete_laplace", counted)
        SystemNoise().draw(Staircase(np.arange(1, 10_001), 1.0), (10_000,))
        assert sizes[0] == 10_000
        assert len(sizes) < 40


class TestPrivacy:
    """What the system's samplers guarantee, with their roundings."""

    @settings(max_examples=100, deadline=None)
    @given(width=st.integers(1, 30), epsilon=st.floats(1e-6, 40))
    def test_the_staircase_as_drawn_costs_epsilon(self, width: int, epsilon: float) -> None:
        """With the ratio of its geometric draw and its rounded outer share, in 60 digits."""
        stairs = Stairs.broadcast(width, epsilon, (1,))
        inner, chosen = int(stairs.inner[0]), int(outer_threshold(stairs)[0])
        with localcontext(prec=60):
            fall = -1 / Decimal(float(1 / stairs.epsilon[0]) * exact.SCALE_SLACK)
            drop = Decimal(0)
            if width > inner:
                odds = Decimal(chosen) / Decimal(2**64 - chosen)
                drop = (odds * inner / (width - inner)).ln()
                assert fall <= drop <= 0
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

    @pytest.mark.parametrize("epsilon", [2.0**-30, 1e-3, 20.0, 50.0, 700.0, 1e4])
    @pytest.mark.parametrize("width", [2, 10, 10**4])
    def test_the_outer_part_is_never_too_rare(self, width: int, epsilon: float) -> None:
        stairs = Stairs.broadcast(width, epsilon, (1,))
        inner, chosen = int(stairs.inner[0]), int(outer_threshold(stairs)[0])
        with localcontext(prec=60):
            odds = Decimal(chosen) / Decimal(2**64 - chosen)
            weight = odds * inner / (width - inner)
            fall = (-1 / Decimal(float(1 / stairs.epsilon[0]) * exact.SCALE_SLACK)).exp()
            assert fall <= weight <= 1

    def test_a_staircase_without_an_outer_part_never_takes_it(self) -> None:
        stairs = Stairs.broadcast(1, 1.0, (1,))
        assert outer_threshold(stairs).tolist() == [0]

    @settings(max_examples=100, deadline=None)
    @given(epsilon=st.floats(1e-12, 44))
    def test_a_flipped_bit_costs_at_most_epsilon(self, epsilon: float) -> None:
        probability = float(np.exp(-epsilon) / (1 + np.exp(-epsilon)))
        with pytest.MonkeyPatch.context() as patch:
            drawn = drawn_probability(patch, probability)
        with localcontext(prec=60):
            ratio = (1 - drawn) / drawn
            exact_cost = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            assert 0 <= exact_cost <= Decimal(epsilon)

    def test_a_bit_is_never_rounded_past_one_half(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert drawn_probability(monkeypatch, 0.5) == Fraction(1, 2)
        assert drawn_probability(monkeypatch, 0.5 - 2.0**-54) == Fraction(1, 2)
        assert drawn_probability(monkeypatch, 0.0) == 0

    @pytest.mark.parametrize("bits", [GRID_BITS, GAUSSIAN_GRID_BITS])
    @settings(max_examples=100, deadline=None)
    @given(scale=st.floats(1e-300, 2.0**44))
    def test_the_grid_is_a_fine_power_of_two(self, bits: int, scale: float) -> None:
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
    def test_draws_lie_on_the_grid_and_sums_are_rounded_once(self, scale: float) -> None:
        draws = [
            (SystemNoise().draw(Laplace(scale, 1.0), (200,)), GRID_BITS),
            (SystemNoise().draw(Normal(scale), (200,)), GAUSSIAN_GRID_BITS),
        ]
        for noise, bits in draws:
            grid = Fraction(float(power_of_two_grid(scale, bits)))
            for drawn in noise.tolist():
                assert (Fraction(drawn) / grid).denominator == 1
                for value in (0, 1, 3**20, 2**40):
                    assert float(value) + drawn == float(Fraction(value) + Fraction(drawn))

    def test_the_gaussian_grid_fits_in_the_delta_kept_back(self) -> None:
        a_coordinate = (2.0**-GAUSSIAN_GRID_BITS) ** 2 / 4
        total = 1000 * (1 + np.exp(8.0)) * a_coordinate
        assert gaussian_delta(8.0, 1e-12, 1000) <= 1e-12 - 0.999 * total
        with pytest.raises(ValueError, match=r"delta must be at least .* got 1e-13"):
            gaussian_delta(8.0, 1e-13, 1000)

    def test_the_laplace_grid_keeps_the_variance(self) -> None:
        steps = 2.0**GRID_BITS
        rate = 1 / (steps * exact.SCALE_SLACK)
        ratio = (rate / 2 / np.sinh(rate / 2)) ** 2 * exact.SCALE_SLACK**2
        assert abs(ratio - 1) < 1e-12


def drawn_probability(patch: pytest.MonkeyPatch, probability: float) -> Fraction:
    """How often the exact ``Bits`` are True for a probability of at most one half.

    By bisection on the 64-bit word that it draws.
    """
    low, high = 0, 2**64
    while low < high:
        middle = (low + high) // 2
        word = np.array([middle], dtype=np.uint64)
        patch.setattr(exact, "words", lambda size, word=word: word)
        if SystemNoise().draw(Bits(probability), (1,))[0]:
            low = middle + 1
        else:
            high = middle
    return Fraction(low, 2**64)


class TestShapes:
    """Shapes, broadcasting, the replicate axis and zero scales."""

    def test_the_replicate_axis_leads(self) -> None:
        noise = SimulatedNoise(1, replicates=5)
        for make in METHODS.values():
            assert noise.draw(make(1.0), (3, 2)).shape == (5, 3, 2)
        assert noise.draw(Staircase(4, 1.0), (3, 2)).shape == (5, 3, 2)
        assert noise.draw(Bits(0.3), (7,)).shape == (5, 7)

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise(), NoNoise()])
    def test_without_replicates_there_is_no_extra_axis(self, source: NoiseSource) -> None:
        for make in METHODS.values():
            for shape in ((), (0,), (4,), (2, 3)):
                assert source.draw(make(1.0), shape).shape == shape
        for shape in ((), (0,), (4,), (2, 3)):
            assert source.draw(Staircase(3, 1.0), shape).shape == shape
        assert source.draw(Bits(0.3), (7,)).shape == (7,)
        assert source.draw(Bits(0.3), (0,)).shape == (0,)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("shape", [(3,), (400, 3)])
    def test_parameters_broadcast_against_the_full_shape(
        self, method: str, shape: tuple[int, ...]
    ) -> None:
        scales = np.broadcast_to([0.0, 1.0, 1e9], shape)
        draws = SimulatedNoise(2, replicates=400).draw(METHODS[method](scales), (3,))
        assert draws.shape == (400, 3)
        assert not draws[:, 0].any()
        assert np.abs(draws[:, 1]).max() < 100 < np.median(np.abs(draws[:, 2]))

    @pytest.mark.parametrize("shape", [(3,), (400, 3)])
    def test_staircase_parameters_broadcast(self, shape: tuple[int, ...]) -> None:
        noise = SimulatedNoise(3, replicates=400)
        widths = np.broadcast_to([0, 1, 10**9], shape)
        for epsilon in (1.0, np.broadcast_to([0.0, 1.0, 2.0], shape)):
            draws = noise.draw(Staircase(widths, epsilon), (3,))
            assert draws.shape == (400, 3)
            assert not draws[:, 0].any()
            assert np.abs(draws[:, 1]).max() < 100 < np.median(np.abs(draws[:, 2]))

    def test_replicates_are_independent(self) -> None:
        """Correlations of 20,000 pairs; false alarm: 1e-8 for each, and duplicates would show."""
        noise = SimulatedNoise(4, replicates=2)
        for draws in (
            *(noise.draw(make(3.0), (20_000,)) for make in METHODS.values()),
            noise.draw(Staircase(5, 1.0), (20_000,)),
            noise.draw(Bits(0.3), (20_000,)).astype(np.float64),
        ):
            assert abs(np.corrcoef(draws)[0, 1]) < stats.norm.isf(5e-9) / np.sqrt(20_000)

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise(), NoNoise()])
    def test_zero_scale_draws_zero(self, source: NoiseSource) -> None:
        for make in METHODS.values():
            assert not np.any(source.draw(make(np.zeros(50)), (50,)))
        assert not np.any(source.draw(Staircase(np.zeros(50, dtype=np.int64), 1.0), (50,)))

    def test_no_noise_is_all_zeros(self) -> None:
        noise = NoNoise(replicates=2)
        for make in METHODS.values():
            assert np.array_equal(noise.draw(make(5.0), (3,)), np.zeros((2, 3)))
        assert np.array_equal(noise.draw(Staircase(5, 1.0), (3,)), np.zeros((2, 3)))
        assert not noise.draw(Bits(1.0), (3,)).any()

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise()])
    def test_the_widest_range_of_parameters(self, source: NoiseSource) -> None:
        for make in METHODS.values():
            draws = source.draw(make([5e-324, 1e-200, 1e-3, 2.0**44]), (4,))
            assert np.all(np.isfinite(draws))
            assert abs(draws[3]) < 2.0**53
        epsilons = [2.0**-30, 1e-6, 1e-3, 50.0, 700.0, 1e300]
        for width in (1, 2, 10_000):
            assert source.draw(Staircase(width, epsilons), (6,)).shape == (6,)


class TestSources:
    """Seeds, and what is refused."""

    def test_a_seed_repeats_the_draws(self) -> None:
        for make in METHODS.values():
            first, again = (SimulatedNoise(7).draw(make(4.0), (50,)) for _ in range(2))
            other = SimulatedNoise(8).draw(make(4.0), (50,))
            assert np.array_equal(first, again)
            assert not np.array_equal(first, other)

    def test_system_noise_takes_no_seed(self) -> None:
        for arguments in ((1,), (None,)):
            with pytest.raises(TypeError):
                SystemNoise(*arguments)
        with pytest.raises(TypeError):
            SystemNoise(seed=1)  # type: ignore[call-arg]

    def test_system_noise_ignores_the_state_of_numpy(self) -> None:
        """Equal draws under equal seeds have probability below 1e-200."""
        draws: list[Draws] = []
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002 -- the global state is the point
            draws.append(SystemNoise().draw(Normal(1.0), (50,)))
        assert not np.array_equal(draws[0], draws[1])

    def test_system_noise_keeps_nothing(self) -> None:
        noise = SystemNoise()
        noise.draw(Staircase(3, 1.0), (5,))
        noise.draw(Laplace(1, 1.0), (5,))
        assert vars(noise) == {}

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise()])
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("bad", [-1.0, -1e-300, np.nan, np.inf, -np.inf, 2.0**45])
    def test_bad_scales_are_refused(self, source: NoiseSource, method: str, bad: float) -> None:
        name = "sigma" if "gaussian" in method else "scale"
        with pytest.raises(ValueError, match=rf"^{name} must be from 0 to 2\*\*44, got "):
            source.draw(METHODS[method]([1.0, bad, 2.0]), (3,))

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise()])
    @pytest.mark.parametrize("bad", [0.5, -1, np.nan, np.inf])
    def test_bad_sensitivities_are_refused(self, source: NoiseSource, bad: float) -> None:
        with pytest.raises(ValueError, match=r"sensitivity must be a whole number from 0"):
            source.draw(Staircase([1, bad], 1.0), (2,))

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise()])
    @pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, 2.0**-31])
    def test_bad_epsilons_are_refused(self, source: NoiseSource, bad: float) -> None:
        with pytest.raises(ValueError, match=r"epsilon must be finite and at least 2\*\*-30"):
            source.draw(Staircase(3, [1.0, bad]), (2,))
        assert source.draw(Staircase([3, 0], [1.0, bad]), (2,))[1] == 0

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise()])
    def test_noise_wider_than_its_integers_is_refused(self, source: NoiseSource) -> None:
        with pytest.raises(ValueError, match=r"sensitivity / epsilon must be from 0 to 2\*\*44"):
            source.draw(Staircase(2**40, 1e-3), ())

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise()])
    @pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf])
    def test_bad_probabilities_are_refused(self, source: NoiseSource, bad: float) -> None:
        with pytest.raises(ValueError, match=f"probability must be from 0 to 1, got {bad}"):
            source.draw(Bits(bad), (3,))

    def test_replicates_are_at_least_one(self) -> None:
        with pytest.raises(ValueError, match="replicates must be at least 1, got 0"):
            SimulatedNoise(replicates=0)
