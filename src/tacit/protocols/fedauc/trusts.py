"""Who may see what in an evaluation by ranks, beside the trusts of all protocols."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.protocol.declarations.trust import Trust
from tacit.protocol.settings.choices import Choice


@dataclass(frozen=True)
class HiddenRanks(Choice):
    """The clients rank their scores together, and show them to nobody.

    The server knows no ranks, so that the noise of every client is that of the largest one.

    Parameters
    ----------
    alpha : the rank sum's fraction of epsilon, between 0 and 1.

    Raises
    ------
    ValueError : for a fraction outside this range.
    """

    alpha: float = 0.5

    word = Trust.MPC.value

    def __post_init__(self) -> None:
        check_fraction("alpha", self.alpha)


def check_fraction(name: str, value: float) -> None:
    """Refuse a fraction of a budget that leaves nothing for one of two numbers.

    Raises
    ------
    ValueError : naming it.
    """
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value}")
