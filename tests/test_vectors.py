"""Every format against its golden messages, those that must be refused among them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.crypto.homomorphic import keys as homomorphic
from tacit.crypto.masking import Field
from tacit.crypto.secure_sum import messages as sums
from tacit.crypto.secure_sum.masking import Packing, Run
from tacit.protocol.fields import decode
from tacit.protocol.values import decode_query, decode_values
from tacit.protocols.encrypted.masked_scheme import untagged
from tacit.running.session.messages import COORDINATOR, verified
from tests.vectors.making import (
    FILES,
    PACKING,
    agreement,
    array_entry,
    first_protocol,
    message_entry,
)

FOLDER = Path(__file__).parent / "vectors"
VECTORS: dict[str, Any] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")
}


def read_fields(message: bytes, file: Any) -> dict[str, Any]:
    return {"fields": {name: array_entry(value) for name, value in decode(message).items()}}


def read_values(message: bytes, file: Any) -> dict[str, Any]:
    return {"values": repr(decode_values(message))}


def read_query(message: bytes, file: Any) -> dict[str, Any]:
    query = decode_query(message, first_protocol())
    return {"step": query.step.name, "view": query.view.value}


def read_message(message: bytes, file: Any) -> dict[str, Any]:
    sides = (0, COORDINATOR) if message[5:6] == b"\x04" else (COORDINATOR, 0)
    return message_entry(verified(message, agreement(), *sides))


def read_sum(message: bytes, file: Any) -> dict[str, Any]:
    kind = sums.Kind[file["kind"]]
    body = sums.read(message, kind, bytes.fromhex(file["session"]), file["index"])
    records = sums.unpack_records(body, sums.SHARE_BYTES, 3)
    return {"records": {str(index): record.hex() for index, record in records.items()}}


def read_packed(message: bytes, file: Any) -> dict[str, Any]:
    packing = Packing(tuple(Run(*run) for run in file["runs"]))
    assert packing == PACKING
    return {"numbers": packing.signed(packing.unpack(message)).tolist()}


def read_homomorphic(message: bytes, file: Any) -> dict[str, Any]:
    kind = homomorphic.Kind[file["kind"]]
    parts = homomorphic.read(message, kind, bytes.fromhex(file["session"]), file["index"])
    return {"parts": [part.hex() for part in parts]}


def read_masked(message: bytes, file: Any) -> dict[str, Any]:
    words = untagged(message, bytes.fromhex(file["session"]))
    return {"numbers": [str(word) for word in Field(file["bits"]).from_bytes(words, 4)]}


READERS: dict[str, Callable[[bytes, Any], dict[str, Any]]] = {
    "fields": read_fields,
    "values": read_values,
    "queries": read_query,
    "session": read_message,
    "secure-sum": read_sum,
    "packed-numbers": read_packed,
    "encrypted": read_homomorphic,
    "masked-values": read_masked,
}

VALID = [(name, entry) for name in READERS for entry in VECTORS[name]["valid"]]
INVALID = [(name, entry) for name in READERS for entry in VECTORS[name]["invalid"]]


def named(case: Any) -> str:
    return case if isinstance(case, str) else str(case["name"])


def test_every_format_has_its_file() -> None:
    """Scales and devices have test modules of their own."""
    assert VECTORS.keys() == FILES.keys() == READERS.keys() | {"devices", "scales"}


@pytest.mark.parametrize(("name", "entry"), VALID, ids=named)
def test_a_golden_message_is_read(name: str, entry: dict[str, Any]) -> None:
    expected = {key: value for key, value in entry.items() if key not in ("name", "hex")}
    assert READERS[name](bytes.fromhex(entry["hex"]), VECTORS[name]) == expected


@pytest.mark.parametrize("name", FILES)
def test_the_same_bytes_are_written(name: str) -> None:
    assert FILES[name]() == VECTORS[name]


@pytest.mark.parametrize(("name", "entry"), INVALID, ids=named)
def test_a_message_that_must_fail_does(name: str, entry: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        READERS[name](bytes.fromhex(entry["hex"]), VECTORS[name])
    assert entry["error"] in str(caught.value)
