"""Results as text: labelled lines, without a character that a terminal would obey."""

from __future__ import annotations

from collections.abc import Sequence


def escaped(text: str) -> str:
    """A text with every character escaped that is not printable, line ends too.

    Examples
    --------
    >>> escaped("struct<\x1b[31m: double>")
    'struct<\\\\x1b[31m: double>'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def as_lines(rows: Sequence[tuple[str, str]], warnings: Sequence[str]) -> str:
    """Labelled lines and warnings; a line end in a name starts no line.

    Examples
    --------
    >>> print(as_lines([("AUC", "0.8"), ("clients", "3")], ["this is a simulation"]))
    AUC      0.8
    clients  3
    warning: this is a simulation
    """
    safe = [(escaped(name), escaped(value)) for name, value in rows]
    width = max((len(name) for name, _ in safe), default=0)
    lines = [f"{name:{width}}  {value}" for name, value in safe]
    return "\n".join(lines + [f"warning: {escaped(warning)}" for warning in warnings])
