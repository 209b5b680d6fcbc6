"""A cheating aggregator: ``python -m benchmarks.cheating [--tries 200]`` tries every strategy so
often, each time in a session of its own, and counts how often parties believe a wrong AUC."""

from __future__ import annotations

import argparse
import time
from collections import Counter

from tests.protocols.encrypted.strategies import (
    FORGED,
    STRATEGIES,
    UNCHANGED,
    answers,
    outcome,
    rooms,
)

from benchmarks.timing import row

TRIES = 200


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cheating", description=__doc__)
    parser.add_argument("--tries", type=int, default=TRIES)
    print("\n".join(tried(parser.parse_args().tries)))


def tried(tries: int) -> list[str]:
    """How every strategy fared over that many sessions."""
    start = time.perf_counter()
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in STRATEGIES}
    honest: Counter[str] = Counter()
    for room in rooms(tries):
        honest[outcome(room, answers)] += 1
        for name, strategy in STRATEGIES.items():
            outcomes[name][outcome(room, strategy)] += 1
    seconds = time.perf_counter() - start
    forged = sum(counts[FORGED] for counts in outcomes.values())
    note = f"{tries} x {len(STRATEGIES)} answers, {forged} wrong AUCs believed; honest answers: "
    lines = [row("Cheating aggregator", seconds, f"{note}{honest[UNCHANGED]} of {tries} accepted")]
    return lines + [f"  {name:48s} {dict(counts)}" for name, counts in outcomes.items()]


if __name__ == "__main__":
    main()
