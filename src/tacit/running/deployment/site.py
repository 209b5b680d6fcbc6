"""A site's side: an invitation becomes a folder with keys, a roster is taken, and a node dials out.

Whether a coordinator's server can be reached, said in words while a site waits for it. What a node
tells who operates it.

The request goes the way of Flower's own (``httpx``), so that a proxy in the environment
(``HTTPS_PROXY``, ``NO_PROXY``) is used in the same way: what fails here would fail there in
silence.
"""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from tacit import files, operating
from tacit.ledger.ledger import Ledger
from tacit.running.deployment import letters
from tacit.running.deployment.door import ROSTER_FILE, ROSTER_HEADER, ROSTER_PATH, write_token
from tacit.running.deployment.flower_programs import guards, programs
from tacit.running.deployment.flower_programs.template import start_template
from tacit.running.deployment.keys import OVERLAP, stored_identity, stored_node_key, trusted
from tacit.running.session.party_file import PartyFile, follower, identities, in_use
from tacit.running.session.plan_file import MINUTE, Plan, Renewal
from tacit.running.session.service import PartyDesk, read_identity
from tacit.running.speaking import LOG_PREFIX

INVITATION_FILE, ANSWER_FILE, RENEWAL_FILE = "invitation.json", "answer.json", "renewal.txt"
PLAN_FILE, AUTHORITY_FILE = "plan.toml", "ca.crt"
MAY_CHANGE = ("parties", "min_clients", "protocol", "deadline", "retries")
"""Fields of a plan that a roster may have otherwise than an invitation; some are checked apart."""
KEY_FILES = ("identity.key", "node.key")


def accept(invitation: letters.Invitation, folder: Path) -> letters.Answer:
    """Make a site's keys in a folder, and the answer that goes back; what is there is kept.

    The keys are made for this invitation. Anyone who wrote an invitation after he had seen the keys
    could search for two contents with one code (``letters``), or send a plan that has the keys
    already, whose roster would be taken without its code.

    Parameters
    ----------
    invitation : what the coordinator sent.
    folder : the site's folder, made if there is none.

    Raises
    ------
    LetterError : where the folder holds another invitation, another plan, or earlier keys.
    PlanError : for an invitation whose plan cannot be used.
    """
    plan = Plan.parsed(invitation.plan, "the invitation's plan")
    if plan.coordinator != invitation.coordinator:
        raise letters.LetterError(
            "the invitation's plan names another coordinator than the invitation"
        )
    letter, present = folder / INVITATION_FILE, ""
    if letter.exists():
        present = "" if letter.read_bytes() == invitation.to_bytes() else "another invitation"
    elif (folder / PLAN_FILE).exists():
        present = "a plan already"
    elif any((folder / name).exists() for name in KEY_FILES):
        present = "keys already"
    if present:
        raise letters.LetterError(f"{folder} holds {present}: accept this one into a new folder")
    files.write_private(letter, invitation.to_bytes())
    for name, text in ((PLAN_FILE, invitation.plan), (AUTHORITY_FILE, invitation.authority)):
        if not (folder / name).exists():
            files.write_public(folder / name, text.encode())
    identity = stored_identity(folder / "identity.key")
    node_key = stored_node_key(folder / "node.key").read_text(encoding="ascii").strip()
    answer = letters.Answer.to(invitation, identity, node_key)
    files.write_public(folder / ANSWER_FILE, answer.to_bytes())
    return answer


def invitation_in(folder: Path) -> letters.Invitation | None:
    """The invitation that a site accepted in a folder; None where it joined without one.

    Raises
    ------
    LetterError : for a file that holds none.
    """
    path = folder / INVITATION_FILE
    return letters.Invitation.of_bytes(path.read_bytes()) if path.exists() else None


