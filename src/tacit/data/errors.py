"""The error of records that cannot be evaluated."""

from __future__ import annotations


class DataError(ValueError):
    """Records that cannot be evaluated; the message names the location and the value."""


class NotFiniteError(DataError):
    """Scores of a file that are infinite or no number."""
