"""``tacit invite``: one file for each site that is to join."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.federation.init import check_name
from tacit.cli.federation.shared import stoppable
from tacit.cli.shell import show
from tacit.running.deployment.files import write_private
from tacit.running.joining.coordinator import invite as invite_site
from tacit.running.joining.coordinator import prepare
from tacit.running.session.plan_file import Plan

EXAMPLES = """\b
Examples:
  tacit invite study/plan.toml --server study.example.org:8443
  tacit invite study/plan.toml west
"""


def _names(
    context: click.Context, option: click.Parameter, sites: tuple[str, ...]
) -> tuple[str, ...]:
    for site in sites:
        check_name(site)
    return sites


@click.command(epilog=EXAMPLES)
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("sites", nargs=-1, callback=_names)
@click.option(
    "--server",
    metavar="HOST:PORT",
    help="Where sites reach the server; by default the first name of its certificate, port 8443.",
)
@click.option("--again", is_flag=True, help="Also for sites that have their keys in the plan.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the invitations; `invitations` beside PLAN by default.",
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
    """
    with stoppable():
        coordinator, address = prepare(plan, server)
        missing = [party.name for party in Plan.read(plan).parties if party.key is None]
        chosen = sites or tuple(missing)
        if not chosen:
            raise click.UsageError("every party of the plan has its key: name the site to invite")
        folder = output or plan.parent / "invitations"
        for site in chosen:
            letter = invite_site(plan, site, coordinator, address, again)
            path = folder / f"{site}.json"
            write_private(path, letter.to_bytes())
            show(f"send to {site}: {path}")
    show(f"the server is {address}; answers come back to: tacit admit {plan}")
