"""Guarantees that follow from declared releases: of fewer shares of noise, and of exact sums."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tacit.protocol as tp
from tacit import MulticlassHistogram, ScoreHistogram
from tacit.privacy.distributions import shared_laplace_epsilon
from tacit.protocol.releases import conducted


def moves(total: int, numbers: int, largest: int) -> Iterator[list[int]]:
    """The ways to divide a move among numbers, the largest part first."""
    if not numbers:
        yield from [[]] if not total else []
        return
    for first in range(min(total, largest), -1, -1):
        for rest in moves(total - first, numbers - 1, first):
            yield [first, *rest]


@pytest.mark.parametrize("share", [0.3, 0.8, 1.0, 1.5])
@pytest.mark.parametrize("shape", [(), (2,), (2, 2), (9,)])
@pytest.mark.parametrize("sensitivity", [1, 3, 7])
def test_what_a_share_supports_is_the_loss_of_the_worst_neighbour(
    share: float, shape: tuple[int, ...], sensitivity: int
) -> None:
    """Whichever numbers a neighbour moves by the sensitivity in all, and one such neighbour."""
    field = tp.Released(shape, sensitivity, 0.9, per_record=sensitivity)
    losses = [0.0] + [
        shared_laplace_epsilon(field.scale, share, distance)
        for distance in range(1, sensitivity + 1)
    ]
    worst = max(
        math.fsum(losses[distance] for distance in move)
        for move in moves(sensitivity, math.prod(shape), sensitivity)
    )
    assert field.supported(share) == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("name", tp.protocol_names())
def test_an_exact_sum_is_over_all_clients(name: str) -> None:
    """The difference of two exact sums, over all and over all but one, is one client's counts."""
    for protocol in tp.kind_of(name).law_cases().values():
        if isinstance(getattr(protocol, "trust", None), tp.ExactSum):
            assert protocol.min_clients(7) == 7


COUNTED: dict[str, Any] = {}


@tp.release(lambda query: {"counts": tp.Released((2,))})
def given_counts(clients: tp.Clients, query: tp.Query) -> dict[str, Any]:
    """Whatever the test gives."""
    return COUNTED


@pytest.mark.parametrize("trust", ["secure-sum", "each"])
@pytest.mark.parametrize("counts", [[0.5, 1.0], [math.nan, 1.0], [True, False], ["1", "2"]])
def test_numbers_that_are_not_whole_are_not_released(trust: str, counts: list[Any]) -> None:
    protocol = MulticlassHistogram(trust, 1.0)
    by_view = np.asarray(counts) if trust == "secure-sum" else np.asarray(counts)[:, np.newaxis]
    COUNTED["counts"] = by_view
    view = tp.View.SUM if trust == "secure-sum" else tp.View.EACH
    query = tp.Query(given_counts, protocol, {"clients": 1}, view=view)
    clients = tp.Clients.from_arrays([0.5], [1])
    with pytest.raises(ValueError, match="counts must be whole numbers, got an array of"):
        given_counts.answer(clients, query, tp.NoNoise(), tp.ClientState())


def test_replies_of_another_length_are_refused() -> None:
    """Twice as many numbers would be taken for those of further strata."""
    protocol = ScoreHistogram("each", 1.0)
    conversation = conducted(protocol, 3)
    first = next(conversation)
    noise = {
        name: np.zeros((2 * math.prod(each.shape), 3), dtype=np.int64)
        for name, each in first.step.fields(first).items()
    }
    with pytest.raises(tp.DataError, match=r"each client must have the shape \(\d+,\), got"):
        conversation.send(noise)


def test_a_step_is_the_same_in_another_process() -> None:
    steps = [
        step
        for name in tp.protocol_names()
        for protocol in tp.kind_of(name).law_cases().values()
        for step in protocol.steps
    ]
    assert len(steps) > 20
    for step in steps:
        assert pickle.loads(pickle.dumps(step)) is step  # noqa: S301 -- made in this line
