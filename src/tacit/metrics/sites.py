"""Figures of several sites: their mean, how far they truly differ, a new site, and outliers.

The normal random-effects model: site k's estimate is ``y_k = mu + u_k + e_k``. The true deviations
u_k have the variance tau^2 between sites, and the errors e_k the known variances v_k, which hold
privacy noise, sampling and what cells hide. So tau^2 is what remains when these are removed.

Given tau, everything is normal. Few sites tell little of tau, and intervals that take its estimate
for the truth are too narrow: where the estimate is 0, the mean, every site and a new site would be
one. So intervals average over tau, with a prior that is flat in tau, by its restricted likelihood
(Gelman 2006, section 3.2; Roever 2020, Eq. 13 to 15).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from tacit.arrays import Floats

LEVEL = 0.95
STEPS, PRECISION = 200, 1e-10
LEAST_SITES = 3
"""Fewest sites of which anything is said: with two the flat prior leaves tau unbounded."""
GRID = 160
"""Number of values of tau over which intervals average."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Normal distributions with weights.

    Parameters
    ----------
    weights, means, deviations : shape (T,); the weights add up to 1.
    """

    weights: Floats
    means: Floats
    deviations: Floats

    @property
    def mean(self) -> float:
        """The mean."""
        return float(self.weights @ self.means)

    def below(self, value: float) -> float:
        """The probability of values up to this one."""
        return float(self.weights @ scipy.special.ndtr((value - self.means) / self.deviations))

    def interval(self) -> tuple[float, float]:
        """The range between the quantiles at both ends of ``LEVEL``."""
        low = float((self.means - 40 * self.deviations).min())
        high = float((self.means + 40 * self.deviations).max())
        tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
        ends = [scipy.optimize.brentq(lambda x, t=t: self.below(x) - t, low, high) for t in tails]
        return float(ends[0]), float(ends[1])


@dataclass(frozen=True, eq=False)
class Posterior:
    """The model given every tau of a grid.

    Parameters
    ----------
    squares : tau^2, shape (T,).
    weights : the probability of each, shape (T,).
    means, variances : of mu given tau, shape (T,).
    """

    squares: Floats
    weights: Floats
    means: Floats
    variances: Floats

    def mixture(self, extra: Floats | float = 0.0) -> Mixture:
        """The distribution of mu plus something of variance ``extra``."""
        return Mixture(self.weights, self.means, np.sqrt(self.variances + extra))

    def site(self, value: float, variance: float) -> Mixture:
        """The distribution of a site's own true figure, from its estimate and all sites.

        Given tau it is ``B y + (1 - B) mu`` with ``B = tau^2 / (tau^2 + v)``, of variance
        ``B v + (1 - B)^2 Var mu`` (Roever 2020, Eq. 20).
        """
        kept = self.squares / (self.squares + variance)
        spread = kept * variance + (1 - kept) ** 2 * self.variances
        return Mixture(self.weights, kept * value + (1 - kept) * self.means, np.sqrt(spread))


def posterior(values: Floats, variances: Floats) -> Posterior:
    """The model over a grid of tau, by the restricted likelihood and a prior flat in tau.

    Parameters
    ----------
    values : the sites' estimates, shape (K,), at least ``LEAST_SITES``.
    variances : of their errors, above 0, shape (K,).

    With ``w = 1 / (v + tau^2)``, ``log p(tau) = (sum log w - log sum w - sum w (y - mu)^2) / 2``
    (Roever 2020, Eq. 13). The grid is equal steps of x from 0 to 1 with ``tau = s x / (1 - x)``,
    where s is the spread of the values and of their errors.

    Examples
    --------
    >>> fitted = posterior(np.array([0.9, 1.1, 1.0, 1.0]), np.full(4, 0.01))
    >>> round(fitted.mixture().mean, 6)
    1.0
    """
    places = (np.arange(GRID) + 0.5) / GRID
    scale = math.sqrt(float(np.var(values, ddof=1)) + float(variances.mean()))
    taus: Floats = scale * places / (1 - places)
    squares = taus**2
    weights = 1 / (variances + squares[:, np.newaxis])
    totals = weights.sum(axis=1)
    means: Floats = weights @ values / totals
    scatter = np.sum(weights * (values - means[:, np.newaxis]) ** 2, axis=1)
    likelihood: Floats = (np.log(weights).sum(axis=1) - np.log(totals) - scatter) / 2
    stretch = -2 * np.log1p(-places)  # d tau / d x
    return Posterior(squares, scipy.special.softmax(likelihood + stretch), means, 1 / totals)


def between_variance(values: Floats, variances: Floats) -> float:
    """The REML estimate of tau^2, at least 0 (Viechtbauer 2005, Eq. 14, by scoring steps).

    With weights ``w = 1 / (v + tau^2)``:
    ``tau^2 = sum w^2 ((y - mu)^2 - v) / sum w^2 + 1 / sum w``.
    """
    between = max(float(np.var(values, ddof=1) - variances.mean()), 0.0)
    for _ in range(STEPS):
        weights = 1 / (variances + between)
        mean = np.average(values, weights=weights)
        # (Viechtbauer 2005, Eq. 14)
        moved = np.average((values - mean) ** 2 - variances, weights=weights**2)
        new = max(float(moved + 1 / weights.sum()), 0.0)
        if abs(new - between) <= PRECISION * (1e-12 + variances.mean()):
            return new
        between = new
    return between


def between_interval(values: Floats, variances: Floats) -> tuple[float, float]:
    """The 95 % interval of tau^2 by the Q profile (Viechtbauer 2007, Eq. 7).

    ``Q(tau^2) = sum w (y - mu)^2`` falls with tau^2, and has the chi-square distribution with K - 1
    degrees of freedom at the true one.
    """

    def scatter(between: float) -> float:
        weights = 1 / (variances + between)
        mean = np.average(values, weights=weights)
        return float(weights @ (values - mean) ** 2)

    def crossing(quantile: float) -> float:
        if scatter(0.0) <= quantile:
            return 0.0
        high = float(np.var(values, ddof=1)) + float(variances.max())
        while scatter(high) > quantile:
            high *= 2
        return float(scipy.optimize.brentq(lambda b: scatter(b) - quantile, 0.0, high))

    freedom = values.size - 1
    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)  # of larger values
    low, high = (crossing(float(scipy.special.chdtri(freedom, tail))) for tail in tails)
    return low, high


def outlier_probabilities(values: Floats, variances: Floats) -> Floats:
    """How surprising each site is compared with the others, shape (K,).

    Site k's estimate is compared with what the others predict for a site of its error: the
    two-sided tail of the distribution of ``mu + u + e``. The tails are multiplied by K
    (Bonferroni): one of K sites without an outlier then falls below 0.05 with a probability of at
    most about 0.05. With three sites the others have no model: 1.
    """
    count = values.size
    probabilities = np.ones(count)
    if count <= LEAST_SITES:
        return probabilities
    for site in range(count):
        others = np.arange(count) != site
        fitted = posterior(values[others], variances[others])
        below = fitted.mixture(fitted.squares + variances[site]).below(float(values[site]))
        probabilities[site] = min(1.0, count * 2 * min(below, 1 - below))
    return probabilities
