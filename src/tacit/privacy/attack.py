"""What a guarantee leaves to an attacker who tells neighbouring data sets apart.

An attacker decides by all that is released whether a record counted. The trade-off function of a
guarantee is the least rate of misses at every rate of false alarms. The largest advantage is the
largest difference of hits and false alarms, and a guarantee is mu-Gaussian where an attack is no
easier than telling N(0, 1) from N(mu, 1) (Dong, Roth and Su, arXiv 1905.02383, Sections 2 and 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.privacy.cost import MAX_BUDGET, Cost


def misses(epsilon: float, delta: float, false_alarms: Floats) -> Floats:
    """The least rate of misses that (epsilon, delta) allows, at these rates of false alarms.

    Dong, Roth and Su, Eq. 5, after Wasserman and Zhou 2010.

    Examples
    --------
    >>> misses(math.log(3.0), 0.0, np.array([0.0, 0.25, 1.0])).round(2).tolist()
    [1.0, 0.25, 0.0]
    """
    growth = math.exp(min(epsilon, MAX_BUDGET))
    # f(a) = max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a))
    steep, flat = 1 - delta - growth * false_alarms, (1 - delta - false_alarms) / growth
    return np.maximum(np.maximum(steep, flat), 0.0)


def mu_of_history(costs: Sequence[tuple[Cost, int]]) -> float:
    """The mu of several releases together; infinite where there is none.

    The root of the sum of their squares (Dong, Roth and Su, Cor. 3.3), or the mu of the summed
    epsilons, whichever is smaller. It holds if the costs were fixed before the first reply.

    Parameters
    ----------
    costs : at one adjacency, each with how often it was spent.

    Examples
    --------
    >>> round(mu_of_history([(Cost(0.1), 100)]), 3), round(Cost(10.0).mu, 3)
    (1.253, 7.828)
    """
    root = math.sqrt(sum(times * cost.mu**2 for cost, times in costs))
    summed = Cost(sum(times * cost.epsilon for cost, times in costs))
    return min(root, summed.mu) if math.isfinite(root) else root


def advantage_of_mu(mu: float) -> float:
    """The largest advantage of an attack on mu: 2 Phi(mu/2) - 1, by ``misses`` of mu (Eq. 6).

    Examples
    --------
    >>> round(advantage_of_mu(Cost(1.0).mu), 3)
    0.462
    """
    return math.erf(mu / math.sqrt(8.0))


def attack_line(cost: Mapping[str, Any]) -> str:
    """What a cost leaves to an attacker, in one line.

    Parameters
    ----------
    cost : as ``Cost.to_dict`` writes it.

    Examples
    --------
    >>> attack_line(Cost(1.0).to_dict()), attack_line(Cost(1.0, 1e-6).to_dict())
    ('advantage at most 0.462, mu 1.232', 'advantage at most 0.462, no mu as delta is above 0')
    """
    mu = "no mu as delta is above 0" if cost["mu"] is None else f"mu {cost['mu']:.3f}"
    return f"advantage at most {cost['advantage']:.3f}, {mu}"
