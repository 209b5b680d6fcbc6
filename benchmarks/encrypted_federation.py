"""EncryptedAUC beside FedAUC over Flower: ``python -m benchmarks.encrypted_federation``.

Both are the three hospitals of ``examples/three-hospitals/encrypted.toml``, in turn, with a server
and three nodes over TLS on this machine; the second has FedAUC's protocol in its plan. Seconds are
of the rounds, from queries to replies; programs start before. Takes about a minute for each.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import tempfile
from pathlib import Path

from benchmarks.timing import clock, row
from tacit.running.deployment.local import run_locally, toml_text

EXAMPLE = Path(__file__).parents[1] / "examples" / "three-hospitals"
PLAN, PARTIES, TIMES = "encrypted.toml", 3, 3
FEDAUC = {"protocol": {"name": "fedauc", "epsilon": 1.0}}
ROUND_LINE = re.compile(rf"round \d+: {PARTIES} of {PARTIES} .* in ([\d.]+) s")


def seconds_of(protocol: dict[str, dict[str, object]] | None) -> tuple[float, list[float]]:
    """Seconds of a whole run in a folder of its own, and of each of its rounds.

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
            plan.write_text(f"{head}{toml_text(protocol)}\n{parties}", encoding="utf-8")
        printed: list[str] = []
        whole = clock(lambda: run_locally(plan, PARTIES, printed.append))
    rounds = [float(found[1]) for line in printed if (found := ROUND_LINE.search(line))]
    if not rounds:
        raise RuntimeError("no rounds were printed, but\n" + "\n".join(printed))
    return whole, rounds


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.encrypted_federation", description=__doc__
    )
    parser.add_argument("--times", type=int, default=TIMES, help="runs of each")
    times = parser.parse_args().times
    print(f"Three hospitals over TLS, {times} runs of each in turn; load {os.getloadavg()[0]:.1f}")
    runs = [(seconds_of(None), seconds_of(FEDAUC)) for _ in range(times)]
    for name, side in (("EncryptedAUC, reveal='parties'", 0), ("FedAUC, epsilon 1", 1)):
        rounds = [run[side][1] for run in runs]
        whole = statistics.median(run[side][0] for run in runs)
        note = f"in {len(rounds[0])} rounds {rounds}; with all programs' start {whole:.1f} s"
        print(row(f"{name}, all rounds", statistics.median(map(sum, rounds)), note))
    pairs = [sum(encrypted[1]) / sum(fedauc[1]) for encrypted, fedauc in runs]
    wholes = [encrypted[0] / fedauc[0] for encrypted, fedauc in runs]
    print(
        f"  ratio of rounds {statistics.median(pairs):.2f}, of whole runs "
        f"{statistics.median(wholes):.2f}; target at most 1"
    )


if __name__ == "__main__":
    main()
