"""What a client remembers between steps, rounds and evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.protocol.replies import Field, field_part


class ClientState:
    """A batch of clients' private state, which lasts between steps and evaluations.

    What it holds by the place of a record serves these records in this order only. ``after_taking``
    is called whenever a note was taken out: who keeps notes on a disk sets it, to write them down
    without that note before anything is computed with it.

    Parameters
    ----------
    whole : the batch of which these clients are a part, and from where to where.
    same_places : whether the caller vouches that every record keeps its place when all get other
        scores, as a test set does that another model has scored. Nothing can check this: with
        labels alone in their places, two records of one label could have changed places.
    """

    def __init__(
        self,
        whole: tuple[ClientState, int, int] | None = None,
        *,
        same_places: bool = False,
    ) -> None:
        self.same_places = same_places
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
        made = ClientState((self, start, stop), same_places=self.same_places)
        return self._parts.setdefault((start, stop), made)


class Lasting:
    """A note that outlives a run: what was released once, and may be used again at no cost."""
