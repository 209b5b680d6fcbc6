"""Plans: what every protocol that fits a trust would cost, and how wrong it would be."""

from __future__ import annotations

import math
from dataclasses import replace

from tacit.planning.advice import advice
from tacit.planning.candidates import Candidate, best_of, rank
from tacit.planning.families import Family, best_settings, families
from tacit.planning.forecast import MOST_ERROR
from tacit.planning.result import Plan
from tacit.planning.scenario import Scenario, Shape, plausible_shapes
from tacit.planning.searching import fewest_records, smallest_epsilon
from tacit.planning.traffic import traffic_of
from tacit.planning.trees import Metric

COMPARED_SHAPES = 2
"""Settings are compared on so many of the plausible shapes, the central ones."""


def plan(
    records: int,
    positives: int,
    clients: int,
    epsilon: float,
    trust: str,
    *,
    auc_guess: float | None = None,
    target: float | None = None,
    metric: str = "auc",
) -> Plan:
    """Predict every fitting protocol's error and traffic, and recommend one.

    Nothing is spent and no record is read. Predictions come from the protocols' own variance
    formulas at the counts that binormal scores would give (docs, planning).

    Parameters
    ----------
    records, positives : how many there are, of all clients together; a guess will do.
    clients : how many clients hold them, equally many each and dealt out at random.
    epsilon : the privacy budget of one evaluation.
    trust : one of ``TRUSTS``: ``"central"``, ``"server-sees-scores"``, ``"local"``,
        ``"secure-sum"``, ``"encrypted"`` or ``"two-party"``.
    auc_guess : the AUC that is expected; without one, 0.65 to 0.9 are taken to be plausible.
    target : the root mean square error that is wanted, standard error and bias together.
    metric : ``"auc"``, ``"precision@t"`` with a threshold t, or ``"ece"``.

    Raises
    ------
    ValueError : for figures that no data could have, an unknown trust or metric, or a target that
        is not above 0; the message names the bound and the value.

    Examples
    --------
    >>> found = plan(40_000, 4_000, 10, 1.0, "secure-sum", auc_guess=0.8)
    >>> found.recommended.protocol.name, found.recommended.forecast.error < 0.001
    ('score-histogram', True)
    """
    scenario, wanted = Scenario(records, positives, clients, epsilon), Metric(metric)
    if target is not None and not (math.isfinite(target) and target > 0):
        raise ValueError(f"target must be positive and finite, got {target}")
    shapes = plausible_shapes(auc_guess)
    offered = families(trust, scenario, wanted)
    found = [(own, _candidate(own, scenario, shapes)) for own in offered]
    if target is not None or not any(candidate.feasible for _, candidate in found):
        aim = MOST_ERROR if target is None else target
        found = [
            (own, _with_target(own, made, scenario, shapes[:COMPARED_SHAPES], aim))
            for own, made in found
        ]
    candidates = tuple(sorted((candidate for _, candidate in found), key=rank))
    chosen = best_of(candidates)
    sampling = [scenario.sampling_error(shape) for shape in shapes]
    return Plan(
        scenario=scenario,
        trust=trust,
        metric=metric,
        target=target,
        shapes=shapes,
        sampling_error=(min(sampling), max(sampling)),
        candidates=candidates,
        recommended=chosen,
        advice=advice(candidates, chosen, scenario, metric, target),
    )


def _candidate(family: Family, scenario: Scenario, shapes: tuple[Shape, ...]) -> Candidate:
    """The family's best settings with their predictions."""
    protocol = best_settings(family, scenario, shapes[:COMPARED_SHAPES])
    forecasts = [family.forecast(protocol, scenario, shape) for shape in shapes]
    errors = [forecast.error for forecast in forecasts]
    return Candidate(
        protocol,
        forecasts[0],
        (min(errors), max(errors)),
        traffic_of(protocol, scenario),
        family.given_up,
    )


def _with_target(
    family: Family,
    candidate: Candidate,
    scenario: Scenario,
    shapes: tuple[Shape, ...],
    target: float,
) -> Candidate:
    """The candidate with what it takes to reach the target."""
    searched = (family, candidate.protocol, scenario, shapes, target)
    return replace(
        candidate,
        smallest_epsilon=smallest_epsilon(*searched),
        fewest_records=fewest_records(*searched),
    )
