"""Scores must lie in the range that a protocol cuts into cells."""

from __future__ import annotations

from tacit.data.clients import Clients
from tacit.data.errors import DataError

UNIT_INTERVAL = (0.0, 1.0)


def check_scores_in_unit_interval(clients: Clients) -> None:
    """Refuse scores outside [0, 1].

    Raises
    ------
    DataError : naming client, row and score, and how to name another unit.

    Examples
    --------
    >>> check_scores_in_unit_interval(Clients.from_arrays([0.0, 1.0], [0, 1]))
    >>> check_scores_in_unit_interval(Clients.from_arrays([0.2, 1.5], [0, 1]))
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tacit.data.errors.DataError: scores must be in [0, 1] ... got 1.5 in client 0, row 2; name ...
    """
    wrong = clients.outlier(*UNIT_INTERVAL)
    if wrong is not None:
        raise DataError(
            "scores must be in [0, 1] where they are probabilities, "
            f"got {wrong[0]} in {wrong[1]}; name their "
            "unit (--unit percent, --unit log-odds, or --unit real for any other numbers), "
            "or map them by public bounds, never by the data's own minimum and maximum"
        )
