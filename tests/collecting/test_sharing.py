"""Shared batches: each goes to one thread, none is made in advance, no thread stays."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.collecting.batches import shared


def counting() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("tacit-counting")]


@given(st.lists(st.integers()), st.integers(1, 4))
def test_every_item_goes_to_one_thread(items: list[int], threads: int) -> None:
    parts = shared(iter(items), list, threads)
    assert sorted(number for part in parts for number in part) == sorted(items)
    assert len(parts) <= threads
    assert all(parts)
    assert not counting()


def test_a_thread_has_one_item_at_a_time() -> None:
    made: list[int] = []
    used: list[int] = []

    def items() -> Iterator[int]:
        for number in range(200):
            made.append(number)
            yield number

    def work(numbers: Iterator[int]) -> None:
        for number in numbers:
            used.append(number)
            assert len(made) <= len(used) + 3

    shared(items(), work, 3)
    assert sorted(used) == made == [*range(200)]


def test_two_threads_are_at_work_at_once() -> None:
    """Both wait until the other has an item as well."""
    both = threading.Barrier(2, timeout=60)

    def work(numbers: Iterator[int]) -> int:
        total = next(numbers)
        both.wait()
        return total + sum(numbers)

    assert sum(shared(iter(range(10)), work, 2)) == 45


def test_an_error_of_reading_is_raised() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        shared(items(), sum)
    assert not counting()


def test_an_error_of_counting_ends_the_other_threads() -> None:
    def work(numbers: Iterator[int]) -> None:
        if next(numbers) == 3:
            raise ValueError("count")

    def endless() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    def works(numbers: Iterator[int]) -> None:
        for number in numbers:
            work(iter([number]))

    with pytest.raises(ValueError, match="count"):
        shared(endless(), works)
    assert not counting()
