"""Whom the parties trust, and with what: one vocabulary for plans, evaluations and results.

The trust models of protocols that release numbers, as choices of the setting ``trust``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from tacit.protocol.settings import Choice, listed_name, setting


class Trust(Enum):
    """Who may see what.

    Examples
    --------
    >>> Trust.of("Secure_Sum(dropouts=0.2)") is Trust.SECURE_SUM
    True
    """

    EACH = "each"
    """The server sees what each client releases; every client adds its own noise."""
    SERVER_SEES_SCORES = "server-sees-scores"
    """The server sees all scores; labels are protected."""
    LOCAL = "local"
    """Every record's report is private on its own; no party is trusted."""
    SECURE_SUM = "secure-sum"
    """The server sees noisy sums over the clients; every client adds a share of the noise."""
    EXACT_SUM = "exact-sum"
    """The server sees exact sums over the clients; there is no differential privacy."""
    ENCRYPTED = "encrypted"
    """The aggregator computes on ciphertexts."""
    MPC = "mpc"
    """Several clients compute together; the server sees the result only."""

    @classmethod
    def of(cls, word: str) -> Trust:
        """The trust model of a word, in any case; parameters in brackets may follow.

        Raises
        ------
        ValueError : for an unknown word; the message lists the known ones.
        """
        known = listed_name(word.partition("(")[0], trust_words())
        if known is None:
            raise ValueError(f"trust must be one of {trust_words()}, got {word!r}")
        return cls(known)

    @property
    def description(self) -> str:
        """Who may see what, in a sentence without capital and full stop."""
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    Trust.EACH: "the server may see every client's counts, to which the client added its own noise",
    Trust.SERVER_SEES_SCORES: "the server may know all scores, not the labels",
    Trust.LOCAL: "no party is trusted: every record's report is private",
    Trust.SECURE_SUM: "the server sees sums over the clients only, by secure aggregation",
    Trust.EXACT_SUM: "the server sees exact sums over the clients only, by secure aggregation",
    Trust.ENCRYPTED: "the aggregator computes on encrypted counts; clients share a key",
    Trust.MPC: "clients compute together, by cryptography, and learn nothing",
}


def trust_words() -> tuple[str, ...]:
    """All words that ``Trust.of`` understands.

    Examples
    --------
    >>> trust_words()[:3]
    ('each', 'server-sees-scores', 'local')
    """
    return tuple(trust.value for trust in Trust)


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
    return getattr(protocol, "trust", SecureSum())
