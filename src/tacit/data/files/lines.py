"""Lines of a text file as an editor counts them."""

from __future__ import annotations

import csv
import io
from contextlib import ExitStack
from itertools import islice

from tacit.data.tables.opening import opened_text


def line_of(source: str, extension: str, separator: str, row: int) -> int | None:
    """The line on which a record begins; None where the file cannot be read as text.

    Blank lines are no records, and a record may go on over several lines.

    Parameters
    ----------
    source : the file.
    extension : the end of its name, which says how it is packed.
    separator : what stands between values.
    row : the record's number from 1; the header is number 0.
    """
    with ExitStack() as closing:
        packed = opened_text(source, extension, closing)
        text = io.TextIOWrapper(packed, encoding="utf-8", errors="replace", newline="")
        reader = csv.reader(text, delimiter=separator)
        try:
            fields = next(islice(filter(None, reader), row, None), None)
        except (csv.Error, OSError):
            return None
        if fields is None:
            return None
        return reader.line_num - sum(field.count("\n") for field in fields)
