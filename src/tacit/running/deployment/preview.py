"""What joining means for a party, in words: what the plan asks, its cost, what the book allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tacit.privacy.composition import restated
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.ledger import Ledger, Limit
from tacit.privacy.ledger_accounts import Spending
from tacit.privacy.noise import NoNoise
from tacit.protocols.conversation import Memory
from tacit.running.answering import PartyDesk

HIDES = {
    Adjacency.LABEL: "a record's label; its score is shown",
    Adjacency.RECORD: "whether a record is there",
    Adjacency.REPLACE: "a record's score and label",
    Adjacency.SCORE: "a record's score; its label is shown",
}


def check_records(desk: PartyDesk) -> None:
    """Refuse records that do not fit the plan's protocol: its first question is answered here.

    Nothing leaves this process, and nothing is spent.

    Raises
    ------
    DataError : with the record at fault.
    """
    ask = next(desk.plan.protocol.conversation(len(desk.plan.parties)))
    ask.step.answer(desk.records, ask, NoNoise(), Memory())


def preview(desk: PartyDesk) -> list[tuple[str, str]]:
    """Labelled lines for the person who decides whether to join; the record count stays here.

    Parameters
    ----------
    desk : the party's files, opened and checked.
    """
    own, plan = desk.own, desk.plan
    protocol = plan.protocol
    key = "" if plan.coordinator is None else plan.coordinator.hex()
    others = ", ".join(party.name for party in plan.parties if party.name != own.name)
    rows = [
        ("plan", f"{plan.name}, with {others or 'nobody else'}; a result needs {plan.fewest}"),
        ("coordinator", key),
        ("protocol", settings_line({"name": protocol.name, **protocol.settings})),
        ("asks for", protocol.figure),
        ("a run costs", cost_line(protocol.guarantee)),
    ]
    if plan.on_loss == "restart":
        again = "and the same again each time a lost party makes a run or its sum start anew"
        rows.append(("", again))
    rows.append(("data set", f"{own.dataset}: {desk.records.records:,} records in {own.records}"))
    return rows + [("book", line) for line in _book_lines(desk, protocol.guarantee)]


def settings_line(protocol: Mapping[str, Any]) -> str:
    """A protocol with its settings in one line."""
    settings = ", ".join(f"{name} {value}" for name, value in protocol.items() if name != "name")
    return f"{protocol['name']} ({settings})" if settings else str(protocol["name"])


def cost_line(cost: Cost) -> str:
    """A cost in words."""
    if math.isinf(cost.epsilon) or cost.adjacency is None:
        return "everything: no differential privacy"
    delta = f", delta {cost.delta:g}" if cost.delta else ""
    return f"at most epsilon {cost.epsilon:g}{delta}; hides {HIDES[cost.adjacency]}"


def _book_lines(desk: PartyDesk, cost: Cost) -> list[str]:
    """What every limit leaves, and for how many runs that is enough."""
    own = desk.own
    spendings: list[Spending] = []
    if own.ledger.exists():
        with Ledger.open_readonly(own.ledger) as pages:
            spendings = pages.spending(own.dataset)
    if not spendings and own.epsilon is not None:
        limit = Limit(own.dataset, own.epsilon, own.delta, own.adjacency, own.period)
        spendings = [Spending(limit, 0.0, 0.0, 0.0, 0)]
    if not spendings:
        return ["sets no limit for this data set: nothing will be answered (tacit ledger limit)"]
    return [_limit_line(spending, cost) for spending in spendings]


def _limit_line(spending: Spending, cost: Cost) -> str:
    limit = spending.limit
    span = "" if limit.period is None else f" in any {limit.period.days} days"
    told = f"epsilon {limit.epsilon:g}{span} at {limit.adjacency.value} adjacency"
    enough = _runs_left(spending, cost)
    left = "any number of runs" if enough is None else f"{enough} more run{'s' * (enough != 1)}"
    return f"allows {told}; {spending.epsilon:g} spent; enough for {left}"


def _runs_left(spending: Spending, cost: Cost) -> int | None:
    """How many runs basic composition allows yet; None for any number."""
    limit = spending.limit
    if math.isinf(limit.epsilon):
        return None
    one = Cost(math.inf) if cost.adjacency is None else restated(cost, limit.adjacency)
    if spending.unlimited or math.isinf(one.epsilon):
        return 0
    shares = [(limit.epsilon - spending.epsilon, one.epsilon)]
    shares.append((limit.delta - spending.delta, one.delta))
    counts = [math.floor(left / each + 1e-9) for left, each in shares if each > 0]
    return max(0, min(counts)) if counts else None
