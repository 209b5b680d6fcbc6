"""Which clients mask with each other: all, or neighbours on a random ring of many clients.

Above ``COMPLETE`` clients each has k neighbours on a ring in random order, k/2 on each side: a
Harary graph with random labels (Bell et al. 2020, "Secure Single-Server Aggregation with
(Poly)Logarithmic Overhead", section 3). Costs a client then grow with k instead of K.

Let C clients, fixed before the order is drawn, collude with the server, and let at most D drop out.
A sum stays secret unless one of the first two happens, and comes about unless one of the others
does:

1. *A client's secrets leak*: ``threshold`` or more of some client's k neighbours collude. Their
   number is hypergeometric; a union bound over clients.
2. *A part of the sum leaks*: without those who collude or left the ring falls apart, and the
   server can unmask each part's sum. That takes two gaps of k/2 positions. The server may choose
   who "left" when it knows the order; so clients refuse lists by which any two disjoint windows of
   k/2 positions hold at most ``window_excess`` clients of the sum, a number that colluders there
   exceed with a small probability only: hypergeometric, a union bound over pairs of windows.
3. *Lost shares*: fewer than ``threshold`` of those who hold some client's shares remain.
4. *Refused lists*: dropouts by chance empty two windows that far.

The order comes from a hash of all advertised keys, so that no client and no server chooses it. A
server that lies may still try out many lists of keys, by leaving out clients or by letting those
who collude with it advertise again, and pick from n graphs: the bounds then hold n times over.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, comb

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.crypto.secure_sum.masking import WIDE, expand

Indices = NDArray[np.int64]

MAX_COMPLETE = 64
"""Largest number of clients of which each masks with every other."""

MAX_LEAK_CHANCE = 2.0**-40
MAX_LOSS_CHANCE = 2.0**-30


@dataclass(frozen=True)
class Neighbourhood:
    """How many neighbours a client masks and shares with, and how many shares reconstruct its
    secrets.

    A client's secrets are shared among its neighbours and itself, ``degree + 1`` receivers. On the
    complete graph ``threshold`` is ``certificate_size``.

    Parameters
    ----------
    degree : neighbours of a client; an even number, or all others.
    threshold : shares that reconstruct a secret, more than half of them.
    min_clients : clients without whom there is no sum; no client helps to unmask a sum of fewer.
    colluders : clients that may collude with the server.

    Raises
    ------
    ValueError : when the threshold is not above half of the receivers, or exceeds the receivers,
        ``min_clients`` is below the threshold, or colluders are fewer than none.

    Examples
    --------
    >>> Neighbourhood.complete(10)
    Neighbourhood(degree=9, threshold=7, min_clients=7, colluders=2)
    >>> Neighbourhood.of(1000, colluders=100, min_clients=900)
    Neighbourhood(degree=64, threshold=33, min_clients=900, colluders=100)
    """

    degree: int
    threshold: int
    min_clients: int
    colluders: int

    def __post_init__(self) -> None:
        receivers = self.degree + 1
        if not receivers < 2 * self.threshold <= 2 * receivers:
            raise ValueError(
                f"threshold must be above half of {receivers} receivers and at most all of them, "
                f"got {self.threshold}"
            )
        if self.min_clients < self.threshold:
            raise ValueError(
                f"min_clients must be at least the threshold {self.threshold}, "
                f"got {self.min_clients}"
            )
        if self.colluders < 0:
            raise ValueError(f"colluders must be at least 0, got {self.colluders}")

    @classmethod
    def complete(
        cls, clients: int, colluders: int | None = None, min_clients: int | None = None
    ) -> Neighbourhood:
        """Each client masks with all others.

        Parameters
        ----------
        clients : the clients of the roster.
        colluders : how many of them may collude; None takes ``default_colluders``.
        min_clients : clients without whom there is no sum; None takes as few as are secure.
        """
        corrupted = default_colluders(clients) if colluders is None else colluders
        shares = certificate_size(clients, corrupted)
        return cls(clients - 1, shares, shares if min_clients is None else min_clients, corrupted)

    @classmethod
    def of(
        cls, clients: int, colluders: int | None = None, min_clients: int | None = None
    ) -> Neighbourhood:
        """Complete up to 64 clients, sparse above; parameters as for ``complete``.

        A sparse graph has the fewest neighbours with which each event at the head of this module
        has at most its chance: ``2**-40`` for the two of secrecy, ``2**-30`` for those of a sum
        that fails. Without ``min_clients`` it bears three clients in ten that drop out.

        Raises
        ------
        ValueError : when fewer clients would remain than must certify who stayed.
        """
        if clients <= MAX_COMPLETE:
            return cls.complete(clients, colluders, min_clients)
        corrupted = default_colluders(clients) if colluders is None else colluders
        dropped = 3 * clients // 10 if min_clients is None else clients - min_clients
        return _smallest(clients, dropped, corrupted)


def default_colluders(clients: int) -> int:
    """The number b of clients that a plan bears where it names none: a fifth, rounded up; of two
    clients none.

    Examples
    --------
    >>> [default_colluders(clients) for clients in (1, 2, 3, 5, 6, 10, 1000)]
    [0, 0, 1, 1, 2, 2, 200]
    """
    return ceil(clients / 5) if clients > 2 else 0


def certificate_size(clients: int, colluders: int) -> int:
    """The number tau of clients that must sign who stayed and who left.

    Examples
    --------
    >>> certificate_size(10, 2), certificate_size(64, 13)
    (7, 39)
    """
    return (clients + colluders) // 2 + 1


def check_min_clients(clients: int, colluders: int, min_clients: int) -> None:
    """Refuse a number of clients that cannot certify a sum.

    Raises
    ------
    ValueError : when ``min_clients`` is below ``certificate_size``.

    Examples
    --------
    >>> check_min_clients(10, 2, 6)
    Traceback (most recent call last):
    ValueError: min_clients must be at least 7 of 10 clients of which 2 may collude, got 6
    """
    if min_clients < (needed := certificate_size(clients, colluders)):
        raise ValueError(
            f"min_clients must be at least {needed} of {clients} clients of which {colluders} may "
            f"collude, got {min_clients}"
        )


@lru_cache(maxsize=64)
def _smallest(clients: int, dropped: int, corrupted: int) -> Neighbourhood:
    """The smallest good degree; more neighbours never hurt, so doubling and halving finds it."""
    check_min_clients(clients, corrupted, clients - dropped)

    def enough(degree: int) -> bool:
        return _good(clients, dropped, corrupted, degree) is not None

    even = range(2, clients - dropped - 1, 2)
    reach = 1
    while reach < len(even) and not enough(even[reach]):
        reach *= 2
    position = bisect_left(even, True, reach // 2, min(reach, len(even)), key=enough)
    ring = _good(clients, dropped, corrupted, even[position]) if position < len(even) else None
    return ring or Neighbourhood.complete(clients, corrupted, clients - dropped)


def _good(clients: int, dropped: int, corrupted: int, degree: int) -> Neighbourhood | None:
    """The ring of this degree whose chances are low enough, with the least threshold."""
    min_clients = clients - dropped
    thresholds = np.arange((degree + 1) // 2 + 1, min(degree + 1, min_clients) + 1)
    excess = window_excess(clients, min_clients, corrupted, degree)
    if not thresholds.size or refusal_chance(clients, dropped, degree, excess) > MAX_LOSS_CHANCE:
        return None
    leaks = leak_chance(clients, dropped, corrupted, degree, thresholds)
    losses = loss_chance(clients, dropped, degree, thresholds)
    good = thresholds[(leaks <= MAX_LEAK_CHANCE) & (losses <= MAX_LOSS_CHANCE)]
    return Neighbourhood(degree, int(good[0]), min_clients, corrupted) if good.size else None


def refusal_chance(clients: int, dropped: int, degree: int, excess: int) -> float:
    """A bound on the probability that dropouts by chance leave at most ``excess`` clients in two
    disjoint windows.

    Examples
    --------
    >>> f"{refusal_chance(1000, 100, degree=64, excess=33):.1e}"
    '7.1e-11'
    """
    law = scipy.stats.hypergeom(clients, clients - dropped, degree)
    return float(comb(clients, 2) * law.cdf(excess))


def leak_chance(
    clients: int, dropped: int, corrupted: int, degree: int, threshold: ArrayLike
) -> Floats:
    """A bound on the probability that enough of some client's neighbours collude.

    All dropouts may come before the graph is drawn, which leaves the colluders a larger share.

    Examples
    --------
    >>> f"{leak_chance(1000, 100, 100, degree=52, threshold=29):.1e}"
    '2.0e-13'
    """
    others = max(clients - dropped - 1, corrupted)
    law = scipy.stats.hypergeom(others, corrupted, min(degree, others))
    return clients * law.sf(np.asarray(threshold) - 1)


def loss_chance(clients: int, dropped: int, degree: int, threshold: ArrayLike) -> Floats:
    """A bound on the probability that too few receivers of some client's shares remain.

    A client that remains has one share of its secret; one that dropped out has none.

    Examples
    --------
    >>> f"{loss_chance(1000, 100, degree=52, threshold=29):.1e}"
    '5.2e-10'
    """
    remaining, others = clients - dropped, clients - 1
    shares = np.asarray(threshold)
    remaining_loss = scipy.stats.hypergeom(others, remaining - 1, degree).cdf(shares - 2)
    dropped_loss = scipy.stats.hypergeom(others, min(remaining, others), degree).cdf(shares - 1)
    return remaining * remaining_loss + dropped * dropped_loss


def arrange(members: Indices, seed: bytes) -> Indices:
    """The members in the random order that a 32-byte seed gives."""
    return members[np.argsort(expand(seed, members.size, WIDE), kind="stable")]


def neighbours(arranged: Indices, index: int, degree: int) -> Indices:
    """The neighbours of one member on the ring, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> neighbours(np.array([4, 0, 3, 1, 2]), index=0, degree=2)
    array([3, 4])
    """
    if arranged.size - 1 <= degree:
        return np.sort(arranged[arranged != index])
    position = int(np.flatnonzero(arranged == index)[0])
    half = degree // 2
    steps = np.concatenate([np.arange(-half, 0), np.arange(1, half + 1)])
    return np.sort(arranged[(position + steps) % arranged.size])


def min_in_windows(present: ArrayLike, half: int) -> int:
    """The fewest members that two disjoint windows of ``half`` positions of a ring hold together.

    Parameters
    ----------
    present : for each position of the ring, at least ``2 half`` of them, whether its client is one.
    half : the positions of a window.

    Examples
    --------
    >>> min_in_windows([1, 0, 0, 1, 1, 0, 1, 1], half=2)
    1
    """
    members = np.asarray(present, dtype=np.int64)
    reach = members.size - 2 * half + 1
    ends = np.cumsum(np.concatenate([[0], members, members[: half - 1]]))
    counts = ends[half:] - ends[:-half]
    # least[s] is the least of counts[s], ..., counts[s + reach - 1] around the ring
    least = scipy.ndimage.minimum_filter1d(counts, reach, mode="wrap", origin=-(reach // 2))
    return int((counts + np.roll(least, -half)).min())


def window_excess(clients: int, min_clients: int, colluders: int, degree: int) -> int:
    """The number beta that the colluders in any two disjoint windows exceed with probability at
    most ``SECRECY``: a hypergeometric tail, and a union bound over pairs of windows.

    All clients that may be missing may be missing before the ring is drawn, which leaves the
    colluders the largest share of it.

    Parameters
    ----------
    clients : in the whole agreement.
    min_clients : the fewest that may be on the ring.
    colluders : how many of them may collude.
    degree : the positions of two windows.

    Examples
    --------
    >>> window_excess(1000, 900, 100, degree=52)
    30
    """
    ring = max(min_clients, degree + 2, colluders)
    least = np.arange(min(degree, colluders) + 1)
    chances = comb(clients, 2) * scipy.stats.hypergeom(ring, colluders, degree).sf(least)
    return int(least[chances <= MAX_LEAK_CHANCE][0])
