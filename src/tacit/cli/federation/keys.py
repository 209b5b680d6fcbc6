"""``tacit keys``: makes a party's or the coordinator's keys, and shows their public parts."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tacit.cli.federation.shared import show_rows, stoppable
from tacit.running.deployment import keys as key_files
from tacit.running.deployment import server
from tacit.running.files import write_public

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?")
EXAMPLES = """\b
Examples:
  tacit keys hospital-a
  tacit keys --coordinator --host study.example.org study
"""


def _hosts(
    context: click.Context, option: click.Parameter, hosts: tuple[str, ...]
) -> tuple[str, ...]:
    for host in hosts:
        if not HOST.fullmatch(host):
            raise click.BadParameter(f"{host!r} is no host name and no address")
    return hosts


@click.command(epilog=EXAMPLES)
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
    """Make the keys that are missing in FOLDER, and show what others have to be given.

    An identity signs messages: its public key goes into the plan. A node key only opens the
    server's door. Keys that exist are kept. Private keys never leave the folder.
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