def checked_roster(content: bytes, invitation: letters.Invitation, folder: Path) -> str:
    """The text of the plan in a roster, as far as a site can check it alone.

    The sites may be others than those of the invitation. All settings are those of the invitation,
    but how long a run waits; and a result may need more parties. The site's own key is there under
    its own name. The roster is no older than the last that the site took.

    Raises
    ------
    LetterError, PlanError : for a roster that the site must not take.
    """
    said = letters.read_roster(content, invitation.coordinator)
    number, text = said.number, said.plan
    new = Plan.parsed(text, "the roster")
    if not may_follow(invitation, new):
        raise letters.LetterError(
            "the coordinator's plan has other settings now than its invitation: agree on them, "
            "and accept a new invitation into a new folder"
        )
    mine = folder / KEY_FILES[0]
    party = next((each for each in new.parties if each.name == invitation.site), None)
    if party is None or party.key != read_identity(in_use(mine)).public:
        raise letters.LetterError(
            f"the roster has another key under the name {invitation.site!r}: call the coordinator; "
            "it takes a key that you renewed by the file that you sent"
        )
    if not {*party.keys} <= {read_identity(path).public for path in identities(mine)}:
        raise letters.LetterError(
            "the roster announces a key of this site that was not made here: this site's key was "
            "stolen; have the coordinator invite it again"
        )
    new.agreement()
    if said.authority:
        trusted(said.authority, datetime.now(UTC))
    last = last_taken(folder, invitation.coordinator)
    if last is not None and number < last.number:
        raise letters.LetterError(
            f"the roster has the number {number} and is older than the last that this site took, "
            f"{last.number}: the coordinator signs its plan again when it removes its {ROSTER_FILE}"
        )
    if last is not None and said != last and number == last.number:
        raise letters.LetterError(
            f"the coordinator signed two rosters with the number {number}, and this site took the "
            "other: call the coordinator"
        )
    return text


def may_follow(invitation: letters.Invitation, new: Plan) -> bool:
    """Whether a site that was invited to one plan may take another, whatever its sites are."""
    invited = Plan.parsed(invitation.plan, "the invitation")
    others = replace(new, **{name: getattr(invited, name) for name in MAY_CHANGE})
    settings = [(each.protocol.name, each.protocol.settings) for each in (new, invited)]
    least = new.min_clients >= invited.min_clients
    return others == invited and settings[0] == settings[1] and least


def last_taken(folder: Path, coordinator: bytes) -> letters.NumberedPlan | None:
    """The roster that a site took last; None before the first."""
    path = folder / ROSTER_FILE
    try:
        return letters.read_roster(path.read_bytes(), coordinator) if path.exists() else None
    except letters.LetterError as error:
        raise letters.LetterError(
            f"{path}: {error}; put the file back, or remove it and compare the code again"
        ) from None


def is_agreed(text: str, local_plan: str) -> bool:
    """Whether a roster says what the site's own plan says: sites, keys and what they sign.

    Keys may be followed by others, as those before announced them.
    """
    new, known = Plan.parsed(text, "the roster"), Plan.parsed(local_plan, PLAN_FILE)
    if not known.is_complete or len(new.parties) != len(known.parties):
        return False
    for party, before in zip(new.parties, known.parties, strict=True):
        if (party.name, party.keys[: len(before.keys)]) != (before.name, before.keys):
            return False
    new = replace(new, parties=known.parties)
    said = [(each.name, each.agreement().digest, each.on_loss) for each in (new, known)]
    return said[0] == said[1]


def renew_identity(party: Path, begins: datetime | None, now: datetime) -> tuple[Path, Renewal]:
    """Make a site's next identity key; the file that goes to the coordinator, and what it says.

    Parameters
    ----------
    party : the site's file.
    begins : when it is used first; None means after ``OVERLAP``.
    now : the time.

    Raises
    ------
    LetterError : where a next key waits already, and for a time that is over.
    PlanError : for a plan without the site's present key.
    """
    desk = PartyDesk.open(party)
    file, begins = desk.party_file, begins or now + OVERLAP
    listed, since = desk.plan.parties[desk.index], begins.strftime(MINUTE)
    if listed.keys[-1] != desk.identity.public or identities(file.identity)[-1] != file.identity:
        raise letters.LetterError("a new key waits already: remove its file to make another")
    if since <= now.strftime(MINUTE):
        raise letters.LetterError(f"the new key is used from a time to come, got {since}")
    new = stored_identity(follower(file.identity, begins))
    renewal = Renewal.made(desk.plan, file.name, desk.identity, new.public, since)
    files.write_public(party.parent / RENEWAL_FILE, f"{file.name} {renewal}\n".encode())
    return party.parent / RENEWAL_FILE, renewal


def take_roster(content: bytes, text: str, folder: Path, coordinator: bytes) -> None:
    """Keep a checked roster, and make its plan and its authorities the site's own copy.

    An earlier copy that differs is kept as plan.toml.before. The roster is kept first: what is
    older than it is refused from then on.
    """
    files.write_private(folder / ROSTER_FILE, content)
    trust(folder, letters.read_roster(content, coordinator).authority)
    plan = folder / PLAN_FILE
    if plan.exists() and plan.read_text(encoding="utf-8") == text:
        return
    if plan.exists():
        shutil.copyfile(plan, plan.with_name(f"{PLAN_FILE}.before"))
    files.write_public(plan, text.encode())


