"""A site fetches the roster from the coordinator's server, and takes a new one by its code."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from tacit.cli.federation.shared import show_rows
from tacit.cli.shell import show
from tacit.crypto.spoken_codes import is_code
from tacit.running.joining.letters import Invitation, LetterError, roster_code
from tacit.running.joining.reaching import Reached, reach
from tacit.running.joining.roster_door import NOT_YET, OK
from tacit.running.joining.site import (
    PLAN_FILE,
    checked_roster,
    invitation_in,
    is_agreed,
    take_roster,
)
from tacit.running.session.plan_file import Plan

LOOK_SECONDS = 3.0


def newest_roster(
    home: Path, server: str, authority: Path, code: str | None, patience: float
) -> None:
    """Bring an invited site's plan up to date with the coordinator's roster.

    Parameters
    ----------
    home : the site's folder, with its invitation.
    server, authority : where the roster is, and how its server is recognised.
    code : what the other sites read to this one; None asks on the terminal where it is needed.
    patience : seconds to wait for the server, and for the coordinator to admit all sites.

    Raises
    ------
    LetterError : for a roster that must not be taken, or whose code is not the one that was given.
    """
    invitation = invitation_in(home)
    if invitation is None:
        raise LetterError(f"{home} holds no invitation")
    answer = _waited_for(invitation, server, authority, patience)
    local_plan = (home / PLAN_FILE).read_text(encoding="utf-8")
    if answer.status != OK:
        if any(party.key is None for party in Plan.parsed(local_plan, PLAN_FILE).parties):
            raise LetterError(
                "the server does not know this invitation: it was replaced, or is another "
                "coordinator's"
            )
        show("the server hands out no roster for this invitation: the site's own copy is used")
        return
    text = checked_roster(answer.content, invitation, home)
    if not is_agreed(text, local_plan):
        _confirm(text, local_plan, code)
    take_roster(answer.content, text, home)


def _waited_for(invitation: Invitation, server: str, authority: Path, patience: float) -> Reached:
    """The server's answer, once all sites are admitted."""
    ends, announced = time.monotonic() + patience, False
    while True:
        answer = reach(
            server, authority, show if not announced else _silent, patience, invitation.token
        )
        if answer.status != NOT_YET or time.monotonic() >= ends:
            return answer
        if not announced:
            show("the server answers; waiting until the coordinator has admitted all sites")
            announced = True
        time.sleep(LOOK_SECONDS)


def _silent(line: str) -> None:
    """The first lines are enough."""


def _confirm(text: str, local_plan: str, code: str | None) -> None:
    """Show a roster that is new, and have its code compared.

    Raises
    ------
    LetterError : where the code is another one.
    """
    plan = Plan.parsed(text, "the roster")
    before = {party.name: party.key for party in Plan.parsed(local_plan, PLAN_FILE).parties}
    rows = [("roster of", f"{plan.name}; a result needs {plan.min_clients} sites")]
    rows += [
        (f"site {party.name}", _change(party.key, before.get(party.name))) for party in plan.parties
    ]
    shown = roster_code(plan)
    show_rows([*rows, ("code", shown)])
    if code is None and not sys.stdin.isatty():
        raise LetterError(
            "the roster is new here: call the other sites, and if all read the same code, give it "
            "as --code CODE"
        )
    heard = code or str(click.prompt("call another site; the code that it reads", type=str))
    if not is_code(heard, shown):
        raise LetterError(
            "the sites were shown different rosters, or a code was misread: nothing was taken, and "
            "this site does not join"
        )


def _change(key: bytes | None, before: bytes | None) -> str:
    short = "" if key is None else key.hex()[:16]
    if before is None:
        return f"key {short}..."
    return f"key {short}...{', another than before' * (before != key)}"
