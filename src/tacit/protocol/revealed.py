"""A figure that the clients of a run learn, where the server does not or need not."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.protocol.conversation import ClientState

REVEALED = ("told",)
"""The note under which a step keeps the figure that its client learned."""


@dataclass(frozen=True)
class Revealed:
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


def revealed_to(state: ClientState) -> Revealed | None:
    """The figure that a client learned in its last run, taken out of its state; None for none."""
    note = state.take(REVEALED)
    return note if isinstance(note, Revealed) else None
