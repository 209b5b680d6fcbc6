"""``tacit init``: files to begin with."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tacit.cli.federation.templates import party_text, plan_text
from tacit.cli.shell import show
from tacit.data.scaling.units import UNITS
from tacit.running.deployment.server import Coordinator
from tacit.running.session.party.service import read_identity

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Parties = dict[str, str | None]
"""Names with their public identity keys, None where these are not known."""
KEY = re.compile(r"[0-9a-fA-F]{64}")
EXAMPLES = """\b
Examples:
  tacit init --coordinator study --parties a,b,c
  tacit init --party a hospital-a
  tacit init --party b --unit log-odds hospital-b
"""


def _parties(context: click.Context, option: click.Parameter, text: str) -> Parties:
    """Names with their keys, where these are given."""
    parties: Parties = {}
    for part in text.split(","):
        name, equals, key = part.partition("=")
        check_name(name)
        if equals and not KEY.fullmatch(key):
            raise click.BadParameter(f"a key has 64 hexadecimal digits, got {key!r}")
        if name in parties:
            raise click.BadParameter(f"a name appears twice in {text!r}")
        parties[name] = key.lower() if equals else None
    return parties


def _name(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    if text is not None:
        check_name(text)
    return text


def check_name(name: str) -> None:
    """Refuse a name that no party can have.

    Raises
    ------
    click.BadParameter : with the name.
    """
    if not NAME.fullmatch(name):
        raise click.BadParameter(
            f"a name has 1 to 64 letters, digits, dots, dashes and underscores, got {name!r}"
        )


@click.command(epilog=EXAMPLES)
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--coordinator", is_flag=True, help="Write a plan.")
@click.option("--party", callback=_name, metavar="NAME", help="Write this party's own file.")
@click.option(
    "--parties",
    callback=_parties,
    metavar="NAME[=KEY],...",
    default="a,b,c",
    show_default=True,
    help="--coordinator: who takes part, with the identities that `tacit keys` showed them.",
)
@click.option(
    "--unit",
    type=click.Choice(UNITS),
    help="The unit of the party's scores, or in which the plan's protocol takes scores. By default "
    "probability.",
)
def init(
    folder: Path, coordinator: bool, party: str | None, parties: Parties, unit: str | None
) -> None:
    """Write commented files to begin a federation with into FOLDER: a plan, or a party's file.

    Files that exist are never touched.
    """
    if coordinator == (party is not None):
        raise click.UsageError("give either --coordinator or --party NAME")
    if party is None:
        key = _coordinator_key(folder)
        path, text = folder / "plan.toml", plan_text(_plan_name(folder), parties, key, unit)
    else:
        path, text = folder / "party.toml", party_text(party, unit=unit)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise click.ClickException(f"{path} exists already, and was left as it is") from None
    show(f"written: {path}")


def _plan_name(folder: Path) -> str:
    name = folder.resolve().name
    return name if NAME.fullmatch(name) else "federation"


def _coordinator_key(folder: Path) -> str | None:
    """The coordinator's public key, where it was made already."""
    path = Coordinator(folder).identity
    return read_identity(path).public.hex() if path.exists() else None
