"""The central guarantee of a campaign's sealed batches, where the bound applies.

A record reports once, into one batch, so the smallest batch bounds what the sealed batches together
cost it. The bound is about a multiset of reports by one randomiser (``tacit.privacy.shuffling``):

- the campaign has one stage, as the reports of a second one depend on those before;
- score and label are both protected: a report beside a public label hides among its class only;
- a batch is in an order drawn anew, without tokens, which lie apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.collecting.campaign import Terms
from tacit.privacy.cost import Adjacency
from tacit.privacy.shuffling import shuffled_epsilon
from tacit.protocol.devices import REFUSED_BITS
from tacit.results.shuffled import Shuffled

DELTA = 1e-6
"""The delta at which epsilon is stated."""

HONEST = 0.9
"""Part of a batch's reports that is taken to be honest: a lie hides nobody."""

WORD_BITS = 64
"""Bits of the random word by which a report is placed."""


def shuffled_of(terms: Terms, sizes: Sequence[int], honest: float = HONEST) -> Shuffled | None:
    """The guarantee of sealed batches of these sizes; None for no batch, or where no bound applies.

    Parameters
    ----------
    terms : of the campaign.
    sizes : reports of every sealed batch.
    honest : the part of every batch's reports that is honest, above 0 and at most 1.
    """
    local = terms.protocol.guarantee
    if not sizes or terms.reports.stages > 1 or local.adjacency is not Adjacency.REPLACE:
        return None
    least = min(sizes)
    epsilon = shuffled_epsilon(
        local.epsilon, max(int(least * honest), 1), DELTA, _distance(max(sizes))
    )
    return Shuffled(epsilon, DELTA, len(sizes), sum(sizes), least, honest, local.epsilon)


def _distance(size: int) -> float:
    """How far a batch is from one of all reports in a uniform order, at most.

    Two words are equal with the probability 2**-64, and then these reports stay in their order. An
    honest report is refused with one below 2**-40, and then missing.
    """
    equal_words = size**2 / 2 * 2.0**-WORD_BITS  # the number of pairs, each with this chance
    return float(equal_words + size * 2.0**-REFUSED_BITS)
