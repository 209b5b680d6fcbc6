"""Protocols that count scores in cells: the map to the positions that equal cells cut is a setting.

``scale`` names a public map (``metrics.cells.score_scale``). Steps take positions for scores, and
the server maps the edges of cells back: a threshold in a result is a score.

Scores must lie in the range that a protocol cuts into cells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from tacit.arrays import Floats
from tacit.data import units
from tacit.data.clients import Clients
from tacit.data.engines.pieces import LARGEST, least_scores
from tacit.data.errors import DataError
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY, SCALES, ScoreScale, named_scale
from tacit.protocol.settings import setting

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
            "unit (--unit percent, --unit log-odds, or --unit real for any other numbers; in "
            'Python unit="log-odds" and so on), '
            "or map them by public bounds, never by the data's own minimum and maximum"
        )


UNIT_OF = {scale: units.PROBABILITY if scale == EVEN else scale for scale in SCALES}
"""The unit in which scores of each scale are taken: one of its name, or probabilities."""


def scale_setting(default: str = PROBABILITY) -> Any:
    """The setting ``scale`` of a protocol that counts scores in cells."""
    return setting(
        default=default,
        choices=SCALES,
        type=str,
        help="where cells lie: of the log-odds of a probability (the default of our own forms) or "
        "of log-odds, of any real number, or even ones of [0, 1] as in the papers",
    )


class ScaledScores:
    """What a protocol with the setting ``scale`` inherits, before ``Protocol``."""

    scale: str

    @property
    def score_range(self) -> tuple[float, float] | None:
        """From 0 to 1 for probabilities; any other number has a position as it is."""
        return UNIT_INTERVAL if UNIT_OF[self.scale] == units.PROBABILITY else None

    @property
    def unit(self) -> str:
        """The unit in which scores are taken."""
        return UNIT_OF[self.scale]

    @property
    def score_scale(self) -> ScoreScale:
        """The map of scores to positions."""
        return named_scale(self.scale)

    def for_unit(self, unit: str) -> Self:
        """The same with the scale of a unit, where its scale is for scores in another.

        Percentages are converted to probabilities, so they need no scale.

        Raises
        ------
        ValueError : for a word that is no unit, or settings that do not go with the scale.
        """
        if units.check_unit(unit) in (UNIT_OF[self.scale], units.PERCENT):
            return self
        # a unit's scale has its name
        return replace(self, scale=unit)  # type: ignore[type-var]

    @property
    def score_ends(self) -> tuple[float, float]:
        """The least and the largest score there can be."""
        return self.score_range or (-LARGEST, LARGEST)

    def score_edges(self, positions: Floats) -> Floats:
        """The least scores at positions or beyond, shape (B,): edges for anyone who counts scores.

        Parameters
        ----------
        positions : ascending, shape (B,).
        """
        return least_scores(self.score_scale.positions, positions, *self.score_ends)

    def on_scale(self, clients: Clients) -> Clients:
        """The clients with their scores' positions for scores.

        Raises
        ------
        DataError : for a score outside [0, 1] where scores are probabilities.
        """
        self.check_range(clients)
        return clients.rescored(self.score_scale)

    def check_range(self, clients: Clients) -> None:
        """Refuse scores that have no position.

        Raises
        ------
        DataError : for a score outside [0, 1] where scores are probabilities.
        """
        if self.score_range is not None:
            check_scores_in_unit_interval(clients)
