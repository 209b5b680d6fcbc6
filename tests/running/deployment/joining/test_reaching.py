"""What a site is told while its coordinator's server cannot be reached, and through a proxy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tacit.running.deployment import door
from tacit.running.deployment.flower_programs import programs
from tacit.running.deployment.flower_programs.programs import versions
from tacit.running.deployment.inviting import publish_roster
from tacit.running.deployment.site import RefusedError, ask, proxy_for, reach, trust
from tests.running.deployment.joining.studies import (
    Study,
    connect_proxy,
    quick_codes,
    sent_by,
    tls_server,
)
from tests.running.desks import Clock

pytest.importorskip("flwr")
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    with tls_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def test_nothing_listens(server: tuple[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sentence comes before the first attempt, the reason with it, and then from time to
    time until the patience is over."""
    address, clock, said = f"localhost:{programs.free_port()}", Clock(), list[str]()
    monkeypatch.setattr(programs, "time", clock)
    with pytest.raises(programs.DeploymentError, match=r"nothing listens .* gave up after 60 s"):
        reach(address, server[1], said.append, 60.0)
    assert said[0] == f"connecting to {address}"
    assert said[1].startswith(f"cannot reach {address} (the connection is refused")
    assert said[1].endswith("retrying, 60 s left, Ctrl-C ends")
    assert 3 <= len(said) <= 6
    assert clock.seconds == 60.0


def test_a_name_that_nobody_knows(server: tuple[int, Path]) -> None:
    with pytest.raises(programs.UnreachableError, match="does not know the name of the server"):
        ask("no-such-host.invalid:1", server[1])


def test_another_server_is_refused_at_once(server: tuple[int, Path], tmp_path: Path) -> None:
    with tls_server(tmp_path) as (_, foreign), pytest.raises(RefusedError, match="may not be the"):
        reach(f"localhost:{server[0]}", foreign, lambda _: None, 60.0)


def test_a_name_outside_the_certificate_is_refused(tmp_path: Path) -> None:
    elsewhere = "127.0.0.2"
    with (
        tls_server(tmp_path, address=elsewhere) as (port, authority),
        pytest.raises(RefusedError, match="not for this name"),
    ):
        ask(f"{elsewhere}:{port}", authority)


def test_through_a_proxy(server: tuple[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """TLS ends at the server, not at the proxy: the certificate is checked through it."""
    port, authority = server
    with connect_proxy() as (proxy, asked):
        monkeypatch.setenv("https_proxy", f"http://user:secret@127.0.0.1:{proxy}")
        said: list[str] = []
        answer = reach(f"localhost:{port}", authority, said.append, 10.0, "token")
        assert (answer.status, answer.content) == (200, b"roster")
    assert asked == [f"CONNECT localhost:{port}"]
    assert said == [f"connecting to localhost:{port} through the proxy 127.0.0.1:{proxy}"]


def test_a_dead_proxy_is_named(server: tuple[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    port, dead = server[0], programs.free_port()
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{dead}")
    with pytest.raises(programs.UnreachableError, match=f"through the proxy 127.0.0.1:{dead}"):
        ask(f"localhost:{port}", server[1])


@pytest.mark.parametrize("user", ["", "http://", "http://me:pa/ss@", "me:p#ss@", "http://me:p?//@"])
def test_the_programs_of_one_machine_do_not_use_its_proxy(
    monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    monkeypatch.setenv("https_proxy", f"{user}proxy.example:3128")
    assert proxy_for("study.example:8443") == "proxy.example:3128"
    for name, value in programs.without_proxy({"no_proxy": "a.example"}).items():
        monkeypatch.setenv(name, value)
    assert proxy_for("127.0.0.1:9") == proxy_for("a.example:9") == ""


def got(app: door.App, path: str = door.ROSTER_PATH, token: str | None = None) -> tuple[int, bytes]:
    """The status and the body of an answer; None shows no token."""
    headers = [] if token is None else [(door.ROSTER_HEADER.encode(), token.encode())]
    head, body = sent_by(app, path, *headers)
    return head["status"], body["body"]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    quick_codes(monkeypatch)
    return Study.new(tmp_path, ("a",))


def door_of(study: Study, clock: Callable[[], float]) -> door.RosterDoor:
    closed = door.Door(lambda *_: None, "machine")  # type: ignore[arg-type]
    return door.RosterDoor(closed, study.coordinator.private, versions(), clock)


def test_the_roster_is_for_invited_sites(study: Study) -> None:
    token = study.invited("a").token
    entry = door_of(study, itertools.count(step=door.READ_EVERY).__next__)

    stranger = got(entry)
    assert stranger[0] == 403
    assert got(entry, token="x" * 64) == got(entry, token="") == stranger
    assert got(entry, "/tacit/other", token) == stranger
    assert got(entry, token=token)[0] == 409
    study.admitted("a")
    token = study.invited("a", again=True).token
    publish_roster(study.plan, study.coordinator)
    status, content = got(entry, token=token)
    assert (status, b"tacit-roster/3" in content) == (200, True)


def test_strangers_cause_no_reading(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    now, readings = [0.0], []
    read = door.tokens_in

    def counted(private: Path) -> Any:
        readings.append(now[0])
        return read(private)

    monkeypatch.setattr(door, "tokens_in", counted)
    entry = door_of(study, lambda: now[0])
    for token in ("x", "y", "z"):
        assert got(entry, token=token)[0] == 403
    assert readings == [0.0]
    token = study.invited("a").token
    assert got(entry, token=token)[0] == 403
    now[0] = door.READ_EVERY
    assert got(entry, token=token)[0] == 409
    assert readings == [0.0, door.READ_EVERY]


@pytest.mark.parametrize(("minutes", "old_works"), [(30, True), (-1, False)])
def test_an_old_servers_key_opens_no_site_after_the_date(
    tmp_path: Path, minutes: int, old_works: bool
) -> None:
    now = datetime.now(UTC)
    with (
        tls_server(tmp_path / "old", begins=now - timedelta(days=9)) as (old, first),
        tls_server(tmp_path / "new", begins=now + timedelta(minutes=minutes)) as (new, second),
    ):
        (tmp_path / "ca.crt").write_text(first.read_text() + second.read_text())
        trust(tmp_path)
        assert ask(f"localhost:{new}", tmp_path / "ca.crt").status == 200
        with nullcontext() if old_works else pytest.raises(RefusedError):
            assert ask(f"localhost:{old}", tmp_path / "ca.crt").status == 200
