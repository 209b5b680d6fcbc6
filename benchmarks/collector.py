"""Reports a second, kills without a loss, and a large estimate: ``python -m benchmarks.collector``.

The rate is of single reports over loopback, with fsync before every answer. The collector's own
processor time says what one core takes, whatever else runs on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from tests.collecting.support import device_payloads, stored_payloads

from tacit.collecting.campaign import Terms, stage_query
from tacit.collecting.folder import Folder, write_batch
from tacit.collecting.log import DIGEST_PREFIX, REPORT_HEADER, Report
from tacit.data.clients import Clients
from tacit.privacy.noise import SimulatedNoise
from tacit.protocol.registry import protocol_of

CONNECTIONS = 64
TOML = """name = "benchmark"
protocol = "score-histogram"
devices = 10000
opens = 2020-01-01T00:00:00Z
closes = 2100-01-01T00:00:00Z
[settings]
trust = "local"
epsilon = 2.0
height = 5
scale = "even"
"""
SETTINGS = {"trust": "local", "epsilon": 2.0, "height": 5, "scale": "even"}
CHUNK = 500_000
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collector", description=__doc__)
    parser.add_argument("--reports", type=int, default=20_000, help="to measure the rate with")
    parser.add_argument("--killed", type=int, default=10_000, help="reports beside the kills")
    parser.add_argument("--kills", type=int, default=20, help="how often the collector is killed")
    parser.add_argument("--estimated", type=int, default=10**7, help="reports of the estimate")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        print(rate_line(Path(made) / "rate", options.reports), flush=True)
        print(kill_line(Path(made) / "kills", options.killed, options.kills), flush=True)
        print(estimate_line(Path(made) / "large", options.estimated), flush=True)


def records_of(count: int, seed: int = 0) -> Clients:
    """One record a client."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count).astype(np.int8)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    return Clients(scores, labels, np.arange(count + 1))


@dataclass
class Running:
    """A collector in a process of its own."""

    campaign: Path
    port: int = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, "-c", "from tacit.cli import main; main()", "collect"]
        options = [str(self.campaign), "--port", str(self.port), "--rate", "1000000"]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)

    def kill(self) -> None:
        """End it without a warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it in order."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    @property
    def processor_seconds(self) -> float:
        """What it has used of processors."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").split()
        return (int(fields[13]) + int(fields[14])) / TICKS


def campaign_of(folder: Path) -> Path:
    """The file of a campaign, signed."""
    folder.mkdir()
    path = folder / "campaign.toml"
    path.write_text(TOML, encoding="utf-8")
    Folder(path.with_suffix("")).signed(Terms.from_toml(path))
    return path


def messages_of(folder: Folder, count: int) -> list[bytes]:
    """Reports with fresh tokens."""
    payloads = device_payloads(
        folder.campaign.terms, folder.query(0), records_of(count), SimulatedNoise(0)
    )
    tokens = folder.tokens.tokens(folder.reserve_tokens(count), count)
    prefix = folder.campaign.digest[:DIGEST_PREFIX]
    pairs = zip(tokens, payloads, strict=True)
    return [Report(prefix, 0, token, each.tobytes()).to_bytes() for token, each in pairs]


async def sent(port: int, messages: Sequence[bytes], acknowledged: set[bytes]) -> None:
    """Send reports one by one over some connections; note those that were answered by 200."""
    waiting = list(messages)

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while waiting:
                message = waiting.pop()
                head = (
                    f"POST /reports HTTP/1.1\r\nHost: c\r\nContent-Length: {len(message)}\r\n\r\n"
                )
                writer.write(head.encode() + message)
                answer = await reader.readuntil(b"\r\n\r\n")
                length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                if answer.split()[1] in (b"200", b"409"):
                    acknowledged.add(message)
        finally:
            writer.close()

    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)), return_exceptions=True)


def rate_line(folder: Path, count: int) -> str:
    """How many single reports a second a collector takes."""
    path = campaign_of(folder)
    running, acknowledged = Running(path), set[bytes]()
    messages = messages_of(Folder(path.with_suffix("")), count)
    before, start = running.processor_seconds, time.perf_counter()
    asyncio.run(sent(running.port, messages, acknowledged))
    seconds, used = time.perf_counter() - start, running.processor_seconds - before
    running.stop()
    assert len(acknowledged) == count
    return (
        f"{count} single reports of {len(messages[0])} bytes: {count / seconds:.0f} a second, "
        f"{count / used:.0f} a second of the collector's processor time (target 2000)"
    )


def kill_line(folder: Path, count: int, kills: int) -> str:
    """Whether a report that was acknowledged is lost where the collector is killed."""
    path = campaign_of(folder)
    place = Folder(path.with_suffix(""))
    messages, acknowledged = messages_of(place, count), set[bytes]()
    running, rng = Running(path), np.random.default_rng(0)
    for _ in range(kills):
        asyncio.run(killed_while_sent(running, messages, acknowledged, count // kills, rng))
        running.start()
    while left := [each for each in messages if each not in acknowledged]:
        asyncio.run(sent(running.port, left, acknowledged))
    running.stop()
    stored = sorted(bytes(each) for each in stored_payloads(place)[0])
    lost = len(messages) - len(stored)
    assert stored == sorted(message[REPORT_HEADER.size :] for message in messages), f"{lost} lost"
    return f"{count} reports, {kills} kills: {lost} lost, none twice (target 0)"


async def killed_while_sent(
    running: Running,
    messages: Sequence[bytes],
    acknowledged: set[bytes],
    share: int,
    rng: np.random.Generator,
) -> None:
    """Send some reports, and kill the collector at a number of acknowledgements drawn at random."""
    waiting = [each for each in messages if each not in acknowledged][: 2 * share]
    limit = len(acknowledged) + int(rng.integers(1, share + 1))
    sending = asyncio.create_task(sent(running.port, waiting, acknowledged))
    while len(acknowledged) < limit and not sending.done():
        await asyncio.sleep(0)
    running.kill()
    await sending


def estimate_line(folder: Path, count: int) -> str:
    """Seconds and memory of an estimate of sealed batches."""
    path = campaign_of(folder)
    place = Folder(path.with_suffix(""))
    terms = Terms(
        "benchmark",
        protocol_of("score-histogram", SETTINGS),
        10_000,
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2100, 1, 1, tzinfo=UTC),
    )
    query = stage_query(terms, [])
    for number, start in enumerate(range(0, count, CHUNK), 1):
        size = min(CHUNK, count - start)
        payloads = device_payloads(terms, query, records_of(size, number), SimulatedNoise(number))
        serials = np.arange(start, start + size, dtype=np.uint64)
        write_batch(place.reports, place.spent, number, [payloads], serials)
    before, start_time = children_seconds(), time.perf_counter()
    command = [sys.executable, "-c", "from tacit.cli import main; main()", "estimate"]
    subprocess.run([*command, str(place.path)], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start_time
    children: Any = resource.getrusage(resource.RUSAGE_CHILDREN)
    gibibytes = children.ru_maxrss / 2**20
    return (
        f"estimate of {count} reports: {seconds:.1f} s, {children_seconds() - before:.1f} s of "
        "processor time (target 15), "
        f"{gibibytes:.2f} GiB at most (target 1)"
    )


def children_seconds() -> float:
    """What ended processes used of processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
