"""The coordinator's side of joining: sites are invited and admitted, and the roster is signed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tacit.crypto.identities import Identity
from tacit.running.deployment.certificates import hosts_of, make_certificates
from tacit.running.deployment.files import private_folder, write_private, write_public
from tacit.running.deployment.keys import checked_node_key, stored_identity
from tacit.running.deployment.server import PORT, Coordinator
from tacit.running.joining.invitations import INVITATIONS, ROSTER_FILE, Record
from tacit.running.joining.letters import (
    ADDRESS,
    Answer,
    Invitation,
    LetterError,
    NumberedPlan,
    read_roster,
    roster_of,
)
from tacit.running.joining.plan_edits import with_coordinator, with_party
from tacit.running.session.plan_file import Plan
from tacit.running.session.toml_source import PlanError


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
    if server is not None and not ADDRESS.fullmatch(server):
        raise LetterError(f"--server must be HOST:PORT, got {server!r}")
    Plan.read(plan)
    if not files.exist:
        if server is None:
            raise LetterError("the server has no certificate yet: give --server HOST:PORT")
        make_certificates(files, [host_of(server)])
    known = hosts_of(files.certificate)
    address = server or f"{known[0]}:{PORT}"
    if host_of(address) not in known:
        raise LetterError(
            f"the server has a certificate for {', '.join(known)}, not for {host_of(address)}; "
            f"remove {files.authority} to make another, and invite all sites again"
        )
    _name_coordinator(plan, coordinator)
    return coordinator, address


def host_of(address: str) -> str:
    """The host in an address."""
    return address.rpartition(":")[0].strip("[]")


def invite(plan: Path, site: str, coordinator: Coordinator, server: str, again: bool) -> Invitation:
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
    keys = {party.name: party.key for party in Plan.read(plan).parties}
    if keys.get(site) is not None and not again:
        raise LetterError(f"{site} has its key in the plan already; --again replaces its keys")
    invitation = Invitation(
        site,
        server,
        coordinator.certificates.authority.read_text(encoding="ascii"),
        stored_identity(coordinator.identity).public,
        plan.read_text(encoding="utf-8"),
        Invitation.new_secret(),
    )
    Record(invitation).write(_record_path(coordinator, site))
    return invitation


def open_record(coordinator: Coordinator, answer: Answer) -> Record:
    """The record of the invitation that an answer is to.

    Raises
    ------
    LetterError : for an answer to no open invitation: one that was not sent, was replaced, or was
        answered by other keys before.
    """
    path = _record_path(coordinator, answer.site)
    if not path.exists():
        raise LetterError(f"nobody invited {answer.site!r} to this plan")
    record = Record.read(path)
    answer.check(record.invitation)
    if record.admitted not in (None, answer):
        raise LetterError(
            f"{answer.site} was admitted with other keys by this invitation, which serves once; "
            "if the site lost its keys: tacit invite --again"
        )
    return record


def admit(plan: Path, coordinator: Coordinator, answer: Answer) -> None:
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
        line = checked_node_key(draft)
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
    identity = stored_identity(coordinator.identity)
    last = _published(path, identity)
    if last.plan != text:
        number = max(last.number + 1, int(clock() * 1e6))
        write_private(path, roster_of(NumberedPlan(number, text), identity))
    return True


def _published(path: Path, identity: Identity) -> NumberedPlan:
    """The last roster; one without a plan where there is none, or one of an earlier version."""
    try:
        return read_roster(path.read_bytes(), identity.public)
    except (FileNotFoundError, LetterError):
        return NumberedPlan(0, "")


def _name_coordinator(plan: Path, coordinator: Coordinator) -> None:
    public, named = stored_identity(coordinator.identity).public, Plan.read(plan).coordinator
    if named is None:
        text = with_coordinator(plan.read_text(encoding="utf-8"), public)
        write_public(plan, text.encode())
    elif named != public:
        raise PlanError(f"{plan} names another coordinator than {coordinator.identity}")


def _record_path(coordinator: Coordinator, site: str) -> Path:
    return private_folder(coordinator.private) / INVITATIONS / f"{site}.json"
