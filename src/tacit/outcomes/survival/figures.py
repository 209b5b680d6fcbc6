"""Figures of a life table, and of one by cells of risk, with their derivatives.

Cells of time have ends in the last axis of a table: events by cell, then censored records by cell,
then one cell of all that are later than the last. In a cell they mix evenly: of censored records
half are gone before an event of their cell, or fewer where times are whole multiples of a step
(``Grid.spread``), as those at its time are not. Rates in the cells next to it tell how far from
even they may be (``unevenness``).

**Concordance.** Let A be the number of pairs of an event and a later record with less risk (a tie
counts one half), B that of all pairs of an event and a later record, and C = A / B. Records that
are spread evenly in their cells add to A, for each of them at time t and risk r, those that it
beats and those that beat it; both are bilinear in (t, r) between corners of cells. With these
derivatives a(t, r) and b(t, r), the influence of a record on C is ``(a - C b) / B``. A is quadratic
in the counts: with the counts' errors d, ``A - C B`` of the true counts is the sum of all records'
``a - C b`` plus what is of second order in d, and with it C is ``C + sum of influences``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.results.estimate import Estimate

STEP = 1e-30
"""Of derivatives by complex numbers, which have no rounding error."""

CLEAR = 3.0
"""A number at risk of fewer of its standard errors is lost in noise."""

LEAST_RATE, MOST_GONE = 1e-3, 0.999
"""Bounds of a rate of events in a cell, and of the part that is gone at its end."""

SMALL = 64
"""Pairs of so few records are counted one by one."""


def life_table(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Events, censored records and those at risk at the start of each cell, shape (..., n) each."""
    cells = counts.shape[-1] // 2
    events, lost = counts[..., :cells], counts[..., cells : 2 * cells]
    left = np.cumsum(events + lost, axis=-1)
    return events, lost, counts.sum(axis=-1, keepdims=True) - left + events + lost


def survival(counts: Floats, early: Floats, censoring: bool = False) -> Floats:
    """The Kaplan-Meier estimate at ends of cells, shape (..., n); that of censoring if so asked.

    Parameters
    ----------
    counts : shape (..., 2 n + 1), real or complex.
    early : the part of the censored records of a cell that is gone before its events, shape (n,).
    """
    events, lost, at_risk = life_table(counts)
    if censoring:
        events, lost, early = lost, events, 1 - early
    exposed = at_risk - early * lost
    exposed = np.where(exposed.real < 1, 1, exposed)
    factor = 1 - events / exposed
    return np.asarray(np.cumprod(np.where(factor.real < 0, 0, factor), axis=-1))


def unevenness(rates: Floats, errors: Floats) -> Floats:
    """About how far from even what has these rates may be in its cell, shape (..., n), n above 2.

    Where rates rise or fall evenly a twelfth of the rise tells it. A cell unlike those next to it
    may hold everything at one of its ends. Half a standard error is about what noise alone gives.

    Parameters
    ----------
    rates, errors : by cell, and their standard errors by noise, shape (..., n).
    """
    steps = np.diff(rates)
    inner = np.abs(np.diff(steps)) / 8 + np.abs(steps[..., 1:] + steps[..., :-1]) / 12
    ends = np.abs(steps) / 4
    made = np.concatenate([ends[..., :1], inner, ends[..., -1:]], axis=-1)
    largest = errors.copy()
    largest[..., 1:] = np.maximum(largest[..., 1:], errors[..., :-1])
    largest[..., :-1] = np.maximum(largest[..., :-1], errors[..., 1:])
    return np.maximum(made - largest / 2, 0.0)


def cell_errors(
    counts: Floats, early: Floats, widths: Floats, variance: float
) -> tuple[Floats, Floats]:
    """What cells may hide of the survival curve at their ends, and of its area, shape (n,) each.

    Other places of events and censored records in a cell with rates h and l of these change the
    logarithm of the curve by up to ``h l / 2``, and its area by up to half of what falls there:
    by as much as ``unevenness`` says, and by what chance gives.

    Parameters
    ----------
    counts, early : as ``survival`` has them.
    widths : of cells, shape (n,).
    variance : of a count by noise.
    """
    events, lost, at_risk = life_table(counts)
    exposed, several = np.maximum(at_risk - early * lost, 1), 2 * early
    rate, gone = events / exposed, lost / exposed
    alive = survival(counts, early)
    before, both = np.append(1.0, alive[:-1]), np.abs(rate * gone) * (rate + gone)
    off = np.sqrt(variance) / exposed
    uneven = unevenness(rate, off)
    apart = uneven * np.abs(gone) + unevenness(gone, off) * np.abs(rate) + both / 6
    falls = widths * before * uneven
    chance = both / exposed, np.square(widths * before) * rate / exposed
    drawn = (np.sqrt(np.cumsum(np.maximum(several * each, 0)) / 12) for each in chance)
    sure = (np.cumsum(several * each) for each in (apart, falls))
    log, area = map(np.hypot, sure, drawn)
    return alive * log, area


