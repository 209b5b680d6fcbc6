"""What a reply costs in privacy, and how costs add up."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from importlib import import_module
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from tacit.arrays import Floats


class Adjacency(Enum):
    """Which change of the data a guarantee hides."""

    LABEL = "label"
    """One record's label flips; scores are known to the receiver."""
    RECORD = "record"
    """One (score, label) record is added or removed."""
    REPLACE = "replace"
    """One (score, label) record takes any other value."""
    SCORE = "score"
    """One record's score takes any other value in [0, 1]; labels are not protected."""
    PERSON = "person"
    """A person's counted records at a client are added or removed, all of them."""
    PERSON_LABEL = "person-label"
    """The labels of a person's counted records flip, of any number of them."""
    PERSON_REPLACE = "person-replace"
    """A person's counted records take any other values; how many they are is not protected."""
    PERSON_SCORE = "person-score"
    """The scores of a person's counted records take any other values."""


HIDDEN: Mapping[str, str] = {
    "label": "whether any one record's label is 0 or 1",
    "record": "whether any one record is in the data at all",
    "replace": "what any one record contains",
    "score": "any one record's score; labels are open",
    "person": "whether any one person's records at a client are in the data at all",
    "person-label": "whether the labels of any one person's records at a client are 0 or 1",
    "person-replace": "what any one person's records at a client contain, not how many count",
    "person-score": "the scores of any one person's records at a client; labels are open",
}
"""What each adjacency hides, by its word."""


class NoisyRelease(ABC):
    """An observed statistic under noise, at a stated change of the statistic."""

    @abstractmethod
    def cost(self, adjacency: Adjacency) -> Cost:
        """The guarantee where neighbouring data sets of this kind move it by the sensitivity."""

    def loss_distribution(self) -> Any:
        """A privacy-loss distribution that dominates it (dp-accounting), or None if none is known.

        It is rounded pessimistically. ``loss_error`` says how far the noise as it is drawn may be
        from the noise as this describes it.
        """
        return None

    @property
    def loss_error(self) -> float:
        """A bound of the total variation between the drawn noise and ``loss_distribution``."""
        return 0.0


def check_delta(delta: float) -> None:
    """Refuse a delta that is no probability below 1."""
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be at least 0 and below 1, got {delta}")


def check_fraction(name: str, value: float) -> None:
    """Refuse a part, of a budget or of a probability, that is nothing or the whole.

    Raises
    ------
    ValueError : naming it.
    """
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value}")


