"""How a file writes what it holds: words for labels, the separator, the decimal mark."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.data.errors import DataError

DECIMALS = (".", ",")
SEPARATORS = (",", ";", "\t", "|")
"""Separators that are tried where a header does not have the columns with the usual one."""


@dataclass(frozen=True)
class FileForm:
    """How values are written in files; the default is that of most programs.

    Parameters
    ----------
    positive : the words that mean a label of 1, such as ``("yes",)``; each file then has at most
        one other word, which means 0. Case, spaces around and the form of a number make no
        difference: ``1`` is ``+1`` and ``1.0``. Empty for labels of 0/1 or true/false.
    separator : what stands between the values of a line of text; None for the usual one of the
        file's extension or, where the header has the columns only with another, for that one.
    decimal : ``"."``, or ``","`` for numbers such as ``0,5``; a number with a point is then read
        too, one with both is refused.
    percent : whether a percent sign may follow a number.

    Raises
    ------
    DataError : for another decimal mark, a separator of more or less than one character or one
        that is part of numbers, and an empty word.

    Examples
    --------
    >>> sorted(FileForm(positive=("Yes", "+1")).words)
    ['1', 'yes']
    >>> FileForm(separator=";", decimal=",").decimal
    ','
    """

    positive: tuple[str, ...] = ()
    separator: str | None = None
    decimal: str = "."
    percent: bool = False

    def __post_init__(self) -> None:
        if self.decimal not in DECIMALS:
            raise DataError(f"decimal must be one of . and , got {self.decimal!r}")
        if self.separator is not None:
            _check_separator(self.separator, self.decimal)
        if not all(map(canonical, self.positive)):
            raise DataError("a positive label must have a character, got an empty word")

    @property
    def words(self) -> frozenset[str]:
        """The words that mean 1, as they are compared."""
        return frozenset(map(canonical, self.positive))


def canonical(word: object) -> str:
    """A label as labels are compared: without case and spaces, numbers by their value.

    Examples
    --------
    >>> canonical(" Yes"), canonical("+1"), canonical(1), canonical(True), canonical("0_1")
    ('yes', '1', '1', 'true', '0_1')
    """
    text = str(word).strip().casefold()
    if "_" in text:  # Python's numbers may have it between digits
        return text
    try:
        return f"{float(text):.17g}"
    except ValueError:
        return text


def _check_separator(separator: str, decimal: str) -> None:
    if len(separator) != 1 or separator in '\r\n"':
        raise DataError(f"separator must be one character, got {separator!r}")
    if separator == decimal or separator.isalnum() or separator in ".+-":
        raise DataError(f"separator must be no part of numbers, got {separator!r}")


PLAIN = FileForm()
"""Labels of 0/1 or true/false, the usual separator, and a decimal point."""
