"""Strategies that succeed where a part of the rule is missing, as messages to the clients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tacit_studies.secure_sums.setting import Bools, Part, Setting
from tacit_studies.secure_sums.strategy import Attempt, Story, truthful


def two_faced_lists(setting: Setting, story: Story) -> Attempt | None:
    """The server tells clients with the victims' shares that the victims stayed, and clients with
    shares of the victims' partners that the partners left: against clients that do not certify
    lists.

    The server names at most ``K - min_clients`` leavers to each client. The victims are the
    shortest run of the ring for which this suffices.

    Returns
    -------
    The attempt, or None where no run of fewer than ``setting.allowed`` honest clients suffices.
    """
    honest = [k for k in story.arranged.tolist() if setting.honest[k]]
    for size in range(1, setting.allowed):
        left = _believed_left(setting, story, honest[:size])
        if left is not None:
            attempt = truthful(story)
            return replace(attempt, left=left, stayed=attempt.stayed & ~left)
    return None


def _believed_left(setting: Setting, story: Story, victims: list[int]) -> Bools | None:
    """Whom each client believes to have left, so that the keys of the victims' partners open."""
    most = setting.clients - setting.rule.min_clients
    left = np.zeros_like(story.around)
    loads = np.where(setting.honest, 0, setting.clients)
    exposed = story.around[victims].any(0) & setting.honest
    exposed[victims] = False
    for partner in np.flatnonzero(exposed).tolist():
        around = story.around[partner]
        receivers = np.flatnonzero(around & setting.honest)
        need = setting.threshold - int((around & ~setting.honest).sum())
        chosen = receivers[np.argsort(loads[receivers], kind="stable")[: max(need, 0)]]
        if chosen.size < need or (loads[chosen] >= most).any():
            return None
        left[chosen, partner] = True
        loads[chosen] += 1
    return left


def short_delivery(
    setting: Setting, story: Story, victims: Iterable[int], leavers: Iterable[int]
) -> Attempt:
    """The victims get only the shares of colluders, of later leavers and of each other; the server
    tells all others the truth: against clients whose signed digest does not bind the delivery.

    Clients that do not know ``Part.DELIVERY`` learn who really shared. Otherwise the server tells
    the victims that only those few shared; they refuse the lists later, but by then they have sent
    their masked vectors.
    """
    few, attempt = list(victims), truthful(story, leavers)
    partners = ~setting.honest
    partners = partners | np.isin(np.arange(setting.clients), [*few, *leavers])
    delivered, announced = attempt.delivered.copy(), attempt.announced.copy()
    delivered[few] &= partners
    if Part.DELIVERY not in setting.without:
        announced[few] &= partners
    return replace(attempt, delivered=delivered, announced=announced)


def cut_ring(setting: Setting, story: Story, first: int, inside: int) -> Attempt:
    """Two runs of half the neighbours leave, with ``inside`` positions between them; all clients
    get the same list: against clients that do not check the ring.

    Parameters
    ----------
    first : the position of the ring at which the first run begins.
    inside : the positions between the runs.
    """
    half = setting.rule.degree // 2
    run = np.arange(half)
    positions = np.concatenate([first + run, first + half + inside + run])
    return truthful(story, story.arranged[positions % story.arranged.size].tolist())


def two_sums(story: Story, leaver: int) -> tuple[Attempt, Attempt]:
    """The sum of all clients, then a second attempt without one client: against clients that join
    another attempt without a check."""
    return truthful(story), truthful(story, [leaver])


def signed_twice(setting: Setting, story: Story, size: int) -> Attempt:
    """The server tells each group of honest clients that the next group left; colluders sign every
    list: against a certificate that any majority of clients can sign."""
    attempt = truthful(story)
    left = np.zeros_like(story.around)
    groups = np.array_split(setting.members, max(setting.members.size // size, 2))
    for group, following in zip(groups, [*groups[1:], groups[0]], strict=True):
        left[np.ix_(group, following)] = True
    return replace(attempt, left=left, stayed=attempt.stayed & ~left)
