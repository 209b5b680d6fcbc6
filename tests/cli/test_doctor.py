"""`tacit doctor` names what is wrong, and who mends it, and its output may be sent by mail."""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from tacit import Adjacency, Cost, Ledger, __version__
from tacit.crypto.identities import Identity
from tacit.ledger import entries
from tacit.ledger.entries import Entry
from tacit.running.deployment import door, inviting, keys, probing, site
from tacit.running.deployment.flower_programs import programs
from tacit.running.deployment.site import take_roster
from tacit.running.session.approval import Subject
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tests.running.deployment.joining import studies
from tests.running.deployment.joining.studies import Study, connect_proxy, quick_codes, tls_server
from tests.terminal import run

uvicorn = pytest.importorskip("uvicorn")
RECORDS = "score,label\n0.2,0\n0.8,1\n0.7,1\n"
PASSWORD = "not-for-a-mail"  # noqa: S105 -- looked for in the output


@dataclass
class Case:
    """A federation in which something goes wrong."""

    study: Study
    patch: pytest.MonkeyPatch
    port: int
    open: ExitStack
    runs: bool = True

    @property
    def home(self) -> Path:
        return self.study.folder / "a"

    def write(self, name: str, old: str, new: str) -> None:
        """Replace what a pattern finds in a file of site a, or as FOLDER/NAME."""
        path = self.study.folder / name if "/" in name else self.home / name
        text, count = re.subn(old, new, path.read_text(), count=1)
        assert count, name
        path.write_text(text)

    def serve_at(self, address: str) -> None:
        self.write("party.toml", r'server = ".*"', f'server = "{address}"')

    def proxy(self, port: int) -> None:
        self.patch.setenv("https_proxy", f"http://user:{PASSWORD}@127.0.0.1:{port}")


@contextmanager
def serving(study: Study, port: int) -> Iterator[None]:
    """The coordinator's server, as a stranger and an invited site meet it."""
    tls, private = study.coordinator.certificates, study.coordinator.private
    door.write_token(private / "flower")
    closed = door.Door(lambda *_: None, "machine")  # type: ignore[arg-type]
    app = door.RosterDoor(closed, private, programs.versions())
    quiet = {"lifespan": "off", "log_level": "critical", "ws": "none"}
    files = {"ssl_keyfile": str(tls.key), "ssl_certfile": str(tls.certificate)}
    everywhere = "0.0.0.0"  # noqa: S104 -- the address of a test
    config = uvicorn.Config(app, everywhere, port, **quiet, **files)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    port = programs.free_port()
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(studies, "SERVER", f"localhost:{port}")
    quick_codes(monkeypatch)
    with ExitStack() as running:
        yield Case(complete(tmp_path), monkeypatch, port, running)


def complete(folder: Path) -> Study:
    """A study whose three sites took the roster, and whose nodes the server lets in."""
    study = Study.new(folder)
    content = study.complete()
    plan, key = study.plan.read_text(), keys.stored_identity(study.coordinator.identity).public
    for name in "abc":
        take_roster(content, plan, folder / name, key)
        (folder / name / "records.csv").write_text(RECORDS)
    address = f'["127.0.0.1", {studies.SERVER.rpartition(":")[2]}]'
    (study.coordinator.private / "address.json").write_text(address)
    return study


def examined(case: Case, folder: str = "a") -> tuple[int, str]:
    """The exit status and the output of the command, which is typed and must be quick."""
    if case.runs:
        case.open.enter_context(serving(case.study, case.port))
    began = time.monotonic()
    with case.open:
        result = run("doctor", case.study.folder / folder)
    assert time.monotonic() - began < 10
    return result.exit_code, result.output


@pytest.mark.parametrize("folder", ["a", "centre"])
def test_nothing_fails_where_nothing_is_wrong(case: Case, folder: str) -> None:
    status, said = examined(case, folder)
    assert (status, "failing" in said, "unknown" in said) == (0, False, False), said


def expired(case: Case) -> None:
    case.patch.setattr(keys, "VALID", timedelta(minutes=-30))
    keys.make_certificates(case.study.coordinator.certificates, ["localhost"])
    shutil.copy(case.study.coordinator.certificates.authority, case.home / "ca.crt")


