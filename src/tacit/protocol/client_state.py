"""What a client remembers between steps, rounds and evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.protocol.replies import Field, field_part


class ClientState:
    """A batch of clients' private state, which lasts between steps and evaluations.

    It belongs to one set of records: their labels, number and order must not change.
    ``after_taking`` is called whenever a note was taken out: who keeps notes on a disk sets it, to
    write them down without that note before anything is computed with it.
    """

    def __init__(self, whole: tuple[ClientState, int, int] | None = None) -> None:
        self._notes: dict[tuple[Any, ...], Any] = {}
        self._parts: dict[tuple[int, int], ClientState] = {}
        self._whole = whole
        self.after_taking: Callable[[], None] = lambda: None

    @property
    def notes(self) -> dict[tuple[Any, ...], Any]:
        """All notes, but for those of parts of the batch."""
        return dict(self._notes)

    def recall(self, key: tuple[Any, ...]) -> Any:
        """The note under ``key``, or None."""
        return self._notes.get(key)

    def recall_field(self, key: tuple[Any, ...]) -> Field | None:
        """A field of these clients, noted here or for the batch of which they are a part."""
        noted: Field | None = self._notes.get(key)
        if noted is not None or self._whole is None:
            return noted
        batch, start, stop = self._whole
        batch_field = batch.recall_field(key)
        return None if batch_field is None else field_part(batch_field, start, stop)

    def keep(self, key: tuple[Any, ...], note: Any) -> None:
        """Write a note."""
        self._notes[key] = note

    def take(self, key: tuple[Any, ...]) -> Any:
        """Remove a note and return it, or None: it is used once, whatever happens afterwards."""
        if key not in self._notes:
            return None
        note = self._notes.pop(key)
        self.after_taking()
        return note

    def part(self, start: int, stop: int) -> ClientState:
        """The state of the clients ``start`` to ``stop - 1`` of the batch."""
        return self._parts.setdefault((start, stop), ClientState((self, start, stop)))


class Lasting:
    """A note that outlives a run: what was released once, and may be used again at no cost."""
