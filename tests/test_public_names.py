"""What a package offers is what its stub lists, and is imported when it is first used."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import tacit
from tests.terminal import in_python

PACKAGES = ("tacit", "tacit.protocol", "tacit.privacy.mechanisms", "tacit.testing")


def stub_of(package: str) -> ast.Module:
    path = Path(str(importlib.import_module(package).__file__)).with_suffix(".pyi")
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(stub: ast.Module) -> list[str]:
    return [
        each.name
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    ]


def listed(stub: ast.Module) -> list[str]:
    (names,) = [
        ast.literal_eval(node.value)
        for node in stub.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return list(names)


def test_every_stub_is_tested() -> None:
    root = Path(tacit.__file__).parent
    stubs = {path.parent.relative_to(root.parent).as_posix() for path in root.rglob("*.pyi")}
    assert stubs == {name.replace(".", "/") for name in PACKAGES}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_listed_name_is_there(package: str) -> None:
    stub, module = stub_of(package), importlib.import_module(package)
    assert len(listed(stub)) == len(set(listed(stub))) > 10
    assert set(listed(stub)) == set(imported(stub)) == set(module.__all__)
    assert all(hasattr(module, name) for name in listed(stub))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_is_imported_when_it_is_first_used(package: str) -> None:
    code = f"import sys, {package}; print('numpy' in sys.modules)"
    assert in_python(code).stdout == "False\n"
