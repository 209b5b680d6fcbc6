"""The recommendation in two sentences: what to use and why, and what is given up."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.planning.candidates import HIDES, Candidate
from tacit.planning.scenario import Scenario


def advice(
    candidates: Sequence[Candidate],
    recommended: Candidate | None,
    scenario: Scenario,
    metric: str,
    target: float | None,
) -> str:
    """Two sentences on the candidates, of which ``recommended`` was chosen."""
    if recommended is None:
        return _not_feasible(candidates, scenario, metric)
    return f"{_reason(recommended, candidates)} {_price(recommended, scenario, target)}"


def _reason(chosen: Candidate, candidates: Sequence[Candidate]) -> str:
    """The protocol, and what it is better than."""
    low, high = chosen.error_range
    hiding = f", which hides {HIDES[chosen.adjacency]}" if chosen.adjacency else ""
    said = (
        f"Use {chosen.title}{hiding}: its predicted error is "
        f"{chosen.forecast.error:.2g} ({low:.2g} to {high:.2g} over plausible scores)"
    )
    others = [own for own in candidates if own is not chosen and own.feasible]
    alike = [own for own in others if own.hides_records == chosen.hides_records and own.adjacency]
    if alike and chosen.adjacency:
        follower = min(alike, key=lambda own: own.forecast.error)
        hidden = (
            "the same is hidden"
            if follower.adjacency is chosen.adjacency
            else f"{HIDES[follower.adjacency]}, is hidden"
        )
        return (
            f"{said}, against {follower.forecast.error:.2g} with {follower.title}, where {hidden}."
        )
    more = others and chosen.adjacency
    return f"{said}, and no other candidate hides as much." if more else f"{said}."


def _price(chosen: Candidate, scenario: Scenario, target: float | None) -> str:
    """What is given up, and what an unmet target would take."""
    said = f"What is given up: {chosen.given_up}"
    if target is None or chosen.forecast.error <= target:
        return f"{said}."
    ways = _ways(chosen)
    wanted = f"an error of {target:g} is not met at epsilon {scenario.epsilon:g}"
    return f"{said}; {wanted} and takes {ways}." if ways else f"{said}; {wanted}, nor otherwise."


def _not_feasible(candidates: Sequence[Candidate], scenario: Scenario, metric: str) -> str:
    """Why nothing can be recommended, and what it would take."""
    if not candidates:
        return (
            f"Not feasible: no protocol under this trust gives {metric}. Score histograms do, "
            "with trust secure-sum, local or central."
        )
    nearest = min(candidates, key=lambda own: own.forecast.error)
    why = (
        f"Not feasible at epsilon {scenario.epsilon:g}: with {nearest.title}, which comes nearest,"
    )
    ways = _ways(nearest)
    help_ = f"It takes {ways}." if ways else "More records or another trust are needed."
    return f"{why} {nearest.forecast.obstacle}. {help_}"


def _ways(candidate: Candidate) -> str:
    epsilon, records = candidate.smallest_epsilon, candidate.fewest_records
    ways = [] if epsilon is None else [f"epsilon {epsilon:g}"]
    ways += [] if records is None else [f"{records:,} records"]
    return " or ".join(ways)
