"""Single lies; a search builds its strategies from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from tacit.crypto.secure_sum.graph import Indices
from tacit_studies.secure_sums.setting import Setting
from tacit_studies.secure_sums.strategy import Attempt


class Claim(NamedTuple):
    """What the server tells a client about another; None leaves it unchanged."""

    announced: bool | None
    delivered: bool | None
    stayed: bool | None
    left: bool | None


class Lie(Enum):
    """What the server may tell some clients about some others."""

    STAYED = Claim(True, True, True, False)
    LEFT = Claim(True, True, False, True)
    NEVER_SHARED = Claim(False, False, False, False)
    NOT_ANNOUNCED = Claim(False, False, None, None)
    NOT_DELIVERED = Claim(None, False, None, None)
    NEITHER = Claim(None, None, False, False)
    BOTH = Claim(None, None, True, True)


LIKELY = (0.3, 0.35, 0.1, 0.12, 0.09, 0.02, 0.02)
"""Probability with which a search picks each lie."""


@dataclass(frozen=True, eq=False)
class Liar:
    """Changes attempts at random.

    Parameters
    ----------
    setting : the clients.
    rng : the source of random choices.
    targets : the clients whose vectors the server wants to open.
    openly : whether all clients may get the same lie; otherwise each lie is for some clients only.
    """

    setting: Setting
    rng: np.random.Generator
    targets: Indices
    openly: bool = True

    def changed(self, attempt: Attempt) -> Attempt:
        """The attempt with one more lie, or with another choice of the clients asked for shares."""
        if self.rng.random() < 0.04:
            return replace(attempt, revealing=self.rng.random(self.setting.clients) < 0.7)
        claims = list(Lie)[self.rng.choice(len(Lie), p=LIKELY)].value
        listeners, about = self._listeners(), self._about(attempt)
        where = np.ix_(listeners, about)
        around = attempt.around[where]
        fields = {}
        for name, value in zip(claims._fields, claims, strict=True):
            if value is not None:
                rows = getattr(attempt, name).copy()
                rows[where] = around & value if name == "delivered" else value
                fields[name] = rows
        return replace(attempt, **fields)

    def _listeners(self) -> Indices:
        """Everybody, the targets, one client or a few."""
        members = self.setting.members
        some: list[Callable[[], Indices]] = [
            lambda: members if self.openly else self.rng.choice(members, 1),
            lambda: self.targets,
            lambda: self.rng.choice(members, 1),
            lambda: self.rng.choice(members, self.rng.integers(1, min(4, members.size) + 1)),
            lambda: members[self.rng.random(members.size) < self.rng.random()],
        ]
        return some[self.rng.choice(len(some), p=(0.3, 0.1, 0.4, 0.15, 0.05))]()

    def _about(self, attempt: Attempt) -> Indices:
        """One client, a few, a run of the ring, or the targets' partners."""
        clients = self.setting.clients
        some: list[Callable[[], Indices]] = [
            lambda: self.rng.choice(clients, 1),
            lambda: self.rng.choice(clients, self.rng.integers(1, min(4, clients) + 1)),
            lambda: self._run(attempt),
            lambda: np.flatnonzero(attempt.around[self.targets].any(0)),
        ]
        return some[self.rng.choice(len(some), p=(0.6, 0.15, 0.2, 0.05))]()

    def _run(self, attempt: Attempt) -> Indices:
        arranged = attempt.stories[0].arranged
        most = max(min(self.setting.rule.degree // 2, arranged.size // 2), 1)
        first, length = self.rng.integers(arranged.size), self.rng.integers(1, most + 1)
        return arranged[(first + np.arange(length)) % arranged.size]
