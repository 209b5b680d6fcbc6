"""The protocol of an evaluation for which nobody named one: a plan's, from public numbers alone.

The choice must not depend on a record. It uses the number of clients, the number of records rounded
up to 1, 2 or 5 times a power of ten, epsilon, and who is trusted. The rounded number is taken to be
public; a result says so. Labels and scores are not looked at: a tenth of the records is taken to be
positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.planning.candidates import HIDES, Candidate, best_of, for_reports, rank
from tacit.planning.planner import plan, trust_of
from tacit.planning.result import Plan
from tacit.protocol import forecast
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import options_of
from tacit.protocol.trust import Trust

POSITIVE_FRACTION = 0.1
"""The fraction of positive records that a choice assumes."""
STEPS = (1, 2, 5, 10)
"""The multiples of powers of ten to which a number of records is rounded up."""
NO_NOISE = 1.0
"""The epsilon of a plan whose candidates add no noise; it changes nothing."""


@dataclass(frozen=True)
class Choice:
    """A protocol that a plan chose, and why.

    Parameters
    ----------
    protocol : with its settings.
    reason : what it hides, its predicted error, and the public numbers that the choice used.
    """

    protocol: Protocol
    reason: str

    @property
    def options(self) -> str:
        """The options of ``tacit evaluate`` that name the same protocol."""
        return options_of(self.protocol)

    @property
    def line(self) -> str:
        """The options and the reason, as a result says them."""
        return f"{self.options}: {self.reason}"


def choose(
    clients: int,
    records: int,
    epsilon: float | None,
    trust: str | None = None,
    per_person: int = 0,
    classes: Sequence[str] = (),
) -> Choice:
    """The protocol that predicts the least error among those that hide most.

    Parameters
    ----------
    clients : how many there are, a public number.
    records : of all clients; only its rounded number is used.
    epsilon : the privacy budget; None where the trust keeps none.
    trust : who may see what (``protocol.trust``). None takes secure sums up to 1,000
        clients, and the local model for more.
    per_person : as ``plan`` takes it.
    classes : the agreed names, where records have a score of each; of equal size, as is assumed.

    Raises
    ------
    ValueError : where nothing that hides as much as the trust allows is predicted to give an
        estimate; for a missing epsilon; and for one that would not be kept.

    Examples
    --------
    >>> choice = choose(10, 38_417, 1.0)
    >>> choice.options
    '--protocol score-histogram --epsilon 1'
    """
    model = trust_of(clients, trust)
    size = rounded_up(records)
    fraction = 1 / len(classes) if classes else POSITIVE_FRACTION
    positives = max(1, round(fraction * size))
    budget = NO_NOISE if epsilon is None else epsilon
    asked: dict[str, Any] = {"classes": len(classes)} if classes else {"metric": forecast.AREA}
    planned = plan(size, positives, clients, budget, model.value, per_person=per_person, **asked)
    if not planned.candidates:
        raise ValueError(
            f"no protocol with trust {model.value} is planned for the {planned.metric}: name one"
        )
    candidates = _most_hiding(planned)
    _check_budget(candidates, epsilon, model)
    best = best_of(for_reports(candidates))
    if best is None:
        raise ValueError(_refusal(candidates, planned))
    return Choice(_naming(best.protocol, classes), _reason(best, planned, model))


def _naming(protocol: Any, classes: Sequence[str]) -> Protocol:
    """The protocol with the agreed names in place of numbers."""
    named: Protocol = protocol
    if classes:
        named = replace(protocol, **{protocol.categories_setting: tuple(classes)})
    return named


def rounded_up(records: int) -> int:
    """The number of records that a choice uses: 1, 2 or 5 times a power of ten, at least two.

    Examples
    --------
    >>> [rounded_up(records) for records in (1, 3, 50, 51, 40_000)]
    [2, 5, 50, 100, 50000]
    """
    power = 10 ** (len(str(max(records, 1))) - 1)
    return max(2, next(step * power for step in STEPS if step * power >= records))


def _most_hiding(planned: Plan) -> tuple[Candidate, ...]:
    """The candidates that hide as much as any does under this trust, feasible or not."""
    most = min((rank(each)[0] for each in planned.candidates), default=0)
    return tuple(each for each in planned.candidates if rank(each)[0] == most)


def _check_budget(candidates: tuple[Candidate, ...], epsilon: float | None, trust: Trust) -> None:
    """Refuse an epsilon that would not be kept, and a missing one."""
    is_private = any(each.adjacency is not None for each in candidates)
    if epsilon is None and is_private:
        raise ValueError(f"epsilon is needed with trust {trust.value}: give epsilon, or a protocol")
    if epsilon is not None and not is_private:
        raise ValueError(
            f"no protocol with trust {trust.value} adds noise, so epsilon {epsilon:g} would not be "
            "kept: leave epsilon out, or name another trust"
        )


def _reason(best: Candidate, planned: Plan, trust: Trust) -> str:
    """Why it was chosen, in a line."""
    scenario = planned.scenario
    return (
        f"hides {HIDES[best.adjacency]}, with a predicted error of {best.forecast.error:.1g}; "
        f"for {_counted(scenario.clients, 'client')}, at most {scenario.records:,} records (a "
        f"rounded number, taken to be public) and trust {trust.value}"
    )


def _refusal(candidates: tuple[Candidate, ...], planned: Plan) -> str:
    """Why there is no choice, and what would help."""
    scenario = planned.scenario
    figure = "an AUC" if planned.metric == forecast.AREA else f"the {planned.metric}"
    nearest = min(candidates, key=lambda each: each.forecast.error)
    others = [
        each
        for each in planned.candidates
        if each.feasible and each.adjacency is not None and each not in candidates
    ]
    helps = "more records, a larger epsilon or another trust help"
    weaker = (
        f"; {others[0].title} hides only {HIDES[others[0].adjacency]}, and has to be named"
        if others
        else ""
    )
    return (
        f"no protocol with trust {planned.trust} that hides {HIDES[nearest.adjacency]} is "
        f"predicted to give {figure} at epsilon {scenario.epsilon:g} for at most "
        f"{scenario.records:,} records of {_counted(scenario.clients, 'client')}: {helps}{weaker}"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
