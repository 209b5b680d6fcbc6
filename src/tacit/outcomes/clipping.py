"""Values in public bounds: the settings, the clipping and the sums that their protocols share.

A value x in ``[low, high]`` is taken as ``u = (x - middle) / half``, which lies in [-1, 1], with
``middle`` and ``half`` the bounds' middle and half their distance. What lies outside is moved to
the nearest bound, record by record, so that neighbouring records stay neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import influence
from tacit.protocol import releases
from tacit.protocols.shared.declared import forest_model
from tacit.results.figure import CLEAR_CLASS_SIZE_IN_ERRORS

UNIT_BITS, EXACT_BITS = 29, 36
"""Scaled values are whole multiples of ``2**-UNIT_BITS``, where sums have no noise of
``2**-EXACT_BITS``: the rounding of a mean of 1,000 values is below 1e-13."""

SUM_BITS = 61
"""A client's sum of scaled values stays below ``2**SUM_BITS``, twice as far from an origin too."""


@dataclass(frozen=True)
class BoundedValues(tp.Protocol):
    """A protocol for values in public bounds.

    Parameters
    ----------
    bounds : the public least and largest value; others are clipped.
    epsilon : the privacy budget of one record; none for exact sums.
    trust : ``SecureSum()``, ``Each()``, ``ExactSum()`` or, where a subclass offers it, ``Local()``
        (every record's report is private on its own), or their words.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.
    """

    bounds: tuple[float, float] = tp.setting(help="the public least and largest value")
    epsilon: float | None = tp.setting(default=None, help=tp.EPSILON)
    trust: tp.SecureSum | tp.Each | tp.ExactSum | tp.Local | str = tp.trust_setting()

    needs_labels = False
    bounds_second: ClassVar[bool] = True
    """Whether the bounds are those of second values, too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = map(float, self.bounds)
        object.__setattr__(self, "bounds", (low, high))
        if not (low < high and math.isfinite(high - low) and self.half > 0):
            raise ValueError(f"bounds must be finite and ascend, got {low:g} and {high:g}")
        if isinstance(self.trust, tp.ExactSum):
            if self.epsilon is not None:
                raise ValueError(f"{self.trust} takes no epsilon, got {self.epsilon}")
        elif self.epsilon is None:
            raise ValueError(f"{self.trust} needs an epsilon")

    @classmethod
    def takes_epsilon(cls, settings: Mapping[str, Any]) -> bool:
        """Whether noise is added."""
        return tp.Trust.of(str(settings.get("trust", tp.SecureSum.word))) is not tp.Trust.EXACT_SUM

    @classmethod
    def families(cls, scenario: tp.Scenario, metric: tp.Metric) -> Sequence[tp.Family]:
        """Values from 0 to 1 under every trust; errors of other bounds grow as their distance."""
        if metric != tp.Metric.of_figure(cls.figure):
            return ()
        made = []
        for trust in cls.trusts:
            settings: dict[str, Any] = {"trust": trust.value, "bounds": tp.UNIT_INTERVAL}
            if cls.takes_epsilon(settings):
                settings["epsilon"] = scenario.epsilon
            protocols = tp.accepted([partial(cls, **settings)])
            made.append(tp.Family(protocols, (trust,), cls.given_up, metric))
        return made

    @classmethod
    def error_cases(cls: Any) -> Mapping[str, tp.ErrorCase]:
        """Both trust models with noise, at epsilon 1."""
        return {
            name: tp.ErrorCase(cls(**{**settings, "epsilon": 1.0}), noticed=True)
            for name, settings in cls.law_settings.items()
            if settings.get("trust", tp.SecureSum.word) in (tp.SecureSum.word, tp.Each.word)
        }

    @property
    def guarantee(self) -> tp.Cost:
        """Epsilon for one record; nothing is protected by exact sums."""
        if self.epsilon is None:
            return tp.UNPROTECTED
        return tp.Cost(self.epsilon, adjacency=tp.Adjacency.RECORD)

    @property
    def score_range(self) -> tuple[float, float]:
        """The bounds."""
        return self.bounds

    @property
    def budget(self) -> float:
        """Epsilon; infinity for exact sums."""
        return math.inf if self.epsilon is None else self.epsilon

    @property
    def middle(self) -> float:
        """Of the bounds."""
        return self.bounds[0] / 2 + self.bounds[1] / 2

    @property
    def half(self) -> float:
        """Half the distance of the bounds."""
        return self.bounds[1] / 2 - self.bounds[0] / 2

    @property
    def one(self) -> int:
        """The whole number that a scaled value of 1 is."""
        return 1 << (EXACT_BITS if self.epsilon is None else UNIT_BITS)

    def scaled(self, values: Floats) -> Floats:
        """Values as parts of half the bounds' distance from their middle, from -1 to 1.

        Examples
        --------
        >>> from tacit import BoundedMean
        >>> BoundedMean(bounds=(0, 4), epsilon=1.0).scaled(np.array([0.0, 3.0, 9.0]))
        array([-1. ,  0.5,  1. ])
        """
        return np.asarray(np.clip((values - self.middle) / self.half, -1.0, 1.0))

    def whole(self, scaled: Floats) -> Integers:
        """Scaled values as whole numbers."""
        return np.rint(scaled * self.one).astype(np.int64)

    def sum_field(self, shape: tuple[int, ...], epsilon: float) -> releases.Released:
        """Sums of which a neighbour moves all together by at most the stated reach.

        Sums with noise are released in units, as many of which make the reach as suit epsilon
        (``influence.whole_units``); exact ones as the whole numbers that they are.
        """
        if math.isinf(epsilon):
            return releases.Released(shape, per_record=2 * self.one)
        units = influence.units_for(epsilon)
        return releases.Released(shape, units, epsilon, per_record=units)

    def doubts(self, clients: tp.Clients) -> Iterator[str]:
        """How many values are outside the bounds."""
        low, high = self.bounds

        def beyond(batch: tp.Clients) -> int:
            second = batch.second if self.bounds_second else None
            values = np.append(batch.scores, [] if second is None else second)
            return np.count_nonzero((values < low) | (values > high))

        outside = counted(clients, beyond)
        if outside:
            yield (
                f"{outside:,} values are outside the bounds {low:g} and {high:g}, and are taken as "
                "the nearest of these: give bounds that hold all values there can be"
            )


def law_settings(case: str, epsilon: float, **settings: Any) -> dict[str, Mapping[str, Any]]:
    """The settings that the laws take: noisy sums of all clients and of each, and exact sums.

    Parameters
    ----------
    case : its name.
    epsilon : at which noise leaves few records a figure.
    settings : the others.
    """
    return {
        case: {**settings, "epsilon": epsilon},
        f"{case}-each": {**settings, "epsilon": epsilon, "trust": tp.Each.word},
        f"{case}-exact": {**settings, "epsilon": None, "trust": tp.ExactSum.word},
    }


SHAPE_CELLS = 10_000
"""Cells in which a plan takes values of a shape."""


def expected_shares(scenario: tp.Scenario, shape: tp.Shape) -> Floats:
    """The part of the records in each of many equal cells of the bounds, shape (B,)."""
    counts = np.sum(scenario.counts(shape, SHAPE_CELLS), axis=0)
    return np.asarray(counts / counts.sum())


def forecast_of(error: float) -> tp.Forecast:
    """A prediction; of too few records for a figure, an error that says nothing."""
    return tp.Forecast(math.inf if math.isnan(error) else error)


def check_sizes(clients: tp.Clients, one: int, query: tp.Query) -> None:
    """Refuse clients whose sums would not fit into 64 bits: that tells that they are larger.

    Sums of values with noise have room for all records that a client may have (2**32), and those of
    influences on a concordance for 2**27. Exact sums, which hide nothing, have room for 2**25, and
    between real parties for as many in all.

    Parameters
    ----------
    clients : whose records are summed.
    one : the whole number that a record adds at most.
    query : the question.

    Raises
    ------
    DataError : naming the client, its number of records and the bound.
    """
    largest, most = int(np.argmax(clients.sizes)), (1 << SUM_BITS) // one
    if query.most_records is not None and query.protocol.epsilon is None:
        most //= releases.planned_clients(query)
    if clients.sizes[largest] > most:
        raise tp.DataError(
            f"a client may have at most {most:,} records, got "
            f"{int(clients.sizes[largest]):,} of {clients.name(largest)}: split it into several"
        )


def group_of(clients: tp.Clients, names: tuple[str, ...]) -> Integers:
    """The private group of every record; 0 for all where no groups are agreed.

    Raises
    ------
    DataError : for clients of other groups than the agreed ones.
    """
    if clients.category_names == names and clients.categories is not None:
        return np.asarray(clients.categories.of_record)
    if names:
        named = ", ".join(clients.category_names) or "none"
        raise tp.DataError(f"groups must be {', '.join(names)}, got {named}")
    return np.zeros(clients.records, dtype=np.int64)


def by_client(numbers: Integers, clients: tp.Clients) -> Integers:
    """Sums of records' whole numbers, shape (..., M), over each client's, shape (..., K)."""
    below = np.cumsum(numbers, axis=-1, dtype=np.int64)
    below = np.concatenate([np.zeros((*numbers.shape[:-1], 1), np.int64), below], axis=-1)
    return np.diff(below[..., clients.offsets], axis=-1)


def in_cells(place: Integers, shape: tuple[int, ...], clients: tp.Clients) -> Integers:
    """Each client's records in every cell, shape (*shape, K); ``place`` is by record, flat."""
    index = place * clients.count + clients.client_of_record
    size = math.prod(shape) * clients.count
    return np.bincount(index, minlength=size).reshape(*shape, clients.count)