@dataclass(frozen=True)
class Cost:
    """A differential-privacy guarantee: (epsilon, delta) at a named adjacency.

    Parameters
    ----------
    epsilon : at least 0; infinity says that nothing is protected.
    delta : 0 <= delta < 1.
    adjacency : what neighbouring data sets differ in; None only when nothing was spent or nothing
        is protected.
    rho : the zero-concentrated guarantee, where the mechanism has one (Gaussian noise); at least 0.
    mechanism : what was drawn, where it is known: composition then reads its privacy-loss
        distribution. Costs with and without it differ; see ``figures``.

    Examples
    --------
    >>> Cost(1.0, adjacency=Adjacency.LABEL) + Cost(0.5, adjacency=Adjacency.LABEL)
    Cost(epsilon=1.5, delta=0.0, adjacency=<Adjacency.LABEL: 'label'>, rho=None)
    """

    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency | None = None
    rho: float | None = None
    mechanism: NoisyRelease | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise ValueError(f"epsilon must be at least 0, got {self.epsilon}")
        check_delta(self.delta)
        if self.rho is not None and not self.rho >= 0:
            raise ValueError(f"rho must be at least 0, got {self.rho}")

    def __add__(self, other: Cost) -> Cost:
        """Basic composition; refuses to add guarantees at different adjacencies.

        With a release that protects nothing, or deltas that reach 1, nothing is protected.
        """
        if math.inf in (self.epsilon, other.epsilon) or self.delta + other.delta >= 1:
            return UNPROTECTED
        if other == NOTHING:
            return self
        if self == NOTHING:
            return other
        adjacency = _one_adjacency((self, other))
        both = self.rho is not None and other.rho is not None
        return Cost(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            adjacency,
            (self.rho or 0.0) + (other.rho or 0.0) if both else None,
        )

    @property
    def figures(self) -> Cost:
        """The same cost as it is sent and written down: without its mechanism."""
        return self if self.mechanism is None else replace(self, mechanism=None)

    @property
    def hides_presence(self) -> bool:
        """Whether it hides that a record is there, and with that every exact number of records."""
        hiding = (Adjacency.RECORD, Adjacency.PERSON)
        return self.adjacency in hiding and math.isfinite(self.epsilon)

    def misses(self, false_alarms: Floats) -> Floats:
        """The least rates of misses of an attack at these rates of false alarms.

        An attacker decides by all that is released whether a record counted. Dong, Roth and Su
        (arXiv 1905.02383, Eq. 5), after Wasserman and Zhou 2010.

        Examples
        --------
        >>> Cost(math.log(3.0)).misses(np.array([0.0, 0.25, 1.0])).round(2).tolist()
        [1.0, 0.25, 0.0]
        """
        growth = math.exp(min(self.epsilon, MAX_BUDGET))
        # f(a) = max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a))
        steep, flat = 1 - self.delta - growth * false_alarms, 1 - self.delta - false_alarms
        return np.maximum(np.maximum(steep, flat / growth), 0.0)

    @property
    def equal_errors(self) -> float:
        """The rate at which an attack's least misses are as many as its false alarms."""
        return (1 - self.delta) / (1 + math.exp(min(self.epsilon, MAX_BUDGET)))

    @property
    def advantage(self) -> float:
        """The largest difference of hits and false alarms of an attack; 1 if nothing is protected.

        Examples
        --------
        >>> round(Cost(1.0).advantage, 3), Cost(math.inf).advantage
        (0.462, 1.0)
        """
        return 1 - 2 * self.equal_errors

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy that epsilon gives; infinite with a delta.

        The trade-off function of epsilon is two lines from (0, 1) and (1, 0) to their fixed point
        ``equal_errors``. That of mu is convex, with the same ends and the fixed point Phi(-mu/2)
        (Dong, Roth and Su, Eq. 5 and 6): where the fixed points agree it is nowhere above the
        lines. With a delta some outputs may show everything, which no mu allows.

        Examples
        --------
        >>> round(Cost(1.0).mu, 3), Cost(1.0, 1e-6).mu
        (1.232, inf)
        """
        if self.delta or self.epsilon > MAX_BUDGET:
            return math.inf
        return abs(2 * NormalDist().inv_cdf(self.equal_errors))  # no -0.0

    @property
    def attacks(self) -> str:
        """What the cost leaves to an attacker, in one line.

        Examples
        --------
        >>> Cost(1.0).attacks, Cost(1.0, 1e-6).attacks
        ('advantage at most 0.462, mu 1.232', 'advantage at most 0.462, no mu as delta is above 0')
        >>> Cost(701.0).attacks
        'advantage at most 1.000, no mu as epsilon is above 700'
        """
        above = "delta is above 0" if self.delta else f"epsilon is above {MAX_BUDGET:g}"
        mu = f"no mu as {above}" if math.isinf(self.mu) else f"mu {self.mu:.3f}"
        return f"advantage at most {self.advantage:.3f}, {mu}"

    def to_dict(self) -> dict[str, float | str | None]:
        """The cost as the ``spent`` entry of a result; what is unbounded is written as null."""
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "adjacency": self.adjacency.value if self.adjacency else "none",
            "mu": self.mu if math.isfinite(self.mu) else None,
            "advantage": self.advantage,
        }


def amount_line(epsilon: float, delta: float) -> str:
    """Epsilon, and delta where there is one.

    Examples
    --------
    >>> amount_line(1.0, 1e-6)
    'epsilon 1, delta 1e-06'
    """
    return f"epsilon {epsilon:g}, delta {delta:g}" if delta else f"epsilon {epsilon:g}"


def cost_line(
    cost: Mapping[str, Any], whose: str = "", unlimited: str = "unlimited: no differential privacy"
) -> str:
    """A cost in one line.

    Parameters
    ----------
    cost : as ``Cost.to_dict`` writes it.
    whose : who spends it, such as ``"a client"``.
    unlimited : what is said where nothing is protected.

    Examples
    --------
    >>> cost_line(Cost(1.0, adjacency=Adjacency.LABEL).to_dict(), "a client")
    'epsilon 1 a client, label adjacency'
    """
    if cost["epsilon"] is None:
        return unlimited
    if cost["adjacency"] == "none":
        return "nothing"
    amount = amount_line(cost["epsilon"], cost["delta"])
    return f"{amount}{whose and f' {whose}'}, {cost['adjacency']} adjacency"


NOTHING = Cost(0.0)
"""The cost of a step that depends on nothing private."""

MIN_BUDGET = 0.001
"""Least epsilon of an evaluation; its parts must stay within the samplers' range."""

