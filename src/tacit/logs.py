"""Logs with time and level, as text or as JSON, for who operates a program that goes on running.

No line holds a count of records, a label, a score or a secret. The text of an exception, which may
quote one, is not logged.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

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
