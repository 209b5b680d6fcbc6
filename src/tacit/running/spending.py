"""What a record spends over the rounds of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.cost import NOTHING, Cost, worst_case

MAX_ROUNDS = 60
"""Rounds of a run that cost something; which of them a record spoke in fits into an integer."""


@dataclass(frozen=True, eq=False)
class Payment:
    """What one round cost each record that spoke in it.

    Parameters
    ----------
    cost : the declared cost, for every record that spoke.
    speaking : which records the reply depended on, shape (M,).
    """

    cost: Cost
    speaking: NDArray[np.bool_]

    @property
    def by_all(self) -> bool:
        """Whether every record spoke, as one value that is read M times (a stride of 0)."""
        return bool(self.speaking.size) and self.speaking.strides == (0,) and bool(self.speaking[0])


def most_spent(payments: Sequence[Payment]) -> Cost:
    """The largest total cost of a record: the sum of the costs of the rounds in which it spoke.

    Without any record, it is the cost of a record that would have spoken in all rounds: a
    guarantee about added records also costs where no record is there.

    Examples
    --------
    Two records, each of which spoke in one of two rounds:

    >>> import numpy as np
    >>> from tacit import Adjacency
    >>> one = Cost(1.0, adjacency=Adjacency.RECORD)
    >>> first, second = np.array([True, False]), np.array([False, True])
    >>> most_spent([Payment(one, first), Payment(one, second)]).epsilon
    1.0
    """
    paid = [payment for payment in payments if payment.cost != NOTHING]
    if not paid:
        return NOTHING
    if len(paid) > MAX_ROUNDS:
        raise ValueError(f"records are asked at most {MAX_ROUNDS} paid questions, got {len(paid)}")
    records = max(payment.speaking.size for payment in paid)
    always = sum(1 << index for index, payment in enumerate(paid) if payment.by_all)
    some = [(index, payment) for index, payment in enumerate(paid) if not payment.by_all]
    spoken = sum(
        (payment.speaking.astype(np.int64) << index for index, payment in some),
        np.zeros(records if some else min(records, 1), dtype=np.int64),
    )
    patterns = np.unique(spoken + always)
    if not patterns.size:
        patterns = np.array([(1 << len(paid)) - 1])
    return worst_case(
        sum((payment.cost for index, payment in enumerate(paid) if pattern >> index & 1), NOTHING)
        for pattern in patterns.tolist()
    )


def exceeds(spent: Cost, allowed: Cost) -> bool:
    """Whether a cost exceeds a guarantee; sums of parts may have an error in the last digit.

    Examples
    --------
    >>> from tacit import Adjacency
    >>> one = Cost(1.0, adjacency=Adjacency.LABEL)
    >>> exceeds(one, one), exceeds(one + one, one)
    (False, True)
    """
    if spent == NOTHING or allowed.epsilon == np.inf:
        return False
    slack = 1 + 1e-9
    return (
        spent.adjacency != allowed.adjacency
        or spent.epsilon > allowed.epsilon * slack
        or spent.delta > allowed.delta * slack
    )


def added(before: Cost, after: Cost) -> Cost:
    """The cost to add to one cost to reach another.

    Examples
    --------
    >>> from tacit import Adjacency
    >>> one = Cost(1.0, adjacency=Adjacency.RECORD)
    >>> added(one, one + one).epsilon, added(one, one).epsilon
    (1.0, 0.0)
    """
    if np.isinf(after.epsilon):
        return after if np.isfinite(before.epsilon) else NOTHING
    rho = None if after.rho is None else max(after.rho - (before.rho or 0.0), 0.0)
    epsilon, delta = max(after.epsilon - before.epsilon, 0.0), max(after.delta - before.delta, 0.0)
    return Cost(epsilon, delta, after.adjacency, rho) if epsilon or delta or rho else NOTHING
