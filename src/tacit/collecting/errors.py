"""What goes wrong in a campaign."""

from __future__ import annotations


class CampaignError(ValueError):
    """A campaign, a stage or a folder of reports that cannot be what it says."""


class ReportError(ValueError):
    """A report that is not counted.

    Parameters
    ----------
    reason : one word for machines and counters.
    sentence : for readers.
    """

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason
