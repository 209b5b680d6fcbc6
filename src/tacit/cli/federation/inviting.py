"""Commands before the first run: ``tacit init``, ``invite``, ``admit`` and ``keys``.

``tacit init``: files to begin with. ``tacit invite``: one file for each site that is to join.
``tacit admit``: sites are taken into a plan by their answers.

``tacit keys``: makes a party's or the coordinator's keys, and shows their public parts.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from tacit.cli.federation import read_letter, show_rows, stoppable
from tacit.cli.federation.templates import party_text, plan_text
from tacit.cli.shell import once_by_name, show
from tacit.data import units
from tacit.running.deployment import keys as key_files
from tacit.running.deployment import server
from tacit.running.deployment.server import Coordinator
from tacit.running.files import write_private, write_public
from tacit.running.joining import coordinator as joining
from tacit.running.joining.letters import NAME, Answer, LetterError, is_code, roster_code
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import read_identity

Parties = dict[str, str | None]
"""Names with their public identity keys, None where these are not known."""
KEY = re.compile(r"[0-9a-fA-F]{64}")


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


def _named(context: click.Context, option: click.Parameter, given: Any) -> Any:
    """A party's name or several, or None where none is given."""
    for name in (given,) if isinstance(given, str) else given or ():
        check_name(name)
    return given


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


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--coordinator", is_flag=True, help="Write a plan.")
@click.option("--party", callback=_named, metavar="NAME", help="Write this party's own file.")
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
    type=click.Choice(units.UNITS),
    help="The unit of the party's scores, or in which the plan's protocol takes scores. By default "
    "probability.",
)
def init(
    folder: Path, coordinator: bool, party: str | None, parties: Parties, unit: str | None
) -> None:
    """Write a commented plan, or a party's own file, into FOLDER to begin with.

    Files that exist are never touched.

    Examples:
      tacit init --coordinator study --parties a,b,c
      tacit init --party a hospital-a
      tacit init --party b --unit log-odds hospital-b
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


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("sites", nargs=-1, callback=_named)
@click.option(
    "--server",
    metavar="HOST:PORT",
    help="Where sites reach the server; by default the first name of its certificate, port 8443.",
)
@click.option("--again", is_flag=True, help="Also for sites that have their keys in the plan.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the invitations; `invitations` in the folder of PLAN by default.",
)
def invite(
    plan: Path, sites: tuple[str, ...], server: str | None, again: bool, output: Path | None
) -> None:
    """Write an invitation to PLAN for each of SITES, one file to send to each.

    Without SITES, for every party of the plan that has no key yet. A name that is not in the plan
    invites a further site. The coordinator's keys and the server's certificate are made where they
    are missing.

    An invitation holds a secret that serves once: send it to its site only. A site accepts it with
    `tacit accept`; compare the code that both ends show by phone.

    Examples:
      tacit invite study/plan.toml --server study.example.org:8443
      tacit invite study/plan.toml west
    """
    with stoppable():
        coordinator, address = joining.prepare(plan, server)
        missing = [party.name for party in Plan.read(plan).parties if party.key is None]
        chosen = sites or tuple(missing)
        if not chosen:
            raise click.UsageError("every party of the plan has its key: name the site to invite")
        folder = output or plan.parent / "invitations"
        for site in chosen:
            letter = joining.invite(plan, site, coordinator, address, again)
            path = folder / f"{site}.json"
            write_private(path, letter.to_bytes())
            show(f"send to {site}: {path}")
    show(f"the server is {address}; answers come back to: tacit admit {plan}")


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("answers", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--code",
    "codes",
    multiple=True,
    callback=once_by_name,
    metavar="SITE=CODE",
    help="What the site read to you by phone; asked for where it is not given.",
)
def admit(plan: Path, answers: tuple[Path, ...], codes: dict[str, str]) -> None:
    """Take sites into PLAN by the ANSWERS that they sent.

    Call each site at a number that you know, and have it read its code: type what you hear. A code
    that differs means that an invitation or an answer was exchanged on its way. Answers with a
    right code are written into the plan and the folder of node keys; a running server notices.

    Examples:
      tacit admit study/plan.toml north-answer.json
      tacit admit study/plan.toml north-answer.json --code north=3f2a-91cc-77d0
    """
    coordinator = Coordinator.of(plan)
    wrong = []
    with stoppable():
        for path in answers:
            answer = read_letter(Answer, path)
            joining.open_record(coordinator, answer)
            if is_code(_heard(answer, codes), answer.code):
                joining.admit(plan, coordinator, answer)
                show(f"admitted: {answer.site}")
            else:
                wrong.append(answer.site)
        complete = joining.publish_roster(plan, coordinator)
    if wrong:
        raise LetterError(
            f"the code of {' and '.join(wrong)} is not the one of this answer: it was not admitted"
        )
    _show_standing(Plan.read(plan), complete)


def _heard(answer: Answer, codes: dict[str, str]) -> str:
    """The code that the site read."""
    if answer.site in codes:
        return codes[answer.site]
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"call {answer.site}, and give the code that it reads: --code {answer.site}=CODE"
        )
    heard = click.prompt(f"call {answer.site}; the code that it reads", type=str)
    return str(heard)


def _show_standing(plan: Plan, complete: bool) -> None:
    if complete:
        show(f"all {len(plan.parties)} sites are admitted; code of the roster: {roster_code(plan)}")
        show("the sites compare this code with each other when they join")
        return
    missing = [party.name for party in plan.parties if party.key is None]
    show(f"not admitted yet: {', '.join(missing)}")


HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?")


def _hosts(
    context: click.Context, option: click.Parameter, hosts: tuple[str, ...]
) -> tuple[str, ...]:
    for host in hosts:
        if not HOST.fullmatch(host):
            raise click.BadParameter(f"{host!r} is no host name and no address")
    return hosts


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--coordinator", is_flag=True, help="The coordinator's, with the server's TLS files.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    callback=_hosts,
    help="--coordinator: a name or address under which parties reach the server; may be repeated.",
)
def keys(folder: Path, coordinator: bool, hosts: tuple[str, ...]) -> None:
    """Make the keys that are missing in FOLDER, and show their public parts.

    An identity signs messages: its public key goes into the plan. A node key only opens the
    server's door. Keys that exist are kept. Private keys never leave the folder.

    Examples:
      tacit keys hospital-a
      tacit keys --coordinator --host study.example.org study
    """
    if hosts and not coordinator:
        raise click.UsageError("--host needs --coordinator")
    with stoppable():
        public = key_files.stored_identity(folder / "identity.key").public.hex()
        write_public(folder / "identity.pub", f"{public}\n".encode())
        rows = [("identity", f"{public}  (into the plan; also in {folder / 'identity.pub'})")]
        if coordinator:
            rows += _certificate_rows(server.Coordinator(folder).certificates, hosts)
        else:
            node = key_files.stored_node_key(folder / "node.key")
            rows.append(("node key", f"{node}  (to the coordinator's folder nodes)"))
    show_rows(rows)


def _certificate_rows(
    files: key_files.Certificates, hosts: tuple[str, ...]
) -> list[tuple[str, str]]:
    if not files.exist:
        if not hosts:
            raise click.UsageError("the server's certificate needs --host NAME")
        key_files.make_certificates(files, hosts)
    known = key_files.hosts_of(files.certificate)
    if not set(hosts) <= set(known):
        raise click.ClickException(
            f"the server has a certificate for {', '.join(known)}; remove {files.authority} to "
            "make another, and send it to every party"
        )
    last = f"{key_files.ends_of(files.certificate):%Y-%m-%d}"
    return [
        ("authority", f"{files.authority}  (to every party)"),
        (
            "server",
            f"certificate for {', '.join(known)} until {last}",
        ),
    ]
