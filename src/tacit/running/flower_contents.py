"""What Flower's messages hold: a greeting and its answer, or the bytes of a signed message."""

from __future__ import annotations

from typing import Any

from tacit.running.session.messages import MAX_BYTES, SignedMessageError
from tacit.running.session.reasons import printable

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
except ImportError:
    raise ImportError(
        "running a federation needs flwr; install it with: pip install 'tacit[federation]'"
    ) from None

MAX_WHOLE_BYTES = 2**20
"""Largest message that travels as one value."""
HELLO, MESSAGE = "query.hello", "query.letter"
SAID, BYTES = "said", "bytes"


def enclosed(message: bytes) -> Any:
    """A message as the content of a Flower message: one value, or in parts where it is large.

    Flower sends every nested object in a separate request: an array and its parts take two more.
    """
    if len(message) <= MAX_WHOLE_BYTES:
        return RecordDict({BYTES: ConfigRecord({BYTES: message})})
    buffer = Array(dtype="uint8", shape=(len(message),), stype="tacit.letter", data=message)
    return RecordDict({BYTES: ArrayRecord({BYTES: buffer})})


def message_in(message: Any) -> bytes:
    """The message in a Flower message.

    Raises
    ------
    SignedMessageError : for a message without one, with what the sender said instead.
    """
    if not message.has_content():
        raise SignedMessageError(f"its node failed: {printable(str(message.error.reason))}")
    content = message.content
    if SAID in content and BYTES not in content:
        refused = str(dict(content[SAID]).get("refused", ""))
        raise SignedMessageError(f"it did not answer: {printable(refused)}")
    try:
        value = content[BYTES][BYTES]
        data = value if isinstance(value, bytes) else value.data
    except (KeyError, TypeError, AttributeError):
        raise SignedMessageError("this Flower message holds no message of a session") from None
    if not isinstance(data, bytes) or len(data) > MAX_BYTES:
        raise SignedMessageError(f"a message has at most {MAX_BYTES} bytes")
    return data


def said(message: Any, **values: Any) -> Any:
    """A reply of named values."""
    return Message(RecordDict({SAID: ConfigRecord(values)}), reply_to=message)
