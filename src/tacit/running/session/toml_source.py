"""TOML files of plans and parties, read with errors that name the file, the line and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from tacit.crypto.identities import KEY_BYTES
from tacit.ledger.entries import period_of


class PlanError(ValueError):
    """A plan or a party's file that cannot be used; the message names file, line and value."""


def host_and_port(text: str) -> tuple[str, int]:
    """An address such as ``mpc.north.example:7070`` or ``[::1]:7070``.

    Raises
    ------
    ValueError : for another text.
    """
    host, _, port = text.rpartition(":")
    if not (host and re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 2**16):
        raise ValueError(f"an address must be host:port, got {text!r}")
    return host.strip("[]"), int(port)


@dataclass(frozen=True)
class Source:
    """A TOML file: its content, and its lines for messages."""

    path: Path
    content: dict[str, Any]
    lines: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Source:
        """A file that is there.

        Raises
        ------
        PlanError : for a file that cannot be read, or is no TOML.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise PlanError(f"{path} is not a text in UTF-8") from None
        return cls.of(path, text)

    @classmethod
    def of(cls, path: Path, text: str) -> Source:
        """The text of such a file.

        Raises
        ------
        PlanError : for what is no TOML.
        """
        try:
            content = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise PlanError(f"{path}: {error}") from None
        return cls(path, content, tuple(text.splitlines()))

    def only(self, *tables: str) -> None:
        """Refuse other tables."""
        for name in self.content:
            if name not in tables:
                raise self.error(name, name, f"unknown table [{name}]")

    def table(self, name: str, *keys: str, needed: bool = True, free: bool = False) -> Table:
        """A table that holds these keys only."""
        content = self.content.get(name, {})
        if not isinstance(content, dict) or (needed and not content):
            raise self.error(name, name, f"the table [{name}] is missing")
        table = Table(self, name, content)
        if not free:
            table.only(*keys)
        return table

    def error(self, table: str, key: str, reason: str) -> PlanError:
        """An error at the line of a key, or of its table."""
        line = self._line(table, key)
        position = f"{self.path}:{line}" if line else str(self.path)
        return PlanError(f"{position}: [{table}] {reason}")

    def _line(self, table: str, key: str) -> int | None:
        inside, header = False, None
        for number, line in enumerate(self.lines, 1):
            stripped = line.strip()
            if stripped.startswith("["):
                inside = stripped.partition("#")[0].strip(" []") == table
                header = number if inside and header is None else header
            elif inside and (re.match(rf"{re.escape(key)}\s*=", stripped) or f'"{key}"' in line):
                return number
        return header


@dataclass(frozen=True)
class Table:
    """One table of a file; every value is checked where it is read."""

    source: Source
    name: str
    values: dict[str, Any]

    def only(self, *keys: str) -> None:
        """Refuse other keys."""
        for key in self.values:
            if key not in keys:
                self.refuse(key, f"unknown key {key!r}; known are {', '.join(keys)}")

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise the error of a key."""
        raise self.source.error(self.name, key, reason)

    @contextmanager
    def about(self, key: str) -> Iterator[None]:
        """What is refused in this block, as the error of a key."""
        try:
            yield
        except ValueError as error:
            self.refuse(key, str(error))

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; only the default may be empty."""
        value = self.values.get(key, default)
        if value is None:
            self.refuse(key, f"{key!r} is missing")
        if not isinstance(value, str) or (not value and key in self.values):
            self.refuse(key, f"{key} must be a text that is not empty, got {value!r}")
        return value

    def optional(self, key: str) -> str | None:
        """A text that is not empty; None where there is none."""
        return self.text(key) if key in self.values else None

    def texts(self, key: str) -> tuple[str, ...]:
        """A text, or several."""
        values = self.values.get(key)
        if not isinstance(values, list):
            return (self.text(key),)
        if not values or not all(isinstance(value, str) and value for value in values):
            self.refuse(key, f"{key} must hold texts that are not empty, got {values!r}")
        return tuple(values)

    def number(
        self, key: str, default: Any, low: float, high: float, kinds: Any = (int, float)
    ) -> Any:
        """A number from ``low`` to ``high``."""
        if key not in self.values:
            return default
        value = self.values[key]
        known = isinstance(value, kinds) and not isinstance(value, bool)
        if not known or not low <= value <= high:
            self.refuse(key, f"{key} must be from {low:g} to {high:g}, got {value!r}")
        return value

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        return int(self.number(key, default, low, high, int))

    def flag(self, key: str) -> bool:
        """True or false; false by default."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, f"{key} must be true or false, got {value!r}")
        return value

    def choice(self, key: str, *choices: Any) -> Any:
        """One of several texts; the first by default."""
        value = self.values.get(key, choices[0])
        if value not in choices:
            self.refuse(key, f"{key} must be one of {', '.join(choices)}, got {value!r}")
        return value

    def key(self, key: str) -> bytes | None:
        """A public identity key, as hexadecimal digits."""
        value = self.values.get(key)
        if value is None:
            return None
        digits = 2 * KEY_BYTES
        if not (isinstance(value, str) and re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", value)):
            self.refuse(key, f"{key} must be {digits} hexadecimal digits, got {value!r}")
        return bytes.fromhex(value)

    def host_and_port(self, key: str) -> tuple[str, int] | None:
        """An address such as ``mpc.north.example:7070``; None where there is none."""
        value = self.values.get(key)
        return None if value is None else self._host_and_port(key, value)

    def hosts_and_ports(self, key: str) -> tuple[tuple[str, int], ...] | None:
        """Several addresses; None where the key is not there."""
        if key not in self.values:
            return None
        return tuple(self._host_and_port(key, value) for value in self.texts(key))

    def _host_and_port(self, key: str, value: object) -> tuple[str, int]:
        try:
            return host_and_port(str(value))
        except ValueError as error:
            self.refuse(key, str(error).replace("an address", key, 1))

    def period(self, key: str) -> timedelta | None:
        """A span of time, as 12h, 90d, 4w or 1y."""
        if key not in self.values:
            return None
        with self.about(key):
            return period_of(self.text(key))
