"""What a program that goes on running tells who operates it: health and metrics, and its log.

Metrics are those that a program names, none of the process, whose memory and time grow with its
records: none holds a count of records, a label, a score or a secret. Health says of each check
whether it holds, and not why. A log has time and level, as text or as JSON. No line of it holds a
count of records, a label, a score or a secret either; the text of an exception, which may quote
one, is not logged.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.extras import extra

STATUS = {200: "200 OK", 404: "404 Not Found", 503: "503 Service Unavailable"}
PROBE_BYTES = 2**16
"""What a disk must still take to be well."""


def prometheus(part: str = "") -> Any:
    """A module of Prometheus's client.

    Raises
    ------
    ImportError : with the install command, where it is not installed.
    """
    return extra(f"prometheus_client{part}", "metrics need prometheus-client", "'tacit[metrics]'")


def gauge(name: str, text: str, value: float) -> Any:
    """A metric that may fall, in the form of Prometheus's client."""
    return prometheus(".core").GaugeMetricFamily(name, text, value)


def counter(name: str, text: str, label: str, counts: Mapping[str, int]) -> Any:
    """A metric that only rises, by the value of a label, without the time of its first value."""
    made = prometheus(".core").CounterMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        made.add_metric([value], count)
    return made


@dataclass(frozen=True, eq=False)
class Operated:
    """What a program tells.

    Parameters
    ----------
    checks : by name, whether it holds; one that raises an error does not.
    collect : makes the metrics as they are now; so Prometheus's client calls it.
    pages : further contents by path, as JSON.
    """

    checks: Mapping[str, Callable[[], bool]]
    collect: Callable[[], Iterable[Any]]
    pages: Mapping[str, Callable[[], Any]] = field(default_factory=dict)

    def answer(self, path: str) -> tuple[int, Any]:
        """The status and the content of a path: that of health is 503 where a check fails."""
        if path == "/health":
            holds = {name: _holds(check) for name, check in self.checks.items()}
            status = 200 if all(holds.values()) else 503
            return status, {name: "ok" if each else "failing" for name, each in holds.items()}
        try:
            return (200, self.pages[path]()) if path in self.pages else (404, None)
        except (OSError, ValueError):  # its text may quote a record
            return 503, None


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:  # whatever it is, it is not well
        return False


def takes_writes(folder: Path) -> bool:
    """Whether a folder's disk takes a small file, which has no name and is gone at once.

    Raises
    ------
    OSError : where it does not.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(PROBE_BYTES))
        file.flush()
        os.fsync(file.fileno())
    return True


@contextmanager
def telling(address: tuple[str, int] | None, told: Operated) -> Iterator[None]:
    """Answer ``/health``, ``/metrics`` and further pages at an address until the block ends.

    Parameters
    ----------
    address : host and port; None for none.
    told : what is answered.

    Raises
    ------
    ValueError : where the address is taken, or not one of this machine.
    ImportError : with the install command, where Prometheus's client is not installed.
    """
    if address is None:
        yield
        return
    host, port = address
    registry = prometheus().CollectorRegistry()
    registry.register(told)
    try:
        server, _ = prometheus().start_http_server(port, host, registry)
    except OSError as error:
        raise ValueError(f"metrics cannot be at {host}, port {port}: {error.strerror}") from None
    metrics = server.get_app()

    def answered(request: dict[str, Any], begin: Callable[..., Any]) -> Any:
        if request["PATH_INFO"] == "/metrics":
            return metrics(request, begin)
        status, content = told.answer(request["PATH_INFO"])
        begin(STATUS[status], [("Content-Type", "application/json")])
        return [json.dumps(content).encode()]

    server.set_app(answered)
    with server:
        try:
            yield
        finally:
            server.shutdown()


LOG = logging.getLogger("tacit")
FORMATS = PLAIN, TEXT, JSON = "plain", "text", "json"
"""Lines as a terminal shows them, without a log; with time and level; as JSON."""


class Lines(logging.Formatter):
    """One line a message: time (UTC), level, logger, message, and the type of an exception alone.

    Of a message of another library its first line is kept: what follows quotes exceptions.

    Parameters
    ----------
    as_json : whether a line is a JSON object.
    """

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """The line of a message."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().partition("\n")[0],
        }
        if record.exc_info and record.exc_info[0]:
            fields["exception"] = record.exc_info[0].__name__
        return json.dumps(fields) if self._as_json else " ".join(fields.values())


def log_as(form: str) -> None:
    """Write everything that this process says into its log, which is standard error.

    Parameters
    ----------
    form : one of ``FORMATS``; ``"plain"`` changes nothing.
    """
    if form == PLAIN:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(form == JSON))
    LOG.propagate = False
    for logger, level in ((LOG, logging.INFO), (logging.getLogger(), logging.WARNING)):
        logger.handlers = [handler]
        logger.setLevel(level)


def is_logging() -> bool:
    """Whether what this process says goes into a log, where no record may be quoted."""
    return bool(LOG.handlers)


def logged(line: str, level: int = logging.INFO) -> bool:
    """Write a line into the log, if there is one; whether there is."""
    if is_logging():
        LOG.log(level, "%s", line.removeprefix("tacit: "))
    return is_logging()
