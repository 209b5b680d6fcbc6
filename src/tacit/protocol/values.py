"""Named values as bytes: their structure as JSON, their arrays and bytes next to it, no pickle.

A value is a number, a text, bytes, None, an array, a ragged field, a tuple, list or dictionary of
values, or of one of the kinds that sender and receiver know.

A query is a step's name with the values that it needs. Settings are agreed, never sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tacit.data.ragged import Ragged
from tacit.protocol.conversation import Protocol
from tacit.protocol.fields import MessageError, decode, encode
from tacit.protocol.steps import Field, Query, View

STRUCTURE, BLOB = "structure", "bytes"
MAX_DEPTH = 12
MAX_STRUCTURE = 2**20
"""Bytes of JSON; nested lists take about 80 times as much memory."""


@dataclass(frozen=True)
class Kind:
    """A class whose values may be written.

    Parameters
    ----------
    python_type : the class.
    parts : a value's parts, by name.
    made : a value from its parts; it checks them, with ValueError or TypeError.
    """

    python_type: type
    parts: Callable[[Any], Mapping[str, Any]]
    made: Callable[..., Any]

    @classmethod
    def of(cls, value_type: Any) -> Kind:
        """A dataclass or named tuple, by its fields."""
        named = getattr(value_type, "_fields", ()) or [field.name for field in fields(value_type)]
        return cls(
            value_type, lambda value: {name: getattr(value, name) for name in named}, value_type
        )

    @property
    def name(self) -> str:
        """What the value is called in bytes."""
        return self.python_type.__name__


@dataclass(frozen=True)
class Opaque:
    """A value of a kind that the reader does not know: it can only be written again.

    Parameters
    ----------
    kind : what the value is called in bytes.
    parts : its parts, by name.
    """

    kind: str
    parts: Mapping[str, Any]


def encode_values(values: Mapping[str, Any], kinds: Sequence[Kind] = ()) -> bytes:
    """Named values as bytes; ``kinds`` are the classes that the receiver knows.

    Examples
    --------
    >>> decode_values(encode_values({"boxes": [b"a", b"bc"], "height": 7, "share": 0.5}))
    {'boxes': [b'a', b'bc'], 'height': 7, 'share': 0.5}
    """
    packer = _Packer(tuple(kinds))
    structure = json.dumps(packer.packed(dict(values))).encode()
    _check_structure(len(structure))
    arrays: dict[str, Field] = {
        STRUCTURE: np.frombuffer(structure, dtype=np.uint8),
        BLOB: np.frombuffer(bytes(packer.blob), dtype=np.uint8),
    }
    return encode(arrays | {str(index): array for index, array in enumerate(packer.arrays)})


def decode_values(
    message: bytes, kinds: Sequence[Kind] = (), opaque: bool = False
) -> dict[str, Any]:
    """The values of a message; with ``opaque`` those of unknown kinds as ``Opaque`` ones.

    Every byte and array of a message belongs to one value, in the order in which
    ``encode_values`` writes them. So values are no larger than their message, but for its
    structure, which is at most ``MAX_STRUCTURE`` bytes long.

    Raises
    ------
    MessageError : for bytes that ``encode_values`` did not make.
    """
    fields = decode(message)
    structure, blob = fields.pop(STRUCTURE, None), fields.pop(BLOB, None)
    if not isinstance(structure, np.ndarray) or not isinstance(blob, np.ndarray):
        raise MessageError("a message of values has a structure and its bytes")
    _check_structure(structure.nbytes)
    try:
        tree = json.loads(structure.tobytes())
    except (ValueError, RecursionError):
        raise MessageError("the structure of values is not JSON") from None
    unpacker = _Unpacker(fields, blob.tobytes(), {kind.name: kind for kind in kinds}, opaque)
    unpacked = unpacker.unpacked(tree)
    unpacker.finish()
    if not isinstance(unpacked, dict):
        raise MessageError("a message holds named values")
    return unpacked


def named_values(message: bytes, **kinds: type) -> dict[str, Any]:
    """The values of a message that must have exactly these names and types.

    Raises
    ------
    MessageError : for any other message.

    Examples
    --------
    >>> named_values(encode_values({"reason": "no"}), reason=str)
    {'reason': 'no'}
    """
    values = decode_values(message)
    if values.keys() != kinds.keys():
        raise MessageError(f"values named {sorted(kinds)} were expected, got {sorted(values)}")
    for name, kind in kinds.items():
        if type(values[name]) is not kind:
            raise MessageError(f"{name!r} must be of type {kind.__name__}")
    return values


def _check_structure(size: int) -> None:
    if size > MAX_STRUCTURE:
        raise MessageError(f"a structure has at most {MAX_STRUCTURE} bytes, got {size}")


class _Packer:
    """Turns values into JSON; arrays and bytes go next to it, and are named by their index."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.arrays: list[Field] = []
        self.blob = bytearray()
        self._kinds = kinds

    def packed(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, list):
            return [self.packed(entry) for entry in value]
        kind, content = self._named(value)
        return {kind: content}

    def _named(self, value: Any) -> tuple[str, Any]:
        if isinstance(value, float | np.floating):
            return "float", float(value).hex()
        if isinstance(value, bytes):
            self.blob += value
            return "bytes", [len(self.blob) - len(value), len(self.blob)]
        if isinstance(value, np.ndarray | Ragged):
            self.arrays.append(value)
            return "array", len(self.arrays) - 1
        for kind in (*self._kinds, Kind(Opaque, lambda opaque: opaque.parts, Opaque)):
            if isinstance(value, kind.python_type):
                name = value.kind if isinstance(value, Opaque) else kind.name
                return name, {key: self.packed(part) for key, part in kind.parts(value).items()}
        if isinstance(value, tuple):
            return "tuple", [self.packed(entry) for entry in value]
        if isinstance(value, dict):
            return self._dictionary(value)
        raise MessageError(f"values of type {type(value).__name__} are not written")

    def _dictionary(self, value: dict[Any, Any]) -> tuple[str, Any]:
        if all(isinstance(name, str) for name in value):
            return "named", {name: self.packed(entry) for name, entry in value.items()}
        return "pairs", [[self.packed(key), self.packed(entry)] for key, entry in value.items()]


