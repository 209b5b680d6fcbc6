"""The content of every file of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit import DPAUC, FedAUC
from tacit.crypto.homomorphic import keys as homomorphic
from tacit.crypto.identities import Identity
from tacit.crypto.masking import SIZES, Field, total_mask
from tacit.crypto.secure_sum import messages as sums
from tacit.crypto.secure_sum.masking import Packing, Run, to_words
from tacit.data.ragged import Ragged
from tacit.protocol import fields
from tacit.protocol.conversation import Query
from tacit.protocol.values import encode_query, encode_values
from tacit.protocols.encrypted.confirming import tags_of
from tacit.running.session.messages import COORDINATOR, Agreement, Kind, SignedMessage
from tests.vectors.devices import device_vectors
from tests.vectors.scales import scale_vectors

SESSION = bytes(range(16))
IDENTITIES = tuple(Identity.from_bytes(bytes([number]) * 32) for number in (1, 2, 3))

Content = dict[str, Any]


def described(name: str, message: bytes, /, **decoded: Any) -> Content:
    """A valid message with its fields."""
    return {"name": name, "hex": message.hex(), **decoded}


def refused(name: str, message: bytes, error: str) -> Content:
    """A message that a reader must refuse, and a part of what it says."""
    return {"name": name, "hex": message.hex(), "error": error}


def broken_headers(message: bytes, what: str) -> list[Content]:
    """What every reader refuses: another format, another version, and too few bytes."""
    return [
        refused("another format", b"TXXX" + message[4:], f"these bytes are not {what}"),
        refused("version 99", message[:4] + b"\x63" + message[5:], "version must be"),
        refused("cut within its header", message[:5], "bytes, got 5"),
    ]


def array_entry(value: Any) -> Content:
    """An array or ragged field as JSON: type, shape, values in C order."""
    array = value.values if isinstance(value, Ragged) else value
    return {
        "ragged": isinstance(value, Ragged),
        "type": array.dtype.str,
        "shape": list(array.shape),
        "values": array.ravel().tolist(),
    }


def field_vectors() -> Content:
    """Named arrays (``TACT``)."""
    samples: dict[str, dict[str, Any]] = {
        "nothing": {},
        "a count": {"positives": np.array(3)},
        "floats and bits": {"x": np.array([[0.5, -2.0]]), "bits": np.array([True, False])},
        "small types": {
            "labels": np.array([0, 1, -1], dtype=np.int8),
            "bytes": np.array([255], dtype=np.uint8),
            "codes": np.array([2**32 - 1], dtype=np.uint32),
        },
        "several values a client": {"scores": Ragged(np.array([0.25, 0.75]), np.array([0, 2]))},
    }
    valid = [
        described(
            name,
            fields.encode(sample),
            fields={key: array_entry(value) for key, value in sample.items()},
        )
        for name, sample in samples.items()
    ]
    message = fields.encode({"a": np.array(3)})
    twice = fields.encode({"a": np.array(3), "b": np.array(3)}).replace(b"b", b"a")
    return {
        "valid": valid,
        "invalid": [
            *broken_headers(message, "a tacit message"),
            refused("cut short", message[:-1], "cut short"),
            refused("a byte too many", message + b"\0", "1 bytes after the message's end"),
            refused("a field twice", twice, "appears twice"),
            refused("unknown array type", message[:7] + b"\x09" + message[8:], "array type 9"),
            refused("too many axes", message[:8] + b"\x05" + message[9:], "at most 4 axes"),
            refused("a bit that is 2", bit_of_two(), "bits other than 0 and 1"),
        ],
    }


def bit_of_two() -> bytes:
    """A message whose bit has the byte 2."""
    return fields.encode({"a": np.array([True])})[:-1] + b"\x02"


def value_vectors() -> Content:
    """Structured values, within the fields ``structure`` and ``bytes`` of ``TACT``."""
    samples: dict[str, dict[str, Any]] = {
        "numbers and texts": {
            "height": 7,
            "share": 0.5,
            "name": "north",
            "none": None,
            "yes": True,
        },
        "lists": {"list": [1, 2], "tuple": (1, "a"), "pairs": {1: "one"}, "named": {"a": 1}},
        "bytes": {"boxes": [b"a", b"bc"]},
    }
    message = encode_values({"a": b"b"})
    return {
        "valid": [described(key, encode_values(v), values=repr(v)) for key, v in samples.items()],
        "invalid": [
            refused("bytes that no value takes", taken_twice(), "are not those that follow"),
            refused("no structure", fields.encode({"a": np.array(1)}), "structure and its bytes"),
            refused("not JSON", message.replace(b'{"named', b'("named'), "is not JSON"),
            refused("an unknown kind", message.replace(b'"bytes": [', b'"bytez": ['), "bytez"),
        ],
    }


def taken_twice() -> bytes:
    """Values of which the second takes the bytes of the first."""
    return encode_values({"a": [b"b", b"c"]}).replace(b"[1, 2]", b"[0, 1]")


def first_protocol() -> DPAUC:
    """As the first version evaluated it: one round, and equal cells of the scores."""
    return DPAUC(1.0, thresholds=4, scale="even")


def query_vectors() -> Content:
    """What a coordinator asks: a step by its name, a view, and values."""
    protocol = first_protocol()
    query = next(protocol.conversation(3))
    elsewhere = encode_query(next(FedAUC(1.0).conversation(3)))
    other_view = encode_query(Query(query.step, protocol, {"a": 1})).replace(
        b'"each"', b'"evil"', 1
    )
    return {
        "protocol": {"name": protocol.name, **protocol.settings},
        "valid": [described("first query", encode_query(query), step=query.step.name, view="each")],
        "invalid": [
            refused("a step of another protocol", elsewhere, "has no step"),
            refused("an unknown view", other_view, "unknown view"),
        ],
    }


def agreement() -> Agreement:
    """Two parties that agreed on DPAUC."""
    north, south, centre = IDENTITIES
    return Agreement(
        first_protocol(),
        (north.public, south.public),
        centre.public,
    )


def message_vectors() -> Content:
    """Signed messages of a session (``TLET``)."""
    agreed, (north, south, centre) = agreement(), IDENTITIES
    signed_message = SignedMessage(Kind.ASK, SESSION, 2, COORDINATOR, 0, b"a query")
    message = signed_message.signed(agreed, centre)
    replied = SignedMessage(Kind.REPLY, SESSION, 2, 0, COORDINATOR, b"")
    other = SignedMessage(Kind.ASK, SESSION, 2, COORDINATOR, 1, b"a query").signed(agreed, centre)
    return {
        "parties": [north.public.hex(), south.public.hex()],
        "coordinator": centre.public.hex(),
        "private keys": [identity.to_bytes().hex() for identity in IDENTITIES],
        "agreement digest": agreed.digest.hex(),
        "signed": "b'tacit letter 1' + agreement digest + header + sha256(body)",
        "valid": [
            described("a query to party 0", message, **message_entry(signed_message)),
            described("an empty reply", replied.signed(agreed, north), **message_entry(replied)),
        ],
        "invalid": [
            *broken_headers(message + bytes(64), "a message"),
            refused("an unknown kind", message[:5] + b"\x63" + message[6:], "unknown kind"),
            refused("another agreement", flipped(message, 22), "belongs to another agreement"),
            refused("to another party", other, "is from the coordinator to party 1"),
            refused("another body", flipped(message, 43), "not signed by the coordinator"),
            refused("signed by a party", signed_message.signed(agreed, north), "not signed by the"),
        ],
    }


def message_entry(message: SignedMessage) -> Content:
    """A message's fields as JSON."""
    return {
        "kind": message.kind.name,
        "session": message.session.hex(),
        "turn": message.round,
        "sender": message.sender,
        "receiver": message.receiver,
        "body": message.body.hex(),
    }


