"""Rules with a part left out, each with a strategy that breaks it: what a search has to find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tacit.auditing.secure_sums.attacks import (
    cut_ring,
    short_delivery,
    signed_twice,
    two_faced_lists,
    two_sums,
)
from tacit.auditing.secure_sums.exhausting import Scope
from tacit.auditing.secure_sums.setting import NO_CHECKS, Part, Setting, complete, ring
from tacit.auditing.secure_sums.strategy import Attempt, Story

ONE_ATTEMPT = NO_CHECKS - {Part.RESTART}
"""Clients that compare nothing, in a single attempt."""
BOUND_BY_DIGEST = (Part.ANNOUNCED, Part.DELIVERY, Part.DIGESTS)
"""The parts by which what was delivered to a client is bound to what all others sign."""


@dataclass(frozen=True, eq=False)
class Attack:
    """A strategy that works on a weakened rule.

    Parameters
    ----------
    name : what the server does.
    setting : the clients, who lack a part of the rule.
    attempts : what they are told.
    opened : how many honest vectors are in the combination that it opens.
    """

    name: str
    setting: Setting
    attempts: tuple[Attempt, ...]
    opened: int

    @property
    def whole(self) -> Setting:
        """The same clients with the whole rule."""
        old = self.setting
        return Setting(old.rule, old.threshold, old.colluders)


def known_attacks() -> Iterator[Attack]:
    """Each known attack, as it is told to the clients."""
    yield from _two_faced()
    yield from _short_deliveries()
    told = ring(80, colluders=0, min_clients=56, degree=20, threshold=11).lacking(Part.WINDOWS)
    story = _story(told)
    cut = cut_ring(told, story, first=5, inside=11)
    yield Attack("two runs of leavers cut the ring, one list for all", told, (cut,), 11)
    told = complete(10, colluders=2, min_clients=7).lacking(Part.RESTART)
    yield Attack("two sums, one client apart", told, two_sums(_story(told), leaver=0), 1)
    told = complete(10, colluders=4, min_clients=8, threshold=6).lacking(Part.COLLUDERS)
    twice = signed_twice(told, _story(told), size=2)
    yield Attack("colluders sign every list", told, (twice,), 1)


def found_alone() -> list[Setting]:
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
        Scope(one, (Story.in_order(one, np.arange(one.clients), bytes(32)),)) for one in settings
    ]


def hints(setting: Setting) -> list[Attempt]:
    """The known attacks on these clients, as far as their numbers allow: a search varies them."""
    lacking = setting.lacking(*ONE_ATTEMPT)
    story = _story(setting)
    rule, honest = setting.rule, setting.members
    most = rule.clients - rule.min_clients
    found = [two_faced_lists(lacking, story), signed_twice(setting, story, max(most, 1))]
    for parts in (Part.ANNOUNCED, Part.DELIVERY):
        victims, leavers = honest[:1].tolist(), honest[1 : most + 1].tolist()
        found.append(short_delivery(setting.lacking(parts), story, victims, leavers))
    if not rule.is_complete:
        found.append(cut_ring(setting, story, first=0, inside=rule.degree // 2 + 1))
    return [attempt for attempt in found if attempt is not None]


def _two_faced() -> Iterator[Attack]:
    """The numbers of clients, and what is opened, as found in sums without any rule on lists."""
    agreed = [
        (complete(10, colluders=0, min_clients=6, threshold=6), 4),
        (complete(64, colluders=0, min_clients=45, threshold=33), 28),
        (ring(66, colluders=0, min_clients=47, degree=38, threshold=20), 1),
        (ring(100, colluders=0, min_clients=70, degree=60, threshold=31), 1),
        (ring(200, colluders=0, min_clients=140, degree=106, threshold=54), 1),
    ]
    for setting, opened in agreed:
        told = setting.lacking(*ONE_ATTEMPT)
        attempt = two_faced_lists(told, _story(told))
        attempts = () if attempt is None else (attempt,)
        yield Attack("stayed to some, left to others, no accomplice", told, attempts, opened)


def _short_deliveries() -> Iterator[Attack]:
    for part in BOUND_BY_DIGEST:
        told = complete(20, colluders=4, min_clients=14, threshold=11).lacking(part)
        short = short_delivery(told, _story(told), victims=[0], leavers=range(1, 7))
        yield Attack("one client's share delivery is shortened", told, (short,), 1)
    for clients, colluders, threshold, opened in ((3, 1, 2, 1), (10, 2, 6, 4)):
        told = complete(clients, colluders, clients, threshold).lacking(*ONE_ATTEMPT)
        short = short_delivery(told, _story(told), victims=range(opened), leavers=())
        yield Attack("some get no shares of the others, and nobody leaves", told, (short,), opened)


def _story(setting: Setting) -> Story:
    return Story.told(setting, range(setting.clients))
