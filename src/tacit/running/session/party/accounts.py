"""What a party reads on its own terminal and in its log about the cost of runs.

It holds numbers of the ledger, and is never sent.
"""

from __future__ import annotations

import math
from datetime import timedelta

from tacit.ledger.accounts import StepCost
from tacit.ledger.entries import DEBIT, instant
from tacit.ledger.ledger import Ledger
from tacit.privacy.composition import restated
from tacit.privacy.cost import Cost, amount_line
from tacit.protocol.conversation import Protocol


def paid_line(protocol: Protocol, spent: Cost, guarantee: Cost, spendings: list[StepCost]) -> str:
    """What was answered, what the run has cost so far, and what the limits leave.

    Parameters
    ----------
    protocol : what the run computes.
    spent : what the run has cost so far.
    guarantee : what it may cost.
    spendings : of the data set, by limit.
    """
    run = amount_line(spent.epsilon, spent.delta)
    lines = [f"answered: {protocol.figure} by {protocol.name}; this run has cost {run} so far"]
    lines += [f"the ledger {limit_line(each, guarantee)}" for each in spendings]
    return "; ".join(lines)


def declined_line(why: str, ledger: Ledger, dataset: str) -> str:
    """Why a run was declined, and what can be done about it."""
    ends = [
        end for spending in ledger.spending(dataset) if (end := _freed(ledger, dataset, spending))
    ]
    return "; ".join([f"declined this run: {why}", *ends])


def _freed(ledger: Ledger, dataset: str, spending: StepCost) -> str:
    """When the first spending leaves a rolling window; empty where none does."""
    period: timedelta | None = spending.limit.period
    times = [
        line.time
        for line in ledger.lines()
        if line.kind == DEBIT and line.dataset == dataset and line.epsilon
    ]
    if period is None or not times:
        return ""
    first = next((t for t in times if instant(t) + period > instant(times[-1])), times[-1])
    return (
        f"the first spending leaves the {period.days} days on {instant(first) + period:%Y-%m-%d}; "
        f"to allow more before: tacit ledger limit {ledger.path} --dataset {dataset}"
    )


def limit_line(spending: StepCost, cost: Cost) -> str:
    """What a limit allows, what is spent of it, and for how many runs of a cost that is enough."""
    limit = spending.limit
    span = "" if limit.period is None else f" in any {limit.period.days} days"
    allowed = f"epsilon {limit.epsilon:g}{span} at {limit.adjacency.value} adjacency"
    enough = _runs_left(spending, cost)
    left = "any number of runs" if enough is None else f"{enough} more run{'s' * (enough != 1)}"
    return f"allows {allowed}; {spending.epsilon:g} spent; enough for {left}"


def _runs_left(spending: StepCost, cost: Cost) -> int | None:
    """How many more runs basic composition allows; None for any number."""
    limit = spending.limit
    if math.isinf(limit.epsilon):
        return None
    run_cost = Cost(math.inf) if cost.adjacency is None else restated(cost, limit.adjacency)
    if spending.unlimited or math.isinf(run_cost.epsilon):
        return 0
    shares = [(limit.epsilon - spending.epsilon, run_cost.epsilon)]
    shares.append((limit.delta - spending.delta, run_cost.delta))
    counts = [math.floor(left / each + 1e-9) for left, each in shares if each > 0]
    return max(0, min(counts)) if counts else None
