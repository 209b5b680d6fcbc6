"""Whom the parties trust, and with what: one vocabulary for plans, evaluations and results."""

from __future__ import annotations

from enum import Enum

from tacit.protocol.settings.spelling import spelled


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
    """Every record's report is private by itself; nobody is trusted."""
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
        known = spelled(word.partition("(")[0], trust_words())
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
    Trust.LOCAL: "nobody is trusted: every record's report is private by itself",
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
