"""Parts of a page: sections, tables, and values kept from turning into HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from tacit.reporting.words import decimal


@dataclass(frozen=True)
class PagePosition:
    """The position of a result on the page.

    Parameters
    ----------
    prefix : starts the ids of its parts.
    level : the level of its sections' headings.
    """

    prefix: str
    level: int

    def section(self, name: str, heading: str, body: str, kind: str = "card") -> str:
        """A section with its heading; a landmark where its name is the only one on the page."""
        mark = f"{self.prefix}-{name}-heading"
        landmark = f' aria-labelledby="{mark}"' if self.level == 2 else ""
        return (
            f'<section class="{kind}"{landmark}>'
            f'<h{self.level} id="{mark}">{escape(heading)}</h{self.level}>{body}</section>'
        )


def paragraphs(sentences: Iterable[str]) -> str:
    """One paragraph of sentences."""
    text = " ".join(sentences)
    return f"<p>{escape(text)}</p>" if text else ""


def table(caption: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table whose cells are HTML already, the first of each row heading it."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join(_table_row(list(row)) for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def datum(value: float, text: str | None = None) -> str:
    """A number as it is read, with its full value beside it for programs."""
    if not math.isfinite(value):
        return escape(text or "not known")
    return f'<data value="{value!r}">{escape(text or decimal(value))}</data>'


def named(name: str) -> str:
    """A name that somebody gave, kept from turning the text around it."""
    return f"<bdi>{escape(name)}</bdi>"


def _table_row(cells: list[str]) -> str:
    rest = "".join(f"<td>{cell}</td>" for cell in cells[1:])
    return f'<tr><th scope="row">{cells[0]}</th>{rest}</tr>'
