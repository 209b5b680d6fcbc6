"""Plans: what every protocol that fits a trust would cost, and how wrong it would be.

If no protocol of an evaluation is named, a plan chooses it, from public numbers alone: the choice
must not depend on a record. It uses the number of clients, the number of records rounded
up to 1, 2 or 5 times a power of ten, epsilon, and who is trusted. The rounded number is taken to be
public; a result says so. Labels and scores are not looked at: a tenth of the records is taken to be
positive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.planning import searching
from tacit.planning.result import HIDES, Candidate, Plan, best_of, for_reports, of_persons, rank
from tacit.privacy import composition
from tacit.protocol.conversation import Protocol
from tacit.protocol.forecast import AREA, NO_FORECAST, Family, Metric
from tacit.protocol.registry import options_of
from tacit.protocol.scenario import Scenario, Shape, plausible_shapes
from tacit.protocol.trust import Trust

MOST_SUMMED = 1_000
"""The most clients that are taken to join one secure sum; more are taken to be devices."""
COMPARED_SHAPES = 2
"""Number of plausible shapes, the central ones, on which settings are compared."""


def plan(
    records: int,
    positives: int | None,
    clients: int,
    epsilon: float,
    trust: str | None = None,
    *,
    auc_guess: float | None = None,
    target: float | None = None,
    metric: str | None = None,
    per_person: int = 0,
    classes: int | None = None,
) -> Plan:
    """Predict every fitting protocol's error and traffic, and recommend one.

    Nothing is spent and no record is read. Predictions come from the protocols' variance
    formulas at the counts that binormal scores would give (docs, planning).

    Parameters
    ----------
    records, positives : how many there are, of all clients together; a guess will do.
    clients : the number of clients; each has equally many records, assigned at random.
    epsilon : the privacy budget of one evaluation.
    trust : who may see what (``protocol.trust``): ``"each"``,
        ``"server-sees-scores"``, ``"local"``, ``"secure-sum"``, ``"exact-sum"``, ``"encrypted"``
        or ``"mpc"``. None takes secure sums up to 1,000 clients, and the local model for more.
    auc_guess : the expected AUC; without one, 0.65 to 0.9 are assumed.
    target : the requested root mean square error, standard error and bias together.
    metric : ``"auc"``, ``"precision@t"`` with a threshold t, ``"ece"``, a measure of score
        histograms in words or as a file names it, such as ``"net benefit at 0.2"``, or the figure
        of a registered protocol. Without one the AUC is planned, and protocols that estimate other
        figures are predicted besides it (``Plan.others``).
    per_person : the most records of a person that count at a client, where epsilon is a person's;
        ``records`` are then those that count. 0 where epsilon is a record's.
    classes : of a classifier that has a score for each: the mean of their AUCs against the rest is
        planned, and ``positives`` are the records of one class, None for ``records / classes``.

    Raises
    ------
    ValueError : for figures that no data could have, an unknown trust or metric, or a target that
        is not above 0; the message names the bound and the value.

    Examples
    --------
    >>> predicted = plan(40_000, 4_000, 10, 1.0, "secure-sum", auc_guess=0.8)
    >>> predicted.recommended.protocol.name, predicted.recommended.forecast.error < 0.001
    ('score-histogram', True)
    """
    requested_metric = _metric(metric, classes)
    positives = _of_one_class(records, classes) if positives is None else positives
    named = Scenario(records, positives, clients, epsilon, 2 if classes is None else classes)
    if per_person:
        composition.check_per_person(per_person)
    scenario = replace(named, epsilon=epsilon / max(per_person, 1))
    trust = trust_of(clients, trust).value
    if target is not None and not (math.isfinite(target) and target > 0):
        raise ValueError(f"target must be positive and finite, got {target}")
    shapes = plausible_shapes(auc_guess)
    candidates = tuple(
        of_persons(each, named, per_person)
        for each in _candidates(trust, scenario, requested_metric, shapes, target)
    )
    elsewhere = {} if candidates else searching.trusts_by_protocol(scenario, requested_metric)
    plain = metric is None and classes is None
    chosen = best_of(for_reports(candidates) if plain and target is None else candidates)
    others = _others(trust, scenario, shapes) if plain else ()
    sampling = [scenario.sampling_error(shape) for shape in shapes]
    return Plan(
        scenario=named,
        trust=trust,
        metric=AREA if plain else requested_metric.name,
        target=target,
        shapes=shapes,
        sampling_error=(min(sampling), max(sampling)),
        candidates=candidates,
        recommended=chosen,
        elsewhere=elsewhere,
        others=tuple(of_persons(each, named, per_person) for each in others),
        per_person=per_person,
    )


def _metric(name: str | None, classes: int | None) -> Metric:
    """The metric of a plan: by its name, or that of several classes."""
    if classes is None:
        return searching.metric_named(name)
    by_class = searching.metric_by_class()
    if name is not None and searching.metric_named(name) != by_class:
        raise ValueError(f"with classes the {by_class.name} is planned, got metric {name!r}")
    return by_class


def _of_one_class(records: int, classes: int | None) -> int:
    """The records of a class, of equally large ones."""
    if classes is None:
        raise ValueError("positives are needed where no number of classes is named")
    return max(1, records // max(classes, 2))


def trust_of(clients: int, trust: str | None) -> Trust:
    """The named trust; by default sums over the clients, if all of them fit into one sum.

    Raises
    ------
    ValueError : for an unknown word, listing those that are known.

    Examples
    --------
    >>> trust_of(10, None).value, trust_of(4_000, None).value, trust_of(4_000, "each").value
    ('secure-sum', 'local', 'each')
    """
    if trust is not None:
        return Trust.of(trust)
    return Trust.SECURE_SUM if clients <= MOST_SUMMED else Trust.LOCAL


def _candidates(
    trust: str,
    scenario: Scenario,
    metric: Metric,
    shapes: tuple[Shape, ...],
    target: float | None,
) -> tuple[Candidate, ...]:
    """The candidates for a metric, by rank; with what a target takes, or where none is feasible."""
    known = list(_predicted(trust, scenario, metric, shapes))
    candidates = [candidate for _, candidate in known]
    if target is not None or not any(candidate.feasible for candidate in candidates):
        for index, (family, each) in enumerate(known):
            aim = each.forecast.max_error if target is None else target
            compared = shapes[:COMPARED_SHAPES]
            search = searching.Search(family, each.protocol, scenario, compared, aim)
            needs = search.smallest_epsilon(), search.fewest_records()
            candidates[index] = replace(each, smallest_epsilon=needs[0], fewest_records=needs[1])
    return tuple(sorted(candidates, key=rank))


def _others(trust: str, scenario: Scenario, shapes: tuple[Shape, ...]) -> tuple[Candidate, ...]:
    """What is predicted of protocols that estimate other figures, each figure's by rank."""
    candidates: list[Candidate] = []
    for metric in searching.other_metrics():
        if metric != searching.metric_by_class():
            predicted = _predicted(trust, scenario, metric, shapes)
            candidates += sorted((candidate for _, candidate in predicted), key=rank)
    return tuple(candidates)


