"""Sentences that the threat models of several protocols share."""

from __future__ import annotations

NOBODY = (
    "Nobody: every client adds its own noise before anything leaves it. The server is expected to "
    "follow the protocol, and may look at all that it receives."
)
LOCAL = (
    "Nobody: every record randomises its own report before it leaves the client. The server is "
    "expected to follow the protocol, and may look at all that it receives."
)
LOCAL_PAGE = "threat-models/local.md"
