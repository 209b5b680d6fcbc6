"""Several parties of a joint computation as threads, linked in memory: no processes, no TLS."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

from tacit.running.mpc.spu import SPURun, library


class ThreadedParties:
    """Parties whose runs stay open, so that what a link costs is paid once."""

    def __init__(self, parties: int) -> None:
        spu = library("spu.libspu")
        description = spu.link.Desc()
        for place in range(parties):
            description.add_party(f"party {place}", f"thread {uuid.uuid4()}")
        self._contexts = self._each(parties, lambda place: spu.link.create_mem(description, place))
        self.runs: list[SPURun] = self._each(parties, lambda place: SPURun(self._contexts[place]))

    def together(self, work: Callable[[SPURun, int], Any]) -> list[Any]:
        """What every party's work gives, in order; all run at the same time."""
        return self._each(len(self.runs), lambda place: work(self.runs[place], place))

    @staticmethod
    def _each(parties: int, work: Callable[[int], Any]) -> list[Any]:
        found: list[Any] = [None] * parties
        errors: list[BaseException] = []

        def run(place: int) -> None:
            try:
                found[place] = work(place)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(place,)) for place in range(parties)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return found
