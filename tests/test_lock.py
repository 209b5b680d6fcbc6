"""Every requirement of both distributions is locked, in a version that it allows, with hashes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tacit
import tacit_studies

ROOT = Path(__file__).parents[1]
PINNED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>.+?))? \\\n(?:    --hash.*\n?)+",
    re.MULTILINE,
)
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
PYTHONS = ("3.11", "3.12", "3.13")


def project(path: str) -> Any:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


ROOT_PROJECT, STUDIES = project("pyproject.toml"), project("studies/pyproject.toml")


def expanded(requirements: list[str], extras: dict[str, list[str]]) -> Iterator[Requirement]:
    """Requirements with those of tacit's own extras in place of their names."""
    for requirement in map(Requirement, requirements):
        if requirement.name == "tacit":
            for extra in requirement.extras:
                yield from expanded(extras[extra], extras)
        else:
            yield requirement


def required() -> list[Requirement]:
    """What both distributions, their development and their build need."""
    extras = ROOT_PROJECT["project"]["optional-dependencies"]
    lines = [*ROOT_PROJECT["project"]["dependencies"], *extras["dev"]]
    lines += STUDIES["project"]["dependencies"]
    lines += [*ROOT_PROJECT["build-system"]["requires"], *STUDIES["build-system"]["requires"]]
    return list(expanded(lines, extras))


def environment_of(python: str) -> dict[str, str]:
    """What markers are about, with a version of Python on Linux."""
    versions = {"python_version": python, "python_full_version": f"{python}.0"}
    platform = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
    return versions | platform


def pinned(lock: str, name: str, python: str) -> list[str]:
    """The versions of a distribution that a lock gives to a version of Python on Linux."""
    environment = environment_of(python)
    return [
        pin["version"]
        for pin in PINNED.finditer(lock)
        if canonicalize_name(pin["name"]) == canonicalize_name(name)
        and (
            pin["marker"] is None or Requirement(f"x; {pin['marker']}").marker.evaluate(environment)  # type: ignore[union-attr]
        )
    ]


def unlocked(lock: str, requirements: list[Requirement], python: str) -> list[str]:
    """The requirements that a lock does not satisfy by exactly one version."""
    missing = []
    for requirement in requirements:
        marker = requirement.marker
        if marker is not None and not marker.evaluate(environment_of(python)):
            continue
        versions = pinned(lock, requirement.name, python)
        if len(versions) != 1 or versions[0] not in requirement.specifier:
            missing.append(str(requirement))
    return missing


@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_is_locked(python: str) -> None:
    assert unlocked(LOCK, required(), python) == [], "run: make lock"


def test_every_line_of_the_lock_has_a_hash() -> None:
    lines = [line for line in LOCK.splitlines() if re.match(r"[A-Za-z]", line)]
    assert len(lines) == len(PINNED.findall(LOCK)) > 100


@pytest.mark.parametrize(
    ("lock", "missing"),
    [
        ("click==8.1 \\\n    --hash=sha256:ab\n", []),
        ("click==7.0 \\\n    --hash=sha256:ab\n", ["click>=8.1"]),
        ("click==8.1 ; python_full_version < '3.12' \\\n    --hash=sha256:ab\n", ["click>=8.1"]),
        ("click==8.1\n", ["click>=8.1"]),
        ("", ["click>=8.1"]),
    ],
)
def test_a_requirement_that_is_not_locked_is_found(lock: str, missing: list[str]) -> None:
    assert unlocked(lock, [Requirement("click>=8.1")], "3.12") == missing


def test_both_distributions_have_one_version() -> None:
    assert tacit_studies.__version__ == tacit.__version__
    assert f"tacit=={tacit.__version__}" in STUDIES["project"]["dependencies"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {tacit.__version__}\n" in citation


def test_both_distributions_support_the_same_pythons() -> None:
    keys = ("requires-python", "license")
    assert [STUDIES["project"][k] for k in keys] == [ROOT_PROJECT["project"][k] for k in keys]
    for each in (ROOT_PROJECT, STUDIES):
        listed = [c for c in each["project"]["classifiers"] if "Python ::" in c]
        assert listed == [f"Programming Language :: Python :: {python}" for python in PYTHONS]
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "studies" / "LICENSE").read_bytes()
