"""Changes of a message's bytes, as a hostile network or party makes them."""

from __future__ import annotations

from hypothesis import strategies as st

KINDS = ("flip", "number", "cut", "append", "repeat", "twice", "zeros", "ones", "huge")
Change = tuple[str, float, int]
"""Its kind, its place as a share of the message's length, and a number."""


def one_change(*others: str) -> st.SearchStrategy[Change]:
    """A change of one of the kinds above, or of others that the test makes itself."""
    values = st.one_of(st.integers(0, 255), st.sampled_from((2**16, 2**31, 2**32 - 1)))
    places = st.floats(0, 1, exclude_max=True)
    return st.tuples(st.sampled_from((*KINDS, *others)), places, values)


def changes() -> st.SearchStrategy[list[Change]]:
    """A few changes, one after another."""
    return st.lists(one_change(), min_size=1, max_size=4)


def changed(message: bytes, how: list[Change]) -> bytes:
    """The message with these changes."""
    for kind, share, value in how:
        index = int(share * len(message))
        before, after = message[:index], message[index:]
        message = {
            "flip": before + bytes([after[0] ^ 1 << value % 8]) + after[1:] if after else message,
            "number": before + value.to_bytes(4, "little") + after[4:],
            "cut": before,
            "append": message + bytes([value % 256]) * (value % 64),
            "repeat": before + message[: value % 256] + after,
            "twice": 2 * message,
            "zeros": bytes(len(message)),
            "ones": b"\xff" * len(message),
            "huge": bytes(2**22),
        }[kind]
    return message
