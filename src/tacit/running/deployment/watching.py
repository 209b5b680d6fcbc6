"""What a site's node tells who operates it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tacit.ledger.ledger import Ledger
from tacit.operating.answers import Operated, counter, gauge, takes_writes
from tacit.running.deployment.flower_programs.programs import Program
from tacit.running.deployment.site import LOST, REACHED, user_line
from tacit.running.session.party_file import PartyFile

EVENTS = re.compile(
    "a run begins|answered|declined this run|a message was refused|this party (is not ready|failed)"
    "|the server (cannot be reached|is reached again)"
)
"""How lines begin that a node's user reads. What follows may quote a record. The coordinator sees
each of these events itself, so that their number tells no one more."""
OTHER = "another event: its node's log says which"


@dataclass
class NodeWatch:
    """A site's node, seen from outside.

    Parameters
    ----------
    party_file : the party's file, whose ledger and disk are looked at.
    node : the node, once it is started.
    is_connected : whether the server has let it in, and can be reached.
    events : how often each one came.
    """

    party_file: PartyFile
    node: Program | None = None
    is_connected: bool = False
    events: Counter[str] = field(default_factory=Counter)

    def event(self, line: str) -> str:
        """What a line of the node's log is about, which is counted; empty for Flower's own lines.

        Examples
        --------
        >>> watch = NodeWatch.__new__(NodeWatch)
        >>> watch.events = Counter()
        >>> watch.event("tacit: this party is not ready: record 17 has the label 3")
        'this party is not ready'
        """
        if LOST in line or REACHED in line:
            self.is_connected = REACHED in line
        words = user_line(line)
        known = EVENTS.match(words)
        event = known[0] if known else OTHER if words else ""
        self.events.update([event] if event else [])
        return event

    def operated(self) -> Operated:
        """Health of node, disk and ledger; whether it is connected, and what came."""
        ledger = self.party_file.ledger
        checks = {
            "process": lambda: self.node is None or self.node.is_running,
            "disk": lambda: takes_writes(ledger.parent),
            "ledger": lambda: not ledger.exists() or _is_readable(ledger),
        }
        connected, came = "Whether the server is reached.", "What came of the server's messages."
        return Operated(
            checks,
            lambda: [
                gauge("tacit_connected", connected, self.is_connected),
                counter("tacit_events_total", came, "event", dict(self.events)),
            ],
        )


def _is_readable(ledger: Path) -> bool:
    with Ledger.open_readonly(ledger) as pages:
        pages.datasets()
    return True
