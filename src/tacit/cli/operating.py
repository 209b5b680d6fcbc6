"""The options of programs that go on running: ``--metrics`` and ``--log-format``."""

from __future__ import annotations

from typing import Any

import click

from tacit import logs
from tacit.running.session.toml_source import host_and_port


def operator_options(command: Any) -> Any:
    """The options of a command, which gets ``metrics``; its log begins before it."""
    metrics = click.option(
        "--metrics",
        metavar="HOST:PORT",
        callback=lambda context, option, text: host_and_port(text) if text else None,
        envvar="TACIT_METRICS",
        show_envvar=True,
        help="Answer /health and /metrics (Prometheus) at this address, for operators only.",
    )
    log_format = click.option(
        "--log-format",
        type=click.Choice(logs.FORMATS),
        callback=lambda context, option, form: logs.log_as(form),
        expose_value=False,
        default=logs.PLAIN,
        envvar="TACIT_LOG_FORMAT",
        show_envvar=True,
        help="A log on standard error, with time and level (text, json), that quotes no record.",
    )
    return metrics(log_format(command))
