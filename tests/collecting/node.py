"""The device library in Node, and a collector on loopback."""

from __future__ import annotations

import fcntl
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import uvicorn

from tacit.collecting.connections import Connection
from tacit.collecting.folder import Folder
from tacit.collecting.intake import Intake
from tacit.collecting.service import Collector, application
from tacit.data.clients import Clients

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "devices" / "typescript"
PHONE = ROOT / "examples" / "phone"
MISSING = "needs Node 20 or later, and `npm ci` in devices/typescript"


def available() -> bool:
    """Whether there is Node with what builds the library."""
    node = shutil.which("node")
    if node is None or not (LIBRARY / "node_modules").exists():
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    return int(version.stdout[1:].split(".")[0]) >= 20


def built() -> str:
    """Build the bundles where a source is newer; what the build prints."""
    printed = LIBRARY / "build" / "printed.txt"
    printed.parent.mkdir(exist_ok=True)
    with (LIBRARY / "build" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = [*LIBRARY.glob("*.mjs"), *LIBRARY.glob("src/*"), *LIBRARY.glob("test/*")]
        newest = max(path.stat().st_mtime for path in sources)
        if not printed.exists() or printed.stat().st_mtime < newest:
            ended = subprocess.run(
                ["node", "build.mjs"], cwd=LIBRARY, capture_output=True, text=True, check=True
            )
            printed.write_text(ended.stdout, encoding="utf-8")
        return printed.read_text(encoding="utf-8")


def sent_by_node(folder: Folder, clients: Clients) -> bytes:
    """The reports of one device for each record, by the bundle in Node."""
    start = folder.reserve_tokens(clients.records)
    tokens = folder.tokens.tokens(start, clients.records)
    records = zip(tokens, clients.scores.tolist(), clients.labels.tolist(), strict=True)
    lines = "".join(f"{token.hex()} {score!r} {label}\n" for token, score, label in records)
    command = ["node", str(PHONE / "send.mjs"), str(folder.path / "campaign.json")]
    ended = subprocess.run(command, input=lines.encode(), capture_output=True, check=True)
    return ended.stdout


@contextmanager
def running(
    folder: Folder, page: Path | None = None, http: type[Connection] = Connection
) -> Iterator[int]:
    """The port of a collector with such connections, which serves until the end of the block."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = application(Collector(folder, Intake(folder), 1e6), page)
    loop = "auto" if http.tls is None else "asyncio"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", http=http, loop=loop
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def set_bits_score(payloads: np.ndarray[tuple[int, int], np.dtype[np.uint8]], flip: float) -> float:
    """How many standard errors the number of set bits is from that of a chance of a flip."""
    levels = payloads[:, 0].astype(np.int64)
    others = int(((1 << levels) - 1).sum())
    expected = others * flip + levels.size / 2
    variance = others * flip * (1 - flip) + levels.size / 4
    seen = int(np.unpackbits(payloads[:, 1:]).sum())
    return float((seen - expected) / np.sqrt(variance))
