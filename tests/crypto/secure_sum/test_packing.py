"""Numbers of any width as bits, and sums of them modulo a power of two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.identities import MalformedError
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.masking import NUMBERS_AT_ONCE, Packing, Run, to_words
from tacit.crypto.secure_sum.server import SumServer
from tacit.crypto.secure_sum.terms import SumTerms
from tests.crypto.secure_sum.transporting import Federation


def ends(run: Run) -> list[int]:
    """The outermost numbers of a width, as often as the run is long."""
    pair = [2 ** (run.bits - 1) - 1, -(2 ** (run.bits - 1))]
    return (pair * run.length)[: run.length]


RUNS = st.lists(st.builds(Run, st.integers(1, 20), st.integers(2, 64)), min_size=1, max_size=5)


@given(RUNS)
def test_the_outermost_numbers_of_every_width_survive(runs: list[Run]) -> None:
    packing = Packing(tuple(runs))
    numbers = [number for run in runs for number in ends(run)]
    message = packing.pack(to_words(np.array(numbers), packing.bits))
    assert len(message) == packing.size == sum(-(-run.length * run.bits // 8) for run in runs)
    assert packing.signed(packing.unpack(message)).tolist() == numbers


@pytest.mark.parametrize("bits", [7, 32, 33, 64])
def test_more_numbers_than_are_packed_at_once_survive(bits: int) -> None:
    length = 2 * NUMBERS_AT_ONCE + 3
    packing = Packing((Run(length, bits), Run(1, 3)))
    rng = np.random.default_rng(bits)
    numbers = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, length + 1)
    numbers[-1] = -4
    message = packing.pack(to_words(numbers, packing.bits))
    assert np.array_equal(packing.signed(packing.unpack(message)), numbers)


def test_a_bit_in_the_rest_of_a_runs_last_byte_is_refused() -> None:
    packing = Packing((Run(3, 5), Run(1, 8)))
    message = packing.pack(to_words(np.array([-1, -1, -1, -1]), packing.bits))
    for changed, good in ((b"\xff\xff\xff", False), (message, True)):
        if good:
            assert packing.signed(packing.unpack(changed)).tolist() == [-1, -1, -1, -1]
        else:
            with pytest.raises(MalformedError, match="after the last packed number"):
                packing.unpack(changed)


@pytest.mark.parametrize(("length", "bits"), [(0, 4), (1, 1), (1, 65)])
def test_other_runs_are_refused(length: int, bits: int) -> None:
    with pytest.raises(ValueError, match=f"got {length if length == 0 else bits}"):
        Run(length, bits)


def in_runs(federation: Federation, *runs: Run) -> Federation:
    """The same clients under terms that name widths."""
    terms, length = federation.terms, sum(run.length for run in runs)
    federation.terms = SumTerms(
        terms.session, terms.roster, length, 2**63 - 1, terms.neighbourhood, runs=runs
    )
    federation.clients = [SumClient(each, federation.terms) for each in federation.identities]
    federation.server = SumServer(federation.terms)
    return federation


def test_every_number_is_summed_modulo_its_width() -> None:
    """A sum beyond its width comes back modulo the width, and changes no other number."""
    federation = in_runs(Federation(4), Run(2, 5), Run(1, 12), Run(1, 40))
    vectors = np.array([[3, -4, 500, 2**36], [3, -4, 500, 0], [3, -4, 500, 0], [4, -5, 500, -1]])
    federation.carry(vectors)
    total = federation.server.conclude().total.tolist()
    assert total == [13, 15, 2000, 2**36 - 1]
    assert 13 == 3 + 3 + 3 + 4 and 15 == -17 + 32
    assert len(federation.sent[0][2]) < 26 + 64 + 2 + 2 + 6


def test_terms_name_the_width_of_every_number() -> None:
    terms = Federation(3).terms
    with pytest.raises(ValueError, match="widths of 3 numbers must be named, got 2"):
        SumTerms(
            terms.session, terms.roster, 3, 1000, terms.neighbourhood, runs=(Run(1, 4), Run(1, 9))
        )


def test_other_widths_are_other_terms() -> None:
    terms = Federation(3).terms
    named = [
        SumTerms(terms.session, terms.roster, 3, 1000, terms.neighbourhood, runs=runs).digest
        for runs in ((), (Run(3, 13),), (Run(3, 14),), (Run(1, 13), Run(2, 13)))
    ]
    assert named[0] == named[1] == terms.digest
    assert len(set(named)) == 3
