"""One set of records on several scales: the errors there, which should be alike.

A number that a protocol draws for one scale it draws for the others, as far as it asks the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacit.data.clients import Clients
from tacit.data.units import PROBABILITY
from tacit.local.two_round.protocol import TwoRoundAUC
from tacit.protocol.conversation import Protocol
from tacit.protocols.histogram.protocol import SUM_HEIGHT, ScoreHistogram
from tacit_studies.floors.rows import (
    MANY,
    MEAN,
    Errors,
    beside,
    dealt,
    floor_of,
    records_of,
    spread_of,
)
from tacit_studies.measuring import Bench, Job
from tacit_studies.rows import Beside, Measured
from tacit_studies.score_maps import MOVED, OTHER_SCALES, ScoreMap, with_settings

FEW = 4_474 / 229_380
"""Fraction of the positives that stay where one class is rare: 4,474 of Criteo's."""

AREA = 0.745416
"""Criteo's AUC."""

SUM_CLIENTS = 10
SUM = ScoreHistogram(epsilon=1.0, aim="auc")

TOGETHER, ALIKE, ELSEWHERE = 1.05, 1.15, 1.25
"""Largest ratios: of errors on moved log-odds, by secure sum and else; and on other scales."""

BEFORE_REPEATS = 50
"""Largest number of repeats of an earlier form, whose errors differ by much more."""

RATIO = "largest / least mean |error|"


@dataclass(frozen=True)
class Sample:
    """Records drawn from the scores, at random.

    Parameters
    ----------
    name : what rows call them.
    reach : the largest mean absolute error of a sum of Criteo's, as a multiple of the floor.
    records : how many, half of each class; None for all but most of the positives.
    """

    name: str
    reach: float
    records: int | None = None

    def size_of(self, label: int, size: int) -> int:
        """How many records of a class are drawn of so many."""
        if self.records is not None:
            return self.records // 2
        return max(1, round(FEW * size)) if label else size


RARE = Sample("2 % of positives", 2.1e-4 * 4_474 / AREA)
SAMPLES = (
    RARE,
    Sample("n=2,000, balanced", 1.5e-3 * 1_000 / AREA, 2_000),
    Sample("n=20,000, balanced", 1.1e-4 * 10_000 / AREA, 20_000),
)


@dataclass(frozen=True)
class Compared:
    """A protocol whose errors on moved log-odds are compared.

    Parameters
    ----------
    name : the row.
    protocol : as it is by default.
    clients : their number; None for one a record.
    """

    name: str
    protocol: Protocol
    clients: int | None = None

    @property
    def row(self) -> str:
        """The row's name in full."""
        return f"{self.name}, {RARE.name}, moved"


COMPARED = (
    Compared("each, epsilon 1, K=50", ScoreHistogram("each", 1.0, aim="auc"), 50),
    Compared("local-dp, epsilon 5", ScoreHistogram("local", 5.0)),
    Compared("TwoRoundAUC, labels public, epsilon 1", TwoRoundAUC(1.0, "public")),
    Compared("TwoRoundAUC, labels public, epsilon 5", TwoRoundAUC(5.0, "public")),
)


def moved_and_mapped(table: str, before: Mapping[str, Any]) -> list[Job]:
    """Moved log-odds by secure sum and by other protocols, and other scales.

    Parameters
    ----------
    table : the table's name.
    before : the settings of an earlier form.
    """
    return [
        *(
            Job(partial(_moved_sums, table, before, each), name=_of_sum(each.name))
            for each in SAMPLES
        ),
        *(Job(partial(_moved_others, table, before, each), 1, each.row) for each in COMPARED),
        *(Job(partial(_mapped_sum, table, before, each), 1, _on(each)) for each in OTHER_SCALES),
    ]


def earlier_form(protocol: Protocol, settings: Mapping[str, Any]) -> Protocol:
    """The protocol with the settings of an earlier form, which had no rounds."""
    earlier = with_settings(protocol, **settings)
    if isinstance(earlier, ScoreHistogram) and earlier.counts_in_rounds:
        return replace(earlier, height=SUM_HEIGHT)
    return earlier


