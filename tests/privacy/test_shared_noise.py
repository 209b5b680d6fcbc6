"""Shares of discrete Laplace noise: their tables, and the loss under some of them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tacit
from tacit.privacy import exact
from tacit.privacy.distributions import shared_laplace_epsilon

SHARES = (Fraction(1, 1000), Fraction(1, 7), Fraction(4, 5), Fraction(5, 2))


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


# --- the exact sampler's distribution function, and what it does where a word leaves it open


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("scale", [0.3, 1.0])
@pytest.mark.parametrize("bits", [64, 128])
def test_entries_are_within_a_unit(scale: float, share: Fraction, bits: int) -> None:
    table = entries(scale, share, bits)
    with localcontext(prec=90):
        expected = distribution(scale, share, len(table))
        for entry, whole in zip(table[:-1], expected[:-1], strict=True):
            assert 0 <= whole * 2**bits - entry < 1
        assert table[-1] == 2**bits - 1 <= expected[-1] * 2**bits


@pytest.mark.parametrize("share", [*SHARES, Fraction(20), Fraction(10**12 + 39, 10**13)], ids=str)
@pytest.mark.parametrize("scale", [0.02, 1.0, 3000.0])
def test_a_table_is_as_near_as_it_says(scale: float, share: Fraction) -> None:
    """Words of extended precision against those of integers, and hardly a draw left out."""
    table, reach = exact._word_table(scale, share)
    whole = entries(scale, share, 64)
    common = min(len(whole), table.size)
    off = max(abs(int(table[k]) - whole[k]) for k in range(common))
    assert off <= reach < 2**26
    assert 1 - float(table[-1]) / 2**64 < np.exp(-15)


@pytest.mark.parametrize("share", [Fraction(20), Fraction(176), Fraction(200)], ids=str)
def test_a_table_of_plain_doubles_is_as_near_as_it_says(
    share: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without extended precision; 176 and 200 begin below normal numbers, so that integers
    settle every word."""
    monkeypatch.setattr(exact, "Extended", np.float64)
    table, reach = exact._word_table.__wrapped__(64.0, share)
    whole = entries(64.0, share, 64)
    off = max(abs(int(word) - entry) for word, entry in zip(table, whole, strict=False))
    assert off <= reach < 2**40 if share == 20 else reach > 2**63


@settings(max_examples=60)
@given(
    entry=st.integers(0, 12),
    step=st.integers(-2, 2) | st.integers(-3000, 3000),
    second=st.integers(0, 2**64 - 1),
    third=st.integers(0, 2**64 - 1),
)
def test_draws_near_a_border_are_settled(entry: int, step: int, second: int, third: int) -> None:
    """Against the distribution function with 192 bits."""
    scale, share = 1.0, Fraction(1, 7)
    word = int(np.clip(entries(scale, share, 64)[entry] + step, 0, 2**64 - 1))
    assert drawn(scale, share, [word, second, third]) == settled(
        scale, share, [word, second, third]
    )


@pytest.mark.parametrize("words", [2, 3])
@pytest.mark.parametrize(("step", "expected"), [(-1000, 4), (1000, 5)])
def test_the_second_or_third_word_decides(words: int, step: int, expected: int) -> None:
    """A uniform number that agrees with an entry in all words but the last."""
    scale, share = 2.0, Fraction(3, 5)
    border = entries(scale, share, 64 * words)[4]
    parts = [border >> 64 * place & (2**64 - 1) for place in reversed(range(words))]
    assert 0 < parts[-1] + step < 2**64 - 1
    assert drawn(scale, share, [*parts[:-1], parts[-1] + step]) == expected


@pytest.mark.parametrize("word", [0, 2**64 - 1])
@pytest.mark.parametrize(("scale", "share"), [(300.0, Fraction(20)), (0.02, Fraction(1, 2))])
def test_the_first_and_last_words_are_never_settled_alone(
    scale: float, share: Fraction, word: int
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


def test_tables_are_not_made_for_scales_that_they_cannot_hold() -> None:
    with pytest.raises(ValueError, match=r"a scale of at most 65536.*, got 70000"):
        exact.polya(70_000.0, Fraction(1, 2), 1)


# --- what is left of the guarantee when only a part of the noise arrived


@pytest.mark.parametrize(
    ("needed", "left", "said"), [(10, 2, 7.1), (10, 4, 4.2), (7, 2, 5.6), (7, 4, 2.7)]
)
def test_what_all_but_a_few_of_ten_clients_leave_of_a_histogram(
    needed: int, left: int, said: float
) -> None:
    """The losses of all levels add up; ``docs/privacy.md`` states them."""
    protocol = tacit.ScoreHistogram("secure-sum", 1.0, 10, aim="auc")
    levels = protocol.level_parts(height=10).values()
    total = sum(shared_laplace_epsilon(1 / part, left / needed) for part in levels)
    assert total == pytest.approx(said, abs=0.05)


@settings(max_examples=100)
@given(scale=st.floats(0.05, 1e4), share=st.floats(1e-4, 3), more=st.floats(1.001, 2))
def test_more_noise_never_costs_more(scale: float, share: float, more: float) -> None:
    less, whole = shared_laplace_epsilon(scale, share * more), 1 / scale
    assert less <= shared_laplace_epsilon(scale, share) * (1 + 1e-9)
    assert less >= whole
    if share < 0.999:
        assert shared_laplace_epsilon(scale, share) > whole


def test_little_noise_of_a_tiny_scale_has_a_finite_loss() -> None:
    epsilon = shared_laplace_epsilon(1e-3, 0.5)
    assert epsilon == pytest.approx(1000 + np.log(2), rel=1e-9)


@pytest.mark.parametrize("share", [0.0, -0.5, float("nan")])
def test_a_share_of_nothing_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=f"share must be above 0, got {share}"):
        shared_laplace_epsilon(1.0, share)
