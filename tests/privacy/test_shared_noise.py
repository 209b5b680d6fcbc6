"""Shares of discrete Laplace noise, uniform integers, and choices."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import tacit
from tacit.privacy import exact
from tacit.privacy.distributions import discrete_laplace_variance, shared_laplace_epsilon
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.mechanisms.response import Choices, UniformIntegers
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise, SystemNoise
from tests.privacy import reference

Floats = NDArray[np.float64]
Draws = NDArray[np.int64]

SPLITS = {
    "one": [Fraction(1)],
    "two": [Fraction(1, 2)] * 2,
    "seven": [Fraction(1, 7)] * 7,
    "batches": [Fraction(2, 7), Fraction(5, 7)],
}
SCALES = (0.4, 1.0, 20.0)
SHARES = (Fraction(1, 1000), Fraction(1, 7), Fraction(4, 5), Fraction(5, 2))
every_split = pytest.mark.parametrize("split", list(SPLITS))
every_scale = pytest.mark.parametrize("scale", SCALES)


def total_of_shares(noise: NoiseSource, split: str, scale: float, size: int) -> Draws:
    return sum(
        (noise.draw(PolyaShare(scale, 1.0, share), (size,)) for share in SPLITS[split]),
        np.zeros(size, np.int64),
    )


def share_probabilities(scale: float, share: Fraction) -> reference.Discrete:
    """The difference of two negative binomial numbers, by convolution."""
    reach = int(45 * scale * max(1.0, float(share))) + 10
    single = stats.nbinom.pmf(np.arange(reach + 1), float(share), -np.expm1(-1 / scale))
    both = np.convolve(single, single[::-1])
    return reference.Discrete(reach, lambda z: both[z + reach])


class TestSharesAddUp:
    """Chi-square tests of the sum of all shares against discrete Laplace probabilities."""

    @every_scale
    @every_split
    def test_simulated(self, split: str, scale: float) -> None:
        """False alarm: 1e-4 over the seed."""
        draws = total_of_shares(SimulatedNoise(21), split, scale, 50_000)
        assert reference.discrete_laplace(scale).p_value(draws) > reference.SEEDED_LEVEL

    @every_scale
    @every_split
    def test_system(self, split: str, scale: float) -> None:
        """False alarm: below 1e-6."""
        draws = total_of_shares(SystemNoise(), split, scale, 8000)
        assert reference.discrete_laplace(scale).p_value(draws) > reference.UNSEEDED_LEVEL

    @pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
    @every_scale
    @every_split
    def test_a_scale_30_percent_off_does_not_fit(
        self, split: str, scale: float, factor: float
    ) -> None:
        """The same statistic and size reject, even at the stricter level of the system's test."""
        draws = total_of_shares(SimulatedNoise(22), split, scale * factor, 8000)
        assert reference.discrete_laplace(scale).p_value(draws) < reference.UNSEEDED_LEVEL

    @pytest.mark.parametrize("share", [Fraction(5, 7), Fraction(9, 7)], ids=str)
    def test_a_share_too_few_or_too_many_does_not_fit(self, share: Fraction) -> None:
        draws = SimulatedNoise(23).draw(PolyaShare(5.0, 1.0, share), (8000,))
        law = reference.discrete_laplace(5.0)
        assert law.p_value(draws) < reference.UNSEEDED_LEVEL


