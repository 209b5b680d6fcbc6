"""Flower's servers admit the programs of their own machine, and nodes, and nobody else."""

from __future__ import annotations

import importlib
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from tacit.running.deployment.door import HEADER, Door, check_closed, token_path, write_token
from tacit.running.deployment.flower_programs import guards
from tacit.running.deployment.flower_programs.programs import FOLDER, DeploymentError
from tests.running.deployment.joining.studies import sent_by, tls_server

TOKEN = "a" * 64


BEHIND = {"type": "behind"}


async def _behind(scope: Any, receive: Any, send: Any) -> None:
    await send(BEHIND)


def asked(path: str, *headers: tuple[bytes, bytes], kind: str = "http") -> list[Any]:
    """What a request is answered by a door, or by what is behind it."""
    return [*sent_by(Door(_behind, TOKEN, ("/v1/fleet/",)), path, *headers, kind=kind)]


SHOWN = (HEADER.encode(), TOKEN.encode())


CLOSED = ("/v1/control/list-runs", "/v1/runtime/acquire-task", "/docs", "/", "/v1/fleet")


@pytest.mark.parametrize("path", [*CLOSED, "/x/v1/fleet/", "//v1/fleet/"])
def test_a_door_is_closed_to_strangers(path: str) -> None:
    token, name = TOKEN.encode(), HEADER.encode()
    foreign = [(name, b""), (name, token[:-1]), (name, b"b" * 64), (b"authorization", token)]
    for headers in ([], [SHOWN, SHOWN], *([each] for each in foreign)):
        assert asked(path, *headers)[0]["status"] == 403
    assert asked(path, SHOWN) == [BEHIND]


def test_a_door_is_open_to_nodes_and_closed_to_sockets() -> None:
    assert asked("/v1/fleet/activate-node") == [BEHIND]
    assert asked("", kind="lifespan") == [BEHIND]
    closed = [{"type": "websocket.close", "code": 1008}]
    assert asked("/v1/control/list-runs", kind="websocket") == closed


def test_a_door_without_a_token_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a token, got an empty one"):
        Door(_behind, "")


def test_a_token_is_new_each_time_and_its_owners_only(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        write_token(tmp_path)
        made.append(token_path(tmp_path).read_text())
    assert len(made[0]) == 64
    assert made[0] != made[1]
    assert token_path(tmp_path).stat().st_mode & 0o777 == 0o600


GUARDED = (
    "flwr.superlink.main.create_app",
    "flwr.supernode.main.create_app",
    "flwr.supercore.protobuf.client.ProtobufClient.__init__",
    "flwr.supernode.start_client_internal._push_messages",
    "flwr.supernode.start_client_internal.time",
    "uvicorn.Server.shutdown",
)


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Flower's modules as they were, afterwards."""
    pytest.importorskip("flwr")
    for name in GUARDED:
        monkeypatch.setattr(name, resolve_name(name))
    return monkeypatch


def status_of(application: Any, path: str, *headers: tuple[str, str]) -> int:
    """The status of an empty protobuf request."""
    testing = importlib.import_module("starlette.testclient")
    kind = {"content-type": "application/protobuf", "accept": "application/protobuf"}
    client = testing.TestClient(application, raise_server_exceptions=False)
    return int(client.post(path, content=b"", headers={**kind, **dict(headers)}).status_code)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("program", "side"), [("flower-superlink", "superlink"), ("flower-supernode", "supernode")]
)
def test_flowers_servers_stand_behind_the_door(
    unguarded: pytest.MonkeyPatch, tmp_path: Path, program: str, side: str
) -> None:
    """Every route of Flower's own but those of nodes."""
    write_token(tmp_path)
    unguarded.setenv("FLWR_HOME", str(tmp_path))
    unguarded.setenv(FOLDER, str(tmp_path))
    guards._guard(program)
    application = importlib.import_module(f"flwr.{side}.main").create_app()
    shown = (HEADER, token_path(tmp_path).read_text())
    paths = set(application.openapi()["paths"]) | {"/docs", "/openapi.json"}
    open_paths = {path for path in paths if status_of(application, path) != 403}
    assert {path for path in open_paths if not path.startswith("/v1/fleet/")} == set()
    assert bool(open_paths) == (side == "superlink")
    assert any(path.startswith("/v1/runtime/") for path in paths)
    closed = sorted(paths - open_paths)
    assert all(status_of(application, path, shown) != 403 for path in closed[:5])


@pytest.mark.parametrize("status", [403, 200, 401, 404, 500])
def test_a_server_that_answers_a_stranger_is_not_used(tmp_path: Path, status: int) -> None:
    with tls_server(tmp_path, status) as (port, authority):
        if status == 403:
            check_closed("127.0.0.1", port, authority)
        else:
            said = f"answers requests without a token \\(status {status}\\)"
            with pytest.raises(DeploymentError, match=said):
                check_closed("127.0.0.1", port, authority)
    with pytest.raises(DeploymentError, match="does not answer"):
        check_closed("127.0.0.1", port, authority)


@pytest.mark.parametrize("name", ["flower-superlink", "flower-supernode"])
def test_a_server_without_a_token_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    pytest.importorskip("flwr")
    monkeypatch.setenv("FLWR_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        guards.main(name)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"{name} was not started by tacit: there is no {tmp_path / 'token'}" in said
