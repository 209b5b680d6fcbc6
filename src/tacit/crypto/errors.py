"""What may go wrong in a secure sum, by who has to act on it."""

from __future__ import annotations


class SumError(ValueError):
    """A secure sum that cannot go on; it has revealed no vector."""


class MalformedError(SumError):
    """Bytes that are no message of a sum: of another kind or version, cut short, out of order."""


class SessionError(SumError):
    """A message of another session."""


class RoundError(SumError):
    """A message of another round, or a step taken out of order or a second time."""


class ReplayError(SumError):
    """A second message of one client in one round."""


class ForgedError(SumError):
    """Keys or shares that do not come from the client whose name they bear."""


class UnknownClientError(SumError):
    """A client that is not in the roster, or not in this round."""


class TooFewError(SumError):
    """Fewer clients or shares than the agreed threshold; there is no sum."""


class RefusedError(SumError):
    """A question that a client refuses, because its answer would reveal a vector."""