def trust(folder: Path, authorities: str | None = None) -> None:
    """Keep a site's authorities, PEM, less those whose time is over; None means those it has.

    A roster's authorities need no code: the coordinator signed them, and they say which server is
    dialled; they sign no message of a run. The last roster's number only ascends, so that no older
    one brings an authority back. A roster that is held back keeps none beyond its time
    (``trusted``).

    Raises
    ------
    KeyFileError : for a text that holds no certificates.
    """
    path = folder / AUTHORITY_FILE
    present = path.read_text(encoding="ascii") if path.exists() else ""
    told = authorities or present
    kept = trusted(told, datetime.now(UTC)) if told else ""
    if kept != present:
        files.write_public(path, kept.encode())


CONNECT_SECONDS, READ_SECONDS = 4.0, 15.0


class Reached(NamedTuple):
    """What a server answered.

    Parameters
    ----------
    status : of HTTP.
    content : the answer's body.
    headers : of the answer, by names in small letters.
    certificate : of the server, in DER.
    """

    status: int
    content: bytes
    headers: Mapping[str, str] = MappingProxyType({})
    certificate: bytes = b""


def proxy_for(server: str) -> str:
    """The proxy that the environment names for a server, without a password; empty for none."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get("https") or proxies.get("all") or ""
    host = letters.host_of(server)
    if not proxy or host == programs.LOOPBACK or urllib.request.proxy_bypass(host):
        return ""
    # a password may hold what ends the part of it: / ? #
    parts = urlsplit(f"//{proxy.rpartition('@')[2].rpartition('//')[2]}")
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def ask(server: str, authority: Path | None, token: str = "") -> Reached:
    """Ask a server once for its roster.

    Parameters
    ----------
    server : host and port.
    authority : the certificate of the server's authority; None takes any certificate, to see which
        it is, and shows no token.
    token : of an invitation; empty to see only whether the server answers.

    Raises
    ------
    RefusedError : for a server with another certificate.
    UnreachableError : with the reason, where it does not answer.
    FileNotFoundError : when the certificate is not there.
    """
    programs.require_flower()
    import httpx  # noqa: PLC0415 -- comes with Flower

    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    if authority is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    by_environment = letters.host_of(server) != programs.LOOPBACK
    seconds = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    headers = {ROSTER_HEADER: token} if token and authority is not None else {}
    url = f"https://{server}{ROSTER_PATH}"
    try:
        with (
            httpx.Client(verify=context, timeout=seconds, trust_env=by_environment) as client,
            client.stream("GET", url, headers=headers) as said,
        ):
            connection = said.extensions["network_stream"].get_extra_info("ssl_object")
            certificate = connection.getpeercert(True)  # in DER
            content = b"" if authority is None else said.read()
    except (httpx.HTTPError, OSError) as error:
        raise _translated(error, server) from None
    if len(content) > letters.MAX_LETTER:
        raise programs.UnreachableError(f"{server} sends more than a roster")
    return Reached(said.status_code, content, dict(said.headers), certificate)


def reach(
    server: str, authority: Path, tell: programs.Tell, patience: float, token: str = ""
) -> Reached:
    """Ask a server until it answers, and say why it does not.

    Parameters
    ----------
    server, authority, token : as ``ask`` takes them.
    tell : receives lines: one before the first attempt, one for each reason.
    patience : seconds after which this gives up.

    Raises
    ------
    RefusedError : as ``ask``.
    DeploymentError : when the time is over.
    """
    proxy = proxy_for(server)
    tell(f"connecting to {server}{f' through the proxy {proxy}' if proxy else ''}")
    return programs.retried(lambda: ask(server, authority, token), patience, tell)


def _translated(error: Exception, server: str) -> programs.DeploymentError:
    """An error of the network in a user's words."""
    causes = list(_causes(error))
    text = " ".join(str(cause) for cause in causes)
    if FOREIGN_SERVER in text:
        return RefusedError(FOREIGN_WORDS)
    proxy = proxy_for(server)
    through = f" through the proxy {proxy}" if proxy else ""
    return programs.UnreachableError(
        f"cannot reach {server}{through} ({_reason(causes, bool(proxy))})"
    )


UNKNOWN_NAME, NOTHING_LISTENS = "does not know the name", "nothing listens there"
NO_ANSWER, NO_TLS = "no answer in", "what listens there does not speak TLS"
"""Reasons for which a server cannot be reached."""


def _reason(causes: list[BaseException], through_proxy: bool) -> str:
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        named = "proxy" if through_proxy else "server"
        return f"this machine {UNKNOWN_NAME} of the {named}"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return f"the connection is refused: {NOTHING_LISTENS}"
    if any("timeout" in type(cause).__name__.lower() for cause in causes):
        return f"{NO_ANSWER} {CONNECT_SECONDS:.0f} s"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return NO_TLS
    first = causes[0]
    return f"{str(first) or type(first).__name__:.120}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


