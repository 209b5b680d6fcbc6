"""Tests of the pages, and the programs that make parts of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

GENERATING = Path(__file__).parents[2] / "docs" / "generating"


def generator(name: str) -> ModuleType:
    """A program beside the pages, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(f"generating_{name}", GENERATING / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
