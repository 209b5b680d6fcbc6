"""What a deployment is made of: certificates, keys, guards, settings. No program is started."""

import importlib.metadata
import io
import json
import os
import shutil
import socket
import ssl
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from tacit import files
from tacit.cli.federation.inviting import party_text, plan_text
from tacit.running.deployment import keys, server
from tacit.running.deployment.flower_programs import guards, programs
from tacit.running.deployment.local import local_parties
from tacit.running.deployment.preview import preview
from tacit.running.deployment.site import user_line
from tacit.running.session.toml_source import PlanError
from tests.running.deployment.processes import HOSPITALS, WAIT
from tests.running.desks import Clock, federation, reopened

SETTINGS = {"plan": "/plan.toml", "identity": "/identity.key", "result": "/result.json"}


def made(folder: Path, *hosts: str) -> keys.Certificates:
    tls = keys.Certificates.within(folder, folder / "server")
    keys.make_certificates(tls, hosts)
    return tls


def shake_hands(server: keys.Certificates, authority: Path, name: str) -> None:
    """A TLS handshake by OpenSSL's rules."""
    first = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    first.load_cert_chain(server.certificate, server.key)
    second = ssl.create_default_context(cafile=authority)
    near, far = socket.socketpair()
    with near, far, ThreadPoolExecutor() as threads:
        host = threads.submit(first.wrap_socket, far, server_side=True)
        second.wrap_socket(near, server_hostname=name).close()
        host.result().close()


def test_a_free_port_is_none_that_an_outgoing_connection_may_get() -> None:
    """Linux gives these connections ports from 32768, other systems from 49152 (RFC 6335)."""
    assert programs.PORTS.stop <= 32_768
    assert programs.free_port() in programs.PORTS


def test_ports_that_are_taken_are_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(programs, "PORTS", range(port, port + 1))
        with pytest.raises(programs.DeploymentError, match=f"no free port among 100 from {port}"):
            programs.free_port()


def test_a_server_is_known_by_its_names_and_on_loopback(tmp_path: Path) -> None:
    names = ("study.example.org", "192.0.2.7", *keys.LOOPBACK)
    tls = made(tmp_path, *names[:2])
    for name in names:
        shake_hands(tls, tls.authority, name)
    assert set(keys.names_of(tls.served)) == set(names)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(tls, tls.authority, "other.example.org")


def test_private_files_are_their_owners_only(tmp_path: Path) -> None:
    tls = made(tmp_path, "localhost")
    keys.stored_identity(tmp_path / "identity.key")
    public = keys.stored_node_key(tmp_path / "node.key")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (public, tls.authority)}
    assert set(modes.values()) == {0o644}
    for path in (tls.key, tmp_path / "identity.key", tmp_path / "node.key"):
        assert path.stat().st_mode & 0o777 == 0o600
    secret = {path for path in tmp_path.rglob("*.*") if b"PRIVATE" in path.read_bytes()}
    assert secret == {tls.key, tmp_path / "node.key"}, "the authority's key is not kept"


def test_keys_are_made_once(tmp_path: Path) -> None:
    first = keys.stored_identity(tmp_path / "identity.key").public
    node = keys.stored_node_key(tmp_path / "node.key").read_bytes()
    assert keys.stored_identity(tmp_path / "identity.key").public == first
    assert keys.stored_node_key(tmp_path / "node.key").read_bytes() == node
    key = load_ssh_public_key(node)
    assert key.curve.name == "secp384r1"  # type: ignore[union-attr]


