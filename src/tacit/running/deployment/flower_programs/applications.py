"""The Flower application of a federation: a folder with a ``pyproject.toml`` and no code.

Both components are named by where the installed package has them, so that coordinator and parties
run the code that they installed themselves.
"""

from __future__ import annotations

from pathlib import Path

from tacit.running.deployment.files import write_public

NAME = "tacit-federation"
SERVER = "tacit.running.flower:server"
CLIENT = "tacit.running.flower:client"
RUN_SETTINGS = ("plan", "identity", "result", "ticket")
"""What ``flwr run --run-config`` may set: files on the server's machine, and the run's ticket."""

TEXT = """\
[project]
name = "{name}"
version = "1.0.0"
description = "Measures a classifier on data that several parties may not show each other"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "tacit"

[tool.flwr.app.components]
serverapp = "{server}"
clientapp = "{client}"

[tool.flwr.app.config]
{settings}
"""


def write_application(folder: Path, server: str = SERVER, client: str = CLIENT) -> Path:
    """Write the application's folder, which ``flwr run`` takes.

    Parameters
    ----------
    folder : where; made if there is none.
    server : the ServerApp as ``module:name``.
    client : the ClientApp.
    """
    settings = "\n".join(f'{name} = ""' for name in RUN_SETTINGS)
    text = TEXT.format(name=NAME, server=server, client=client, settings=settings)
    write_public(folder / "pyproject.toml", text.encode())
    return folder
