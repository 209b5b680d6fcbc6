"""Runs a table: a list of jobs, each of which measures one setting and yields a few rows."""

from __future__ import annotations

import math
import threading
import zlib
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.protocol.conversation import Protocol
from tacit.running.evaluating import exact_auc, repeat
from tacit_studies.rows import Measured
from tacit_studies.sources import Floats, Labels, Scores
from tacit_studies.spelling import named_for_seeds

Value = TypeVar("Value")

Setting = Literal["uniform", "score"]

IID: Setting = "uniform"
NON_IID: Setting = "score"

WORKERS = 2
"""Number of jobs that run at once; NumPy releases the interpreter lock while it draws noise."""


@dataclass(frozen=True)
class Split:
    """An evaluation set, divided among clients."""

    clients: int = 1
    by: Setting = IID
    epoch: int = 0
    large: bool = False


class Bench:
    """The data of the jobs of one run: the scores and their splits, each made once.

    Parameters
    ----------
    source : where scores come from.
    repeats : how often a setting is measured.
    seed : determines every draw, in whatever order jobs run.
    """

    def __init__(self, source: Scores, repeats: int, seed: int) -> None:
        self.source, self.repeats = source, repeats
        self._seed = seed
        self._made: dict[Hashable, Any] = {}
        self._guard = threading.Lock()
        self._locks: dict[Hashable, threading.Lock] = {}

    def __reduce__(self) -> tuple[type[Bench], tuple[Scores, int, int]]:
        """Another process makes its data anew, from the same seeds."""
        return Bench, (self.source, self.repeats, self._seed)

    def seed(self, *names: object) -> int:
        """The seed of what ``names`` describe, different for different names."""
        checksum = zlib.crc32(named_for_seeds(names).encode())
        return int(np.random.SeedSequence((self._seed, checksum)).generate_state(1, np.uint64)[0])

    def scored(self, epoch: int = 0, large: bool = False) -> tuple[Floats, Labels]:
        """The scores and labels of an evaluation set at an epoch."""
        evaluation_set = self.source.large if large else self.source.small
        seed = self.seed("records", large)
        return self.once(
            ("scored", epoch, large), lambda: self.source.draw(evaluation_set, epoch, seed)
        )

    def clients(self, split: Split) -> Clients:
        """The clients of a split."""
        scores, labels = self.scored(split.epoch, split.large)
        seed = self.seed("split", split)
        return self.once(
            split, lambda: Clients.split(scores, labels, split.clients, split.by, seed)
        )

    def exact(self, split: Split) -> float:
        """The exact AUC."""
        return exact_auc(self.clients(split))

    def estimates(
        self, protocol: Protocol, split: Split, repeats: int | None = None, draws: object = None
    ) -> NDArray[np.float64]:
        """Repeated estimates of the AUC.

        The noise follows from ``draws``, by default the protocol and the split themselves; settings
        measured with equal ``draws`` see the same random numbers, which makes them comparable.
        """
        seed = self.seed(draws or protocol, split)
        return repeat(self.clients(split), protocol, repeats or self.repeats, seed)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """What ``make`` returns, made by the first job that asks for ``key``; others wait."""
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._made:
                self._made[key] = make()
            value: Value = self._made[key]
            return value


@dataclass(frozen=True)
class Job:
    """One setting to measure.

    Parameters
    ----------
    work : measures it.
    records : minimum size of the small set; the job is left out where the set is smaller.
    name : what a part of a table is chosen by; empty where only the whole table is measured.
    """

    work: Callable[[Bench], Sequence[Measured]]
    records: int = 1
    name: str = ""


@dataclass(frozen=True)
class Table:
    """A table or figure that can be measured.

    Parameters
    ----------
    name : its name on the command line.
    description : one line on what it shows.
    jobs : lists what is measured.
    repeats : how often each setting is measured by default.
    """

    name: str
    description: str
    jobs: Callable[[], list[Job]]
    repeats: int = 100

    def measure(
        self,
        source: Scores,
        repeats: int | None = None,
        seed: int = 0,
        progress: Callable[[float], None] | None = None,
        only: str = "",
    ) -> list[Measured]:
        """All rows, in the paper's order; settings with more clients than records are left out.

        Parameters
        ----------
        source : where scores come from.
        repeats : how often each setting is measured; None takes the number of the table.
        seed : makes the rows repeatable.
        progress : receives the finished fraction of the jobs, from above 0 to 1, after every job.
        only : measures the jobs whose names hold this text.

        Raises
        ------
        ValueError : for fewer than one repetition, or a text that no name holds.
        """
        repetitions = self.repeats if repeats is None else repeats
        if repetitions < 1:
            raise ValueError(f"repeats must be at least 1, got {repetitions}")
        bench = Bench(source, repetitions, seed)
        jobs = [
            job for job in self.jobs() if job.records <= source.small.records and only in job.name
        ]
        if not jobs:
            raise ValueError(f"no part of {self.name} has a name with {only!r} in it")
        rows: list[Measured] = []
        with ThreadPoolExecutor(WORKERS) as pool:
            for done, job_rows in enumerate(pool.map(lambda job: job.work(bench), jobs), start=1):
                rows.extend(job_rows)
                if progress is not None:
                    progress(done / len(jobs))
        return rows


def standard_deviation(estimates: NDArray[np.float64]) -> float:
    """The standard deviation over repetitions; NaN where one of them had no signal."""
    return float(np.std(estimates))


def centre(estimates: NDArray[np.float64]) -> float:
    """The mean over repetitions; NaN where one of them had no signal."""
    return float(np.mean(estimates))


def quotient(numerator: float, denominator: float) -> float:
    """``numerator / denominator``; NaN when the denominator is 0."""
    return numerator / denominator if denominator else math.nan
