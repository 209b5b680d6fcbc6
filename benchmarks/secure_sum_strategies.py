"""Strategies of a server that lies in a secure sum: ``python -m benchmarks.secure_sum_strategies``.

Searches what a server may tell the honest clients, who follow the rule of the product, and solves
for what it learns. The whole rule must hold; with a part left out the attack against it must be
found. The exit status is 1 if either fails. ``--share 0.01`` tries a hundredth of the strategies.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tacit_studies.secure_sums.clients import HonestClients
from tacit_studies.secure_sums.exhausting import Scope, exhaust
from tacit_studies.secure_sums.scopes import (
    complete_scopes,
    many_clients,
    many_lists_scopes,
    ring_scopes,
)
from tacit_studies.secure_sums.searching import Searched, determined, search
from tacit_studies.secure_sums.setting import Setting
from tacit_studies.secure_sums.weakened import (
    Attack,
    broken_without_hint,
    exhausted,
    hints,
    known_attacks,
)

AT_MOST = 40_000
"""Strategies after which a weakened rule counts as not broken by the search."""
LOT = 500
"""Strategies that a process searches at once."""
SEED = 20


@dataclass(frozen=True)
class Line:
    """A line of the report, and whether it is as it must be."""

    text: str
    holds: bool

    def __str__(self) -> str:
        return f"{'    ' if self.holds else '!!! '}{self.text}"


@dataclass(frozen=True)
class Small:
    """What an exhaustive search of one agreement found."""

    assignments: int
    strategies: int
    disclosing: int
    broken: bool
    continued: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secure_sum_strategies")
    parser.add_argument("--share", type=float, default=1.0, help="of the strategies, from 0 to 1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        sys.exit(0 if report(pool, options.share) else 1)


def report(pool: ProcessPoolExecutor, fraction: float) -> bool:
    """Print all that is searched; whether all is as it must be."""
    start, good = time.perf_counter(), True
    sections = {
        "Parts of the rule left out: the known attack, and the same with the whole rule": attacks,
        "Parts left out, exhaustive search, up to 5 clients": small_weakened,
        "Parts left out, random and greedy search without a hint, 10 clients": alone,
        "The whole rule, every strategy": small,
    }
    for title, section in sections.items():
        good &= show(title, section(pool))
    good &= show("The whole rule, random and greedy strategies", many(pool, fraction))
    print(f"{'All as it must be' if good else 'NOT as it must be'}: ", end="")
    print(f"{time.perf_counter() - start:.0f} s")
    return good


def show(title: str, lines: Iterable[Line]) -> bool:
    print(title)
    good = True
    for line in lines:
        print(line, flush=True)
        good &= line.holds
    return good


def attacks(pool: ProcessPoolExecutor) -> Iterator[Line]:
    return iter(pool.map(tried, known_attacks()))


def tried(attack: Attack) -> Line:
    """One known attack, on the weakened rule and on the whole one."""
    vectors, _ = determined(HonestClients(attack.setting), attack.attempts)
    whole, _ = determined(HonestClients(attack.whole), attack.attempts)
    allowed = attack.setting.allowed
    text = (
        f"{attack.name}; {described(attack.setting)}: opens a sum over {vectors}, allowed {allowed}"
    )
    holds = vectors == attack.vectors < allowed and not 0 < whole < allowed
    return Line(f"{text}; whole rule: {whole or 'nothing'}", holds)


def small_weakened(pool: ProcessPoolExecutor) -> Iterator[Line]:
    return iter(pool.map(broken, exhausted()))


def broken(scope: Scope) -> Line:
    result = exhaust(scope, until_broken=True)
    text = f"{described(scope.setting)}: a combination of {result.least}"
    holds = 0 < result.least < scope.setting.allowed
    return Line(f"{text}, allowed {scope.setting.allowed}", holds)


def alone(pool: ProcessPoolExecutor) -> Iterator[Line]:
    return iter(pool.map(broken_by_search, broken_without_hint()))


def broken_by_search(setting: Setting) -> Line:
    result = search(setting, AT_MOST, SEED, until_broken=True)
    text = f"{described(setting)}: a combination of {result.least}, allowed {setting.allowed}"
    return Line(f"{text}, after {result.strategies:,} strategies", result.is_broken(setting))


def small(pool: ProcessPoolExecutor) -> Iterator[Line]:
    """Every strategy, agreements of one kind on one line."""
    kinds = {
        f"K = {clients}, complete graph": complete_scopes(clients) for clients in range(2, 6)
    } | {
        "K = 4, ring of 2 neighbours": ring_scopes(4),
        "K = 5, ring of 2 neighbours, min_clients = tau": ring_scopes(5, certificate_only=True),
        "K = 3, each told any list of keys": many_lists_scopes(3),
        "K = 4, each told any list of keys": many_lists_scopes(4),
    }
    lots = {name: pool.map(exhausted_one, scopes) for name, scopes in kinds.items()}
    for name, lot in lots.items():
        yield summed(name, list(lot))


def exhausted_one(scope: Scope) -> Small:
    result = exhaust(scope)
    less = 0 < result.least < scope.setting.allowed
    counts = result.assignments, result.strategies, result.disclosing
    return Small(*counts, less, len(result.continued))


def summed(name: str, lot: Sequence[Small]) -> Line:
    text = (
        f"{name}: {len(lot)} agreements, {sum(one.assignments for one in lot):,} announcements, "
        f"{sum(one.strategies for one in lot):,} strategies, "
        f"{sum(one.disclosing for one in lot):,} "
        f"open a sum; below what is allowed: {sum(one.broken for one in lot)}; "
        f"sums with another attempt: {sum(one.continued for one in lot)}"
    )
    return Line(text, not any(one.broken or one.continued for one in lot))


def many(pool: ProcessPoolExecutor, fraction: float) -> Iterator[Line]:
    """Random and greedy strategies, one line an agreement."""
    total, lots = 0, []
    for index, (setting, number) in enumerate(many_clients()):
        count = max(round(fraction * number), 1)
        sizes = [LOT] * (count // LOT) + [count % LOT] * (count % LOT > 0)
        seeds = range(1000 * index, 1000 * index + len(sizes))
        total += count
        lots.append((setting, pool.map(searched, [setting] * len(sizes), sizes, seeds)))
    for setting, lot in lots:
        yield merged(setting, list(lot))
    yield Line(f"{total:,} strategies in all", True)


def searched(setting: Setting, strategies: int, seed: int) -> Searched:
    return search(setting, strategies, seed, starts=hints(setting))


def merged(setting: Setting, lot: Sequence[Searched]) -> Line:
    tried = sum(one.strategies for one in lot)
    refused, disclosing = sum(one.refusals for one in lot), sum(one.disclosing for one in lot)
    least = min((one.least for one in lot if one.least), default=0)
    text = (
        f"{setting.describe()}: {tried:,} strategies, {refused:,} with a refusal, "
        f"{disclosing:,} open a sum, the smallest over {least}, allowed {setting.allowed}"
    )
    return Line(text, not any(one.is_broken(setting) for one in lot))


def described(setting: Setting) -> str:
    parts = ", ".join(sorted(part.name.lower() for part in setting.without))
    return f"{setting.describe()}; without {parts}"


if __name__ == "__main__":
    main()
