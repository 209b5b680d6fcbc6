"""A cheating aggregator: ``python -m benchmarks.cheating [--tries 200] [--scheme masked]`` tries
every strategy so often, each time in a session of its own, and counts how often parties believe a
wrong AUC: on ciphertexts and on masked values with a proof."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from types import ModuleType

from tests.protocols.encrypted import masked_strategies, strategies

from benchmarks.timing import row

TRIES = 200
SCHEMES: dict[str, ModuleType] = {"bfv": strategies, "masked": masked_strategies}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cheating", description=__doc__)
    parser.add_argument("--tries", type=int, default=TRIES)
    parser.add_argument("--scheme", nargs="+", choices=tuple(SCHEMES), default=tuple(SCHEMES))
    arguments = parser.parse_args()
    for scheme in arguments.scheme:
        print("\n".join(tried(arguments.tries, scheme)), flush=True)


def tried(tries: int, scheme: str = "bfv") -> list[str]:
    """How every strategy fared over that many sessions."""
    attack = SCHEMES[scheme]
    start = time.perf_counter()
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in attack.STRATEGIES}
    honest: Counter[str] = Counter()
    for room in attack.rooms(tries):
        honest[attack.outcome(room, attack.answers)] += 1
        for name, strategy in attack.STRATEGIES.items():
            outcomes[name][attack.outcome(room, strategy)] += 1
    seconds = time.perf_counter() - start
    forged = sum(counts[attack.FORGED] for counts in outcomes.values())
    note = f"{tries} x {len(outcomes)} answers, {forged} wrong AUCs believed; honest answers: "
    name = f"Cheating aggregator, {scheme}"
    lines = [row(name, seconds, f"{note}{honest[attack.UNCHANGED]} of {tries} accepted")]
    return lines + [f"  {name:55s} {dict(counts)}" for name, counts in outcomes.items()]


if __name__ == "__main__":
    main()