MAX_BUDGET = 700.0
"""Largest epsilon of an evaluation: ``exp(epsilon)`` and its parts stay finite numbers."""

UNPROTECTED = Cost(math.inf)
"""The cost of a step that sends private values without noise."""

LOSS_ROUNDING = 2.0**-52
"""Fraction of delta reserved for each composed release: the error of a convolution is smaller."""

MECHANISM_ROUNDING = 1e-10
"""Fraction of delta reserved where mechanisms' loss distributions are convolved: these have less
than a million points, each with an error of about 2**-53."""

MECHANISM_MARGIN = 1e-3
"""Fraction of delta reserved there for the roundings of samplers."""

MAX_MECHANISM_LOSS = 100.0
"""Largest sum of epsilons at which mechanisms' loss distributions are convolved: a larger one
gives no useful guarantee."""

SIGMA_SLACK = 1.0 + 2.0**-30
"""Factor on a calibrated sigma: the increase exceeds the error of the root finding."""


MAX_LOSS = 10_000.0
"""Largest sum of epsilons at which privacy-loss distributions are composed: a larger one gives no
useful guarantee. They take ``exp(epsilon)`` of each cost, a double up to ``MAX_BUDGET``."""

MAX_KINDS = 200
"""Largest number of different costs that are composed so: each needs a convolution."""

Way = Literal["basic", "zcdp", "pld"]


def loss_distributions() -> Any:
    """The module of dp-accounting's privacy-loss distributions, which takes a second to import."""
    return import_module("dp_accounting.pld.privacy_loss_distribution")


def compose(
    costs: Iterable[Cost], delta: float = 1e-6, method: Literal["tightest"] | Way = "tightest"
) -> Cost:
    """The guarantee of several releases about the same records, taken together.

    ``basic`` adds epsilons and deltas. ``zcdp`` adds zero-concentrated guarantees (epsilon^2/2 for
    a pure one: Bun and Steinke 2016, Prop. 1.4) and converts at ``delta``. ``pld`` composes
    dominating privacy-loss distributions, rounded pessimistically (dp-accounting), at ``delta``:
    those of the mechanisms where costs know them, and that of (epsilon, delta) where they do not.
    ``tightest`` takes the smallest epsilon of those that apply, each a valid guarantee; a single
    release is returned as it is.

    Raises
    ------
    ValueError : for costs at different adjacencies, a delta outside [0, 1), or ``zcdp`` asked for
        when a cost has delta > 0 and no rho.

    Examples
    --------
    >>> evaluations = [Cost(0.1, adjacency=Adjacency.LABEL)] * 100
    >>> round(compose(evaluations, method="basic").epsilon, 6)
    10.0
    >>> compose(evaluations, delta=1e-6).epsilon < 5.5
    True
    >>> from tacit.privacy.mechanisms.laplace import Laplace
    >>> evaluations = [Laplace(1, 0.1).cost(Adjacency.LABEL)] * 100
    >>> compose(evaluations, delta=1e-6).epsilon < 4.7
    True
    """
    spent = [cost for cost in costs if cost != NOTHING]
    check_delta(delta)
    if not spent:
        return NOTHING
    if any(math.isinf(cost.epsilon) for cost in spent):
        return UNPROTECTED
    adjacency = _one_adjacency(spent)
    ways = {"basic": _basic, "zcdp": _zero_concentrated, "pld": _privacy_loss}
    if method in ways:
        return ways[method](spent, delta, adjacency)
    if method != "tightest":
        raise ValueError(f"method must be 'tightest' or one of {tuple(ways)}, got {method!r}")
    if len(spent) == 1:
        return spent[0]  # one release is left as it is
    composed = [ways[way](spent, delta, adjacency) for way in ways_of(spent, delta)]
    return min(composed, key=lambda cost: cost.epsilon)