class _Unpacker:
    """Turns the JSON back into values, which take bytes and arrays in their order, once each."""

    def __init__(
        self, arrays: Mapping[str, Field], blob: bytes, kinds: Mapping[str, Kind], opaque: bool
    ) -> None:
        self._arrays, self._blob, self._kinds, self._opaque = arrays, blob, kinds, opaque
        self._taken_arrays = self._taken_bytes = 0

    def unpacked(self, tree: Any, depth: int = MAX_DEPTH) -> Any:
        if depth == 0:
            raise MessageError(f"values are nested at most {MAX_DEPTH} deep")
        if tree is None or isinstance(tree, bool | str | int):
            return tree
        if isinstance(tree, list):
            return [self.unpacked(entry, depth - 1) for entry in tree]
        if not isinstance(tree, dict) or len(tree) != 1:
            raise MessageError(f"not a value: {tree!r:.60}")
        ((kind, content),) = tree.items()
        try:
            return self._value(kind, content, depth - 1)
        except MessageError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise MessageError(f"not a value of kind {kind!r:.40}: {error}") from None

    def finish(self) -> None:
        """Refuse bytes and arrays that belong to no value."""
        if self._taken_bytes != len(self._blob) or self._taken_arrays != len(self._arrays):
            raise MessageError(
                f"values take {self._taken_bytes} of {len(self._blob)} bytes and "
                f"{self._taken_arrays} of {len(self._arrays)} arrays"
            )

    def _value(self, kind: str, content: Any, depth: int) -> Any:
        leaves: dict[str, Callable[[Any], Any]] = {"bytes": self._bytes, "array": self._array}
        leaves["float"] = float.fromhex
        if kind in leaves:
            return leaves[kind](content)
        if kind in ("tuple", "pairs"):
            if not isinstance(content, list):
                raise MessageError(f"a {kind} is written as a list, got {content!r:.40}")
            if kind == "tuple":
                return tuple(self.unpacked(entry, depth) for entry in content)
            return {
                self.unpacked(key, depth): self.unpacked(entry, depth) for key, entry in content
            }
        parts = {name: self.unpacked(part, depth) for name, part in content.items()}
        if kind == "named":
            return parts
        if self._opaque and kind not in self._kinds:
            return Opaque(kind, parts)
        return self._kinds[kind].made(**parts)

    def _bytes(self, ends: list[int]) -> bytes:
        start, stop = ends
        if start != self._taken_bytes or not start <= stop <= len(self._blob):
            raise MessageError(
                f"bytes {start} to {stop} of {len(self._blob)} are not those that follow byte "
                f"{self._taken_bytes}"
            )
        self._taken_bytes = stop
        return self._blob[start:stop]

    def _array(self, index: int) -> Field:
        if index != self._taken_arrays:
            raise MessageError(f"array {index!r:.20} is not array {self._taken_arrays}, the next")
        self._taken_arrays += 1
        return self._arrays[str(self._taken_arrays - 1)]


def query_kinds(protocol: Protocol) -> tuple[Kind, ...]:
    """The classes whose values a query of this protocol may hold: they check themselves."""
    return tuple(map(Kind.of, protocol.query_types))


def encode_query(query: Query) -> bytes:
    """A query as one client receives it: its ``per_client`` holds that client's part only.

    Examples
    --------
    >>> from tacit import DPAUC
    >>> protocol = DPAUC(1.0)
    >>> query = next(protocol.conversation(3))
    >>> decode_query(encode_query(query), protocol).step.name
    'noisy_histograms'
    """
    content = {"shared": dict(query.broadcast), "each": dict(query.per_client)}
    return encode_values(
        {"step": query.step.name, "view": query.view.value} | content, query_kinds(query.protocol)
    )


def decode_query(message: bytes, protocol: Protocol) -> Query:
    """The query of a message, to be answered under the protocol that was agreed.

    Raises
    ------
    MessageError : for bytes that are not a query, or a step that the protocol does not have.
    """
    content = decode_values(message, query_kinds(protocol))
    if content.keys() != {"step", "view", "shared", "each"}:
        raise MessageError(f"a query has a step, a view and values, got {sorted(content)}")
    known = {step.name: step for step in protocol.steps}
    step = known.get(content["step"]) if isinstance(content["step"], str) else None
    if step is None:
        raise MessageError(f"{protocol.name} has no step {content['step']!r:.60}")
    views = {view.value: view for view in View}
    if content["view"] not in list(views):
        raise MessageError(f"unknown view {content['view']!r:.60}")
    shared, each = content["shared"], content["each"]
    if not isinstance(shared, dict) or not isinstance(each, dict):
        raise MessageError("a query's values must be named")
    if not all(isinstance(value, Ragged | np.ndarray) for value in each.values()):
        raise MessageError("a client's own part must be made of arrays")
    return Query(step, protocol, shared, each, views[content["view"]])
