"""The coordinator's side of joining: sites are invited and admitted, and the roster is signed.

Writes keys into the text of a plan, and leaves its comments as they are.
"""

from __future__ import annotations

import json
import re
import secrets
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.crypto.identities import Identity
from tacit.running.deployment import keys
from tacit.running.deployment.server import PORT, Coordinator
from tacit.running.files import private_folder, write_private, write_public
from tacit.running.joining import letters
from tacit.running.joining.invitations import INVITATIONS, ROSTER_FILE, Record
from tacit.running.session.plan_file import Plan
from tacit.running.session.toml_source import PlanError

PLAN, PARTY = "[plan]", "[[party]]"


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
    before = tomllib.loads(text)
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if _header(line) == PLAN), None)
    if start is None:
        raise PlanError("the plan has no line [plan]")
    _set(lines, start, "coordinator", key)
    before["plan"]["coordinator"] = key.hex()
    return _checked(lines, before)


def with_party(text: str, name: str, key: bytes) -> str:
    """A plan with a party's public key; a party that it does not name is added at its end.

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
    lines = text.splitlines()
    if entry is None:
        entry = {"name": name}
        parties.append(entry)
        lines += ["", PARTY, f"name = {json.dumps(name)}"]
    entry["key"] = key.hex()
    for start in [i for i, line in enumerate(lines) if _header(line) == PARTY]:
        named = [i for i in _block(lines, start) if _value(lines[i], "name") == name]
        if named:
            _set(lines, named[0], "key", key, start)
    return _checked(lines, wanted)


def _set(lines: list[str], after: int, name: str, key: bytes, start: int | None = None) -> None:
    """Replace the line of a key, or its comment, in a table; or add it after a line."""
    new = f'{name} = "{key.hex()}"'
    block = _block(lines, after if start is None else start)
    for pattern in (rf"\s*{name}\s*=", rf"\s*#\s*{name}\s*="):
        for i in block:
            if re.match(pattern, lines[i]):
                lines[i] = new
                return
    lines.insert(after + 1, new)


def _block(lines: list[str], start: int) -> range:
    """The lines of a table after its header."""
    ends = (i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("["))
    return range(start + 1, next(ends, len(lines)))


def _header(line: str) -> str:
    return line.partition("#")[0].strip()


def _value(line: str, name: str) -> Any:
    if not re.match(rf"\s*{name}\s*=", line):
        return None
    try:
        return tomllib.loads(line)[name]
    except tomllib.TOMLDecodeError:
        return None


def _checked(lines: list[str], wanted: dict[str, Any]) -> str:
    """The text, if it says what it should.

    Raises
    ------
    PlanError : otherwise; nothing was written.
    """
    text = "\n".join(lines) + "\n"
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        content = {}
    if content != wanted:
        raise PlanError(
            "the plan's lines are not as `tacit init` writes them: write the key into it by hand"
        )
    return text


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
    LetterError : for an address that is none, or that the certificate does not name.
    PlanError : for a plan that names another coordinator's key.
    """
    coordinator, files = Coordinator.of(plan), Coordinator.of(plan).certificates
    if server is not None and not letters.ADDRESS.fullmatch(server):
        raise letters.LetterError(f"--server must be HOST:PORT, got {server!r}")
    Plan.read(plan)
    if not files.exist:
        if server is None:
            raise letters.LetterError("the server has no certificate yet: give --server HOST:PORT")
        keys.make_certificates(files, [host_of(server)])
    known = keys.hosts_of(files.certificate)
    address = server or f"{known[0]}:{PORT}"
    if host_of(address) not in known:
        raise letters.LetterError(
            f"the server has a certificate for {', '.join(known)}, not for {host_of(address)}; "
            f"remove {files.authority} to make another, and invite all sites again"
        )
    _name_coordinator(plan, coordinator)
    return coordinator, address


def host_of(address: str) -> str:
    """The host in an address."""
    return address.rpartition(":")[0].strip("[]")


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
        coordinator.certificates.authority.read_text(encoding="ascii"),
        keys.stored_identity(coordinator.identity).public,
        plan.read_text(encoding="utf-8"),
        secrets.token_bytes(letters.SECRET_BYTES),
    )
    Record(invitation).write(_record_path(coordinator, site))
    return invitation


def open_record(coordinator: Coordinator, answer: letters.Answer) -> Record:
    """The record of the invitation that an answer is to.

    Raises
    ------
    LetterError : for an answer to no open invitation: one that was not sent, was replaced, or was
        answered by other keys before.
    """
    path = _record_path(coordinator, answer.site)
    if not path.exists():
        raise letters.LetterError(f"no one invited {answer.site!r} to this plan")
    record = Record.read(path)
    answer.check(record.invitation)
    if record.admitted not in (None, answer):
        raise letters.LetterError(
            f"{answer.site} was admitted with other keys by this invitation, which serves once; "
            "if the site lost its keys: tacit invite --again"
        )
    return record


def admit(plan: Path, coordinator: Coordinator, answer: letters.Answer) -> None:
    """Write a site's keys into the plan and the folder of node keys; its invitation is used up.

    Raises
    ------
    LetterError : as ``open_record``, and for an answer without a node key.
    PlanError : for a plan that cannot be edited, or whose other party has this key.
    """
    record = open_record(coordinator, answer)
    text = with_party(plan.read_text(encoding="utf-8"), answer.site, answer.identity)
    Plan.parsed(text, str(plan))
    node_key = coordinator.nodes / f"{answer.site}.pub"
    draft = coordinator.private / f"{answer.site}.pub"
    write_private(draft, f"{answer.node_key}\n".encode())
    try:
        line = keys.checked_node_key(draft)
    finally:
        draft.unlink()
    Record(record.invitation, answer).write(_record_path(coordinator, answer.site))
    write_public(node_key, line)
    write_public(plan, text.encode())


def publish_roster(
    plan: Path, coordinator: Coordinator, clock: Callable[[], float] = time.time
) -> bool:
    """Sign the plan where it has all keys, for the server to hand out; whether it has them.

    A plan that differs from the last roster's gets a number above the last: the microseconds since
    1970 where these are more, so that a folder that was put back from a backup does not number two
    plans alike.
    """
    text = plan.read_text(encoding="utf-8")
    read = Plan.parsed(text, str(plan))
    path = private_folder(coordinator.private) / ROSTER_FILE
    if read.coordinator is None or any(party.key is None for party in read.parties):
        path.unlink(missing_ok=True)
        return False
    identity = keys.stored_identity(coordinator.identity)
    last = _published(path, identity)
    if last.plan != text:
        number = max(last.number + 1, int(clock() * 1e6))
        write_private(path, letters.roster_of(letters.NumberedPlan(number, text), identity))
    return True


def _published(path: Path, identity: Identity) -> letters.NumberedPlan:
    """The last roster; one without a plan where there is none, or one of an earlier version."""
    try:
        return letters.read_roster(path.read_bytes(), identity.public)
    except (FileNotFoundError, letters.LetterError):
        return letters.NumberedPlan(0, "")


def _name_coordinator(plan: Path, coordinator: Coordinator) -> None:
    public, named = keys.stored_identity(coordinator.identity).public, Plan.read(plan).coordinator
    if named is None:
        text = with_coordinator(plan.read_text(encoding="utf-8"), public)
        write_public(plan, text.encode())
    elif named != public:
        raise PlanError(f"{plan} names another coordinator than {coordinator.identity}")


def _record_path(coordinator: Coordinator, site: str) -> Path:
    return private_folder(coordinator.private) / INVITATIONS / f"{site}.json"
