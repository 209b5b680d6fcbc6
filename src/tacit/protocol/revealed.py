"""A figure that the clients of a run learn, where the server does not or need not."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.protocol.conversation import ClientState

TOLD = ("told",)
"""The note under which a step keeps what its client was told."""


@dataclass(frozen=True)
class Told:
    """A figure as a client computed it from what it was sent.

    Whoever runs the client's steps takes the note, and writes it into the client's own file.

    Parameters
    ----------
    value : the figure.
    half_range : the largest distance of the exact figure from it.
    """

    value: float
    half_range: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "half_range", float(self.half_range))


def told_to(state: ClientState) -> Told | None:
    """What a client was told in its last run, which is taken out of its state; None for nothing."""
    note = state.take(TOLD)
    return note if isinstance(note, Told) else None
