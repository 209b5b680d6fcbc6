"""A result as a table in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable


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
