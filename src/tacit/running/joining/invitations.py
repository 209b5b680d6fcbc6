"""What a coordinator keeps of invitations, in the folder of its server's own files.

Hands the signed roster to invited sites, through the port of the coordinator's server.

A stranger learns nothing: the door behind answers every other request, and every request without
the token of an invitation, in the same way. The roster holds public keys, names and settings.

Tokens have 256 bits, so no number of guesses finds one; what strangers could take is the disk's
time. However many requests come, the invitations are therefore read once a second at most. No one
is locked out: behind a proxy an invited site and a stranger have the same address.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.running.deployment.door import App, Receive, Scope, Send, respond, shown
from tacit.running.files import write_private
from tacit.running.joining.letters import Answer, Invitation

ROSTER_FILE, INVITATIONS = "roster.json", "invitations"
"""Within the folder that holds the server's own files."""


@dataclass(frozen=True)
class Record:
    """What a coordinator keeps of one invitation.

    Parameters
    ----------
    invitation : the file that was sent.
    admitted : the answer that was admitted; None while the invitation is open.
    """

    invitation: Invitation
    admitted: Answer | None = None

    @classmethod
    def read(cls, path: Path) -> Record:
        """The record in a file."""
        content = json.loads(path.read_text(encoding="utf-8"))
        answer = content["admitted"]
        return cls(
            Invitation.of_bytes(content["invitation"].encode()),
            None if answer is None else Answer.of_bytes(answer.encode()),
        )

    def write(self, path: Path) -> None:
        """Keep it where its owner only reads it: it holds the secret."""
        answer = None if self.admitted is None else self.admitted.to_bytes().decode()
        content = {"invitation": self.invitation.to_bytes().decode(), "admitted": answer}
        write_private(path, json.dumps(content, indent=1).encode())


def records_in(private: Path) -> dict[str, Record]:
    """All invitations by site, from the folder of a server's own files."""
    folder = private / INVITATIONS
    return {path.stem: Record.read(path) for path in sorted(folder.glob("*.json"))}


PATH = "/tacit/roster"
HEADER = "x-tacit-invitation"
OK, NOT_YET = 200, 409
READ_EVERY = 1.0
"""Least seconds between two readings of the invitations; a new one is known after so many."""


class RosterDoor:
    """ASGI middleware that answers ``GET /tacit/roster``.

    Parameters
    ----------
    app : the application behind it.
    private : the folder of the server's own files.
    clock : seconds that only ascend.
    """

    def __init__(
        self, app: App, private: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._private, self._clock = app, private, clock
        self._known: tuple[bytes, ...] = ()
        self._due = clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an invited site; pass every other request on."""
        if scope["type"] != "http" or scope["path"] != PATH or not self._invited(scope):
            await self._app(scope, receive, send)
            return
        roster = self._private / ROSTER_FILE
        body = roster.read_bytes() if roster.exists() else b"not all sites are admitted yet\n"
        status = OK if roster.exists() else NOT_YET
        await respond(send, status, b"application/octet-stream", body)

    def _invited(self, scope: Scope) -> bool:
        token = shown(scope, HEADER)
        return bool(token) and any(hmac.compare_digest(token, each) for each in self._tokens())

    def _tokens(self) -> tuple[bytes, ...]:
        """Those of all invitations, as they were a second ago or later."""
        now = self._clock()
        if now >= self._due:
            records = records_in(self._private).values()
            self._known = tuple(record.invitation.token.encode() for record in records)
            self._due = now + READ_EVERY
        return self._known
