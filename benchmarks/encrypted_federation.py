"""EncryptedAUC beside FedAUC over Flower: ``python -m benchmarks.encrypted_federation``.

Both are the three hospitals of ``examples/three-hospitals/encrypted.toml``, in turn, with a server
and three nodes over TLS on this machine; the second has FedAUC's protocol in its plan. Seconds are
of the rounds, from queries to replies, and of the whole run from its submission to its result:
parties may answer a first question with their greeting, before the rounds. Programs start before.
Takes about a minute for each.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import tomli_w

from benchmarks.timing import row
from tacit.running.deployment.local import run_locally

EXAMPLE = Path(__file__).parents[1] / "examples" / "three-hospitals"
PLAN, PARTIES, TIMES = "encrypted.toml", 3, 3
FEDAUC = {"protocol": {"name": "fedauc", "epsilon": 1.0}}
ROUND_LINE = re.compile(rf"round \d+: {PARTIES} of {PARTIES} .* in ([\d.]+) s")


SUBMITTED, WRITTEN = re.compile(r"Successfully started run"), re.compile("the result is written")


@dataclass
class Watch:
    """When what was said about a run, and how long its rounds took."""

    submitted: float = float("nan")
    written: float = float("nan")
    rounds: list[float] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def tell(self, line: str) -> None:
        """Take a line as it comes."""
        self.lines.append(line)
        if SUBMITTED.search(line):
            self.submitted = time.perf_counter()
        if WRITTEN.search(line):
            self.written = time.perf_counter()
        if seconds := ROUND_LINE.search(line):
            self.rounds.append(float(seconds[1]))

    @property
    def whole(self) -> float:
        """Seconds from the run's submission to its result."""
        return self.written - self.submitted


def watched(protocol: dict[str, dict[str, object]] | None) -> Watch:
    """A run in a folder of its own.

    Parameters
    ----------
    protocol : replaces the plan's table; None leaves it.
    """
    with tempfile.TemporaryDirectory() as folder:
        example = Path(shutil.copytree(EXAMPLE, Path(folder) / EXAMPLE.name))
        plan = example / PLAN
        if protocol is not None:
            head, _, rest = plan.read_text(encoding="utf-8").partition("[protocol]")
            parties = rest[rest.index("[[party]]") :]
            plan.write_text(f"{head}{tomli_w.dumps(protocol)}\n{parties}", encoding="utf-8")
        watch = Watch()
        run_locally(plan, PARTIES, watch.tell, watch.tell)
    if not watch.rounds or not watch.whole > 0:
        raise RuntimeError("no rounds were printed, but\n" + "\n".join(watch.lines))
    return watch


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.encrypted_federation", description=__doc__
    )
    parser.add_argument("--times", type=int, default=TIMES, help="runs of each")
    times = parser.parse_args().times
    print(f"Three hospitals over TLS, {times} runs of each in turn; load {os.getloadavg()[0]:.1f}")
    runs = [(watched(None), watched(FEDAUC)) for _ in range(times)]
    for name, side in (("EncryptedAUC, reveal='parties'", 0), ("FedAUC, epsilon 1", 1)):
        rounds = [run[side].rounds for run in runs]
        whole = statistics.median(run[side].whole for run in runs)
        note = f"in {len(rounds[0])} rounds {rounds}; from submission to result {whole:.1f} s"
        print(row(f"{name}, all rounds", statistics.median(map(sum, rounds)), note))
    pairs = [sum(encrypted.rounds) / sum(fedauc.rounds) for encrypted, fedauc in runs]
    wholes = [encrypted.whole / fedauc.whole for encrypted, fedauc in runs]
    print(
        f"  ratio of rounds {statistics.median(pairs):.2f}, of whole runs "
        f"{statistics.median(wholes):.2f}; target at most 1"
    )


if __name__ == "__main__":
    main()
