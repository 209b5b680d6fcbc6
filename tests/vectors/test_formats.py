"""Every format of messages against its golden ones, those that must be refused among them."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.crypto.homomorphic import keys as homomorphic
from tacit.crypto.identities import Identity
from tacit.crypto.masking import Field, total_mask
from tacit.crypto.secure_sum import messages as sums
from tacit.crypto.secure_sum.masking import Packing, Run, to_words
from tacit.protocol import Ragged, fields, protocol_of
from tacit.protocol.values import decode_query, decode_values, encode_query, encode_values
from tacit.protocols.encrypted.confirming import tags_of
from tacit.protocols.encrypted.masked_scheme import untagged
from tacit.running.session.messages import COORDINATOR, Agreement, Kind, SignedMessage, verified
from tests.vectors import vectors

Content = dict[str, Any]


def read_fields(message: bytes, file: Content) -> Content:
    """Named arrays (``TACT``)."""
    entries: Content = {}
    for name, value in fields.decode(message).items():
        array = value.values if isinstance(value, Ragged) else value
        entries[name] = {
            "ragged": isinstance(value, Ragged),
            "type": array.dtype.str,
            "shape": list(array.shape),
            "values": array.ravel().tolist(),
        }
    return {"fields": entries}


def written_fields(entry: Content, file: Content) -> bytes:
    named: dict[str, Any] = {}
    for name, field in entry["fields"].items():
        array = np.array(field["values"], field["type"]).reshape(field["shape"])
        named[name] = Ragged(array, np.array([0, array.size])) if field["ragged"] else array
    return fields.encode(named)


def read_values(message: bytes, file: Content) -> Content:
    """Structured values, within the fields ``structure`` and ``bytes`` of ``TACT``."""
    return {"values": repr(decode_values(message))}


def written_values(entry: Content, file: Content) -> bytes:
    return encode_values(literal_eval(entry["values"]))


def protocol_of_file(file: Content) -> Any:
    settings = dict(file["protocol"])
    return protocol_of(settings.pop("name"), settings)


def read_query(message: bytes, file: Content) -> Content:
    """What a coordinator asks: a step by its name, a view, and values."""
    query = decode_query(message, protocol_of_file(file))
    return {"step": query.step.name, "view": query.view.value}


def written_query(entry: Content, file: Content) -> bytes:
    return encode_query(next(protocol_of_file(file).conversation(3)))


def agreed(file: Content) -> Agreement:
    north, south = map(bytes.fromhex, file["parties"])
    centre = bytes.fromhex(file["coordinator"])
    return Agreement(protocol_of_file(vectors("queries")), (north, south), centre)


def read_session(message: bytes, file: Content) -> Content:
    """Signed messages of a session (``TLET``)."""
    sides = (0, COORDINATOR) if message[5:6] == b"\x04" else (COORDINATOR, 0)
    read = verified(message, agreed(file), *sides)
    return {
        "kind": read.kind.name,
        "session": read.session.hex(),
        "turn": read.round,
        "sender": read.sender,
        "receiver": read.receiver,
        "body": read.body.hex(),
    }


def written_session(entry: Content, file: Content) -> bytes:
    terms, keys = agreed(file), map(bytes.fromhex, file["private keys"])
    assert terms.digest.hex() == file["agreement digest"]
    signers = dict(zip((0, 1, COORDINATOR), map(Identity.from_bytes, keys), strict=True))
    session, body = (bytes.fromhex(entry[name]) for name in ("session", "body"))
    sides = entry["sender"], entry["receiver"]
    message = SignedMessage(Kind[entry["kind"]], session, entry["turn"], *sides, body)
    return message.signed(terms, signers[message.sender])


def place(kinds: Any, file: Content) -> tuple[Any, bytes, int]:
    """The kind, the session and the index of a file's messages."""
    return kinds[file["kind"]], bytes.fromhex(file["session"]), file["index"]


def read_sum(message: bytes, file: Content) -> Content:
    """Messages of a secure sum (``TSUM``): header, then records of fixed size."""
    body = sums.read(message, *place(sums.Kind, file))
    records = sums.unpack_records(body, sums.SHARE_BYTES, 3)
    return {"records": {str(index): record.hex() for index, record in records.items()}}


def written_sum(entry: Content, file: Content) -> bytes:
    records = {int(index): bytes.fromhex(each) for index, each in entry["records"].items()}
    return sums.write(*place(sums.Kind, file), sums.pack_records(records))


def packing_of(file: Content) -> Packing:
    return Packing(tuple(Run(*run) for run in file["runs"]))


def read_packed(message: bytes, file: Content) -> Content:
    """The numbers of a masked vector, in runs of one width each; one fills its last byte."""
    packing = packing_of(file)
    return {"numbers": packing.signed(packing.unpack(message)).tolist()}


def written_packed(entry: Content, file: Content) -> bytes:
    packing = packing_of(file)
    return packing.pack(to_words(np.array(entry["numbers"]), packing.bits))


def read_encrypted(message: bytes, file: Content) -> Content:
    """Messages of an encrypted evaluation (``TFHE``): header, parts, a checksum."""
    parts = homomorphic.read(message, *place(homomorphic.Kind, file))
    return {"parts": [part.hex() for part in parts]}


def written_encrypted(entry: Content, file: Content) -> bytes:
    parts = [bytes.fromhex(part) for part in entry["parts"]]
    return homomorphic.write(*place(homomorphic.Kind, file), parts)


def read_masked(message: bytes, file: Content) -> Content:
    """Masked values of one session: its first 8 bytes, then words of a prime field."""
    words = untagged(message, bytes.fromhex(file["session"]))
    return {"numbers": [str(word) for word in Field(file["bits"]).from_bytes(words, 4)]}


def written_masked(entry: Content, file: Content) -> bytes:
    field = Field(file["bits"])
    words = field.to_bytes(field.elements([int(number) for number in entry["numbers"]]))
    return bytes.fromhex(file["session"])[:8] + words


FORMATS: dict[str, tuple[Callable[..., Content], Callable[..., bytes]]] = {
    "fields": (read_fields, written_fields),
    "values": (read_values, written_values),
    "queries": (read_query, written_query),
    "session": (read_session, written_session),
    "secure-sum": (read_sum, written_sum),
    "packed-numbers": (read_packed, written_packed),
    "encrypted": (read_encrypted, written_encrypted),
    "masked-values": (read_masked, written_masked),
}
"""How each format is read and written, of which the file says what is not in a message."""

FILES = {name: vectors(name) for name in FORMATS}


def of_every_format(kind: str) -> Callable[[Any], Any]:
    """A case for each message of this kind in all files."""
    cases = [(name, entry) for name, file in FILES.items() for entry in file[kind]]
    named = [f"{name}-{entry['name']}" for name, entry in cases]
    return pytest.mark.parametrize(("name", "entry"), cases, ids=named)


def test_every_file_is_read() -> None:
    """Scales and devices have test modules of their own."""
    files = {path.stem for path in Path(__file__).parent.glob("*.json")}
    assert files == FORMATS.keys() | {"devices", "scales"}


@of_every_format("valid")
def test_a_golden_message_is_read_and_written(name: str, entry: Content) -> None:
    (read, written), message, expected = FORMATS[name], bytes.fromhex(entry["hex"]), dict(entry)
    del expected["name"], expected["hex"]
    assert read(message, FILES[name]) == expected
    assert written(entry, FILES[name]) == message


@of_every_format("invalid")
def test_a_message_that_must_fail_does(name: str, entry: Content) -> None:
    with pytest.raises(ValueError) as caught:
        FORMATS[name][0](bytes.fromhex(entry["hex"]), FILES[name])
    assert entry["error"] in str(caught.value)


def test_masks_and_tags_follow_from_a_key() -> None:
    """The first words of its mask in each field, which both ends of a pair and all owners of a
    session's secret draw alike (ChaCha20; a word that is not below the modulus is left out); and
    two parties' tags on a digest of zeros, under the first 16 bytes of the key as secret."""
    file = FILES["masked-values"]
    key = bytes.fromhex(file["key"])
    for bits, words in file["masks"].items():
        assert [str(word) for word in total_mask(key, 3, Field(int(bits)))] == words
    tags = tags_of(key[:16], bytes.fromhex(file["session"]), range(2), bytes(32))
    assert [tag.hex() for tag in tags] == file["tags"]
