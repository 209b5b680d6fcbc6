"""A campaign's folder for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.collecting.folder import Folder
from tests.collecting.support import new_folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder with a signed campaign that is open for long."""
    return new_folder(tmp_path)
