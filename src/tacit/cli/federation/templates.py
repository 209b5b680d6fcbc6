"""Files that ``tacit init`` and ``tacit accept`` write, made of the templates in this folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from tacit.data.units import PROBABILITY
from tacit.protocol.registry import kind_of, protocol_names

PLAN_PARTY = """
[[party]]
name = "{name}"
{key}
"""
UNKNOWN_COORDINATOR = (
    '# coordinator = "..."       # its public identity key: tacit keys --coordinator'
)
UNKNOWN_KEY = '# key = "..."               # its public key: tacit keys'
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
    plan: str = "plan.toml",
    dataset: str = "my-records",
    unit: str | None = None,
    server: str | None = None,
    file: str = "records.csv",
) -> str:
    """A commented party's file; its scores are probabilities unless another unit is named."""
    reached = '# server = "HOST:PORT"' if server is None else f"server = {json.dumps(server)}"
    records = f"file = {json.dumps(file, ensure_ascii=False)}"
    return _template("party.toml").format(
        name=name,
        plan=plan,
        dataset=dataset,
        unit=f"{_unit_line(unit):{COLUMN - 1}} ",
        server=f"{reached:{COLUMN - 1}} ",
        file=f"{records:{COLUMN - 1}} ",
    )


def _template(name: str) -> str:
    """The text of a commented file, with fields in braces."""
    return files(__package__).joinpath(f"{name}.template").read_text(encoding="utf-8")


def _unit_line(unit: str | None) -> str:
    return f'unit = "{unit or PROBABILITY}"'
