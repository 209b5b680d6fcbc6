"""Reading ahead: the same items, one at most in advance, and no thread that stays."""

import threading
from collections.abc import Iterator

import pytest

from tacit.collecting.ahead import ahead


def readers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("tacit-reading")]


def test_at_most_one_item_is_made_in_advance() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(20):
            made.append(number)
            yield number

    used = []
    with ahead(items()) as numbers:
        for number in numbers:
            assert len(made) <= number + 2
            used.append(number)
    assert used == [*range(20)]
    assert not readers()


def test_an_error_is_raised_after_what_was_read() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    used = []
    with pytest.raises(OSError, match="disk"), ahead(items()) as numbers:
        used += [next(numbers)]
        used += [next(numbers)]
    assert used == [1]
    assert not readers()


def test_the_thread_ends_where_items_are_abandoned() -> None:
    with pytest.raises(ValueError, match="count"), ahead(iter(range(100))) as numbers:
        next(numbers)
        raise ValueError("count")
    assert not readers()
