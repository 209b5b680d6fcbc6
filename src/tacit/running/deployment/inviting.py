"""The coordinator's side of joining: sites are invited and admitted, and the roster is signed.

Writes keys into the text of a plan, and leaves its comments as they are.

Keeps each invitation, the token by which its site gets the roster, and the answer that was
admitted, in the folder of the server's own files: they hold secrets.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
import tomllib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from tacit import files
from tacit.crypto.identities import Identity
from tacit.running.deployment import keys, letters
from tacit.running.deployment.door import INVITATIONS, ROSTER_FILE, TOKEN
from tacit.running.deployment.server import PORT, Coordinator
from tacit.running.session.plan_file import MINUTE, RENEWAL, Plan, Renewal
from tacit.running.session.toml_source import PlanError

PARTY = "[[party]]"
ADMITTED = ".answer"
"""The ending of a file with the answer that was admitted."""


def with_coordinator(text: str, key: bytes) -> str:
    """A plan with its coordinator's public key.

    Raises
    ------
    PlanError : for a text whose lines are not understood.

    Examples
    --------
    >>> print(with_coordinator('[plan]\\nname = "x"\\n', b"1" * 32), end="")
    [plan]
    coordinator = "3131313131313131313131313131313131313131313131313131313131313131"
    name = "x"
    """
    wanted = tomllib.loads(text)
    wanted.setdefault("plan", {})["coordinator"] = key.hex()
    return _with_line(text, "[plan]", "coordinator", key.hex(), wanted)


def with_party(text: str, name: str, key: bytes) -> str:
    """A plan with a party's public key; a party that it does not name is added at its end.

    Renewals of an earlier key are left out.

    Raises
    ------
    PlanError : for a text whose lines are not understood.

    Examples
    --------
    >>> plan = '[[party]]\\nname = "a"  # north\\n# key = "..."\\n'
    >>> print(with_party(plan, "a", b"1" * 32), end="")
    [[party]]
    name = "a"  # north
    key = "3131313131313131313131313131313131313131313131313131313131313131"
    """
    wanted = tomllib.loads(text)
    parties = wanted.setdefault("party", [])
    entry = next((party for party in parties if party.get("name") == name), None)
    if entry is None:
        entry = {"name": name}
        parties.append(entry)
        text = f"{text.rstrip()}\n\n{PARTY}\nname = {json.dumps(name)}\n"
    if entry.pop("renewals", None) is not None:
        text = _with_line(text, PARTY, "renewals", None, wanted, name)
    entry["key"] = key.hex()
    return _with_line(text, PARTY, "key", key.hex(), wanted, name)


def with_renewal(text: str, name: str, renewal: str) -> str:
    """A plan with the next key of a party, after those that it has.

    Raises
    ------
    PlanError : for a party that it does not name, and for a text whose lines are not understood.
    """
    wanted = tomllib.loads(text)
    entry = next((each for each in wanted.get("party", ()) if each.get("name") == name), None)
    if entry is None:
        raise PlanError(f"the plan names no party {name!r}")
    entry["renewals"] = [*dict.fromkeys((*entry.get("renewals", ()), renewal))]
    return _with_line(text, PARTY, "renewals", entry["renewals"], wanted, name)


def _with_line(
    text: str, header: str, field: str, value: Any, wanted: dict[str, Any], name: str | None = None
) -> str:
    """A plan's text with a value in its table of this header, and of this name where one is given.

    The line of the field is replaced, else its comment; else it follows the header. Without a value
    the line is left out.

    Raises
    ------
    PlanError : where the text would not say what is wanted; nothing was written.
    """
    blocks = re.split(r"^(?=[ \t]*\[)", text, flags=re.MULTILINE)
    for place, block in enumerate(blocks):
        first, _, rest = block.partition("\n")
        if first.partition("#")[0].strip() != header or name not in (None, _name_in(rest)):
            continue
        line = "" if value is None else f"{field} = {json.dumps(value)}\n"
        for sign in ("", r"#[ \t]*"):
            pattern = rf"^[ \t]*{sign}{field}[ \t]*=.*$\n?"
            changed, count = re.subn(
                pattern, line.replace("\\", r"\\"), rest, count=1, flags=re.MULTILINE
            )
            if count:
                break
        blocks[place] = f"{first}\n" + (changed if count else f"{line}{rest}")
    made = "".join(blocks)
    with contextlib.suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(made) == wanted:
            return made
    raise PlanError(
        "the plan's lines are not as `tacit init` writes them: write the key into it by hand"
    )


def _name_in(lines: str) -> str | None:
    """The name in the lines of a table; None for lines that are not understood."""
    with contextlib.suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(lines).get("name")
    return None


def prepare(plan: Path, server: str | None) -> tuple[Coordinator, str]:
    """The coordinator with keys, certificates and its key in the plan; what is missing is made.

    Parameters
    ----------
    plan : the plan.
    server : host and port at which sites reach the server; None takes the certificate's first
        name, and the usual port.

    Returns
    -------
    tuple : the coordinator, and the server's address.

    Raises
    ------
    LetterError : for an address that is none.
    KeyFileError : for an address that the certificate does not name.
    PlanError : for a plan that names another coordinator's key.
    """
    coordinator = Coordinator.of(plan)
    if server is not None and not letters.ADDRESS.fullmatch(server):
        raise letters.LetterError(f"--server must be HOST:PORT, got {server!r}")
    named = Plan.read(plan).coordinator
    hosts = [] if server is None else [letters.host_of(server)]
    known = keys.certified(coordinator.certificates, hosts, "--server HOST:PORT")
    public = keys.stored_identity(coordinator.identity).public
    if named is None:
        text = with_coordinator(plan.read_text(encoding="utf-8"), public)
        files.write_public(plan, text.encode())
    elif named != public:
        raise PlanError(f"{plan} names another coordinator than {coordinator.identity}")
    return coordinator, server or f"{known[0]}:{PORT}"


def invite(
    plan: Path, site: str, coordinator: Coordinator, server: str, again: bool
) -> letters.Invitation:
    """Make an invitation for a site, and note it as open; an earlier one is no longer valid.

    Parameters
    ----------
    plan : the plan.
    site : the site's name, in the plan or new.
    coordinator, server : as ``prepare`` gave them.
    again : whether a site that has its keys in the plan gets another invitation, for new keys.

    Raises
    ------
    LetterError : for a site that has its keys already.
    """
    known = {party.name: party.key for party in Plan.read(plan).parties}
    if known.get(site) is not None and not again:
        raise letters.LetterError(
            f"{site} has its key in the plan already; --again replaces its keys"
        )
    invitation = letters.Invitation(
        site,
        server,
        coordinator.certificates.offered(),
        keys.stored_identity(coordinator.identity).public,
        plan.read_text(encoding="utf-8"),
        secrets.token_bytes(letters.SECRET_BYTES),
    )
    kept = _kept(coordinator, site)
    files.write_private(kept.with_name(f"{site}{TOKEN}"), invitation.token.encode())
    files.write_private(kept, invitation.to_bytes())
    return invitation


def invitations(coordinator: Coordinator) -> list[letters.Invitation]:
    """The last invitation of every site that was invited."""
    folder = coordinator.private / INVITATIONS
    return [
        letters.Invitation.of_bytes(path.read_bytes()) for path in sorted(folder.glob("*.json"))
    ]


def check_open(coordinator: Coordinator, answer: letters.Answer) -> None:
    """Refuse an answer to no open invitation.

    Raises
    ------
    LetterError : where the invitation was not sent, was replaced, or was answered by other keys
        before.
    """
    path = _kept(coordinator, answer.site)
    if not path.exists():
        raise letters.LetterError(f"no one invited {answer.site!r} to this plan")
    answer.check(letters.Invitation.of_bytes(path.read_bytes()))
    admitted = path.with_name(f"{answer.site}{ADMITTED}")
    before = letters.Answer.of_bytes(admitted.read_bytes()) if admitted.exists() else answer
    if before != answer and before.invitation == answer.invitation:
        raise letters.LetterError(
            f"{answer.site} was admitted with other keys by this invitation, which serves once; "
            "if the site lost its keys: tacit invite --again"
        )


def admit(plan: Path, coordinator: Coordinator, answer: letters.Answer) -> None:
    """Write a site's keys into the plan and the folder of node keys; its invitation is used up.

    Raises
    ------
    LetterError : as ``check_open``, and for an answer without a node key.
    PlanError : for a plan that cannot be edited, or whose other party has this key.
    """
    check_open(coordinator, answer)
    text = with_party(plan.read_text(encoding="utf-8"), answer.site, answer.identity)
    Plan.parsed(text, str(plan))
    node_key = coordinator.nodes / f"{answer.site}.pub"
    line = keys.checked_node_key(answer.node_key.encode(), f"the answer of {answer.site}")
    admitted = _kept(coordinator, answer.site).with_name(f"{answer.site}{ADMITTED}")
    files.write_private(admitted, answer.to_bytes())
    files.write_public(node_key, line)
    files.write_public(plan, text.encode())


def take_renewal(plan: Path, content: str, now: datetime) -> tuple[str, Renewal]:
    """Write a site's next key into the plan, as the site sent it; its name, and the renewal.

    What it sent is its name, and its line of the plan.

    Nothing is compared by phone: the key that the plan has for the site signed it.

    Raises
    ------
    LetterError : for a renewal whose time is over: the others need the time to learn of it.
    PlanError : for another text, for a renewal that the site's last key did not sign, and for a
        plan that cannot be edited.
    """
    site, *said = content.strip().rsplit(" ", 3)
    if not RENEWAL.fullmatch(" ".join(said)):
        raise PlanError("this is no renewal, which a site makes by: tacit renew PARTY")
    text = with_renewal(plan.read_text(encoding="utf-8"), site, " ".join(said))
    taken = next(each for each in Plan.parsed(text, str(plan)).parties if each.name == site)
    if taken.next is None or taken.next.begins <= now.strftime(MINUTE):
        raise letters.LetterError(
            f"the new key of {site} was to be used from {taken.renewals[-1].begins}, which is "
            "over: have the site remove its new key file, and renew again"
        )
    files.write_public(plan, text.encode())
    return site, taken.next


def publish_roster(
    plan: Path, coordinator: Coordinator, clock: Callable[[], float] = time.time
) -> bool:
    """Sign the plan where it has all keys, for the server to hand out; whether it has them.

    A plan or an authority that differs from the last roster's gets a number above the last: the
    microseconds since 1970 where these are more, so that a folder that was put back from a backup
    does not number two plans alike.
    """
    text = plan.read_text(encoding="utf-8")
    path = files.private_folder(coordinator.private) / ROSTER_FILE
    if not Plan.parsed(text, str(plan)).is_complete:
        path.unlink(missing_ok=True)
        return False
    identity = keys.stored_identity(coordinator.identity)
    last = _published(path, identity)
    said = (text, coordinator.certificates.offered())
    if last[1:] != said:
        number = max(last.number + 1, int(clock() * 1e6))
        files.write_private(path, letters.roster_of(letters.NumberedPlan(number, *said), identity))
    return True


def _published(path: Path, identity: Identity) -> letters.NumberedPlan:
    """The last roster; one without a plan where there is none, or one of an earlier version."""
    try:
        return letters.read_roster(path.read_bytes(), identity.public)
    except (FileNotFoundError, letters.LetterError):
        return letters.NumberedPlan(0, "", "")


def _kept(coordinator: Coordinator, site: str) -> Path:
    """Where a site's invitation lies."""
    return files.private_folder(coordinator.private) / INVITATIONS / f"{site}.json"
