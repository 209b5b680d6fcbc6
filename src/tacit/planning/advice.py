"""The recommendation in two sentences: what to use and why, and what is given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.planning.candidates import HIDES, Candidate
from tacit.protocol.declarations.scenario import Scenario
from tacit.protocol.declarations.trust import Trust


def advice(
    candidates: Sequence[Candidate],
    recommended: Candidate | None,
    scenario: Scenario,
    metric: str,
    target: float | None,
    elsewhere: Mapping[str, Sequence[Trust]],
) -> str:
    """Write two sentences on the candidates, of which ``recommended`` was chosen.

    ``elsewhere`` names the protocols that give the metric, and the trust models under which.
    """
    if recommended is None:
        return _not_feasible(candidates, scenario, metric, elsewhere)
    return f"{_reason(recommended, candidates)} {_price(recommended, scenario, target)}"


def _reason(chosen: Candidate, candidates: Sequence[Candidate]) -> str:
    """The protocol, and what it is better than."""
    low, high = chosen.error_range
    hiding = f", which hides {HIDES[chosen.adjacency]}" if chosen.adjacency else ""
    text = (
        f"Use {chosen.title}{hiding}: its predicted error is "
        f"{chosen.forecast.error:.2g} ({low:.2g} to {high:.2g} over plausible scores)"
    )
    others = [other for other in candidates if other is not chosen and other.feasible]
    alike = [
        other for other in others if other.hides_records == chosen.hides_records and other.adjacency
    ]
    if alike and chosen.adjacency:
        follower = min(alike, key=lambda other: other.forecast.error)
        protection = (
            "the same is hidden"
            if follower.adjacency is chosen.adjacency
            else f"{HIDES[follower.adjacency]}, is hidden"
        )
        error = f"{follower.forecast.error:.2g}"
        return f"{text}, against {error} with {follower.title}, where {protection}."
    more = others and chosen.adjacency
    return f"{text}, and no other candidate hides as much." if more else f"{text}."


def _price(chosen: Candidate, scenario: Scenario, target: float | None) -> str:
    """What is given up, and what an unmet target would take."""
    text = f"What is given up: {chosen.given_up or 'nothing'}"
    if target is None or chosen.forecast.error <= target:
        return f"{text}."
    means = _means(chosen)
    shortfall = f"an error of {target:g} is not met at epsilon {scenario.epsilon:g}"
    return (
        f"{text}; {shortfall} and takes {means}."
        if means
        else f"{text}; {shortfall}, nor otherwise."
    )


def _not_feasible(
    candidates: Sequence[Candidate],
    scenario: Scenario,
    metric: str,
    elsewhere: Mapping[str, Sequence[Trust]],
) -> str:
    """Why nothing can be recommended, and what it would take."""
    if not candidates:
        nothing = f"Not feasible: no protocol under this trust is planned for {metric}."
        others = [_does(name, trusts) for name, trusts in elsewhere.items()]
        return " ".join([nothing, *others])
    nearest = min(candidates, key=lambda candidate: candidate.forecast.error)
    why = (
        f"Not feasible at epsilon {scenario.epsilon:g}: with {nearest.title}, which comes nearest,"
    )
    means = _means(nearest)
    help_ = f"It takes {means}." if means else "More records or another trust are needed."
    return f"{why} {nearest.forecast.obstacle}. {help_}"


def _does(name: str, trusts: Sequence[Trust]) -> str:
    """Under which trust models a protocol gives the metric."""
    *words, last = [trust.value for trust in trusts]
    alternatives = f"{', '.join(words)} or {last}" if words else last
    return f"The protocol {name} is, with trust {alternatives}."


def _means(candidate: Candidate) -> str:
    epsilon, records = candidate.smallest_epsilon, candidate.fewest_records
    means = [] if epsilon is None else [f"epsilon {epsilon:g}"]
    means += [] if records is None else [f"{records:,} records"]
    return " or ".join(means)