def analytic_gaussian_sigma(epsilon: float, delta: float) -> float:
    """The smallest Gaussian sigma that is (epsilon, delta)-private at sensitivity 1.

    By Balle and Wang (2018), Theorem 8; raised by one part in 10**9, so that it is never below the
    exact solution.

    Raises
    ------
    ValueError : for an epsilon that is not positive and finite or a delta outside (0, 1).

    Examples
    --------
    >>> round(analytic_gaussian_sigma(1.0, 1e-6), 4)
    4.2247
    """
    check_epsilon(epsilon)
    check_fraction("delta", delta)
    return _unit_sigma(epsilon, delta) * SIGMA_SLACK


@lru_cache(maxsize=256)
def _unit_sigma(epsilon: float, delta: float) -> float:
    from dp_accounting import get_sigma_gaussian  # noqa: PLC0415 (a second to import)

    return float(get_sigma_gaussian(epsilon, delta))


def worst_case(costs: Iterable[Cost]) -> Cost:
    """A cost that covers each of these, which different clients of one batch spend.

    The largest epsilon, delta and rho; a pure cost of epsilon has rho at most epsilon^2/2.
    """
    spent = [cost for cost in costs if cost != NOTHING]
    if not spent:
        return NOTHING
    if any(math.isinf(cost.epsilon) for cost in spent):
        return UNPROTECTED
    if all(cost == spent[0] for cost in spent):
        return spent[0]
    rhos = [_rho(cost) for cost in spent]
    stated = any(cost.rho is not None for cost in spent)
    known = [rho for rho in rhos if rho is not None]
    return Cost(
        max(cost.epsilon for cost in spent),
        max(cost.delta for cost in spent),
        _one_adjacency(spent),
        max(known) if stated and len(known) == len(spent) else None,
    )


