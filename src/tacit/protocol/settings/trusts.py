"""The trust models of protocols that release numbers, as choices of the setting ``trust``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.protocol.declarations.trust import Trust
from tacit.protocol.settings.choices import Choice
from tacit.protocol.settings.declaring import setting


@dataclass(frozen=True)
class Each(Choice):
    """The server sees what each client releases, which has the whole noise."""

    word = Trust.EACH.value


@dataclass(frozen=True)
class ExactSum(Choice):
    """The server sees exact sums over the clients; there is no differential privacy."""

    word = Trust.EXACT_SUM.value


@dataclass(frozen=True)
class Local(Choice):
    """Every record's report is private separately."""

    word = Trust.LOCAL.value


@dataclass(frozen=True)
class SecureSum(Choice):
    """The server sees sums over the clients, of whose noise every client draws a share.

    Parameters
    ----------
    dropouts : the fraction of clients that may vanish without weakening the guarantee, from 0 to
        below 1; the others draw more noise for it. Clients that collude with the server count as
        vanished.

    Raises
    ------
    ValueError : for a fraction outside this range.
    """

    dropouts: float = 0.0

    word = Trust.SECURE_SUM.value

    def __post_init__(self) -> None:
        if not 0 <= self.dropouts < 1:
            raise ValueError(f"dropouts must be from 0 to below 1, got {self.dropouts}")

    def needed(self, clients: int) -> int:
        """Among how many of the clients that are asked the noise is divided.

        Examples
        --------
        >>> SecureSum(dropouts=0.2).needed(10)
        8
        """
        return max(1, math.ceil(clients * (1 - self.dropouts) - 1e-9))

    def share(self, batch: int, clients: int) -> Fraction:
        """The noise that a batch of clients draws, as a multiple of what the guarantee needs."""
        return Fraction(batch, self.needed(clients))


def trust_setting(default: Choice = SecureSum()) -> Any:
    """The setting ``trust``; the annotation of the field says which trusts there are."""
    return setting(default=default, help=f"who may see what; {default.word} by default")


def trust_of(protocol: Any) -> Choice:
    """The trust under which a protocol releases numbers; a secure sum where it has no choice."""
    trust: Choice = getattr(protocol, "trust", SecureSum())
    return trust
