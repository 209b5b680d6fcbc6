"""What is wrong with a party's or a coordinator's folder, or on the way to the server.

Every check is one that ``tacit join`` or ``tacit serve`` makes too before it goes on. Here all are
made, within a time limit, and each failure names who mends it.

A finding is for a mail. No record, count, key, token, code or password is in it: the sentences of
errors about records, which may quote them, are left out, and a ledger says only whether it allows
another run.
"""

from __future__ import annotations

import platform
import re
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from tacit import files
from tacit.operating import takes_writes
from tacit.running.deployment import door, inviting, keys, letters, preview, probing, server, site
from tacit.running.deployment.flower_programs import programs
from tacit.running.deployment.probing import COORDINATOR, SITE, TroubleError
from tacit.running.session.approval import Subject
from tacit.running.session.party_file import PartyFile, identities
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk, read_identity
from tacit.running.session.toml_source import PlanError

SECONDS = 8.0
"""Time after which checks that have not ended are given up."""
LEAST_FREE = 2**28
"""Bytes that a disk must have left."""
DIGEST_LENGTH = 16
"""Hexadecimal digits that are shown of a plan's digest."""
PARTY_FILE = "party.toml"
SENTENCES = ValueError, RuntimeError, ImportError
"""Errors whose text holds words of configuration where no record was read."""
REMEDY = f"{SITE}: as it says; put back what is lost, or have {COORDINATOR} invite again"
ROOM = f"{SITE}: make room on the disk, and let the user who runs tacit write there"
Check = Callable[[], str]
"""Says in words that something is as it should be, or raises an error."""
DryRound = Callable[[Plan], str]
"""Runs a plan's protocol on this machine with made-up records, and says how that went."""


class Finding(NamedTuple):
    """What one check found.

    Parameters
    ----------
    topic, says : what was checked, and what was found.
    state : whether it is as it should be; ``"unknown"`` where that could not be checked.
    remedy : who mends it, and how; empty where nothing fails.
    """

    topic: str
    says: str
    state: Literal["ok", "failing", "unknown"] = "ok"
    remedy: str = ""