def counted(clients: tp.Clients, number: Callable[[tp.Clients], int]) -> int:
    """What a number of each batch of records comes to over all of them."""
    return int(clients.added(lambda batch: np.atleast_1d(number(batch)))[0])


def units_of(totals: Integers, reach: Any, field: releases.Released, query: tp.Query) -> Integers:
    """Each client's sums as a field is released, of all clients or of each as the query asks.

    Parameters
    ----------
    totals : whole numbers, shape (..., K).
    reach : how far a neighbour moves them, in the same numbers.
    field : as it was declared.
    query : the question.
    """
    exact = math.isinf(field.epsilon)
    made = totals if exact else influence.whole_units(totals, reach, field.per_record)
    return releases.by_view(query, made)


def unit_of(field: releases.Released, reach: Any, one: int) -> Any:
    """What one unit of a received sum is, where a neighbour moves it by ``reach`` times 1."""
    return 1 / one if math.isinf(field.epsilon) else reach / field.per_record


def too_few(records: Floats, error: Floats) -> Any:
    """Whether so few records, of this standard error, are no ground for a figure."""
    return (records < 1) | (records < CLEAR_CLASS_SIZE_IN_ERRORS * error)


def few_records(records: float, error: float) -> str:
    """Why there is no figure."""
    return (
        f"not enough signal at this epsilon: {records:.0f} records are estimated with a standard "
        f"error of {error:.0f}, and a figure needs at least {CLEAR_CLASS_SIZE_IN_ERRORS:g} of these"
    )


def summed_model(settings: Mapping[str, Any], summed: str, published: str) -> tp.ThreatModel:
    """The threat model of a protocol that releases sums.

    Parameters
    ----------
    settings : those of a result.
    summed : what the server sees, for "of all clients together: ...".
    published : what every client sees of the others.
    """
    return forest_model(settings, summed, dict.fromkeys(tp.Trust, published))
