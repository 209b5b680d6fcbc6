"""The default searches: agreements over few clients, and agreements over many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from tacit.crypto.secure_sum.consistency import ListRule
from tacit.crypto.secure_sum.graph import Neighbourhood, certificate_size, window_excess
from tacit_studies.secure_sums.exhausting import Scope
from tacit_studies.secure_sums.setting import Setting, complete, ring
from tacit_studies.secure_sums.strategy import Story

RING = 2
"""Number of neighbours on a ring of few clients."""


def complete_scopes(clients: int) -> Iterator[Scope]:
    """Every agreement of so many clients on the complete graph, with one list of keys for all.

    The certificate, ``min_clients`` and the number of colluders take every possible value.
    """
    for bearable in range(max(clients - 1, 1)):
        tau = certificate_size(clients, bearable)
        for min_clients in range(tau, clients + 1):
            for colluding in range(bearable + 1):
                rule = ListRule(clients, bearable, min_clients, clients - 1, 0)
                setting = Setting(rule, tau, _last(clients, colluding))
                yield Scope(setting, (Story.of(setting, range(clients)),))


def ring_scopes(clients: int, certificate_only: bool = False) -> Iterator[Scope]:
    """Agreements of so many clients on a ring with two neighbours, with one list of keys for all.

    Any window may hold all colluders. The list names all clients or fewer, in the order of the
    ring. Colluders have any positions, but fewer than ``threshold`` of them have shares of one
    client.

    Parameters
    ----------
    clients : the clients.
    certificate_only : whether ``min_clients`` is the certificate only; otherwise it also takes
        every larger value.
    """
    for bearable in range(clients - 1):
        tau = certificate_size(clients, bearable)
        for min_clients in [tau] if certificate_only else range(tau, clients + 1):
            rule = ListRule(clients, bearable, min_clients, RING, bearable)
            for threshold in range(2, RING + 2):
                for colluders in _placed(clients, bearable):
                    setting = Setting(rule, threshold, colluders)
                    for listed in range(min_clients, clients + 1):
                        story = _in_turn(setting, listed)
                        if _keeps_secrets(setting, story):
                            yield Scope(setting, (story,))


def many_lists_scopes(clients: int) -> Iterator[Scope]:
    """Agreements in which each client may get a different list of keys, with another ring order."""
    for bearable in range(clients - 1):
        tau = certificate_size(clients, bearable)
        for degree, threshold in ((clients - 1, tau), (RING, 2)):
            rule = ListRule(clients, bearable, tau, degree, bearable)
            setting = Setting(rule, threshold, _last(clients, bearable))
            stories = tuple(_all_lists(setting))
            if all(_keeps_secrets(setting, story) for story in stories):
                yield Scope(setting, stories)


def many_clients() -> list[tuple[Setting, int]]:
    """Agreements of 10 to 200 clients, and how many strategies are searched for each: 100,000."""
    usual = [(10, 16_000), (64, 14_000), (100, 7_000), (200, 5_000)]
    others = [
        (complete(10, colluders=0, min_clients=6), 10_000),
        (complete(10, colluders=3, min_clients=8), 10_000),
        (ring(10, colluders=1, min_clients=6, degree=4, threshold=3), 12_000),
        (complete(64, colluders=0, min_clients=45), 14_000),
        (ring(100, colluders=10, min_clients=70, degree=20, threshold=11), 7_000),
        (ring(200, colluders=18, min_clients=140, degree=34, threshold=19), 5_000),
    ]
    return [(agreed(clients), number) for clients, number in usual] + others


def agreed(clients: int) -> Setting:
    """The agreement of a plan that sets only the number of clients; the last ones collude."""
    around = Neighbourhood.of(clients)
    excess, last = 0, _last(clients, around.colluders)
    if around.degree < clients - 1:
        excess = window_excess(clients, around.min_clients, around.colluders, around.degree)
    rule = ListRule(clients, around.colluders, around.min_clients, around.degree, excess)
    return Setting(rule, around.threshold, last)


def _last(clients: int, number: int) -> frozenset[int]:
    return frozenset(range(clients - number, clients))


def _placed(clients: int, most: int) -> Iterator[frozenset[int]]:
    """Up to ``most`` colluders anywhere on a ring, once for all rotations and reflections."""
    seen: set[object] = set()
    for number in range(most + 1):
        for some in combinations(range(clients), number):
            turned = [
                frozenset((sign * k + shift) % clients for k in some)
                for sign in (1, -1)
                for shift in range(clients)
            ]
            if not seen.intersection(turned):
                seen.add(turned[0])
                yield frozenset(some)


def _in_turn(setting: Setting, listed: int) -> Story:
    return Story.in_order(setting, np.arange(listed), bytes([listed]) * 32)


def _all_lists(setting: Setting) -> Iterator[Story]:
    """Every list of enough members in every order that gives another graph."""
    seen: set[object] = set()
    clients, number = setting.clients, 0
    for size in range(setting.rule.min_clients, clients + 1):
        for arranged in permutations(range(clients), size):
            number += 1
            transcript = number.to_bytes(32, "little")
            story = Story.in_order(setting, np.array(arranged), transcript)
            known = (frozenset(arranged), story.around.tobytes())
            if known not in seen:
                seen.add(known)
                yield story


def _keeps_secrets(setting: Setting, story: Story) -> bool:
    """Whether fewer than ``threshold`` receivers of each honest client's shares collude."""
    colluding = (story.around & ~setting.honest).sum(-1)
    return bool((colluding[setting.honest] < setting.threshold).all())