def test_node_keys_are_checked(tmp_path: Path) -> None:
    public = keys.stored_node_key(tmp_path / "node.key")
    assert keys.checked_node_key(public.read_bytes(), public) == public.read_bytes()
    for name, content in {"private": (tmp_path / "node.key").read_bytes(), "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(keys.KeyFileError, match="no public node key"):
            keys.checked_node_key(content, tmp_path / name)
    (tmp_path / "node.key").chmod(0o644)
    with pytest.raises(keys.KeyFileError, match="got mode 644"):
        keys.stored_node_key(tmp_path / "node.key")
    (tmp_path / "empty").chmod(0o600)
    with pytest.raises(keys.KeyFileError, match="holds no node key"):
        keys.stored_node_key(tmp_path / "empty")


def bundle(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for name, text in files.items():
            target.writestr(name, text)
    return packed.getvalue()


def project(server: str = guards.SERVER, client: str = guards.CLIENT) -> str:
    return f'[tool.flwr.app.components]\nserverapp = "{server}"\nclientapp = "{client}"\n'


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")
def test_the_application_that_we_write_passes_the_guard(tmp_path: Path) -> None:
    build = pytest.importorskip("flwr.cli.build")
    folder = guards.write_application(tmp_path / "application")
    guards.check_bundle(build.build_fab_from_disk(folder))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04 no archive", "cannot be read"),
        (b"0" * (guards.MAX_BUNDLE + 1), "more than settings"),
        ({"pyproject.toml": project(), "theirs.py": ""}, "its own files: theirs.py"),
        ({"pyproject.toml": project(), "tacit/__init__.py": ""}, "its own files"),
        ({"pyproject.toml": project(client="theirs:client")}, "its own components"),
        ({"pyproject.toml": project(server="os:abort")}, "its own components"),
        ({"pyproject.toml": "[tool.flwr.app]\ncomponents = 3\n"}, "its own components"),
        ({"pyproject.toml": "[tool]\nflwr = 3\n"}, "cannot be read"),
        ({"pyproject.toml": "no TOML"}, "cannot be read"),
        ({"pyproject.toml": project() + "# " + "x" * guards.MAX_FILE}, "too large"),
        ({".info/CONTENT": ""}, "cannot be read"),
    ],
)
def test_other_applications_are_refused(content: dict[str, str] | bytes, reason: str) -> None:
    with pytest.raises(guards.GuardError, match=reason):
        guards.check_bundle(content if isinstance(content, bytes) else bundle(content))


@pytest.mark.parametrize("change", [{}, *({name: "/etc/passwd"} for name in (*SETTINGS, "more"))])
def test_a_ticket_allows_its_settings_once(tmp_path: Path, change: dict[str, str]) -> None:
    allowed = guards.write_ticket(tmp_path, SETTINGS)
    with pytest.raises(guards.GuardError, match="are not those") if change else nullcontext():
        guards.use_ticket(tmp_path, allowed | change)
    with pytest.raises(guards.GuardError, match="on its own machine"):
        guards.use_ticket(tmp_path, allowed)


@pytest.mark.parametrize("ticket", ["", "0" * 32, "..", "../outside", None, 3])
def test_made_up_tickets_are_refused(tmp_path: Path, ticket: object) -> None:
    (tmp_path / "outside").write_text("{}")
    (tmp_path / "tickets").mkdir()
    with pytest.raises(guards.GuardError, match="on its own machine"):
        guards.use_ticket(tmp_path / "tickets", SETTINGS | {"ticket": ticket})


@pytest.mark.parametrize("name", guards.REFUSED)
def test_programs_of_other_kinds_are_not_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        guards.main(name)
    assert (ended.value.code, name in capsys.readouterr().err) == (2, True)


def test_guards_that_are_there_are_not_written_again(tmp_path: Path) -> None:
    """The system runs no file that is open for writing, and goes on to the next of that name."""

    def seen() -> dict[str, tuple[int, int]]:
        places = {path.name: path.stat() for path in folder.iterdir()}
        return {name: (place.st_ino, place.st_mtime_ns) for name, place in places.items()}

    folder = guards.write_guards(tmp_path / "programs")
    before, changed = seen(), folder / guards.PROGRAMS[0]
    assert guards.write_guards(folder) == folder
    assert before == seen()
    changed.write_text("#!/bin/sh\n")
    guards.write_guards(folder)
    assert changed.stat().st_ino != before[changed.name][0]
    assert (changed.stat().st_mode & 0o777, "launcher" in changed.read_text()) == (0o700, True)