class TestOneShare:
    """A share's own distribution."""

    @every_scale
    @pytest.mark.parametrize("share", SHARES[1:], ids=str)
    def test_simulated(self, share: Fraction, scale: float) -> None:
        """False alarm: 1e-4 over the seed; scales 30 % off are refused."""
        law = share_probabilities(scale, share)
        draws = SimulatedNoise(25).draw(PolyaShare(scale, 1.0, share), (50_000,))
        assert law.p_value(draws) > reference.SEEDED_LEVEL
        for factor in (1.3, 1 / 1.3):
            wrong = SimulatedNoise(25).draw(PolyaShare(scale * factor, 1.0, share), (50_000,))
            assert law.p_value(wrong) < reference.SEEDED_LEVEL

    @every_scale
    @pytest.mark.parametrize("share", SHARES[1:], ids=str)
    def test_system(self, share: Fraction, scale: float) -> None:
        """False alarm: below 1e-6; scales 30 % off are refused.

        A seventh shows it least: of 30,000 draws, almost all of them zero, the root of the
        statistic is ten of its standard deviations above that of the limit.
        """
        draws = SystemNoise().draw(PolyaShare(scale, 1.0, share), (30_000,))
        law = share_probabilities(scale, share)
        assert law.p_value(draws) > reference.UNSEEDED_LEVEL
        for factor in (1.3, 1 / 1.3):
            wrong = share_probabilities(scale * factor, share)
            assert wrong.p_value(draws) < reference.UNSEEDED_LEVEL

    def test_variances_are_shares_of_the_whole(self) -> None:
        """200,000 draws of a fortieth; kurtosis 120 gives 2.5 %, so 10 % is four of it."""
        draws = SimulatedNoise(26).draw(PolyaShare(10.0, 1.0, Fraction(1, 40)), (200_000,))
        whole = float(discrete_laplace_variance(10.0))
        assert draws.var() == pytest.approx(whole / 40, rel=0.1)

    def test_shapes_and_zero_scales(self) -> None:
        for source in (SimulatedNoise(1, replicates=4), NoNoise(replicates=4)):
            assert source.draw(PolyaShare(3.0, 1.0, Fraction(1, 3)), (2, 5)).shape == (4, 2, 5)
        for own in (SimulatedNoise(1), SystemNoise(), NoNoise()):
            for share in (Fraction(1), Fraction(1, 3)):
                draws = own.draw(PolyaShare([0.0, 30.0], 1.0, share), (200, 2))
                assert draws.shape == (200, 2)
                assert draws.dtype == np.int64
                assert not draws[:, 0].any()
                assert draws[:, 1].any() == (not isinstance(own, NoNoise))

    @pytest.mark.parametrize("source", [SimulatedNoise(1), SystemNoise()])
    def test_what_is_out_of_range_is_refused(self, source: NoiseSource) -> None:
        for share in (Fraction(0), Fraction(-1, 2)):
            with pytest.raises(ValueError, match=f"share must be above 0, got {share}"):
                source.draw(PolyaShare(1.0, 1.0, share), (1,))
        with pytest.raises(ValueError, match=r"scale must be from 0 to 2\*\*44, got -1"):
            source.draw(PolyaShare(-1.0, 1.0, Fraction(1, 2)), (1,))

    def test_tables_are_not_made_for_scales_that_they_cannot_hold(self) -> None:
        with pytest.raises(ValueError, match=r"a scale of at most 65536.*, got 70000"):
            exact.polya(70_000.0, Fraction(1, 2), 1)


def distribution(scale: float, share: Fraction, entries: int) -> list[Decimal]:
    """The distribution function of a Polya number, each term from whole binomial coefficients."""
    computed, reached = [], Decimal(0)
    for k in range(entries):
        rising = Fraction(1)
        for place in range(k):
            rising *= (share + place) / Fraction(place + 1)
        base = (-1 / Decimal(scale)).exp()
        empty = ((1 - base).ln() * share.numerator / share.denominator).exp()
        reached += Decimal(rising.numerator) / Decimal(rising.denominator) * empty * base**k
        computed.append(reached)
    return computed


def entries(scale: float, share: Fraction, bits: int) -> tuple[int, ...]:
    return tuple(exact._entries(scale, share, bits))