def check_budget(epsilon: float, largest: float = MAX_BUDGET) -> None:
    """Refuse an epsilon that is no number, or outside what mechanisms can be computed for.

    Parameters
    ----------
    epsilon : the privacy budget of an evaluation.
    largest : what it may be at most; mechanisms that take no ``exp(epsilon)`` allow more.
    """
    check_epsilon(epsilon)
    if epsilon < MIN_BUDGET:
        raise ValueError(f"epsilon must be at least {MIN_BUDGET}, got {epsilon}")
    if epsilon > largest:
        raise ValueError(f"epsilon must be at most {largest}, got {epsilon}")


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that is not a positive finite number."""
    is_number = isinstance(epsilon, int | float | np.integer) and not isinstance(epsilon, bool)
    try:
        is_usable = is_number and math.isfinite(epsilon) and epsilon > 0
    except OverflowError:
        raise ValueError("epsilon must be positive and finite, got a larger integer") from None
    if not is_usable:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon!r:.60}")


def _one_adjacency(costs: Iterable[Cost]) -> Adjacency | None:
    named = {cost.adjacency for cost in costs if cost.adjacency is not None}
    if len(named) > 1:
        names = " and ".join(sorted(adjacency.value for adjacency in named))
        raise ValueError(f"costs at different adjacencies do not add up: {names}")
    return named.pop() if named else None


def ways_of(costs: list[Cost], delta: float) -> list[Way]:
    """The ways in which such costs can be composed at this delta; finer ones take time."""
    ways: list[Way] = ["basic"]
    summed = math.fsum(cost.epsilon for cost in costs)
    if len(costs) < 2 or math.isinf(summed):
        return ways
    if delta > 0 and all(_rho(cost) is not None for cost in costs):
        ways.append("zcdp")
    largest = max(cost.epsilon for cost in costs)
    simple = len(set(costs)) <= MAX_KINDS and summed <= MAX_LOSS and largest <= MAX_BUDGET
    # "pld" needs a delta larger than those of the costs whose mechanism is not known
    if delta > math.fsum(cost.delta for cost in costs if cost.mechanism is None) and simple:
        ways.append("pld")
    return ways


def _basic(costs: list[Cost], delta: float, adjacency: Adjacency | None) -> Cost:
    """Sums of epsilons and deltas; deltas that reach 1 leave nothing protected."""
    total = math.fsum(cost.delta for cost in costs)
    if total >= 1:
        return UNPROTECTED
    return Cost(math.fsum(cost.epsilon for cost in costs), total, adjacency)


def _rho(cost: Cost) -> float | None:
    if cost.rho is not None:
        return cost.rho
    # a product of floats overflows to infinity, a power to an error
    return cost.epsilon * cost.epsilon / 2 if cost.delta == 0 else None


def _zero_concentrated(costs: list[Cost], delta: float, adjacency: Adjacency | None) -> Cost:
    from dp_accounting import ZCDpEvent  # noqa: PLC0415 (a second to import)
    from dp_accounting.rdp import RdpAccountant  # noqa: PLC0415

    rhos = [_rho(cost) for cost in costs]
    if any(rho is None for rho in rhos):
        raise ValueError("zcdp composition needs costs that are pure or state their rho")
    total = math.fsum(rho for rho in rhos if rho is not None)
    epsilon = float(RdpAccountant().compose(ZCDpEvent(total)).get_epsilon(delta))
    return Cost(epsilon, delta, adjacency, total)


def _privacy_loss(costs: list[Cost], delta: float, adjacency: Adjacency | None) -> Cost:
    """The bound of (epsilon, delta) alone, or that of the mechanisms where it is the smaller."""
    bare = Counter((cost.epsilon, cost.delta) for cost in costs)
    composed = _convolved((_loss_of_parameters(*key), times) for key, times in bare.items())
    usable = max(delta - LOSS_ROUNDING * len(costs), 0.0)
    epsilon = float(composed.get_epsilon_for_delta(usable))
    return Cost(min(epsilon, _mechanism_epsilon(costs, delta)), delta, adjacency)


def _mechanism_epsilon(costs: list[Cost], delta: float) -> float:
    """The epsilon at delta of the costs' mechanisms; infinity where nothing is gained or known.

    The noise that is drawn differs from the noise that is composed by a total variation of at most
    D, all releases together. Its delta at epsilon is then larger by at most
    ``(1 + exp(epsilon)) D``, which must stay within the reserved part of delta.
    """
    known = any(cost.mechanism is not None for cost in costs)
    reserved = MECHANISM_MARGIN * delta
    usable = delta - reserved - MECHANISM_ROUNDING
    summed = math.fsum(cost.epsilon for cost in costs)
    if not known or usable <= 0 or summed > MAX_MECHANISM_LOSS:
        return math.inf
    counts = Counter(costs)
    composed = _convolved((_loss_of(cost), times) for cost, times in counts.items())
    epsilon = float(composed.get_epsilon_for_delta(usable))
    distance = math.fsum(
        cost.mechanism.loss_error * times for cost, times in counts.items() if cost.mechanism
    )
    if epsilon > MAX_MECHANISM_LOSS or (1 + math.exp(epsilon)) * distance > reserved:
        return math.inf
    return epsilon


def _loss_of(cost: Cost) -> Any:
    """The privacy-loss distribution of a cost's mechanism, or of its figures alone."""
    known = None if cost.mechanism is None else cost.mechanism.loss_distribution()
    return _loss_of_parameters(cost.epsilon, cost.delta) if known is None else known


def _loss_of_parameters(epsilon: float, delta: float) -> Any:
    from dp_accounting.pld import common  # noqa: PLC0415

    parameters = common.DifferentialPrivacyParameters(epsilon, delta)
    return loss_distributions().from_privacy_parameters(parameters)


def _convolved(losses: Iterable[tuple[Any, int]]) -> Any:
    """The privacy-loss distribution of all releases, each so many times."""
    composed = loss_distributions().identity()
    for loss, times in losses:
        composed = composed.compose(loss.self_compose(times) if times > 1 else loss)
    return composed
