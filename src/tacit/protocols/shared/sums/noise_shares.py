"""How the noise of a sum is divided over the clients that are asked for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tacit.data.errors import DataError
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.sampling.distributions import shared_laplace_epsilon
from tacit.protocol.conversation import Reply
from tacit.protocols.shared.sums.whole_units import units_for


def answered_clients(reply: Reply, planned: int) -> int:
    """How many clients a sum says that it is over; each adds one to its field ``clients``.

    A client may add another number. So this is refused where it cannot be true.

    Raises
    ------
    DataError : for a number that is not from 1 to ``planned``.
    """
    answered = int(np.asarray(reply["clients"]))
    if not 1 <= answered <= planned:
        raise DataError(f"a sum must be over 1 to {planned} clients, got {answered}")
    return answered


def noise_fraction(batch: int, planned: int, dropouts: float) -> Fraction:
    """The part of the noise that a batch draws, so that it suffices when some clients vanish.

    Parameters
    ----------
    batch : the number of clients that draw together.
    planned : the number of clients that are asked.
    dropouts : the fraction of these that may vanish, from 0 to below 1.

    Examples
    --------
    >>> noise_fraction(1, 10, 0.2)
    Fraction(1, 8)
    """
    needed = max(1, int(np.ceil(planned * (1 - dropouts) - 1e-9)))
    return Fraction(batch, needed)


def supported_cost(
    fraction: float, scales: Sequence[float], distance: int, number: float, adjacency: Adjacency
) -> Cost | None:
    """What the noise that arrived supports; None where it suffices for the guarantee.

    The sum of what every level of counts and the one number support by themselves (basic
    composition).

    Parameters
    ----------
    fraction : the noise that arrived, as a multiple of what the guarantee needs.
    scales : of the planned noise of every level of counts.
    distance : how many counts of a level a neighbour changes by one.
    number : the epsilon of a sum of influences; 0 where none was asked for.
    adjacency : of the guarantee.

    Examples
    --------
    >>> supported_cost(1.0, [2.0], 1, 0.0, Adjacency.RECORD) is None
    True
    >>> round(supported_cost(0.8, [1.0], 1, 0.0, Adjacency.RECORD).epsilon, 3)
    1.212
    """
    if fraction >= 1:
        return None
    losses = [distance * shared_laplace_epsilon(scale, fraction) for scale in scales]
    if number:
        units = units_for(number)
        losses.append(shared_laplace_epsilon(units / number, fraction, units))
    return Cost(math.fsum(losses), adjacency=adjacency)


def check_the_same_number(first: int, second: int) -> None:
    """Refuse a second sum over other clients than the first round's figures are about.

    Raises
    ------
    DataError : for another number of clients.
    """
    if first != second:
        raise DataError(
            f"both rounds must have the same clients: {first} answered the first and {second} the "
            "second; evaluate those that are left anew"
        )
