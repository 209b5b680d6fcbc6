"""``tacit run``: one run of a plan, and its result."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.federation.pictures import draw_result
from tacit.cli.federation.shared import show_rows, stoppable, teller, verbose_option
from tacit.cli.shell import NO_SIGNAL, as_json, show
from tacit.output import OutputFile, PictureFile
from tacit.results.drawing.picture import new_axes
from tacit.results.saved.reading import Result
from tacit.results.text import escaped
from tacit.running.deployment.flower_programs.programs import require_flower
from tacit.running.deployment.local import run_locally
from tacit.running.deployment.runs import Conducted, conduct_run
from tacit.running.deployment.server import Coordinator
from tacit.running.session.plan_file import Plan

EXAMPLES = """\b
Examples:
  tacit run study/plan.toml --json result.json --plot roc.png
  tacit run --local 3 examples/three-hospitals/plan.toml

\b
Exit status:
  0    there is an estimate, or the parties have it
  2    there is no result; one sentence says why
  3    the noise left no signal: the result is printed without an estimate
  130  interrupted; the run was stopped
"""


@click.command(epilog=EXAMPLES)
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--local",
    type=click.IntRange(min=1),
    metavar="N",
    help="Start a server and all N parties on this machine: those in folders beside the plan.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write the result to FILE as JSON.")
@click.option("--plot", metavar="FILE", help="Save a picture (.png, .svg or .pdf).")
@verbose_option
@click.pass_context
def run(
    context: click.Context,
    /,
    plan: Path,
    local: int | None,
    json_file: str | None,
    plot: str | None,
    verbose: bool,
) -> None:
    """Run PLAN once, with the parties that are connected, and print the result.

    The server of the plan runs on this machine (`tacit serve`), and is waited for a minute, unless
    --local starts everything. Each party decides itself whether it answers, and its ledger keeps
    what it spent.
    """
    require_flower()
    file = None if json_file is None else OutputFile(json_file, create_parents=True)
    picture = _picture(plot)
    tell = teller(verbose)
    with stoppable():
        if local is None:
            study_plan, coordinator = Plan.read(plan), Coordinator.of(plan)
            study_plan.agreement()
            coordinator.wait_running(show)
            done = conduct_run(coordinator, plan.resolve(), study_plan.deadline, show, tell)
        else:
            done = run_locally(plan, local, show, tell)
    content = done.content
    result = Result.of(content, str(plan))
    if file is not None:
        file.write(f"{as_json(content)}\n".encode())
    if picture is not None:
        picture.save(draw_result(result).figure)
    show_rows([("", ""), *_rows(done)])
    for warning in content["warnings"]:
        show(f"warning: {escaped(warning)}")
    if not (result.estimate.has_signal or _is_revealed_to_parties(result)):
        context.exit(NO_SIGNAL)


def _picture(path: str | None) -> PictureFile | None:
    if path is None:
        return None
    new_axes()
    return PictureFile(path)


def _is_revealed_to_parties(result: Result) -> bool:
    return bool(result.content["protocol"].get("reveal") == "parties")


def _rows(done: Conducted) -> list[tuple[str, str]]:
    """The summary that `tacit evaluate` prints too, with what each site sent."""
    sent = [
        (f"sent by {who.get('name', 'a party')}", f"{who['bytes_sent']:,} bytes")
        for who in done.content.get("participants", ())
    ]
    return [*done.rows, *sent]