CONNECTED = "SuperNode ID:"
"""What Flower writes when the server has let a node in."""
RECEIVED = re.compile(r"Receiving: query\.(\w+) message")
WORDS = {"hello": "a run begins: asked who this party is"}
"""What arriving messages are called; what the others cost, the party itself says."""
LOST = "Connection attempt failed"
REACHED = "Connection successful"
UNKNOWN_KEY = "Failed to activate SuperNode"
FOREIGN_SERVER = "CERTIFICATE_VERIFY_FAILED"
FOREIGN_WORDS = (
    "the server's certificate is not of the authority in ca.crt, or not for this name: "
    "this may not be the server that it claims to be"
)


class RefusedError(programs.DeploymentError):
    """Node and server do not accept each other."""


def start_node(
    party: Path,
    server: str,
    authority: Path,
    key: Path,
    folder: Path,
    tell: programs.Tell | None = None,
    prepared: Path | None = None,
) -> programs.Program:
    """Start a SuperNode for a party's file; ``running.flower.client`` answers its messages.

    Parameters
    ----------
    party : the party's file, which every process that answers a message reads again.
    server : the server's address, as host:port.
    authority : the certificate of the server's authority.
    key : the party's private node key.
    folder : where Flower's configuration and the log go.
    tell : receives the command.
    prepared : a folder of guarded programs with a prepared process; None makes the node's own.

    Raises
    ------
    ImportError : when Flower is not installed.
    FileNotFoundError : when the certificate or the key is not there.
    """
    programs.require_flower()
    for path in (authority, key):
        path.stat()
    home = files.private_folder(folder)
    guarded = prepared or guards.write_guards(home / "programs")
    flower = programs.Flower(home / "flower", guarded, tell)
    write_token(flower.home)
    config = programs.settings_text({"party": str(party)})
    template = start_template(flower, guarded) if prepared is None else None
    return flower.start(
        home / "supernode.log",
        "flower-supernode",
        *("--root-certificates", str(authority)),
        *("--superlink", server),
        *("--auth-supernode-private-key", str(key)),
        *("--host", "127.0.0.1", "--port", str(programs.free_port())),
        *("--isolation", "process"),  # the guarded node starts processes that answer by itself
        *("--node-config", config),
        helper=template,
    )


def wait_connected(node: programs.Program, seconds: float) -> None:
    """Wait until the server has let a node in.

    Parameters
    ----------
    node : the node.
    seconds : how long.

    Raises
    ------
    RefusedError : when the server does not know its key, or is not the one that it claims to be.
    DeploymentError : when it ends for another reason, or the time is over.
    """
    try:
        node.wait_until(lambda: CONNECTED in node.said(), seconds)
    except programs.DeploymentError:
        said = node.said()
        if UNKNOWN_KEY in said:
            raise RefusedError(
                "the server does not know this node key, or it is already connected from another "
                "`tacit join`: end that one, or have the coordinator register node.key.pub"
            ) from None
        if FOREIGN_SERVER in said:
            raise RefusedError(FOREIGN_WORDS) from None
        raise


def user_line(line: str) -> str:
    """A line of a node's log as a user reads it; empty for Flower's own lines.

    Told are what begins, what the party said, and a connection that is lost or back.
    """
    if line.startswith(LOG_PREFIX):
        return line.removeprefix(LOG_PREFIX)
    if LOST in line:
        return "the server cannot be reached; retrying"
    if REACHED in line:
        return "the server is reached again"
    match = RECEIVED.search(line)
    return WORDS.get(match[1], "") if match else ""


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
    node: programs.Program | None = None
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

    def operated(self) -> operating.Operated:
        """Health of node, disk and ledger; whether it is connected, and what came."""
        ledger = self.party_file.ledger
        checks = {
            "process": lambda: self.node is None or self.node.is_running,
            "disk": lambda: operating.takes_writes(ledger.parent),
            "ledger": lambda: not ledger.exists() or _is_readable(ledger),
        }
        connected, came = "Whether the server is reached.", "What came of the server's messages."
        return operating.Operated(
            checks,
            lambda: [
                operating.gauge("tacit_connected", connected, self.is_connected),
                operating.counter("tacit_events_total", came, "event", dict(self.events)),
            ],
        )


def _is_readable(ledger: Path) -> bool:
    with Ledger.open_readonly(ledger) as pages:
        pages.datasets()
    return True
