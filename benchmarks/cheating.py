"""A cheating aggregator: ``python -m benchmarks.cheating [--tries 200] [--scheme masked]`` tries
every strategy so often, each time in a session of its own, and counts how often parties believe a
wrong AUC: on ciphertexts and on masked values with a proof.

Sessions are spread over the cores. A line says how far it is after each tenth of them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Self

from tests.protocols.encrypted import masked_strategies, strategies
from tests.protocols.encrypted.forging import FORGED, UNCHANGED, outcome

from benchmarks.timing import row

TRIES, PARTS = 200, 10
SCHEMES: dict[str, ModuleType] = {"bfv": strategies, "masked": masked_strategies}


@dataclass
class Outcomes:
    """How parties took the answers of so many sessions.

    Parameters
    ----------
    tries : the sessions.
    honest : outcomes of honest answers.
    cheating : of every strategy's answers, by its name.
    """

    tries: int = 0
    honest: Counter[str] = field(default_factory=Counter)
    cheating: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, other: Self) -> None:
        """Take in those of other sessions."""
        self.tries += other.tries
        self.honest += other.honest
        for name, counts in other.cheating.items():
            self.cheating[name] = self.cheating.get(name, Counter()) + counts

    def forged(self) -> int:
        """The number of wrong AUCs that were believed."""
        return sum(counts[FORGED] for counts in self.cheating.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cheating", description=__doc__)
    parser.add_argument("--tries", type=int, default=TRIES)
    parser.add_argument("--scheme", nargs="+", choices=tuple(SCHEMES), default=tuple(SCHEMES))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    for scheme in arguments.scheme:
        tell = partial(print, flush=True)
        print("\n".join(tried(arguments.tries, scheme, arguments.processes, tell)), flush=True)


def tried(tries: int, scheme: str, processes: int, tell: Callable[[str], None]) -> list[str]:
    """How every strategy fared over that many sessions; ``tell`` hears of each part of them."""
    start = time.perf_counter()
    total = Outcomes()
    with ProcessPoolExecutor(processes) as pool:
        parts = [pool.submit(outcomes_of, size, scheme) for size in parts_of(tries)]
        for part in as_completed(parts):
            total.add(part.result())
            tell(
                f"  {scheme}: {total.tries} of {tries} sessions, {total.forged()} wrong "
                f"AUCs believed, {time.perf_counter() - start:.0f} s"
            )
    return summary(total, scheme, time.perf_counter() - start)


def parts_of(tries: int) -> Iterator[int]:
    """The sessions of each part; parts differ by one at most."""
    for part in range(PARTS):
        size = tries * (part + 1) // PARTS - tries * part // PARTS
        if size:
            yield size


def outcomes_of(tries: int, scheme: str) -> Outcomes:
    """The outcomes of every strategy in new sessions, in this process."""
    attack = SCHEMES[scheme]
    made = Outcomes(tries, cheating={name: Counter() for name in attack.STRATEGIES})
    for room in attack.Room.rooms(tries):
        made.honest[outcome(room, attack.answers)] += 1
        for name, strategy in attack.STRATEGIES.items():
            made.cheating[name][outcome(room, strategy)] += 1
    return made


def summary(total: Outcomes, scheme: str, seconds: float) -> list[str]:
    """A line about all strategies, and one about each."""
    accepted = total.honest[UNCHANGED]
    note = (
        f"{total.tries} x {len(total.cheating)} answers, {total.forged()} wrong AUCs "
        f"believed; honest answers: {accepted} of {total.tries} accepted"
    )
    lines = [row(f"Cheating aggregator, {scheme}", seconds, note)]
    return lines + [f"  {name:55s} {dict(counts)}" for name, counts in total.cheating.items()]


if __name__ == "__main__":
    main()
