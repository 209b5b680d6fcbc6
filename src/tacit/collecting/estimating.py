"""A campaign's conversation: reports in, the next stage's query or the result out.

The protocol's own conversation runs, as in a simulation: of every stage it sees how often each
report came. No other estimator is written here.

The central guarantee of a campaign's sealed batches, where the bound applies.

A record reports once, into one batch, so the smallest batch bounds what the sealed batches together
cost it. The bound is about a multiset of reports by one randomiser (``tacit.privacy.shuffling``):

- the campaign has one stage, as the reports of a second one depend on those before;
- score and label are both protected: a report beside a public label hides among its class only;
- a batch is in an order drawn anew, without tokens, which lie apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from tacit.collecting.campaign import Campaign, CampaignError, Terms
from tacit.privacy.cost import Adjacency
from tacit.privacy.shuffling import Shuffled, shuffled_epsilon
from tacit.protocol import devices
from tacit.protocol.conversation import Query
from tacit.results import concluding as results
from tacit.results.evaluation import Evaluation
from tacit.results.run import Traffic

LIARS = 0.01
"""The fraction of liars that an estimate says most about."""

TRUSTED = (
    "nothing proves that a report is honest: where 1 % of them were made up to move the "
    "estimate, it would move by {down:+.2g} to {up:+.2g}, to first order"
)


def stage_query(terms: Terms, before: Sequence[devices.Stage]) -> Query:
    """What devices are asked in the stage after these: the first where there is none before.

    Parameters
    ----------
    terms : of the campaign.
    before : the reports of every earlier stage.
    """
    ended = devices.conversed(terms.protocol, terms.reports, terms.devices, before)
    if isinstance(ended, devices.Concluded):
        raise CampaignError(f"the campaign has {len(before)} stages, and no more")
    return ended


def concluded(terms: Terms, stages: Sequence[devices.Stage]) -> devices.Concluded:
    """The result of all stages' reports.

    Raises
    ------
    CampaignError : for too few stages, or a last one with fewer than two reports.
    DataError, ValueError : as the protocol's estimator raises.
    """
    if len(stages) == terms.reports.stages and len(stages[-1]) < 2:
        raise CampaignError(f"an estimate needs two reports, got {len(stages[-1])}")
    ended = devices.conversed(terms.protocol, terms.reports, terms.devices, stages)
    if isinstance(ended, Query):
        raise CampaignError(
            f"an estimate needs the reports of {terms.reports.stages} stages, got {len(stages)}"
        )
    return ended


def evaluation_of(
    campaign: Campaign, stages: Sequence[devices.Stage], report_bytes: int
) -> Evaluation:
    """The result of a campaign in the form of every other result.

    Parameters
    ----------
    campaign : whose reports they are.
    stages : the reports of every stage.
    report_bytes : of one report of the last stage.
    """
    terms = campaign.terms
    ended = concluded(terms, stages)
    count = sum(map(len, stages))
    down, up = (LIARS * each for each in devices.influences_of(terms.reports, ended))
    return results.evaluation_of(
        terms.protocol,
        ended.result,
        spent=terms.protocol.guarantee,
        traffic=Traffic(len(stages), np.broadcast_to(np.int64(report_bytes), count)),
        clients=count,
        noise="system",
        before=(TRUSTED.format(down=down, up=up),),
        unit=terms.protocol.unit or "probability",
        federation=terms.name,
        time=datetime.now(UTC),
    )


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
    return float(equal_words + size * 2.0**-devices.REFUSED_BITS)