def examined(home: Path, groups: Sequence[Mapping[str, Check]]) -> list[Finding]:
    """The findings of groups of checks side by side, within ``SECONDS``.

    What is not ``ok`` ends its group.

    Parameters
    ----------
    home : the folder, which is left out of paths.
    groups : checks by topic.
    """
    found: list[list[Finding]] = [[] for _ in groups]

    def examine(checks: Mapping[str, Check], findings: list[Finding]) -> None:
        for topic, check in checks.items():
            findings.append(_finding(topic, check, home))
            if findings[-1].state != "ok":
                return

    ends, pairs = time.monotonic() + SECONDS, list(zip(groups, found, strict=True))
    threads = [threading.Thread(target=examine, args=pair, daemon=True) for pair in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they count records
        for thread in threads:
            thread.start()
        for thread, (checks, findings) in zip(threads, pairs, strict=True):
            thread.join(max(ends - time.monotonic(), 0.0))
            if thread.is_alive() and len(findings) < len(checks):
                topic = list(checks)[len(findings)]
                findings.append(Finding(topic, f"not known within {SECONDS:.0f} s", "unknown"))
    return [each for findings in found for each in findings]


def _finding(topic: str, check: Check, home: Path) -> Finding:
    try:
        return Finding(topic, check())
    except TroubleError as error:
        return Finding(topic, str(error), "failing" if error.remedy else "unknown", error.remedy)
    except OSError as error:
        says = f"{Path(str(error.filename or topic)).name}: {error.strerror}"
    except SENTENCES as error:
        says = str(error).replace(f"{home.resolve()}/", "").replace(f"{home}/", "")
    except Exception as error:  # its text may quote a record
        says = f"the check itself failed with {type(error).__name__}"
    return Finding(topic, says.replace(str(home.resolve()), "this folder"), "failing", REMEDY)


def examine_party(home: Path, address: str | None, dry_round: DryRound) -> list[Finding]:
    """Findings about a party's folder, and its way to the server.

    Parameters
    ----------
    home : the folder.
    address : host and port of the server; None for the one in the party's file.
    dry_round : runs a plan's protocol without the party's records.

    Raises
    ------
    PlanError, LetterError : for a party's file, or an invitation, that cannot be read.
    """
    party = _Party(home, PartyFile.read(home / PARTY_FILE), site.invitation_in(home))
    file = party.file
    alone: dict[str, Check] = {
        "software": _software,
        "identity key": partial(_private, file.identity, read_identity),
        "node key": partial(_private, home / "node.key", keys.public_node_key),
        "plan": party.plan,
        "approval": party.approval,
        "disk": partial(_disk, home, file.ledger.parent, file.state),
        "records": party.records,
        "ledger": party.ledger,
        "dry round": lambda: dry_round(Plan.read(file.plan)),
    }
    return examined(home, [*({topic: alone[topic]} for topic in alone), party.way(address)])


def examine_coordinator(home: Path, dry_round: DryRound) -> list[Finding]:
    """Findings about a coordinator's folder, and its server.

    Parameters
    ----------
    home : the folder, with plan.toml.
    dry_round : runs a plan's protocol on this machine.
    """
    plan = home / site.PLAN_FILE
    centre = server.Coordinator.of(plan)
    alone: dict[str, Check] = {
        "software": _software,
        "identity key": partial(_private, centre.identity, read_identity),
        "TLS key": partial(_private, centre.certificates.key, _check_private),
        "certificate": partial(_certificate, centre),
        "plan": partial(_coordinators_plan, plan, centre),
        "disk": partial(_disk, home, centre.private),
        "dry round": lambda: dry_round(Plan.read(plan)),
    }
    way: dict[str, Check] = {
        "server": lambda: _way_here(centre).port(),
        "versions": lambda: _way_here(centre).versions(),
    }
    findings = examined(home, [*({topic: alone[topic]} for topic in alone), way])
    return [each._replace(remedy=each.remedy.replace(SITE, COORDINATOR)) for each in findings]


def _software() -> str:
    programs.require_flower()
    return f"{probing.listed(programs.versions())}, Python {platform.python_version()}"


def _private(path: Path, read: Callable[[Path], object]) -> str:
    read(path)
    return f"{path.name} can be read, and by its owner only"


_check_private = partial(files.check_private, refusal=keys.KeyFileError)


def _disk(*folders: Path) -> str:
    """Whether folders take files, and their disk has room."""
    for folder in filter(Path.exists, folders):
        try:
            takes_writes(folder)
        except OSError as error:
            raise TroubleError(f"{folder.name} takes no files: {error.strerror}", ROOM) from None
        if shutil.disk_usage(folder).free < LEAST_FREE:
            raise TroubleError(f"less than {LEAST_FREE >> 20} MiB are free", ROOM)
    return "takes files, and has room"


@dataclass(frozen=True)
class _Party:
    """A party's folder, its file, and the invitation that it accepted; None for none."""

    home: Path
    file: PartyFile
    invitation: letters.Invitation | None

    def plan(self) -> str:
        """Whether the plan is complete, names this party's key, and is that of its roster."""
        plan, path = Plan.read(self.file.plan), self.file.plan
        if self.invitation and not plan.is_complete:
            raise TroubleError(
                "no roster has come yet", f"{SITE}: tacit join, once all are admitted"
            )
        desk, next_key = PartyDesk.open(self.home / PARTY_FILE), identities(self.file.identity)[-1]
        if read_identity(next_key).public not in plan.parties[desk.index].keys:
            remedy = f"{COORDINATOR}: tacit renew PLAN {site.RENEWAL_FILE}; then {SITE}: tacit join"
            raise TroubleError(f"it has not {next_key.name}, which waits", remedy)
        last = self.invitation and site.last_taken(self.home, self.invitation.coordinator)
        if last and not site.is_agreed(last.plan, path.read_text(encoding="utf-8")):
            raise TroubleError(
                "it was changed: the last roster has another", f"{SITE}: put it back"
            )
        return _shown(plan) + (f", roster {last.number}" if last else "")

    def approval(self) -> str:
        """What the approval of the plan is, where the site's file asks for one; no one is named."""
        if self.file.approval is None:
            return "the site's file asks for none"
        standing = Subject(self.file, Plan.read(self.file.plan)).now
        if standing.problem:
            raise TroubleError(standing.state, f"{SITE}: see why: tacit approve {PARTY_FILE}")
        return standing.state

    def records(self) -> str:
        """Whether the records can be read and suit the plan; nothing else of them is said."""
        source = self.file.records
        name = source.name if isinstance(source, Path) else str(source)
        try:
            preview.check_records(PartyDesk.open(self.home / PARTY_FILE))
        except PlanError:
            raise TroubleError("not read: they, the plan or the keys do not fit") from None
        except (ValueError, RuntimeError, OSError) as error:
            says, column = "cannot be used", re.search(r"no column '([^']*)'", str(error))
            if column and f'"{column[1]}"' in (self.home / PARTY_FILE).read_text(encoding="utf-8"):
                says = f"has no column {column[1]!r}"
            elif re.search("No such file|no file is found|does not exist", str(error)):
                says = "is not there"
            raise TroubleError(f"{name} {says}", f"{SITE}: see tacit join --check") from None
        return f"{name} can be read, and fits the plan"

    def ledger(self) -> str:
        """Whether the ledger can be read, and allows another run; not what is spent."""
        spendings, cost = preview.spendings_of(self.file), Plan.read(self.file.plan).guarantee
        remedy = f"{SITE}: see what is spent: tacit join --check {PARTY_FILE}; tacit ledger limit"
        if not spendings:
            raise TroubleError("no limit is set, so that nothing is answered", remedy)
        if any(each.runs_left(cost) == 0 for each in spendings):
            raise TroubleError("the limit does not allow another run", remedy)
        key = self.file.ledger.with_name(f"{self.file.ledger.name}.key")
        if key.exists():
            _check_private(key)
        return "the limit allows another run"

    def way(self, address: str | None) -> dict[str, Check]:
        """Checks of the way to the server, and of what it tells a site that it invited."""
        named = address or (self.file.server and letters.address_of(*self.file.server))
        if not named:
            raise PlanError(f"{PARTY_FILE} names no server: name it with --server HOST:PORT")
        invited = self.invitation and (self.invitation.token, self.invitation.server)
        way = probing.Way(named, self.home / site.AUTHORITY_FILE, *(invited or ()))
        return way.checks() | {"roster": partial(self._roster, way)}

    def _roster(self, way: probing.Way) -> str:
        """Whether the server's roster is the one that this site took."""
        if self.invitation is None or way.told.status == door.NOT_YET:
            raise TroubleError("not all sites are admitted yet", f"{COORDINATOR}: tacit admit")
        text = site.checked_roster(way.told.content, self.invitation, self.home)
        if not site.is_agreed(text, (self.home / site.PLAN_FILE).read_text(encoding="utf-8")):
            raise TroubleError("it is not the last one here", f"{SITE}: tacit join, with its code")
        number = letters.read_roster(way.told.content, self.invitation.coordinator).number
        last = site.last_taken(self.home, self.invitation.coordinator)
        if last and last.number != number:
            says = f"roster {number} renews what roster {last.number} here says"
            raise TroubleError(says, f"{SITE}: tacit join, no code")
        return f"the server's is this site's plan, roster {number}"


def _shown(plan: Plan) -> str:
    """A plan's name and digest, and the keys that are renewed."""
    waiting = [(each.name, each.next.begins) for each in plan.parties if each.next is not None]
    renewed = [f"; the key of {name} is used until {begins}" for name, begins in waiting]
    shown = plan.agreement().digest.hex()[:DIGEST_LENGTH]
    return f"{plan.name}, digest {shown}{''.join(renewed)}"


def _coordinators_plan(path: Path, centre: server.Coordinator) -> str:
    """Whether the plan has all keys, and is what sites were invited to."""
    plan, nodes = Plan.read(path), server.node_keys(centre.nodes)
    if lacking := [each.name for each in plan.parties if not (each.key and each.name in nodes)]:
        raise TroubleError(
            f"no keys of {', '.join(lacking)}", f"{COORDINATOR}: tacit invite, admit"
        )
    if plan.coordinator != read_identity(centre.identity).public:
        raise PlanError(f"{path} names another coordinator than {centre.identity}")
    if others := [x.site for x in inviting.invitations(centre) if not site.may_follow(x, plan)]:
        says = f"its settings are not those that {', '.join(others)} got"
        raise TroubleError(says, f"{COORDINATOR}: undo the change, or tacit invite --again")
    return _shown(plan)


def _certificate(centre: server.Coordinator) -> str:
    """Whether the certificate on disk is right for the addresses that sites were given."""
    tls = centre.certificates
    hosts = {letters.host_of(each.server) for each in inviting.invitations(centre)}
    offered = tls.offered().encode()
    return probing.check_certificate(tls.served, offered, sorted(hosts), datetime.now(UTC))


def _way_here(centre: server.Coordinator) -> probing.Way:
    """The way to the server that was started last from a folder."""
    try:
        address = centre.address()
    except programs.UnreachableError:
        says = "no server was started from this folder"
        raise TroubleError(says, f"{COORDINATOR}: tacit serve {site.PLAN_FILE}") from None
    token = door.token_path(centre.private / "flower")
    shown = token.read_text(encoding="ascii") if token.exists() else ""
    return probing.Way(letters.address_of(*address), centre.certificates.authority, shown)
