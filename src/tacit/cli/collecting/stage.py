"""``tacit stage``: ends a campaign's stage and signs the next one."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.shell import show
from tacit.collecting.folder import Folder


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def stage(folder: Path) -> None:
    """End the open stage of the campaign in FOLDER, and sign what devices compute in the next one.

    It follows from the reports of the stages before, as in a simulation. Reports of the stage that
    ended are refused from then on. The collector may run meanwhile.
    """
    signed = Folder(folder).next_stage()
    show(f"Stage {signed.content['stage']} is open.")
