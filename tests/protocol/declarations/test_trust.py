"""One vocabulary of trust."""

from __future__ import annotations

import pytest

from tacit.protocol.trust import Trust


@pytest.mark.parametrize("trust", Trust)
def test_a_word_means_its_trust(trust: Trust) -> None:
    assert Trust.of(trust.value) is trust
    assert trust.description


def test_parameters_may_follow_a_word() -> None:
    assert Trust.of("secure-sum(dropouts=0.2)") is Trust.SECURE_SUM


def test_unknown_words_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"trust must be one of .*'exact-sum'.*, got 'everybody'"):
        Trust.of("everybody")