def test_without_a_guard_nothing_is_run(tmp_path: Path) -> None:
    """A guard that cannot be run is not passed over for the program that it guards."""
    folder = guards.write_guards(tmp_path / "programs")
    other, bare = tmp_path / "other", tmp_path / "bare"
    other.mkdir()
    bare.mkdir()
    (bare / "flwr").touch(0o700)
    path = programs.search_path(folder, os.pathsep.join(map(str, (bare, other))))
    assert path.split(os.pathsep) == [str(folder), str(other)]
    assert str(bare) in programs.search_path(None, str(bare)).split(os.pathsep)
    (folder / "flwr").chmod(0o600)
    assert shutil.which("flwr", path=path) is None


def test_the_guard_covers_every_program_that_flower_starts() -> None:
    constants = pytest.importorskip("flwr.supercore.constant")
    tasks = set(constants.TASK_TYPE_TO_COMMAND.values())
    assert {*guards.PROGRAMS, *guards.REFUSED} >= tasks
    installed = importlib.metadata.distribution("flwr").entry_points
    assert {*guards.PROGRAMS, *guards.REFUSED} == {point.name for point in installed}


def test_local_parties_have_their_files_beside_the_plan(tmp_path: Path) -> None:
    assert list(local_parties(HOSPITALS / "plan.toml", 3)) == ["a", "b", "c"]
    plan, file = tmp_path / "plan.toml", tmp_path / "a" / "party.toml"
    for name in ("..", "a/b", ".tacit", " "):
        plan.write_text(plan_text("study", {name: None}))
        with pytest.raises(PlanError, match="name must be one of a folder"):
            local_parties(plan, 1)
    plan.write_text(plan_text("study", {"a": None}))
    with pytest.raises(PlanError, match="party 'a' has no file"):
        local_parties(plan, 1)
    file.parent.mkdir()
    file.write_text(party_text("b"))
    with pytest.raises(PlanError, match="is of party 'b', not of 'a'"):
        local_parties(plan, 1)


@pytest.mark.parametrize(
    ("protocol", "limit", "row", "told"),
    [
        ('name = "dpauc"\nepsilon = 1.0', "epsilon = 3.5", "ledger", "enough for 3 more runs"),
        ('name = "dpauc"\nepsilon = 1.0', "epsilon = 1.0", "ledger", "enough for 1 more run"),
        ('name = "dpauc"\nepsilon = 1.0', "epsilon = inf", "ledger", "enough for any number"),
        ('name = "dpauc"\nepsilon = 1.0', "", "ledger", "nothing will be answered"),
        ('name = "fedauc"\nepsilon = 1.0', "epsilon = 3.0", "ledger", "enough for 0 more runs"),
        ('name = "exact"', "epsilon = 3.0", "ledger", "enough for 0 more runs"),
        ('name = "exact"', "", "a run costs", "no differential privacy"),
        ('name = "dpauc"\nepsilon = 0.5', "", "a run costs", "at most epsilon 0.5; hides"),
        ('name = "exact"', "", "data set", "registry: 60 records"),
    ],
)
def test_what_a_run_costs(tmp_path: Path, protocol: str, limit: str, row: str, told: str) -> None:
    """What a single party is told before it joins."""
    federation(tmp_path, protocol, parties=1, limit=limit)
    assert told in dict(preview(reopened(tmp_path, 0)))[row]


def program(tmp_path: Path, code: str) -> programs.Program:
    return programs.Flower(tmp_path / "home").start(tmp_path / "log", sys.executable, "-c", code)


def test_a_program_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    with (
        program(tmp_path, "print('\\x1b[91mno port\\x1b[0m'); raise SystemExit(3)") as part,
        pytest.raises(programs.DeploymentError, match="ended with status 3: no port; see"),
    ):
        part.wait_until(lambda: False, WAIT)


