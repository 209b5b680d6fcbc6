"""The names of protocols, and what is imported for one of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tacit.protocols.registry import PROTOCOLS, SettingError, kind_of, protocol_of

HEAVY = ("scipy.special", "scipy.stats", "pyarrow", "opendp", "dp_accounting", "tacit.planning")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_class_has_the_name_it_is_found_by(name: str) -> None:
    assert kind_of(name).name == name


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"must be one of fedauc, .*, got 'auc'"):
        protocol_of("auc", {})


@pytest.mark.parametrize("program", ["import tacit", "import tacit.protocols.registry"])
def test_importing_imports_little(program: str) -> None:
    """A federation's nodes start a process for every letter, which pays for what it imports."""
    told = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; {told}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
