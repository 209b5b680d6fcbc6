"""The steps of containers, compose file and systemd units, as far as they run without an engine."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from tacit.cli import main
from tacit.operating import Operated, telling
from tacit.running.deployment.flower_programs.programs import free_port
from tacit.running.deployment.server import PORT

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
COMPOSE = ROOT / "deploy" / "compose.yaml"
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))


def steps(word: str) -> list[str]:
    """The lines of the Containerfile that begin with a word, without it."""
    return re.findall(rf"^{word} (.*)$", CONTAINERFILE, re.MULTILINE)


def parsed(arguments: list[str]) -> None:
    """Let the command read a line's arguments, and run nothing."""
    context = click.Context(main)
    name, command, rest = main.resolve_command(context, list(arguments))
    assert command is not None
    with command.make_context(name, rest, parent=context):
        pass


def test_what_is_copied_is_there_and_sent_to_the_build_and_not_the_whole_clone() -> None:
    copied = {path for line in steps("COPY") if "--from" not in line for path in line.split()[:-1]}
    assert len(copied) >= 4
    assert all((ROOT / path).exists() for path in copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignored[0] == "*"
    assert {each[1:] for each in ignored if each.startswith("!")} == copied


def test_what_is_installed_exists() -> None:
    (line,) = [line for line in steps("RUN") if "pip install" in line]
    match = re.search(r"/source\[([a-z,-]+)\]", line)
    assert match is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(match[1].split(",")) <= set(project["optional-dependencies"])
    assert project["readme"] == "README.md"


def test_the_steps_that_need_no_engine_run() -> None:
    """The image's own check of the installed command, with this environment's command."""
    programs = [line for line in steps("RUN") if "/bin/tacit" in line]
    assert programs
    for line in programs:
        words = shlex.split(line.replace("/opt/tacit/bin", str(Path(sys.executable).parent)))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_it_runs_on_the_usual_port_as_an_ordinary_user_or_the_owner_of_its_folder() -> None:
    found = [*steps("USER"), *steps("EXPOSE"), *steps("STOPSIGNAL")]
    assert found == [
        "tacit",
        f"{PORT}",
        "SIGTERM",
    ]
    assert {service["user"] for service in services().values()} == {"${TACIT_USER:-10001:10001}"}
    assert "/data" in next(line for line in steps("RUN") if line.startswith("install"))


def services() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"])


def test_the_compose_file_has_a_coordinator_and_three_sites() -> None:
    known = services()
    assert set(known) == {"centre", "a", "b", "c"}
    volumes = [service["volumes"][0] for service in known.values()]
    assert len(set(volumes)) == len(volumes)
    build = known["centre"]["build"]
    assert (COMPOSE.parent / build["context"] / build["dockerfile"]).is_file()
    assert not any("ports" in known[site] for site in "abc")


def test_services_and_typed_lines_are_commands() -> None:
    texts = "\n".join(path.read_text("utf-8") for path in (COMPOSE, *MANIFESTS))
    typed = re.findall(r"(?:--no-deps \w+|exec \w+ tacit|-0 -- tacit) ([^>\n]+)", texts)
    arguments = [yaml.safe_load(each) for each in re.findall(r"args:\s+(\[.*?\])", texts, re.S)]
    assert (len(typed), len(arguments)) >= (8, 3)
    services_words = [part["command"] for part in services().values()]
    for words in (*map(shlex.split, typed), *arguments, *services_words):
        parsed(list(map(str, words)))


COMPOSE_CHECK = ("check_jsonschema", "--builtin-schema", "vendor.compose-spec")
MANIFEST_CHECK = ("kubernetes_validate", "--strict")


@pytest.mark.parametrize("path", [COMPOSE, *MANIFESTS], ids=lambda path: path.stem)
def test_a_validator_accepts_every_file(path: Path) -> None:
    """Its schema is that of the Compose specification, or of Kubernetes."""
    module, *options = COMPOSE_CHECK if path == COMPOSE else MANIFEST_CHECK
    pytest.importorskip(module)
    words = [sys.executable, "-m", module, *options, str(path)]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_asks_for_the_health_of_its_program() -> None:
    """At the address that the image names, by a command that fails with what it asks."""
    pytest.importorskip("prometheus_client")
    (line,), found = steps("HEALTHCHECK"), free_port()
    (port,) = re.findall(r"TACIT_METRICS=127\.0\.0\.1:(\d+)", CONTAINERFILE)
    _, *words = json.loads(line.partition(" CMD ")[2].replace(port, str(found)))
    for is_well in (True, False):
        told = Operated({"process": partial(bool, is_well)}, list)
        with telling(("127.0.0.1", found), told):
            done = subprocess.run([sys.executable, *words], capture_output=True, check=False)
        assert (done.returncode == 0) == is_well


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_starts_a_command_and_systemd_accepts_it(unit: Path, tmp_path: Path) -> None:
    """On a copy that names this environment's command, and a user and a folder that are here."""
    text = unit.read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=/opt/tacit/bin/tacit (.*)$", text, re.MULTILINE)
    parsed(shlex.split(line))
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    here = text.replace("/opt/tacit/bin/tacit", str(Path(sys.executable).parent / "tacit"))
    copy = tmp_path / unit.name
    copy.write_text(here.replace("User=tacit", "User=root").replace("/srv/tacit", str(tmp_path)))
    words = ["systemd-analyze", "verify", "--man=no", str(copy)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