def flipped(message: bytes, index: int) -> bytes:
    """A message with one bit changed."""
    return message[:index] + bytes([message[index] ^ 1]) + message[index + 1 :]


def sum_vectors() -> Content:
    """Messages of a secure sum (``TSUM``): header, then records of fixed size."""
    body = sums.pack_records({0: b"a" * 33, 2: b"b" * 33})
    message = sums.write(sums.Kind.REVEALED, SESSION, 1, body)
    return {
        "session": SESSION.hex(),
        "kind": "REVEALED",
        "index": 1,
        "valid": [
            described("two records", message, records={"0": "61" * 33, "2": "62" * 33}),
            described("none", sums.write(sums.Kind.REVEALED, SESSION, 1, bytes(4)), records={}),
        ],
        "invalid": [
            *broken_headers(message, "a message of a secure sum"),
            refused("an unknown kind", message[:5] + b"\x63" + message[6:], "unknown kind"),
            refused("another round", message[:5] + b"\x01" + message[6:], "expected revealed"),
            refused("another session", flipped(message, 6), "is of session"),
            refused("another client", flipped(message, 22), "has the index 0"),
            refused("records cut short", message[:-1], "records must take"),
            refused("a byte too many", message + b"\0", "records must take"),
            refused("records out of order", swapped(), "must ascend"),
            refused("a client too many", flipped(message, 69), "must be below 3"),
        ],
    }


