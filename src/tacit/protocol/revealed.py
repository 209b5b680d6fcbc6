"""A figure that the clients of a run learn, where the server does not or need not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tacit.protocol.conversation import ClientState, Protocol
from tacit.results.figure import Figure
from tacit.results.server_result import ServerResult

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


class RevealsFigure(ABC):
    """What a protocol declares beside its steps when its clients learn the figure."""

    @abstractmethod
    def revealed_result(self, revealed: Any) -> ServerResult:
        """The result of a client, from the figure that it learned in a step."""


def result_of_client(protocol: Protocol, revealed: Revealed) -> ServerResult:
    """The result of a client that learned the figure in a step.

    Raises
    ------
    TypeError : for a protocol whose steps keep a figure without a declaration of its result.
    """
    if not isinstance(protocol, RevealsFigure):
        raise TypeError(f"{protocol.name} must be a RevealsFigure, since a step keeps a figure")
    return protocol.revealed_result(revealed).within(Figure.of(protocol.figure).limits)
