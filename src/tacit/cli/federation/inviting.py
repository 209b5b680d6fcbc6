"""Commands before the first run: ``tacit init``, ``invite``, ``admit``, ``keys`` and ``renew``.

``tacit init``: files to begin with, made of the templates in this folder. ``tacit accept`` writes
them too. ``tacit invite``: one file for each site that is to join.
``tacit admit``: sites are taken into a plan by their answers.

``tacit keys``: makes a party's or the coordinator's keys, and shows their public parts.
``tacit renew``: new certificates for the server, which sites learn by the roster.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import click

from tacit import files
from tacit.cli.federation import read_letter, show_rows, stoppable
from tacit.cli.shell import once_by_name, show
from tacit.data import units
from tacit.protocol.registry import kind_of, protocol_names
from tacit.running.deployment import inviting, letters
from tacit.running.deployment import keys as key_files
from tacit.running.deployment import site as site_side
from tacit.running.deployment.server import Coordinator
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import read_identity
from tacit.running.session.toml_source import Source

PLAN_PARTY = """
[[party]]
name = "{name}"
{key}
"""
UNKNOWN_COORDINATOR = (
    '# coordinator = "..."       # its public identity key: tacit keys --coordinator'
)
UNKNOWN_KEY = '# key = "..."               # its public key: tacit keys'
FILE = click.Path(dir_okay=False, path_type=Path)
COLUMN = 28
"""Position of comments in a line."""


def plan_text(
    name: str,
    parties: Mapping[str, str | None],
    coordinator: str | None = None,
    unit: str | None = None,
) -> str:
    """A commented plan.

    Parameters
    ----------
    name : what the federation is called.
    parties : names, each with its public identity key in hexadecimal digits where that is known.
    coordinator : the coordinator's key, likewise.
    unit : in what the protocol takes scores; None for probabilities.
    """
    known = UNKNOWN_COORDINATOR if coordinator is None else f'coordinator = "{coordinator}"'
    protocol = "\n".join(f"{key} = {json.dumps(value)}" for key, value in _example().items())
    text = _template("plan.toml").format(
        name=name,
        min_clients=len(parties),
        coordinator=known,
        protocol=protocol,
        unit=("# " * (unit is None) + _unit_line(unit)).ljust(COLUMN),
    )
    for party, key in parties.items():
        line = UNKNOWN_KEY if key is None else f'key = "{key}"'
        text += PLAN_PARTY.format(name=party, key=line)
    return text


def _example() -> dict[str, Any]:
    """The first registered protocol that may begin a plan, with its settings."""
    kinds = ((name, kind_of(name)) for name in protocol_names())
    name, kind = next(each for each in kinds if each[1].plan_example is not None)
    return {"name": name, **kind.plan_example}


def party_text(
    name: str,
    unit: str | None = None,
    server: str | None = None,
    file: str = "records.csv",
) -> str:
    """A commented party's file; its scores are probabilities unless another unit is named."""
    reached = '# server = "HOST:PORT"' if server is None else f"server = {json.dumps(server)}"
    records = f"file = {json.dumps(file, ensure_ascii=False)}"
    return _template("party.toml").format(
        name=name,
        unit=f"{_unit_line(unit):{COLUMN - 1}} ",
        server=f"{reached:{COLUMN - 1}} ",
        file=f"{records:{COLUMN - 1}} ",
    )


def _template(name: str) -> str:
    """The text of a commented file, with fields in braces."""
    return resources.files(__package__).joinpath(f"{name}.template").read_text(encoding="utf-8")


def _unit_line(unit: str | None) -> str:
    return f'unit = "{unit or units.PROBABILITY}"'


Parties = dict[str, str | None]
"""Names with their public identity keys, None where these are not known."""
KEY = re.compile(r"[0-9a-fA-F]{64}")


def _named(context: click.Context, option: click.Parameter, given: Any) -> Any:
    """A party's name or several, each of which a party can have; or None where none is given."""
    for name in (given,) if isinstance(given, str) else given or ():
        if not letters.NAME.fullmatch(name):
            raise click.BadParameter(
                f"a name has 1 to 64 letters, digits, dots, dashes and underscores, got {name!r}"
            )
    return given