class TestTable:
    """The exact sampler's distribution function, and what it does where a word leaves it open."""

    @pytest.mark.parametrize("share", SHARES, ids=str)
    @pytest.mark.parametrize("scale", [0.3, 1.0])
    @pytest.mark.parametrize("bits", [64, 128])
    def test_entries_are_within_a_unit(self, scale: float, share: Fraction, bits: int) -> None:
        table = entries(scale, share, bits)
        with localcontext(prec=90):
            expected = distribution(scale, share, len(table))
            for entry, whole in zip(table[:-1], expected[:-1], strict=True):
                assert 0 <= whole * 2**bits - entry < 1
            assert table[-1] == 2**bits - 1 <= expected[-1] * 2**bits

    @pytest.mark.parametrize("share", SHARES, ids=str)
    @pytest.mark.parametrize("scale", [1.0, 30.0, 500.0])
    def test_entries_agree_with_scipy(self, scale: float, share: Fraction) -> None:
        table = np.array(entries(scale, share, 64), dtype=np.float64) / 2.0**64
        places = np.arange(table.size)
        expected = stats.nbinom.cdf(places, float(share), -np.expm1(-1 / scale))
        np.testing.assert_allclose(table, expected, rtol=1e-9)

    @pytest.mark.parametrize(
        "share", [*SHARES, Fraction(20), Fraction(10**12 + 39, 10**13)], ids=str
    )
    @pytest.mark.parametrize("scale", [0.02, 1.0, 3000.0])
    def test_a_table_is_as_near_as_it_says(self, scale: float, share: Fraction) -> None:
        """Words of extended precision against those of integers, and hardly a draw left out."""
        table, reach = exact._word_table(scale, share)
        whole = entries(scale, share, 64)
        common = min(len(whole), table.size)
        off = max(abs(int(table[k]) - whole[k]) for k in range(common))
        assert off <= reach < 2**26
        assert 1 - float(table[-1]) / 2**64 < np.exp(-15)

    @pytest.mark.parametrize("share", [Fraction(20), Fraction(176), Fraction(200)], ids=str)
    def test_a_table_of_plain_doubles_is_as_near_as_it_says(
        self, share: Fraction, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As without extended precision; 176 and 200 begin below normal numbers, so that integers
        settle every word."""
        monkeypatch.setattr(exact, "Extended", np.float64)
        table, reach = exact._word_table.__wrapped__(64.0, share)
        whole = entries(64.0, share, 64)
        off = max(abs(int(word) - entry) for word, entry in zip(table, whole, strict=False))
        assert off <= reach < 2**40 if share == 20 else reach > 2**63

    @settings(max_examples=60, deadline=None)
    @given(
        entry=st.integers(0, 12),
        step=st.integers(-2, 2) | st.integers(-3000, 3000),
        second=st.integers(0, 2**64 - 1),
        third=st.integers(0, 2**64 - 1),
    )
    def test_draws_near_a_border_are_settled(
        self, entry: int, step: int, second: int, third: int
    ) -> None:
        """Against the distribution function with 192 bits."""
        scale, share = 1.0, Fraction(1, 7)
        word = int(np.clip(entries(scale, share, 64)[entry] + step, 0, 2**64 - 1))
        assert drawn(scale, share, [word, second, third]) == settled(
            scale, share, [word, second, third]
        )

    @pytest.mark.parametrize("side", [-1, 1])
    def test_the_second_word_decides(self, side: int) -> None:
        """A uniform number that agrees with an entry in its first word lies on either side."""
        scale, share = 2.0, Fraction(3, 5)
        border = entries(scale, share, 128)[4]
        word, rest = border >> 64, border & (2**64 - 1)
        assert 0 < rest + 1000 * side < 2**64 - 1
        draws = drawn(scale, share, [word, rest + 1000 * side])
        assert draws == (4 if side < 0 else 5)

    def test_the_third_word_decides(self) -> None:
        scale, share = 2.0, Fraction(3, 5)
        border = entries(scale, share, 192)[4]
        words = [border >> 128, border >> 64 & (2**64 - 1), border & (2**64 - 1)]
        for side, expected in ((-1000, 4), (1000, 5)):
            assert drawn(scale, share, [*words[:2], words[2] + side]) == expected

    @pytest.mark.parametrize("word", [0, 2**64 - 1])
    @pytest.mark.parametrize(("scale", "share"), [(300.0, Fraction(20)), (0.02, Fraction(1, 2))])
    def test_the_first_and_last_words_are_never_settled_alone(
        self, scale: float, share: Fraction, word: int
    ) -> None:
        """One table begins with many zeros in 64 bits, the other has a single entry."""
        table = entries(scale, share, 64)
        assert table[:2] == (0, 0) or table == (2**64 - 1,)
        for second in (2**20, 2**63, 2**64 - 1):
            words = [word, second, 5]
            assert drawn(scale, share, words) == settled(scale, share, words)


def drawn(scale: float, share: Fraction, words: Iterable[int]) -> int:
    """What the sampler makes of these words; it fails where it needs more of them."""
    queue = iter(words)

    def take(size: int) -> NDArray[np.uint64]:
        return np.array([next(queue) for _ in range(size)], dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "words", take)
        return int(exact.polya(scale, share, 1)[0])


def settled(scale: float, share: Fraction, words: list[int]) -> int:
    """The first k whose distribution function exceeds the number that three words make."""
    number = (words[0] << 128) + (words[1] << 64) + words[2]
    table = entries(scale, share, 192)
    return next(k for k, entry in enumerate(table) if entry > number)


class TestLossUnderAShare:
    """What is left of the guarantee when only a part of the noise arrived."""

    @pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.8, 0.97, 1.0, 1.4, 3.0])
    @pytest.mark.parametrize("scale", [0.3, 1.0, 5.0, 40.0])
    def test_it_is_the_largest_loss_of_the_probabilities(self, scale: float, share: float) -> None:
        """By convolution; with shares above 1 the largest loss is that of the far tail."""
        reach = int(50 * scale * max(1.0, share)) + 30
        single = stats.nbinom.pmf(np.arange(reach + 1), share, -np.expm1(-1 / scale))
        near = [float(single[z:] @ single[: single.size - z]) for z in range(min(reach // 2, 300))]
        losses = [np.log(one / two) for one, two in pairwise(near) if two > 1e-280]
        epsilon = shared_laplace_epsilon(scale, share)
        assert max(losses) <= epsilon * (1 + 1e-9)
        if share < 1:
            assert losses[0] == pytest.approx(epsilon, rel=1e-9)
        else:
            assert epsilon == 1 / scale
            assert losses == sorted(losses) or share == 1.0

    @pytest.mark.parametrize("share", [0.1, 0.25, 2 / 7, 0.5, 0.9])
    @pytest.mark.parametrize(("scale", "distance"), [(0.5, 2), (2.0, 5), (13.0, 13), (13.0, 4)])
    def test_it_is_the_largest_loss_of_any_distance(
        self, scale: float, share: float, distance: int
    ) -> None:
        """By convolution, at all integers near 0, those where a neighbour passes it among them."""
        reach = int(45 * scale) + 60 + distance
        single = stats.nbinom.pmf(np.arange(reach), share, -np.expm1(-1 / scale))
        near = [float(single[z:] @ single[: reach - z]) for z in range(int(6 * scale) + 40)]
        both = np.log(np.array([*near[:0:-1], *near]))
        worst = float((both[:-distance] - both[distance:]).max())
        assert worst == pytest.approx(shared_laplace_epsilon(scale, share, distance), rel=1e-6)

    @pytest.mark.parametrize(
        ("needed", "left", "said"), [(10, 2, 7.1), (10, 4, 4.2), (7, 2, 5.6), (7, 4, 2.7)]
    )
    def test_what_all_but_a_few_of_ten_clients_leave_of_a_histogram(
        self, needed: int, left: int, said: float
    ) -> None:
        """The losses of all levels add up; ``docs/privacy.md`` states them."""
        protocol = tacit.ScoreHistogram("secure-sum", 1.0, 10, aim="auc")
        levels = protocol.level_parts(height=10).values()
        total = 0.0
        for scale in (1 / part for part in levels):
            pmf = stats.nbinom.pmf(
                np.arange(int(50 * scale) + 30), left / needed, -np.expm1(-1 / scale)
            )
            total += np.log(pmf @ pmf / (pmf[1:] @ pmf[:-1]))
        assert total == pytest.approx(said, abs=0.05)

    @settings(max_examples=100, deadline=None)
    @given(scale=st.floats(0.05, 1e4), share=st.floats(1e-4, 3), more=st.floats(1.001, 2))
    def test_more_noise_never_costs_more(self, scale: float, share: float, more: float) -> None:
        less, whole = shared_laplace_epsilon(scale, share * more), 1 / scale
        assert less <= shared_laplace_epsilon(scale, share) * (1 + 1e-9)
        assert less >= whole
        if share < 0.999:
            assert shared_laplace_epsilon(scale, share) > whole

    @pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
    @pytest.mark.parametrize("share", [1.0, 100.0, 1e6])
    def test_enough_noise_keeps_the_guarantee(self, scale: float, share: float) -> None:
        assert shared_laplace_epsilon(scale, share) == 1 / scale

    def test_little_noise_of_a_tiny_scale_has_a_finite_loss(self) -> None:
        epsilon = shared_laplace_epsilon(1e-3, 0.5)
        assert epsilon == pytest.approx(1000 + np.log(2), rel=1e-9)

    @pytest.mark.parametrize("share", [0.0, -0.5, float("nan")])
    def test_no_noise_is_refused(self, share: float) -> None:
        with pytest.raises(ValueError, match=f"share must be above 0, got {share}"):
            shared_laplace_epsilon(1.0, share)


class TestIntegers:
    """Uniform integers with bounds of their own."""

    @pytest.mark.parametrize("source", [SimulatedNoise(3), SystemNoise()])
    @pytest.mark.parametrize("bound", [2, 3, 10])
    def test_they_are_uniform(self, source: NoiseSource, bound: int) -> None:
        """Chi-square; false alarm below 1e-6. One value 30 % too rare is refused."""
        counts = np.bincount(source.draw(UniformIntegers(bound), (20_000,)), minlength=bound)
        assert counts.size == bound
        assert stats.chisquare(counts).pvalue > reference.UNSEEDED_LEVEL
        skewed = np.ones(bound)
        skewed[0] = 0.7
        expected = skewed / skewed.sum() * 20_000
        assert stats.chisquare(counts, expected).pvalue < reference.UNSEEDED_LEVEL

    @pytest.mark.parametrize("source", [SimulatedNoise(3), SystemNoise(), NoNoise()])
    def test_each_keeps_its_own_bound(self, source: NoiseSource) -> None:
        drawn = source.draw(UniformIntegers([1, 5, 2**44]), (3000, 3))
        assert drawn.shape == (3000, 3)
        assert drawn.min() >= 0
        assert (drawn < [1, 5, 2**44]).all()
        if not isinstance(source, NoNoise):
            assert set(drawn[:, 1].tolist()) == set(range(5))
            assert drawn[:, 2].max() > 2**43

    @pytest.mark.parametrize("source", [SimulatedNoise(3), SystemNoise()])
    @pytest.mark.parametrize("bad", [0, -3])
    def test_bounds_below_one_are_refused(self, source: NoiseSource, bad: int) -> None:
        with pytest.raises(ValueError, match=f"bounds must be at least 1, got {bad}"):
            source.draw(UniformIntegers([2, bad]), (2,))

    def test_replicates_lead(self) -> None:
        for source in (SimulatedNoise(1, replicates=4), NoNoise(replicates=4)):
            assert source.draw(UniformIntegers(9), (2, 3)).shape == (4, 2, 3)


class TestChoices:
    """Places chosen in proportion to whole weights."""

    @pytest.mark.parametrize("source", [SimulatedNoise(4), SystemNoise()])
    def test_they_follow_the_weights(self, source: NoiseSource) -> None:
        """Chi-square; false alarm below 1e-6. A weight 30 % off is refused."""
        counts = np.bincount(source.draw(Choices((5, 0, 3, 2)), (20_000,)), minlength=4)
        assert counts[1] == 0
        selected = counts[[0, 2, 3]]
        right, wrong = np.array([5.0, 3.0, 2.0]), np.array([5.0, 3.0, 2.6])
        level = reference.UNSEEDED_LEVEL
        assert stats.chisquare(selected, right / right.sum() * 20_000).pvalue > level
        assert stats.chisquare(selected, wrong / wrong.sum() * 20_000).pvalue < level

    @pytest.mark.parametrize("place", [0, 2])
    @pytest.mark.parametrize("source", [SimulatedNoise(4), SystemNoise(), NoNoise()])
    def test_a_single_weight_is_always_chosen(self, source: NoiseSource, place: int) -> None:
        weights = [7 if at == place else 0 for at in range(3)]
        assert source.draw(Choices(weights), (50,)).tolist() == [place] * 50

    @pytest.mark.parametrize(
        "source", [SimulatedNoise(4, replicates=6), NoNoise(replicates=6), SimulatedNoise(4)]
    )
    def test_replicates_share_them(self, source: NoiseSource) -> None:
        assert source.draw(Choices((1, 1)), (9,)).shape == (9,)

    def test_nothing_to_choose_from_is_refused(self) -> None:
        sources: list[Any] = [SimulatedNoise(4), SystemNoise()]
        for source in sources:
            with pytest.raises(ValueError, match=r"at least 1, got 0|high <= 0"):
                source.draw(Choices((0, 0)), (3,))
