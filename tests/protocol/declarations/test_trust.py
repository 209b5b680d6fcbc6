"""One vocabulary of trust, which understands the earlier ones."""

from __future__ import annotations

import pytest

from tacit.protocol.declarations.trust import OLDER_WORDS, Trust, trust_words


@pytest.mark.parametrize("trust", Trust)
def test_a_word_means_its_trust(trust: Trust) -> None:
    assert Trust.of(trust.value) is trust
    assert trust.description


@pytest.mark.parametrize(("older", "word"), OLDER_WORDS.items())
def test_older_words_mean_a_word_of_today(older: str, word: str) -> None:
    assert Trust.of(older).value == word
    assert older in trust_words()


def test_unknown_words_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"trust must be one of .*'exact-sum'.*, got 'everybody'"):
        Trust.of("everybody")
