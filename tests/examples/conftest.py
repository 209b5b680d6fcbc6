"""Examples stand outside the package; a test borrows one's modules and gives them back."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

Borrow = Callable[..., ModuleType]


@pytest.fixture(scope="module")
def borrow() -> Iterator[Borrow]:
    """Import a module of an example, by the example's folder and the module's name."""
    paths, before = list(sys.path), set(sys.modules)

    def borrowed(example: str, module: str) -> ModuleType:
        folder = str(EXAMPLES / example)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return importlib.import_module(module)

    yield borrowed
    sys.path[:] = paths
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(EXAMPLES)):
            del sys.modules[name]
