"""Commands that other distributions add, and what is said where one is missing or broken."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import Distribution, EntryPoint, EntryPoints, distributions
from pathlib import Path

import click
import pytest

from tacit.cli import main, plugins
from tacit.cli.plugins import GROUP, INSTALLABLE
from tests import known
from tests.terminal import refusal_of, run

MODULE = """
import click

@click.command()
@click.option("--loud", is_flag=True, help="Say it loudly.")
def extra(loud):
    \"\"\"Say something more.\"\"\"
    click.echo("MORE" if loud else "more")

number = 3
"""


def installed(folder: Path, distribution: str, **commands: str) -> Distribution:
    """A distribution in a folder that adds commands."""
    info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in commands.items())
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")
    return Distribution.at(info)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules and distributions, which are found like installed ones."""
    (tmp_path / "tacit_extra.py").write_text(MODULE)
    (tmp_path / "tacit_broken.py").write_text("import a_module_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("tacit_extra", "tacit_broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def refusal(*arguments: str) -> str:
    return refusal_of(run(*arguments))


def test_a_command_of_another_distribution_runs_and_is_listed(folder: Path) -> None:
    installed(folder, "tacit-extra", extra="tacit_extra:extra")
    assert run("extra", "--loud").stdout == "MORE\n"
    assert "Say it loudly" in run("extra", "-h").stdout
    assert "extra " in run("--help").stdout
    assert "Say something more." in run("--help").stdout


def test_a_plugin_is_imported_only_where_it_is_shown_or_run(folder: Path) -> None:
    installed(folder, "tacit-extra", extra="tacit_extra:extra")
    assert run("evaluate", "--help").exit_code == 0
    assert "tacit_extra" not in sys.modules
    assert run("extra").exit_code == 0
    assert "tacit_extra" in sys.modules


def test_our_command_comes_before_one_of_the_same_name(folder: Path) -> None:
    installed(folder, "tacit-extra", evaluate="tacit_extra:extra")
    context = click.Context(main)
    command = known(main.get_command(context, "evaluate"))
    assert known(command.callback).__module__ == "tacit.cli.evaluate"
    assert main.list_commands(context).count("evaluate") == 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("tacit_broken:extra", "cannot be loaded: No module named 'a_module_that_nobody_has'"),
        ("tacit_extra:absent", "cannot be loaded: module 'tacit_extra' has no attribute 'absent'"),
        ("tacit_extra:number", "is no click.Command but 3"),
    ],
)
def test_a_broken_command_is_one_sentence(folder: Path, value: str, said: str) -> None:
    installed(folder, "tacit-extra", extra=value)
    for arguments in (("extra",), ("extra", "--loud", "x"), ("extra", "--help")):
        assert refusal(*arguments) == f"the command extra of tacit-extra {said}"
    assert run("--help").exit_code == 0
    assert run("evaluate", "--help").exit_code == 0


def test_a_name_that_two_distributions_add_is_refused_with_both(folder: Path) -> None:
    installed(folder, "tacit-extra", extra="tacit_extra:extra")
    installed(folder, "tacit-again", extra="tacit_extra:extra")
    said = refusal("extra")
    assert "the command extra is added by two distributions: tacit-again and tacit-extra" in said


@pytest.mark.parametrize("name", INSTALLABLE)
def test_a_missing_command_names_its_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda **selected: EntryPoints(()))
    for arguments in ((name,), (name, "list"), (name, "--help")):
        assert f"pip install {INSTALLABLE[name][1]}" in refusal(*arguments)
    assert f"  {name}" not in run("--help").stdout


def test_a_distribution_without_metadata_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("extra", "a_module_that_nobody_has:extra", GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda **selected: EntryPoints((point,)))
    assert "the command extra of an unknown distribution cannot be loaded" in refusal("extra")


def test_commands_that_are_installable_belong_to_distributions_of_this_repository() -> None:
    """Where they are installed, as here, each adds the command that is said of it."""
    names = {
        dist.name: {p.name for p in dist.entry_points if p.group == GROUP}
        for dist in distributions()
    }
    assert all(name in names[distribution] for name, (distribution, _) in INSTALLABLE.items())


LISTING = ("tacit.cli.evaluate", "tacit_studies.registry", "scipy", "pyarrow", "cryptography")


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], LISTING),
        (["plan", "--help"], ("tacit_studies", "scipy.stats", "scipy.interpolate")),
    ],
)
def test_our_commands_start_without(arguments: list[str], absent: tuple[str, ...]) -> None:
    """Every start of a command would pay for them."""
    script = (
        f"import sys; from tacit.cli import main; main({arguments}, standalone_mode=False); "
        f"sys.exit(any(name.startswith({absent}) for name in sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", script], check=False, stdout=subprocess.DEVNULL)
    assert process.returncode == 0


def test_an_option_that_takes_several_values_is_given_twice() -> None:
    several = refusal("evaluate", "absent.csv", "--at", "0.1", "--at", "0.2", "--epsilon", "1")
    assert "given twice" not in several