def test_a_program_that_is_never_ready_is_not_waited_for(tmp_path: Path) -> None:
    with (
        program(tmp_path, "import signal; signal.pause()") as part,
        pytest.raises(programs.DeploymentError, match="was not ready in 0 seconds"),
    ):
        part.wait_until(lambda: False, 0.01)
    assert not part.is_running


def test_flower_gets_its_own_settings_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLWR_HOME", "/the/users/own")
    monkeypatch.setenv("FLWR_SOMETHING", "else")
    code = "import os; print(sorted((k, v) for k, v in os.environ.items() if 'FLWR_' in k))"
    said: list[str] = []
    flower = programs.Flower(tmp_path / "home", tell=said.append)
    with (
        flower.start(tmp_path / "log", sys.executable, "-c", code) as part,
        pytest.raises(programs.DeploymentError),
    ):
        part.wait_until(lambda: False, WAIT)
    assert str(tmp_path / "home") in part.said()
    assert "/the/users/own" not in part.said()
    assert "SOMETHING" not in part.said()
    assert said[0].startswith(f"+ FLWR_HOME={tmp_path / 'home'} ")


def test_a_flower_command_that_fails_is_told_in_its_words(tmp_path: Path) -> None:
    refusal = {"success": False, "error-message": "first line\n\nno such node"}
    answers = {
        f"print({json.dumps(refusal)!r})": "first line no such node",
        "print('went wrong'); raise SystemExit(1)": "went wrong",
        "pass": "no reason given",
    }
    for code, reason in answers.items():
        with pytest.raises(programs.DeploymentError, match=reason):
            programs.Flower(tmp_path).call(sys.executable, "-c", code)


def test_a_party_sees_what_tacit_tells_it(tmp_path: Path) -> None:
    lines = "\x1b[92mINFO\x1b[0m:  Receiving: query.letter message (ID: 1)\ntacit: refused\nhalf"
    with program(tmp_path, f"print({lines!r}, end='', flush=True); import time") as part:
        part.wait_until(lambda: part.said().endswith("half"), WAIT)
        part.query_to_end()
        assert [line for line in map(user_line, part.lines(WAIT)) if line] == ["refused"]


def test_one_process_alone_runs_a_server(tmp_path: Path) -> None:
    with (
        server.alone(tmp_path),
        pytest.raises(programs.DeploymentError, match="another process runs"),
        server.alone(tmp_path),
    ):
        pass
    with server.alone(tmp_path):
        pass


def test_a_key_lets_one_node_in(tmp_path: Path) -> None:
    coordinator = server.Coordinator(tmp_path)
    key = keys.stored_node_key(tmp_path / "node.key").read_bytes()
    coordinator.nodes.mkdir()
    for name in "ab":
        (coordinator.nodes / f"{name}.pub").write_bytes(key)
    with pytest.raises(keys.KeyFileError, match=r"b.pub holds the key of another node"):
        server.register_nodes(coordinator)


def test_expired_certificates_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "VALID", timedelta(seconds=-1))
    coordinator = server.Coordinator(tmp_path)
    keys.make_certificates(coordinator.certificates, ["localhost"])
    with pytest.raises(programs.DeploymentError, match="has expired"):
        server.start_server(coordinator, "127.0.0.1", 1)


def test_a_run_waits_a_minute_for_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tacit serve` may have been called a moment ago: it writes its address, then it listens."""
    coordinator, lines = server.Coordinator(tmp_path), list[str]()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        written = json.dumps(listening.getsockname()[:2]).encode()
        address = partial(files.write_private, coordinator.private / "address.json", written)
        clock = Clock(address, at=4.0)
        monkeypatch.setattr(programs, "time", clock)
        coordinator.wait_running(lines.append)
    assert clock.seconds == 4.0
    (line,) = lines
    assert "tacit serve; retrying, 60 s left, Ctrl-C ends" in line
    clock = Clock()
    monkeypatch.setattr(programs, "time", clock)
    with pytest.raises(programs.DeploymentError, match=r"no server listens on.*gave up after 60 s"):
        coordinator.wait_running(lines.append)
    assert clock.seconds == 60.0
