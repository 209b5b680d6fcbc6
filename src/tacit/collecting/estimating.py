"""A campaign's conversation: reports in, the next stage's query or the result out.

The protocol's own conversation runs, as in a simulation: of every stage it sees how often each
report came. No other estimator is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from tacit.collecting.campaign import Campaign, Terms
from tacit.collecting.errors import CampaignError
from tacit.protocol.conversation import Query
from tacit.protocol.devices import Payloads
from tacit.protocol.stages import Concluded, PayloadsInMemory, Stage, conversed, influences_of
from tacit.results.evaluation import Evaluation
from tacit.results.traffic import Traffic

LIARS = 0.01
"""The fraction of liars that an estimate says most about."""

TRUSTED = (
    "nothing proves that a report is honest: where 1 % of them were made up to move the "
    "estimate, it would move by {down:+.2g} to {up:+.2g}, to first order"
)


def stage_query(terms: Terms, before: Sequence[Stage | Payloads]) -> Query:
    """What devices are asked in the stage after these: the first where there is none before.

    Parameters
    ----------
    terms : of the campaign.
    before : the reports of every earlier stage: payloads of shape (M, bytes), or a ``Stage``.
    """
    ended = _asked(terms, before)
    if isinstance(ended, Concluded):
        raise CampaignError(f"the campaign has {len(before)} stages, and no more")
    return ended


def concluded(terms: Terms, stages: Sequence[Stage | Payloads]) -> Concluded:
    """The result of all stages' reports.

    Raises
    ------
    CampaignError : for too few stages, or a last one with fewer than two reports.
    DataError, ValueError : as the protocol's estimator raises.
    """
    if len(stages) == terms.reports.stages and len(stages[-1]) < 2:
        raise CampaignError(f"an estimate needs two reports, got {len(stages[-1])}")
    ended = _asked(terms, stages)
    if isinstance(ended, Query):
        raise CampaignError(
            f"an estimate needs the reports of {terms.reports.stages} stages, got {len(stages)}"
        )
    return ended


def _asked(terms: Terms, stages: Sequence[Stage | Payloads]) -> Query | Concluded:
    """The query that these stages leave open, or the end of the conversation."""
    held = [PayloadsInMemory(each) if isinstance(each, np.ndarray) else each for each in stages]
    return conversed(terms.protocol, terms.reports, terms.devices, held)


def evaluation_of(
    campaign: Campaign, stages: Sequence[Stage | Payloads], report_bytes: int
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
    result, count = ended.result.published(), sum(map(len, stages))
    down, up = (LIARS * each for each in influences_of(terms.reports, ended))
    return Evaluation(
        protocol={"name": terms.protocol.name, **terms.protocol.settings},
        estimate=result.estimate(),
        roc=result.roc,
        spent=terms.protocol.guarantee,
        traffic=Traffic(len(stages), np.broadcast_to(np.int64(report_bytes), count)),
        clients=count,
        positives=float(result.positives),
        negatives=float(result.negatives),
        noise="system",
        figure=terms.protocol.figure,
        warnings=(TRUSTED.format(down=down, up=up), *result.warnings_to(())),
        unit=terms.protocol.unit or "probability",
        histogram=result.histogram,
        federation=terms.name,
        time=datetime.now(UTC),
    )
