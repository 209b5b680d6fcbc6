"""Measures every table and figure of the papers again, beside the printed numbers.

Examples
--------
>>> rows = TABLES["fedauc-figure-8"].measure(Scores(), seed=0)
>>> rows[0].row, rows[0].column, rows[0].paper
('IID', 'percentile 0', None)
"""

from tacit_studies.measuring import Table
from tacit_studies.registry import TABLES
from tacit_studies.rows import (
    Beside,
    Measured,
    Row,
    Summary,
    Target,
    format_rows,
    summary,
    summary_lines,
)
from tacit_studies.sources import Scores

__version__ = "0.1.0"

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
