"""Rules without a part, each with a strategy that breaks it: a search must find the strategy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tacit_studies.secure_sums.attacks import (
    cut_ring,
    short_delivery,
    signed_twice,
    two_faced_lists,
    two_sums,
)
from tacit_studies.secure_sums.exhausting import Scope
from tacit_studies.secure_sums.scopes import agreed
from tacit_studies.secure_sums.setting import NO_CHECKS, Part, Setting, complete, ring
from tacit_studies.secure_sums.strategy import Attempt, Story

ONE_ATTEMPT = NO_CHECKS - {Part.RESTART}
"""The parts that are missing where clients compare nothing, in a single attempt."""
BOUND_BY_DIGEST = (Part.ANNOUNCED, Part.DELIVERY, Part.DIGESTS)
"""The parts that bind the delivery to a client to the digest that all others sign."""


@dataclass(frozen=True, eq=False)
class Attack:
    """A strategy that works on a weakened rule.

    Parameters
    ----------
    name : what the server does.
    setting : the clients, which lack a part of the rule.
    attempts : what the server tells them.
    vectors : how many honest vectors are in the combination that the attack reveals.
    """

    name: str
    setting: Setting
    attempts: tuple[Attempt, ...]
    vectors: int

    @property
    def whole(self) -> Setting:
        """The same clients with the whole rule."""
        old = self.setting
        return Setting(old.rule, old.threshold, old.colluders)


def known_attacks() -> Iterator[Attack]:
    """Each known attack, with the messages to the clients."""
    yield from _two_faced()
    yield from _short_deliveries()
    setting = ring(80, colluders=0, min_clients=56, degree=20, threshold=11).lacking(Part.WINDOWS)
    story = _story(setting)
    cut = cut_ring(setting, story, first=5, inside=11)
    yield Attack("two runs of leavers cut the ring, one list for all", setting, (cut,), 11)
    setting = complete(10, colluders=2, min_clients=7).lacking(Part.RESTART)
    yield Attack("two sums, one client apart", setting, two_sums(_story(setting), leaver=0), 1)
    setting = complete(10, colluders=4, min_clients=8, threshold=6).lacking(Part.COLLUDERS)
    twice = signed_twice(setting, _story(setting), size=2)
    yield Attack("colluders sign every list", setting, (twice,), 1)


def broken_without_hint() -> list[Setting]:
    """Weakened rules of at most ten clients that a search must break without a hint."""
    short = [
        complete(10, colluders=3, min_clients=7, threshold=6).lacking(part)
        for part in BOUND_BY_DIGEST
    ]
    return [
        complete(10, colluders=0, min_clients=6).lacking(*ONE_ATTEMPT),
        complete(10, colluders=0, min_clients=6).lacking(Part.CERTIFICATE),
        *short,
        ring(10, colluders=0, min_clients=6, degree=4, threshold=3).lacking(Part.WINDOWS),
        complete(10, colluders=2, min_clients=7).lacking(Part.RESTART),
        complete(10, colluders=4, min_clients=8, threshold=6).lacking(Part.COLLUDERS),
    ]


def exhausted() -> list[Scope]:
    """Weakened rules of at most five clients that an exhaustive search must break."""
    settings = [
        complete(5, colluders=0, min_clients=3).lacking(Part.CERTIFICATE),
        complete(4, colluders=0, min_clients=3).lacking(Part.RESTART),
        ring(5, colluders=0, min_clients=3, degree=2, threshold=2).lacking(Part.WINDOWS),
    ]
    return [
        Scope(setting, (Story.in_order(setting, np.arange(setting.clients), bytes(32)),))
        for setting in settings
    ]


def hints(setting: Setting) -> list[Attempt]:
    """The known attacks that are possible on these clients; a search varies them."""
    lacking = setting.lacking(*ONE_ATTEMPT)
    story = _story(setting)
    rule, honest = setting.rule, setting.members
    most = rule.clients - rule.min_clients
    attempts = [two_faced_lists(lacking, story), signed_twice(setting, story, max(most, 1))]
    for parts in (Part.ANNOUNCED, Part.DELIVERY):
        victims, leavers = honest[:1].tolist(), honest[1 : most + 1].tolist()
        attempts.append(short_delivery(setting.lacking(parts), story, victims, leavers))
    if not rule.is_complete:
        attempts.append(cut_ring(setting, story, first=0, inside=rule.degree // 2 + 1))
    return [attempt for attempt in attempts if attempt is not None]


def _two_faced() -> Iterator[Attack]:
    """The attacks that were found on sums without any rule on lists."""
    agreed = [
        (complete(10, colluders=0, min_clients=6, threshold=6), 4),
        (complete(64, colluders=0, min_clients=45, threshold=33), 28),
        (ring(66, colluders=0, min_clients=47, degree=38, threshold=20), 1),
        (ring(100, colluders=0, min_clients=70, degree=60, threshold=31), 1),
        (ring(200, colluders=0, min_clients=140, degree=106, threshold=54), 1),
    ]
    for setting, vectors in agreed:
        weakened = setting.lacking(*ONE_ATTEMPT)
        attempt = two_faced_lists(weakened, _story(weakened))
        attempts = () if attempt is None else (attempt,)
        yield Attack("stayed to some, left to others, no accomplice", weakened, attempts, vectors)


def _short_deliveries() -> Iterator[Attack]:
    for part in BOUND_BY_DIGEST:
        setting = complete(20, colluders=4, min_clients=14, threshold=11).lacking(part)
        short = short_delivery(setting, _story(setting), victims=[0], leavers=range(1, 7))
        yield Attack("one client's share delivery is shortened", setting, (short,), 1)
        setting = agreed(100).lacking(part)
        story = _story(setting)
        around = np.flatnonzero(story.around[0] & setting.honest)
        short = short_delivery(setting, story, victims=[0], leavers=around[:20].tolist())
        yield Attack("one client's share delivery is shortened", setting, (short,), 1)
    for clients, colluders, threshold, vectors in ((3, 1, 2, 1), (10, 2, 6, 4)):
        setting = complete(clients, colluders, clients, threshold).lacking(*ONE_ATTEMPT)
        short = short_delivery(setting, _story(setting), victims=range(vectors), leavers=())
        yield Attack(
            "some get no shares of the others, and nobody leaves", setting, (short,), vectors
        )


def _story(setting: Setting) -> Story:
    return Story.of(setting, range(setting.clients))
