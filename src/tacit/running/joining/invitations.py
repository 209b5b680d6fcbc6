"""What a coordinator keeps of invitations, in the folder of its server's own files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tacit.running.deployment.files import write_private
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
