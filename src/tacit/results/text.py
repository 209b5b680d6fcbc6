"""Results as text, and as tables in a notebook.

Results as text: labelled lines, without a character that a terminal would obey.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


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


FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a cell begins with that a spreadsheet takes for a formula, wide forms included."""


def unformulated(text: str) -> str:
    """The text as a cell that no spreadsheet runs as a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def protocol_line(protocol: Mapping[str, Any]) -> str:
    """A protocol's name with its settings."""
    settings = ", ".join(f"{k} {v}" for k, v in protocol.items() if k != "name")
    return f"{protocol['name']} ({settings})" if settings else str(protocol["name"])


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


def aligned(rows: Sequence[Sequence[str]], texts: int | None = None) -> list[str]:
    """Lines of a table.

    Parameters
    ----------
    rows : of cells.
    texts : how many columns are texts, which begin below each other; the others are numbers, which
        end below each other. None where all are texts.

    Examples
    --------
    >>> aligned([("figure", "value"), ("AUC", "0.8")], texts=1)
    ['figure  value', 'AUC       0.8']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(widths) if texts is None else texts
    forms = [f"{'<' if index < left else '>'}{width}" for index, width in enumerate(widths)]
    return ["  ".join(map(format, row, forms)).rstrip() for row in rows]


def ruled(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table whose first row is its head, with a rule below it.

    Examples
    --------
    >>> ruled([("figure", "value"), ("AUC", "0.8")])
    ['figure  value', '------  -----', 'AUC     0.8']
    """
    rule = ["-" * max(map(len, column)) for column in zip(*rows, strict=True)]
    return aligned([rows[0], rule, *rows[1:]])


def html_table(rows: Iterable[tuple[str, str]], warnings: Iterable[str]) -> str:
    """Rows of a name and a value, and the warnings as a list below.

    Examples
    --------
    >>> html_table([("AUC", "< 0.8")], [])
    "<table><tr><th style='text-align:left'>AUC</th><td>&lt; 0.8</td></tr></table>"
    """
    lines = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    notes = "".join(f"<li>{html.escape(warning)}</li>" for warning in warnings)
    return f"<table>{lines}</table>" + (f"<ul>{notes}</ul>" if notes else "")


def paragraphs_and_table(
    before: Iterable[str], rows: Sequence[Sequence[str]], after: Iterable[str]
) -> str:
    """A table whose first row is its heading, with lines of text before and after.

    Examples
    --------
    >>> paragraphs_and_table(["a & b"], [["n"], ["1"]], [])
    '<p>a &amp; b</p><table><tr><th>n</th></tr><tr><td>1</td></tr></table>'
    """
    heading, *others = rows
    lines = [_row("th", heading), *(_row("td", row) for row in others)]
    return f"{_paragraphs(before)}<table>{''.join(lines)}</table>{_paragraphs(after)}"


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines if line)
