"""Several parties of a joint computation as threads, linked in memory: no processes, no TLS."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tacit.running.mpc.spu import SPURun, library


class ThreadedParties:
    """Parties whose runs stay open, so that what a link costs is paid once."""

    def __init__(self, parties: int) -> None:
        spu = library("spu.libspu")
        description = spu.link.Desc()
        for index in range(parties):
            description.add_party(f"party {index}", f"thread {uuid.uuid4()}")
        self._contexts = self._each(parties, lambda index: spu.link.create_mem(description, index))
        self.runs: list[SPURun] = self._each(parties, lambda index: SPURun(self._contexts[index]))

    def together(self, work: Callable[[SPURun, int], Any]) -> list[Any]:
        """What every party's work gives, in order; all run at the same time."""
        return self._each(len(self.runs), lambda index: work(self.runs[index], index))

    @staticmethod
    def _each(parties: int, work: Callable[[int], Any]) -> list[Any]:
        with ThreadPoolExecutor(parties) as threads:
            return list(threads.map(work, range(parties)))
