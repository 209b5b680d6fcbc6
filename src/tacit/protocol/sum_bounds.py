"""How large the sums of a step can become, so that a secure sum sends just as many bits.

Parties agree on ``most_records``, the records of a client for which sums have room. A step clips
the exact numbers of each client to what so many records can give, before it adds noise. So the
exact sum never passes its bound, and the whole sum only where the noise of all clients does: with a
probability of at most ``2**-WRAP_BITS`` a number, and so, over ``2**26`` numbers of a sum and
``2**14`` sums of a run, at most ``2**-40`` a run. Then the number comes back modulo its width.

**Privacy does not depend on it.** Clipping moves no exact number by more than a neighbour does, so
every sensitivity stays. A sum modulo a power of two is computed from the sum with all its noise:
post-processing, also where it wraps. Nobody refuses because of the records, so nobody learns from a
refusal. A client with more records than agreed gives clipped counts, and reads on its screen that
it does (``running.deployment.preview``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arrays import Integers
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.distributions import shared_laplace_tail
from tacit.protocol.steps import MAX_SUM, WRAP_BITS, Query


def planned_clients(query: Query) -> int:
    """How many clients a query says are asked."""
    planned: int = query.broadcast["clients"]
    return planned


def clipped(exact: Any, query: Query, reach: int = 1) -> Integers:
    """A client's exact numbers, as far as a sum has room for them; all, where nothing was agreed.

    Parameters
    ----------
    exact : the numbers of one client, int64.
    query : the query that asks for their sum.
    reach : the largest magnitude of what one record adds to a number.

    Examples
    --------
    >>> asked = Query(None, None, {"clients": 3}, most_records=100)
    >>> clipped(np.array([99, 150, -201]), asked, reach=2)
    array([  99,  150, -200])
    """
    if query.most_records is None:
        return np.asarray(exact)
    limit = _limit(query, reach)
    return np.clip(exact, -limit, limit)


def clipped_sum_bound(query: Query, noise: PolyaShare | None = None, reach: int = 1) -> int:
    """The largest magnitude of a sum over all clients of numbers that were clipped.

    Parameters
    ----------
    query : the query, of which ``most_records`` is known.
    noise : one client's share of the noise; None without any.
    reach : as in ``clipped``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> asked = Query(None, None, {"clients": 3}, most_records=100)
    >>> clipped_sum_bound(asked), clipped_sum_bound(asked, PolyaShare(1, 1.0, Fraction(1, 3)))
    (300, 361)
    """
    return sum_bound(query, planned_clients(query) * _limit(query, reach), noise)


def sum_bound(query: Query, exact: int, noise: PolyaShare | None = None) -> int:
    """The largest magnitude of a sum over all clients whose exact part is at most ``exact``."""
    if noise is None:
        return min(exact, MAX_SUM)
    shares = float(noise.share) * planned_clients(query)
    return min(exact + shared_laplace_tail(float(noise.scale), shares, WRAP_BITS), MAX_SUM)


def _limit(query: Query, reach: int) -> int:
    records = query.most_records or 0
    return min(records * reach, MAX_SUM // planned_clients(query) // 2)