def log_rank(counts: Floats, early: Floats) -> Floats:
    """The log hazard ratio of the second of two groups to the first: (O - E) / V, shape (1,).

    Parameters
    ----------
    counts : shape (2, 2 n + 1).
    early : as ``survival`` has it.
    """
    events, lost, at_risk = life_table(counts)
    exposed = at_risk - early * lost
    both = exposed.sum(axis=0)
    both = np.where(both.real < 2, 2, both)
    share, died = exposed[1] / both, events.sum(axis=0)
    spread = died * share * (1 - share) * (both - died) / (both - 1)
    return np.asarray((events[1] - died * share).sum(keepdims=True) / spread.sum())


def by_then(times: Floats, risks: Floats, end: int, early: Floats) -> Floats:
    """The parts of all records by cell of risk with an event by then, and with none, shape (2, R).

    Those with an event weigh one over the chance not to be censored before, as do those that are
    at risk then: together they are all records.

    Parameters
    ----------
    times : a life table whose cells of time divide those of ``risks``, shape (2 m + 1,).
    risks : shape (2 n + 1, R).
    end : how many cells of time of ``risks`` are before then.
    early : as ``survival`` has it.
    """
    cells, uncensored = risks.shape[0] // 2, survival(times, early, censoring=True)
    uncensored, split = np.where(uncensored.real <= 0, 1, uncensored), uncensored.size // cells
    # at the middle of a cell, or on both sides of it
    amid = (uncensored[split // 2 - 1 :: split] + uncensored[(split + 1) // 2 - 1 :: split]) / 2
    later = np.concatenate([risks[end:cells], risks[cells + end :]]).sum(axis=0)
    parts = [
        (risks[:end] / amid[:end, np.newaxis]).sum(axis=0),
        later / uncensored[split * end - 1],
    ]
    return np.asarray(np.stack(parts) / np.sum(parts))


def area(parts: Floats) -> Floats:
    """The AUC of events by then against none by then."""
    beaten = np.cumsum(parts[1]) - parts[1] / 2
    return np.asarray((parts[0] * beaten).sum() / (parts[0].sum() * parts[1].sum()))


def brier(parts: Floats, edges: Floats) -> Floats:
    """The Brier score of risks that are probabilities of an event by then, even in their cells."""
    middle, spread = (edges[1:] + edges[:-1]) / 2, np.diff(edges) ** 2 / 12
    return np.asarray(
        (parts[0] * ((1 - middle) ** 2 + spread) + parts[1] * (middle**2 + spread)).sum()
    )


class Concordance(NamedTuple):
    """The concordance C = A / B of tables by time and risk, with its derivatives.

    Parameters
    ----------
    value, pairs : C and B, shape (...).
    influences : ``(a - C b) / B`` of a record that is censored (0) or has an event (1) at corners
        of cells, shape (..., 2, n + 1, R + 1).
    gradient, of_pairs : the derivatives of C and B by the counts, shape (..., 2 n + 1, R).
    """

    value: Floats
    pairs: Floats
    influences: Floats
    gradient: Floats
    of_pairs: Floats

    @property
    def events(self) -> int:
        """How many counts are of events."""
        return self.gradient.shape[-2] // 2 * self.gradient.shape[-1]

    def shift(self, variance: float) -> Floats:
        """By how much noise in the counts raises C on average, in second order, shape (...)."""
        moved = _inner(self.gradient, self.of_pairs)
        return np.asarray(variance * (self.events * (1 / 4 - self.value / 2) - moved) / self.pairs)

    def product_error(self, variance: float) -> Floats:
        """The standard deviation of what is of second order in such noise d, shape (...).

        It is ``d' M d / B``, of variance ``2 variance^2 |M|^2 / B^2``, with M the form of
        ``A - C B`` less the symmetric part of both derivatives' product, as B is off while C is. Of
        the form's pairs of an event and a later cell about half are ``1 - C`` and half ``-C``.
        """
        squares = self.events**2 * ((1 - self.value) ** 2 + self.value**2) / 2
        won, paired = _derivatives(self.of_pairs)
        crossed = _inner(self.gradient, _by_cell(won - _wide(self.value) * paired))
        sizes = _inner(self.gradient, self.gradient) * _inner(self.of_pairs, self.of_pairs)
        squares = squares - 2 * crossed + sizes + _inner(self.gradient, self.of_pairs) ** 2
        return np.asarray(variance * np.sqrt(np.maximum(squares, 0.0)) / self.pairs)


def concordance(counts: Floats) -> Concordance:
    """The concordance of records that are spread evenly in their cells.

    A record is no pair with itself: what its even spread makes of it is taken away.

    Parameters
    ----------
    counts : shape (..., 2 n + 1, R).
    """
    won, paired = _derivatives(counts)
    alone = counts[..., : counts.shape[-2] // 2, :].sum(axis=(-2, -1))
    # of what is quadratic in the counts, the derivatives by them give twice the value
    pairs = _inner(counts, _by_cell(paired)) / 2 - alone / 2
    pairs = np.where(pairs < 1, 1.0, pairs)
    value = np.asarray((_inner(counts, _by_cell(won)) / 2 - alone / 4) / pairs)
    influences = (won - _wide(value) * paired) / _wide(pairs)
    return Concordance(value, pairs, influences, _by_cell(influences), _by_cell(paired))


def order_in_cells(counts: Floats, error: Floats) -> tuple[Floats, Floats]:
    """How many more pairs of events in one cell of time the higher risk wins than evenly spread.

    Events of a risk are taken to come at the rate in their cell, so that their times are truncated
    exponential ones. Returned are all such pairs, and those that are left by influences, to which
    each record's time counts against evenly spread ones; shape (...) each.

    Parameters
    ----------
    counts : shape (..., 2 n + 1, R).
    error : the standard error by noise of the numbers at risk at a risk, shape (n,).
    """
    events, lost, at_risk = life_table(np.moveaxis(counts, -1, -2))
    exposed = np.maximum(at_risk - lost / 2, np.maximum(CLEAR * error, 1.0))
    rate = np.maximum(-np.log1p(-np.clip(events / exposed, 0.0, MOST_GONE)), LEAST_RATE)
    mean, gone = 1 / rate - 1 / np.expm1(rate), -np.expm1(-rate)
    (own, other), (half, rest), (early, late) = (
        (each[..., :, np.newaxis, :], each[..., np.newaxis, :, :]) for each in (rate, gone, mean)
    )
    both = -np.expm1(-own - other) / (own + other)
    first = own / (half * rest) * (both - np.exp(-other) * half / own) - 1 / 2
    higher = np.tril(np.ones((counts.shape[-1],) * 2), -1)[..., np.newaxis]
    pairs = events[..., :, np.newaxis, :] * events[..., np.newaxis, :, :] * higher
    left = first - (late - early)
    return _total(pairs * first), _total(pairs * left)


def _total(pairs: Floats) -> Floats:
    """Sums over both risks and over time."""
    return np.asarray(pairs.sum(axis=(-3, -2, -1)))


def _derivatives(counts: Floats) -> tuple[Floats, Floats]:
    """Those of A and of B by a record at corners of cells, shape (..., 2, n + 1, R + 1) each."""
    cells = counts.shape[-2] // 2
    events = counts[..., :cells, :]
    both = np.concatenate([events + counts[..., cells:-1, :], counts[..., -1:, :]], axis=-2)
    before = np.concatenate([0 * events[..., :1, :], np.cumsum(events, axis=-2)], axis=-2)
    beaten = _below(np.flip(np.cumsum(np.flip(both, -2), axis=-2), -2))
    beating = before.sum(axis=-1, keepdims=True) - _below(before)
    won = np.stack([beating, beating + beaten], axis=-3)
    later = np.stack([0 * beaten, 0 * beaten + beaten[..., -1:]], axis=-3)
    return won, later + beating[..., np.newaxis, :, :1]


def _wide(numbers: Floats) -> Floats:
    """Numbers of shape (...) as they are multiplied with values at corners."""
    return np.asarray(numbers[..., np.newaxis, np.newaxis, np.newaxis])


def _inner(one: Floats, other: Floats) -> Floats:
    """The sum of products over a table, shape (...)."""
    return np.asarray((one * other).sum(axis=(-2, -1)))


def _below(counts: Floats) -> Floats:
    """Sums of the last axis below each corner, shape (..., R + 1)."""
    return np.concatenate([0 * counts[..., :1], np.cumsum(counts, axis=-1)], axis=-1)


def _by_cell(corners: Floats) -> Floats:
    """Values at corners, shape (..., 2, n + 1, R + 1), as means by count, (..., 2 n + 1, R)."""
    rows = (corners[..., 1:, :] + corners[..., :-1, :]) / 2
    lost, events = np.moveaxis((rows[..., 1:] + rows[..., :-1]) / 2, -3, 0)
    last = corners[..., 0, -1:, :]
    return np.concatenate([events, lost, (last[..., 1:] + last[..., :-1]) / 2], axis=-2)


def exact_concordance(times: Floats, events: Integers, risks: Floats) -> float:
    """Harrell's C of records; NaN where no event has a later record.

    A censored record at the time of an event is later; two events at one time are no pair.

    Examples
    --------
    >>> exact_concordance(np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0.9, 0.4, 0.9]))
    0.75
    """
    order = np.lexsort((risks, 1 - events, times))
    times, died, risks = times[order], events[order] == 1, risks[order]
    pairs = int(((times.size - 1 - np.arange(times.size)) * died).sum())
    # events at one time are in the order of their risks: none beats one behind it, but by a tie
    tied = [
        np.unique(np.stack(each), axis=1, return_counts=True)[1]
        for each in ((times[died],), (times[died], risks[died]))
    ]
    at_once, equal = (int((each * (each - 1) // 2).sum()) for each in tied)
    pairs -= at_once
    return (_doubled_wins(died, risks) - equal) / (2 * pairs) if pairs else float("nan")


def _doubled_wins(died: Integers, risks: Floats) -> int:
    """Twice the pairs of an event and a record behind it with less risk, ties counted half."""
    if risks.size <= SMALL:
        above = np.sign(risks[:, np.newaxis] - risks) + 1
        return int((np.triu(above, 1) * died[:, np.newaxis]).sum())
    half = risks.size // 2
    behind, own = np.sort(risks[half:]), risks[:half][died[:half]]
    won = sum(int(np.searchsorted(behind, own, side).sum()) for side in ("left", "right"))
    return won + _doubled_wins(died[:half], risks[:half]) + _doubled_wins(died[half:], risks[half:])


def estimated(
    figure: Callable[..., Floats], tables: Sequence[Floats], variances: Sequence[float]
) -> list[Estimate]:
    """Figures of noisy tables with their errors to first order.

    The derivative is the imaginary part of the figure at ``x + i h``, over h. A record is one of
    the last table's, and in one of the cells of time that divide it in the one before.

    Parameters
    ----------
    figure : of the tables, shape (J,).
    tables : counts of all records each.
    variances : of a count of each by noise.
    """
    with np.errstate(all="ignore"):
        value = np.real(figure(*tables))
        gradients = []
        for place, (table, variance) in enumerate(zip(tables, variances, strict=True)):
            made = np.zeros((table.size, value.size))
            for cell in np.flatnonzero((table != 0) | (variance > 0)):
                step = np.zeros(table.size, dtype=np.complex128)
                step[cell] = 1j * STEP
                given = [*tables[:place], table + step.reshape(table.shape), *tables[place + 1 :]]
                made[cell] = np.imag(figure(*given)) / STEP
            gradients.append(made.reshape(*table.shape, -1))
        privacy = sum(
            variance * np.square(each).reshape(-1, each.shape[-1]).sum(axis=0)
            for variance, each in zip(variances, gradients, strict=True)
        )
        whole = gradients[-1]
        if len(gradients) > 1:
            fine = gradients[0]
            mean = fine[:-1].reshape(whole.shape[0] - 1, -1, fine.shape[-1]).mean(axis=1)
            whole = whole + np.concatenate([mean, fine[-1:]])[:, np.newaxis]
        drawn = (tables[-1][..., np.newaxis] * whole**2).reshape(-1, whole.shape[-1]).sum(axis=0)
    errors = zip(value, np.sqrt(privacy), np.sqrt(np.maximum(drawn, 0.0)), strict=True)
    return [Estimate(float(each), float(noise), float(drawn)) for each, noise, drawn in errors]