def decrypted(case: Case) -> None:
    """A proxy that ends TLS itself, with a certificate of its own authority."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "AUTHORITY", "Some Proxy")
        port, _ = case.open.enter_context(tls_server(case.study.folder / "proxy"))
    case.proxy(case.open.enter_context(connect_proxy(port))[0])


def a_day_ahead(case: Case, days: int = 1) -> None:
    case.patch.setattr(probing, "time", SimpleNamespace(time=lambda: time.time() + days * 86_400))


def another_identity(case: Case) -> None:
    (case.home / "identity.key").write_text(Identity.generate().to_bytes().hex())


def full(case: Case) -> None:
    case.open.enter_context(serving(case.study, case.port))
    case.runs = False

    def refuse(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    case.patch.setattr(os, "fsync", refuse)


def little_room(case: Case) -> None:
    case.patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))


def spent(case: Case) -> None:
    with Ledger(case.home / "ledger.db") as ledger:
        ledger.limit("my-records", 1.0)
        cost = Cost(1.0, adjacency=Adjacency.RECORD)
        ledger.debit(Entry("my-records", bytes(32), "p", "s", "run", bytes(32), cost))


def not_running(case: Case) -> None:
    case.runs = False


def no_tls(case: Case) -> None:
    case.runs = False
    case.open.enter_context(connect_proxy(port=case.port))


def another_authority(case: Case) -> None:
    keys.make_certificates(case.study.coordinator.certificates, ["localhost"])


def other_version(case: Case) -> None:
    case.open.enter_context(serving(case.study, case.port))
    case.runs = False
    told = programs.versions()
    case.patch.setattr(programs, "versions", lambda: {**told, "tacit": "0.0"})


def late_site(case: Case) -> None:
    case.study.admitted("d")
    case.study.complete()


def removed(name: str) -> Callable[[Case], object]:
    return lambda case: (case.study.folder / name).unlink()


def put(name: str) -> Callable[[Case], object]:
    return lambda case: (case.home / name).write_text("not what it should be")


def written(name: str, old: str, new: str) -> Callable[[Case], object]:
    return lambda case: case.write(name, old, new)


def at(address: str) -> Callable[[Case], object]:
    return lambda case: case.serve_at(address.format(port=case.port))


def invited_again(case: Case) -> None:
    case.study.invited("a", again=True)


PEOPLE = tuple(Identity.generate() for _ in range(2))


def asked(*change: str, until: date = date(2099, 1, 1)) -> Callable[[Case], object]:
    """Two people are to approve; what becomes of it."""

    def made(case: Case) -> None:
        keys_of = ", ".join(f'p{i} = "{each.public.hex()}"' for i, each in enumerate(PEOPLE))
        with (case.home / "party.toml").open("a") as file:
            file.write(f"[approval]\nneeded = 2\nkeys = {{ {keys_of} }}\n")
        subject = Subject(PartyFile.read(case.home / "party.toml"), Plan.read(case.study.plan))
        draft = subject.begin(2, until) if change else None
        for person in PEOPLE[: "signed" in change and len(change)]:
            assert draft is not None
            draft = subject.sign(draft, person)
        if "revoked" in change:
            with Ledger(case.home / "ledger.db") as ledger:
                subject.note(entries.REVOKED, ledger, subject.name_of(PEOPLE[0]))
        if "moved" in change:
            case.write("party.toml", 'dataset = "my-records"', 'dataset = "others"')

    return made


def key_renewed(case: Case, taken: bool = False) -> None:
    now = datetime.now(UTC)
    letter, _ = site.renew_identity(case.home / "party.toml", None, now)
    if taken:
        inviting.take_renewal(case.study.plan, letter.read_text(), now)
        case.study.complete()


def certificate_renewed(case: Case) -> None:
    keys.renew(case.study.coordinator.certificates, None, datetime.now(UTC))
    case.study.complete()


@pytest.mark.parametrize("folder", ["a", "centre"])
def test_what_is_renewed_is_named_with_its_times(case: Case, folder: str) -> None:
    key_renewed(case, taken=True)
    certificate_renewed(case)
    content = case.study.complete()
    public = keys.stored_identity(case.study.coordinator.identity).public
    take_roster(content, case.study.plan.read_text(), case.home, public)
    status, said = examined(case, folder)
    since = datetime.now(UTC) + keys.OVERLAP
    assert status == 0, said
    assert f"the key of a is used until {since:%Y-%m-%d}" in said
    assert re.search(rf"^ok +certificate .*; another from {since:%Y-%m-%d} .* until ", said, re.M)


other_name = written("centre/server/invitations/a.json", "localhost", "other.example")
centre_changed = written("centre/plan.toml", "epsilon = 1", "epsilon = 2")
SITE, CENTRE, NETWORK = "this site", "the coordinator", "the network"
STATES: dict[str, tuple[Callable[[Case], object], str, str, str]] = {
    "expired certificate": (expired, "certificate", "has expired", CENTRE),
    "wrong name": (at("127.0.0.2:{port}"), "certificate", "not for 127.0.0.2", CENTRE),
    "wrong port": (at("localhost:9"), "port", "nothing listens", SITE),
    "proxy eats TLS": (decrypted, "certificate", "Some Proxy", NETWORK),
    "proxy dead": (lambda case: case.proxy(9), "port", "proxy 127.0.0.1:9", SITE),
    "clock ahead": (a_day_ahead, "clock", "ahead of the server", SITE),
    "clock behind": (partial(a_day_ahead, days=-1), "clock", "s behind the server", SITE),
    "other version": (other_version, "versions", f"the server has tacit {__version__}", SITE),
    "unreadable key": (put("identity.key"), "identity key", "no identity", SITE),
    "open key": (lambda case: (case.home / "node.key").chmod(0o644), "node key", "644", SITE),
    "key gone": (removed("a/identity.key"), "identity key", "No such file", SITE),
    "keys of another roster": (another_identity, "plan", "does not name the key", SITE),
    "plan changed": (written("plan.toml", "epsilon = 1", "epsilon = 2"), "plan", "changed", SITE),
    "new roster": (late_site, "roster", "not the last one here", SITE),
    "roster missing": (removed("centre/server/roster.json"), "roster", "not all sites", CENTRE),
    "invitation replaced": (invited_again, "versions", "does not know this invitation", CENTRE),
    "full disk": (full, "disk", "No space left on device", SITE),
    "little room": (little_room, "disk", "256 MiB are free", SITE),
    "state not writable": (put("ledger-state"), "disk", "ledger-state takes no files", SITE),
    "file gone": (removed("a/records.csv"), "records", "records.csv is not there", SITE),
    "column gone": (written("records.csv", "label", "x"), "records", "no column 'label'", SITE),
    "bad record": (written("records.csv", "0.8", "O.8"), "records", "cannot be used", SITE),
    "limit spent": (spent, "ledger", "does not allow another run", SITE),
    "no limit": (written("party.toml", "(?s)\\[limit.*", ""), "ledger", "no limit is set", SITE),
    "ledger damaged": (put("ledger.db"), "ledger", "ledger.db", SITE),
    "host unknown": (at("no-such-host.invalid:1"), "name", "no-such-host.invalid", SITE),
    "not running": (not_running, "port", "nothing listens", CENTRE),
    "no TLS": (no_tls, "port", "does not speak TLS", CENTRE),
    "other federation": (another_authority, "certificate", "another federation's", CENTRE),
    "no approval": (asked(), "approval", "none was asked", SITE),
    "approval by 1 of 2": (asked("signed"), "approval", "signed by 1 of 2", SITE),
    "approval over": (asked("signed", "", until=date(2020, 1, 1)), "approval", "expired", SITE),
    "approval revoked": (asked("signed", "revoked"), "approval", "revoked", SITE),
    "approval of others": (asked("signed", "moved"), "approval", "out of scope", SITE),
    "renewal not taken": (key_renewed, "plan", "which waits", CENTRE),
    "renewed key": (partial(key_renewed, taken=True), "roster", "renews what roster", SITE),
    "renewed certificate": (certificate_renewed, "roster", "renews what roster", SITE),
    "no authority": (removed("a/ca.crt"), "certificate", "ca.crt is missing", SITE),
}
HERE: dict[str, tuple[Callable[[Case], object], str, str, str]] = {
    "expired certificate": (expired, "certificate", "has expired", CENTRE),
    "wrong name": (other_name, "certificate", "not for localhost, other.example", CENTRE),
    "key gone": (removed("centre/nodes/b.pub"), "plan", "no keys of b", CENTRE),
    "plan changed": (centre_changed, "plan", "not those that a, b, c got", CENTRE),
    "not running": (not_running, "server", "nothing listens", CENTRE),
    "other version": (other_version, "versions", f"the server has tacit {__version__}", CENTRE),
}


@pytest.mark.parametrize("state", [*STATES, *(f"centre: {name}" for name in HERE)])
def test_each_state_is_named_with_who_mends_it(case: Case, state: str) -> None:
    side, _, name = state.rpartition(": ")
    change, topic, says, who = (HERE if side else STATES)[name]
    change(case)
    status, said = examined(case, side or "a")
    failing = re.findall(r"^failing +(.*)\n +(.*)$", said, re.MULTILINE)
    assert status == 1, said
    named = [remedy for line, remedy in failing if line.startswith(topic) and says in line]
    assert [remedy.startswith(who) for remedy in named] == [True], said
    secrets = [PASSWORD, "O.8", str(case.study.folder)]
    for path in case.study.folder.rglob("*"):
        if path.suffix in (".key", ".token") and path.is_file():
            secrets.append(path.read_text(errors="replace").strip() or PASSWORD)
    assert not [secret for secret in secrets if str(secret) in said]
