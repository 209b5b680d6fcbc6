"""Strategies that work where a part of the rule is missing, each as clients are told it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tacit.auditing.secure_sums.setting import Bools, Part, Setting
from tacit.auditing.secure_sums.strategy import Attempt, Story, truthful


def two_faced_lists(setting: Setting, story: Story) -> Attempt | None:
    """To the holders of some clients' shares these stayed, to those of their partners the partners
    left: against clients that do not certify lists.

    Every client is told at most ``K - min_clients`` leavers. The victims are a run of the ring, as
    short as that allows.

    Returns
    -------
    The attempt, or None where no run of fewer than ``setting.allowed`` honest clients can be had.
    """
    honest = [k for k in story.arranged.tolist() if setting.honest[k]]
    for size in range(1, setting.allowed):
        left = _spread(setting, story, honest[:size])
        if left is not None:
            told = truthful(story)
            return replace(told, left=left, stayed=told.stayed & ~left)
    return None


def _spread(setting: Setting, story: Story, victims: list[int]) -> Bools | None:
    """Who is told of whom that it left, so that the keys of all partners of the victims open."""
    most = setting.clients - setting.rule.min_clients
    left = np.zeros_like(story.around)
    loads = np.where(setting.honest, 0, setting.clients)
    exposed = story.around[victims].any(0) & setting.honest
    exposed[victims] = False
    for partner in np.flatnonzero(exposed).tolist():
        around = story.around[partner]
        holders = np.flatnonzero(around & setting.honest)
        need = setting.threshold - int((around & ~setting.honest).sum())
        chosen = holders[np.argsort(loads[holders], kind="stable")[: max(need, 0)]]
        if chosen.size < need or (loads[chosen] >= most).any():
            return None
        left[chosen, partner] = True
        loads[chosen] += 1
    return left


def short_delivery(
    setting: Setting, story: Story, victims: Iterable[int], leavers: Iterable[int]
) -> Attempt:
    """The victims get shares of colluders, of later leavers and of each other only; all the others
    hear the truth: against clients whose signed digest does not bind what was delivered.

    Clients that do not know ``Part.DELIVERY`` are told who shared. Else the victims are told that
    nobody but those few shared; they will refuse the lists, but have sent their masked vectors.
    """
    few, told = list(victims), truthful(story, leavers)
    partners = ~setting.honest
    partners = partners | np.isin(np.arange(setting.clients), [*few, *leavers])
    delivered, announced = told.delivered.copy(), told.announced.copy()
    delivered[few] &= partners
    if Part.DELIVERY not in setting.without:
        announced[few] &= partners
    return replace(told, delivered=delivered, announced=announced)


def cut_ring(setting: Setting, story: Story, first: int, inside: int) -> Attempt:
    """Two runs of half the neighbours leave, with ``inside`` places between them; one list for
    all: against clients that do not look at the ring.

    Parameters
    ----------
    first : the place of the ring at which the first run begins.
    inside : the places between the runs.
    """
    half = setting.rule.degree // 2
    run = np.arange(half)
    places = np.concatenate([first + run, first + half + inside + run])
    return truthful(story, story.arranged[places % story.arranged.size].tolist())


def two_sums(story: Story, leaver: int) -> tuple[Attempt, Attempt]:
    """Everybody's sum, then a second attempt without one client: against clients that join another
    attempt unasked."""
    return truthful(story), truthful(story, [leaver])


def signed_twice(setting: Setting, story: Story, size: int) -> Attempt:
    """Groups of honest clients, each told that the next one left; colluders sign every list:
    against a certificate that a majority of clients, whoever they are, can sign."""
    told = truthful(story)
    left = np.zeros_like(story.around)
    groups = np.array_split(setting.members, max(setting.members.size // size, 2))
    for group, following in zip(groups, [*groups[1:], groups[0]], strict=True):
        left[np.ix_(group, following)] = True
    return replace(told, left=left, stayed=told.stayed & ~left)