def _predicted(
    trust: str, scenario: Scenario, metric: Metric, shapes: tuple[Shape, ...]
) -> Iterator[tuple[Family, Candidate]]:
    """Every family's best settings with their predictions, where something is predicted."""
    for family in searching.families(trust, scenario, metric):
        protocol = searching.best_settings(family, scenario, shapes[:COMPARED_SHAPES])
        forecasts = [family.forecast(protocol, scenario, shape) for shape in shapes]
        if not any(forecast is NO_FORECAST for forecast in forecasts):
            errors = [forecast.error for forecast in forecasts]
            candidate = Candidate(
                protocol,
                forecasts[0],
                (min(errors), max(errors)),
                protocol.traffic(scenario),
                family.given_up,
                family.metric.title,
            )
            yield family, candidate


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
    """The protocol that predicts the least error among the protocols that hide most.

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
    asked: dict[str, Any] = {"classes": len(classes)} if classes else {"metric": AREA}
    planned = plan(size, positives, clients, budget, model.value, per_person=per_person, **asked)
    if not planned.candidates:
        raise ValueError(
            f"no protocol with trust {model.value} is planned for the {planned.metric}: name one"
        )
    # candidates that hide as much as any does under this trust, feasible or not
    most = min(rank(each)[0] for each in planned.candidates)
    candidates = tuple(each for each in planned.candidates if rank(each)[0] == most)
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
    figure = "an AUC" if planned.metric == AREA else f"the {planned.metric}"
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
