"""What the counts of a client with one record reveal: its cell and its label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.metrics.cells.score_scale import EVEN
from tacit.metrics.curves import counts_from_thresholds
from tacit.privacy.sampling.noise import NoNoise, SimulatedNoise
from tacit.protocol.conversation import Protocol
from tacit.protocol.declarations.audits import AttackSizes, Guesses
from tacit.protocols.dpauc.attacks import (
    THRESHOLDS,
    first_reply,
    guesses_of_lone_records,
    lone_records,
)
from tacit.protocols.published.dpauc.noises import RandomisedResponse
from tacit.protocols.published.dpauc.protocol import PublishedDPAUC


def guesses_from_published_counts(
    protocol: Protocol, sizes: AttackSizes, seed: int
) -> Iterator[Guesses]:
    """The cell of a client's only record, and its label, from the client's counts.

    Exact counts per threshold reveal both. Where labels are flipped the counts still reveal the
    record's cell, a weakness that Sun et al. 2022b names.
    """
    clients, epsilon = lone_records(sizes, seed), protocol.guarantee.epsilon
    exact = PublishedDPAUC(epsilon, THRESHOLDS, scale=EVEN)
    four = np.asarray(first_reply(exact, clients, NoNoise())["counts"])
    guessed = cells_of_lone_records(four[0] + four[1]), four[0, 0] > 0
    yield from guesses_of_lone_records("exact counts per threshold", exact, clients, guessed, False)
    flipping = PublishedDPAUC(epsilon, THRESHOLDS, RandomisedResponse(), "label", EVEN)
    reply = first_reply(flipping, clients, SimulatedNoise(seed))
    cells = cells_of_lone_records(counts_from_thresholds(np.asarray(reply["records"]).T).T)
    guessed = cells, np.asarray(reply["positives"]).sum(axis=0) > 0
    yield from guesses_of_lone_records("counts of flipped labels", flipping, clients, guessed, True)


def cells_of_lone_records(reached: NDArray[Any]) -> Integers:
    """The cell of every client's only record, from how many records reach each threshold.

    The difference of neighbouring counts is 1 in the record's cell, which is what Sun et al. 2022b
    warns of.

    Parameters
    ----------
    reached : at ascending thresholds, shape (T, K); noisy or not.

    Examples
    --------
    >>> cells_of_lone_records(np.array([[1, 1], [1, 0], [0, 0]]))
    array([1, 0])
    """
    below = np.vstack([reached[1:], np.zeros_like(reached[:1])])
    return np.argmax(reached - below, axis=0).astype(np.int64)