@dataclass(frozen=True)
class Setting:
    """What is measured on several scales: a protocol, and a sample dealt out to clients.

    Repeats are ``times`` as many as asked for, and at most ``most``.
    """

    protocol: Protocol
    sample: Sample
    clients: int | None
    times: int = 1
    most: int | None = None

    def before(self, settings: Mapping[str, Any]) -> Setting:
        """An earlier form of the protocol, repeated less often."""
        earlier = earlier_form(self.protocol, settings)
        return replace(self, protocol=earlier, times=1, most=BEFORE_REPEATS)

    def errors(self, maps: Sequence[ScoreMap], bench: Bench) -> dict[str, Errors]:
        """The errors on every scale, by its name."""
        return {each.name: self._on(each, bench) for each in maps}

    def _on(self, score_map: ScoreMap, bench: Bench) -> Errors:
        repeats = self.times * bench.repeats
        repeats = min(repeats, self.most or repeats)
        protocol = score_map.protocol_for(self.protocol)
        seed = bench.seed("floor", self.sample.name, self.clients)

        def made() -> Errors:
            clients = score_map.mapped(_drawn(self.sample, self.clients, bench))
            return Errors.of(protocol, clients, seed, repeats)

        return bench.once(("errors", self, protocol, score_map.name), made)


def _drawn(sample: Sample, clients: int | None, bench: Bench) -> Clients:
    """The sample of these scores, dealt out to clients."""

    def made() -> Clients:
        known = records_of(bench)
        rng = np.random.default_rng(bench.seed("sample", sample.name))
        classes = [np.flatnonzero(known.labels == label) for label in (0, 1)]
        sizes = [sample.size_of(label, classes[label].size) for label in (0, 1)]
        drawn = [
            rng.choice(of, min(size, of.size), replace=False)
            for of, size in zip(classes, sizes, strict=True)
        ]
        rows = np.sort(np.concatenate(drawn))
        return dealt(Clients.from_arrays(known.scores[rows], known.labels[rows]), clients, bench)

    return bench.once(("drawn", sample, clients), made)


def _of_sum(*names: str) -> str:
    """The row of a sum over both classes."""
    return ", ".join(("distributed-dp", *names))


def _on(score_map: ScoreMap) -> str:
    """The row of another scale."""
    return _of_sum(RARE.name, score_map.name)


def _moved_sums(
    table: str, before: Mapping[str, Any], sample: Sample, bench: Bench
) -> list[Measured]:
    setting = Setting(SUM, sample, SUM_CLIENTS, times=MANY)
    errors = setting.errors(MOVED, bench)
    earlier = setting.before(before).errors(MOVED, bench)
    floor = floor_of(SUM, _drawn(sample, SUM_CLIENTS, bench))
    rows: list[Measured] = [
        beside(
            (table, _of_sum(sample.name, name), MEAN),
            errors[name],
            sample.reach * floor,
            floor,
            earlier[name],
        )
        for name in errors
    ]
    return [*rows, _spread((table, _of_sum(sample.name, "moved")), errors, TOGETHER, earlier)]


def _moved_others(
    table: str, before: Mapping[str, Any], compared: Compared, bench: Bench
) -> list[Measured]:
    setting = Setting(compared.protocol, RARE, compared.clients)
    errors, earlier = (each.errors(MOVED, bench) for each in (setting, setting.before(before)))
    return [_spread((table, compared.row), errors, ALIKE, earlier)]


def _mapped_sum(
    table: str, before: Mapping[str, Any], score_map: ScoreMap, bench: Bench
) -> list[Measured]:
    """An earlier form takes probabilities only."""
    setting, maps = Setting(SUM, RARE, SUM_CLIENTS), (MOVED[0], score_map)
    earlier = setting.before(before).errors(maps, bench) if score_map.unit == PROBABILITY else None
    return [_spread((table, _on(score_map)), setting.errors(maps, bench), ELSEWHERE, earlier)]


def _spread(
    names: tuple[str, str],
    errors: Mapping[str, Errors],
    at_most: float,
    earlier: Mapping[str, Errors] | None,
) -> Beside:
    ratio, which = spread_of(errors)
    before = None if earlier is None else spread_of(earlier)[0]
    reason = "" if ratio <= at_most else which
    return Beside(*names, RATIO, ratio, at_most=at_most, before=before, reason=reason)
