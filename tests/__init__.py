"""Tests, and what many of them need."""

from typing import TypeVar

Value = TypeVar("Value")


def known(value: Value | None) -> Value:
    """A value that is there."""
    assert value is not None
    return value
