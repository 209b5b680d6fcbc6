"""What the package offers, and where it is; a name is imported when it is first used."""

from .measuring import Table
from .registry import TABLES
from .rows import (
    Beside,
    Measured,
    Row,
    Summary,
    Target,
    format_rows,
    summary,
    summary_lines,
)
from .sources import Scores

__all__ = [
    "TABLES",
    "Beside",
    "Measured",
    "Row",
    "Scores",
    "Summary",
    "Table",
    "Target",
    "format_rows",
    "summary",
    "summary_lines",
]

__version__: str
