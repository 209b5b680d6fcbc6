"""The commands of a federation: plans and keys, a server, parties that join it, and runs."""

from __future__ import annotations

from tacit.cli.federation.init import init
from tacit.cli.federation.join import join
from tacit.cli.federation.keys import keys
from tacit.cli.federation.run import run
from tacit.cli.federation.serve import serve
from tacit.cli.federation.status import status

COMMANDS = (init, keys, serve, join, run, status)