def _parties(context: click.Context, option: click.Parameter, text: str) -> Parties:
    """Names with their keys, where these are given."""
    parties: Parties = {}
    for part in text.split(","):
        name, equals, key = part.partition("=")
        _named(context, option, name)
        if equals and not KEY.fullmatch(key):
            raise click.BadParameter(f"a key has 64 hexadecimal digits, got {key!r}")
        if name in parties:
            raise click.BadParameter(f"a name appears twice in {text!r}")
        parties[name] = key.lower() if equals else None
    return parties


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--coordinator", is_flag=True, help="Write a plan.")
@click.option("--party", callback=_named, metavar="NAME", help="Write this party's own file.")
@click.option(
    "--parties",
    callback=_parties,
    metavar="NAME[=KEY],...",
    default="a,b,c",
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
        name, identity = folder.resolve().name, Coordinator(folder).identity
        name = name if letters.NAME.fullmatch(name) else "federation"
        key = read_identity(identity).public.hex() if identity.exists() else None
        path, text = folder / "plan.toml", plan_text(name, parties, key, unit)
    else:
        path, text = folder / "party.toml", party_text(party, unit=unit)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise click.ClickException(f"{path} exists already, and was left as it is") from None
    show(f"written: {path}")


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
        coordinator, address = inviting.prepare(plan, server)
        missing = [party.name for party in Plan.read(plan).parties if party.key is None]
        chosen = sites or tuple(missing)
        if not chosen:
            raise click.UsageError("every party of the plan has its key: name the site to invite")
        folder = output or plan.parent / "invitations"
        for site in chosen:
            letter = inviting.invite(plan, site, coordinator, address, again)
            path = folder / f"{site}.json"
            files.write_private(path, letter.to_bytes())
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
            answer = read_letter(letters.Answer, path)
            inviting.check_open(coordinator, answer)
            if letters.is_code(_heard(answer, codes), answer.code):
                inviting.admit(plan, coordinator, answer)
                show(f"admitted: {answer.site}")
            else:
                wrong.append(answer.site)
        complete = inviting.publish_roster(plan, coordinator)
    if wrong:
        raise letters.LetterError(
            f"the code of {' and '.join(wrong)} is not the one of this answer: it was not "
            "admitted; call the site again, and admit the answer with the code that it reads"
        )
    _show_standing(Plan.read(plan), complete)


def _heard(answer: letters.Answer, codes: dict[str, str]) -> str:
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
        code = letters.roster_code(plan)
        show(f"all {len(plan.parties)} sites are admitted; code of the roster: {code}")
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
        files.write_public(folder / "identity.pub", f"{public}\n".encode())
        rows = [("identity", f"{public}  (into the plan; also in {folder / 'identity.pub'})")]
        if coordinator:
            rows += _certificate_rows(Coordinator(folder).certificates, hosts)
        else:
            node = key_files.stored_node_key(folder / "node.key")
            rows.append(("node key", f"{node}  (to the coordinator's folder nodes)"))
    show_rows(rows)


def _certificate_rows(tls: key_files.Certificates, hosts: tuple[str, ...]) -> list[tuple[str, str]]:
    known = key_files.certified(tls, hosts, "--host NAME")
    last = f"{tls.served.not_valid_after_utc:%Y-%m-%d}"
    return [
        ("authority", f"{tls.authority}  (to every party)"),
        ("server", f"certificate for {', '.join(known)} until {last}"),
    ]


@click.command()
@click.argument("file", type=FILE)
@click.argument("renewals", nargs=-1, type=FILE)
@click.option(
    "--from",
    "begins",
    type=click.DateTime(("%Y-%m-%d", "%Y-%m-%dT%H:%M")),
    help="When the new ones are used first, in UTC; after 30 days, or before an old certificate "
    "ends, by default.",
)
def renew(file: Path, renewals: tuple[Path, ...], begins: datetime | None) -> None:
    """Renew certificates or an identity key while the old ones still work.

    FILE is the coordinator's plan or a site's own file. For a plan, the certificates of its server
    are renewed. For a site, its identity key is: send the file that is written to the coordinator,
    who takes it by a second call with RENEWALS. The old key signed it, so that no code is compared.

    The signed roster carries both. An invited site takes it when it runs `tacit join` before the
    date, without a code. From the date on a running server uses the new certificate, all sides use
    the new key, and sites trust the old ones no longer.

    Examples:
      tacit renew study/plan.toml
      tacit renew hospital-a/party.toml --from 2031-05-01
      tacit renew study/plan.toml hospital-a/renewal.txt
    """
    now, wanted = datetime.now(UTC), None if begins is None else begins.replace(tzinfo=UTC)
    is_site = "data" in Source.read(file).content
    if renewals and (is_site or wanted):
        raise click.UsageError("RENEWALS need a plan, and no --from")
    if is_site:
        letter, renewal = site_side.renew_identity(file, wanted, now)
        show(f"this site's new identity key is used from {renewal.begins}")
        show(f"send to the coordinator: {letter}  (tacit renew PLAN {letter.name})")
        return
    coordinator = Coordinator.of(file)
    with stoppable():
        for path in renewals:
            name, taken = inviting.take_renewal(file, path.read_text(encoding="utf-8"), now)
            show(f"{name} uses its new identity key from {taken.begins}")
        if not renewals:
            since = key_files.renew(coordinator.certificates, wanted, now)
            show(f"the server uses its new certificate from {since:%Y-%m-%d %H:%M} UTC")
        published = inviting.publish_roster(file, coordinator)
    show("before that, every invited site runs tacit join once again; others get the new file")
    if not published:
        show("the roster carries it once all sites are admitted")
