"""The names of protocols, and what is imported for one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tacit import DPAUC, ExactAUC
from tacit.protocol import SettingError, registry, setting
from tests.terminal import in_python

HEAVY = ("scipy.special", "scipy.stats", "pyarrow", "opendp", "dp_accounting", "tacit.planning")

MODULE = '''
"""A protocol in a package of its own."""

from dataclasses import dataclass

from tacit.protocol.settings import EPSILON, setting
from tacit.protocols.baselines import ExactAUC


@dataclass(frozen=True)
class Foreign(ExactAUC):
    """The exact AUC under another name, with a setting."""

    rounding: float = setting(default=0.0, help="to what the figure is rounded")
    epsilon: float = setting(default=1.0, help=EPSILON)

    name = "foreign-auc"
'''


@pytest.fixture(autouse=True)
def nothing_stays_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def install(folder: Path, distribution: str, entries: str) -> None:
    """A distribution as pip leaves it: a module, and its metadata with entry points."""
    module = distribution.replace("-", "_")
    (folder / f"{module}.py").write_text(MODULE)
    made = folder / f"{module}-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text(f"[tacit.protocols]\n{entries}\n")


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A Python with the packages of a folder, beside those that this one has."""
    folders = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
    )


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"must be one of .*fedauc, .*, got 'auc'"):
        registry.protocol_of("auc", {})


def test_a_comparison_has_the_name_of_its_protocol() -> None:
    assert "fedauc" in registry.comparison_names()
    compared = registry.with_settings(
        registry.comparison_kind_of("fedauc"), "fedauc", {"epsilon": 2.0}
    )
    assert compared.guarantee.epsilon == 2.0
    with pytest.raises(SettingError, match="must be one of fedauc, score-histogram, got 'dpauc'"):
        registry.comparison_kind_of("dpauc")


def test_the_names_of_one_package_are_those_that_no_other_has(tmp_path: Path) -> None:
    install(tmp_path, "foreign", "foreign-auc = foreign:Foreign\ndpauc = foreign:Foreign")
    code = (
        "from tacit.protocol.registry import names_registered_by as names\n"
        "print('dpauc' in names('tacit'), 'fedauc' in names('tacit'), names('foreign'))"
    )
    assert run(tmp_path, "-c", code).stdout == "False True ('foreign-auc',)\n"


def test_a_class_of_the_program_is_registered_by_a_decorator() -> None:
    @registry.register
    @dataclass(frozen=True)
    class Mine(ExactAUC):
        flavour: str = setting(default="mild", choices=("mild", "hot"), help="how")
        name = "mine"

    assert "mine" in registry.protocol_names()
    assert registry.kind_of("mine") is Mine
    assert registry.protocol_of("mine", {"flavour": "hot"}).settings == {"flavour": "hot"}


def test_a_class_may_be_defined_again_but_not_by_another() -> None:
    def defined() -> type[ExactAUC]:
        @dataclass(frozen=True)
        class Mine(ExactAUC):
            name = "mine"

        return Mine

    registry.register(defined())
    again = registry.register(defined())
    assert registry.kind_of("mine") is again

    @dataclass(frozen=True)
    class Other(ExactAUC):
        name = "mine"

    with pytest.raises(SettingError, match=r"several protocols are called 'mine': .*Mine and .*Ot"):
        registry.register(Other)


def test_a_name_that_a_package_has_is_not_registered_again() -> None:
    @dataclass(frozen=True)
    class Mine(DPAUC):
        pass

    with pytest.raises(SettingError, match=r"called 'dpauc': .*:DPAUC of tacit and .*Mine"):
        registry.register(Mine)


def test_a_protocol_of_another_package_runs_by_its_name(tmp_path: Path) -> None:
    install(tmp_path, "foreign-package", "foreign-auc = foreign_package:Foreign")
    records = tmp_path / "records.csv"
    records.write_text("score,label\n0.1,0\n0.4,1\n0.3,0\n0.9,1\n")
    tacit = ("-c", "from tacit.cli import main; main()", "evaluate")
    done = run(tmp_path, *tacit, records, "--protocol", "foreign-auc", "--rounding", 0.25)
    assert (done.returncode, done.stderr) == (0, "")
    assert "AUC" in done.stdout
    shown = run(tmp_path, *tacit, "--help-all")
    assert "--rounding FLOAT" in shown.stdout
    assert "foreign-auc: to what the figure is rounded." in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("name", "packages", "says"),
    [
        ("foreign-auc", ("one", "two"), ("are called 'foreign-auc'", "one:Foreign", "two:Foreign")),
        ("other-auc", ("one",), ("the protocol 'other-auc' calls itself 'foreign-auc'",)),
    ],
)
def test_a_name_that_two_packages_have_or_its_class_has_not_is_refused(
    tmp_path: Path, name: str, packages: tuple[str, ...], says: tuple[str, ...]
) -> None:
    for package in packages:
        install(tmp_path, package, f"{name} = {package}:Foreign")
    program = f"from tacit.protocol.registry import kind_of; kind_of('dpauc'); kind_of('{name}')"
    told = run(tmp_path, "-c", program).stderr
    assert all(each in told for each in says)


@pytest.mark.parametrize("program", ["import tacit", "import tacit.protocol.registry"])
def test_importing_imports_little(program: str) -> None:
    """A federation's nodes start a process for every message, which pays for what it imports."""
    message = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert in_python(f"{program}; {message}").stdout == "[]\n"
