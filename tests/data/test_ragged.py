"""The order of records by client and score, in parts and threads, is that of one sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import ragged
from tacit.data.ragged import ascending_order, client_order

SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=12)


@pytest.fixture(scope="module", params=[1 << 20, 5], ids=["whole", "parts"])
def part(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@given(sizes=SIZES, seed=st.integers(0, 99))
def test_order_is_by_client_score_and_place(sizes: list[int], seed: int, part: int) -> None:
    counts = np.array(sizes)
    scores = np.random.default_rng(seed).integers(0, 4, counts.sum()) / 4
    owners = np.repeat(np.arange(counts.size), counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ragged, "PART", part)
        assert ascending_order(scores, counts).tolist() == np.lexsort((scores, owners)).tolist()


@pytest.mark.parametrize("clients", [3, ragged.SHORT + 1])
def test_records_are_ordered_by_client_and_place(clients: int) -> None:
    whose = np.array([clients - 1, 0, 2, 0, clients - 1])
    assert client_order(whose, clients).tolist() == [1, 3, 2, 0, 4] or clients == 3
    assert client_order(whose, clients).tolist() == np.argsort(whose, kind="stable").tolist()
