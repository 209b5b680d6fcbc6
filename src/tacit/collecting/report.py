"""A report's bytes: a header with campaign, stage and token, and the payload of its stage."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.wire import Header

DIGEST_PREFIX, TOKEN_BYTES = 8, 16

MAX_REPORT = 80
"""Largest number of bytes of a report."""

HEADER = Header(b"TREP", 1, f"{DIGEST_PREFIX}sB{TOKEN_BYTES}s", "a report of a device")

STAGE_PLACE = HEADER.size - TOKEN_BYTES - 1
"""Which byte of a report is its stage."""


@dataclass(frozen=True)
class Report:
    """One device's report.

    Parameters
    ----------
    campaign : the first bytes of the campaign's digest.
    stage : from 0.
    token : 16 bytes, used once.
    payload : what the stage's mechanism gave.

    Examples
    --------
    >>> report = Report(bytes(8), 0, bytes(16), b"\\x02\\x50")
    >>> Report.from_bytes(report.to_bytes()) == report, len(report.to_bytes())
    (True, 32)
    """

    campaign: bytes
    stage: int
    token: bytes
    payload: bytes

    def to_bytes(self) -> bytes:
        """The message."""
        return HEADER.pack(self.campaign, self.stage, self.token) + self.payload

    @classmethod
    def from_bytes(cls, message: bytes) -> Report:
        """The report of a message; how long its payload must be is not checked here.

        Raises
        ------
        ValueError : for bytes of another format or version, or too few.
        """
        campaign, stage, token = HEADER.unpack(message)
        return cls(campaign, stage, token, message[HEADER.size :])