def swapped() -> bytes:
    """Two records in descending order of their clients."""
    record = [(2).to_bytes(4, "little") + b"b" * 33, bytes(4) + b"a" * 33]
    body = (2).to_bytes(4, "little") + b"".join(record)
    return sums.write(sums.Kind.REVEALED, SESSION, 1, body)


PACKING = Packing((Run(3, 4), Run(1, 9), Run(5, 21), Run(1, 64)))
"""Runs of four widths, of which one fills its last byte."""


def packed_vectors() -> Content:
    """The numbers of a masked vector, in runs of one width each."""
    samples = {
        "zeros": [0] * 10,
        "the ends of every width": [7, -8, -1, -256, 2**20 - 1, -(2**20), 1, 2, 3, -(2**63)],
    }
    message = PACKING.pack(to_words(np.array(samples["zeros"]), PACKING.bits))
    return {
        "runs": [[run.length, run.bits] for run in PACKING.runs],
        "valid": [
            described(
                name, PACKING.pack(to_words(np.array(numbers), PACKING.bits)), numbers=numbers
            )
            for name, numbers in samples.items()
        ],
        "invalid": [
            refused("cut short", message[:-1], "must have 26 bytes, got 25"),
            refused("a byte too many", message + b"\0", "must have 26 bytes, got 27"),
            refused("a bit after a run", flipped_bit(message, 1, 4), "must be 0"),
        ],
    }


def flipped_bit(message: bytes, index: int, bit: int) -> bytes:
    """A message with one bit of a byte changed."""
    return message[:index] + bytes([message[index] ^ 1 << bit]) + message[index + 1 :]


def homomorphic_vectors() -> Content:
    """Messages of an encrypted evaluation (``TFHE``): header, parts, a checksum."""
    message = homomorphic.write(homomorphic.Kind.COUNTS, SESSION, 1, [b"one", b""])
    longer = message[:26] + b"\xff" + message[27:-16]
    return {
        "session": SESSION.hex(),
        "kind": "COUNTS",
        "index": 1,
        "checksum": "BLAKE2b of 16 bytes over all before it",
        "valid": [described("two parts", message, parts=[b"one".hex(), ""])],
        "invalid": [
            *broken_headers(message + bytes(16), "a message of an encrypted evaluation"),
            refused("damaged", flipped(message, 31), "checksum does not fit"),
            refused("another session", with_checksum(flipped(message, 6)[:-16]), "is of session"),
            refused("another party", with_checksum(flipped(message, 22)[:-16]), "has the index"),
            refused("another kind", with_checksum(message[:5] + b"\x01" + message[6:-16]), "kind"),
            refused("a part too long", with_checksum(longer), "cut short"),
        ],
    }


def with_checksum(message: bytes) -> bytes:
    """A message of an encrypted evaluation, with the checksum that fits."""
    return message + homomorphic._checksum(message)


def masked_vectors() -> Content:
    """Masked values of one session: its first 8 bytes, then words of a prime field.

    With each field the first words of a key's mask, which both ends of a pair and all owners of a
    session's secret draw alike (ChaCha20; a word that is not below the modulus is left out); and
    two parties' tags on a digest of zeros, under the first 16 bytes of the key as secret.
    """
    numbers = [0, 1, 2**60 + 12345, 2**104 - 18]
    key = bytes(range(32))
    known = {bits: Field(bits) for bits in SIZES}
    message = SESSION[:8] + known[104].to_bytes(known[104].elements(numbers))
    modulus = SESSION[:8] + known[104].prime.to_bytes(13, "little") + bytes(39)
    return {
        "session": SESSION.hex(),
        "bits": 104,
        "key": key.hex(),
        "masks": {
            str(bits): [str(word) for word in total_mask(key, 3, field)]
            for bits, field in known.items()
        },
        "tags": [tag.hex() for tag in tags_of(key[:16], SESSION, range(2), bytes(32))],
        "valid": [described("four words", message, numbers=[str(number) for number in numbers])],
        "invalid": [
            refused("another session", flipped(message, 0), "another session"),
            refused("cut short", message[:-1], "4 masked values have 52 bytes, got 51"),
            refused("a word that is the modulus", modulus, "not below the modulus"),
            refused(
                "a word above the modulus", flipped_bit(message, 47, 0), "not below the modulus"
            ),
        ],
    }


FILES: dict[str, Callable[[], Content]] = {
    "masked-values": masked_vectors,
    "devices": device_vectors,
    "fields": field_vectors,
    "values": value_vectors,
    "queries": query_vectors,
    "session": message_vectors,
    "secure-sum": sum_vectors,
    "packed-numbers": packed_vectors,
    "encrypted": homomorphic_vectors,
    "scales": scale_vectors,
}
