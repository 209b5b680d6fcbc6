"""The files that ``tacit init`` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tacit.data.units import PROBABILITY
from tacit.protocol.registry import kind_of, protocol_names

PLAN = """\
# What a federation computes, with whom, and for how long it waits. Every party keeps a copy of
# this file and answers nothing that it does not name; the copies must say the same.

[plan]
name = "{name}"             # what results call the federation
{coordinator}
min_clients = {min_clients}             # least number of parties in a result
# colluders = 1             # parties that may collude with a coordinator that lies; a fifth of
                            # all by default. Secure sums need more than half of all and them.
deadline = 120.0            # seconds that each round of a run waits for replies
retries = 1                 # how often a message that went unanswered is sent again within a round
on_loss = "fail"            # when a party vanishes after others answered with regard to it:
                            # "fail", or "restart" without it, at the cost of a run once more
{unit}# in what the protocol takes scores, and where its cells lie:
                            # "probability", "log-odds", or "real" for any other numbers
# per_person = 1            # epsilon is a person's: at most so many records of a person count at
                            # a party, drawn at random; without it epsilon is a record's

# A protocol and its settings, as in: tacit evaluate --help
[protocol]
{protocol}
"""
PLAN_PARTY = """
[[party]]
name = "{name}"
{key}
"""
UNKNOWN_COORDINATOR = (
    '# coordinator = "..."       # its public identity key: tacit keys --coordinator'
)
UNKNOWN_KEY = '# key = "..."               # its public key: tacit keys'
PARTY = """\
# What one party lends to a federation, and what it allows. Paths are relative to this file.

[party]
name = "{name}"                  # its name in the plan
plan = "{plan}"         # this party's own copy of the plan
identity = "identity.key"   # made by: tacit keys
ledger = "ledger.db"        # the ledger, made when it is needed
{server}# where the coordinator's server is reached

[data]
{file}# CSV or Parquet, one record a row
dataset = "{dataset}"  # the name of these records in the ledger
score = "score"             # the column of scores
{unit}# what the scores are: "probability" (from 0 to 1), "percent",
                            # "log-odds", or "real" for any other numbers; they are converted to
                            # the plan's unit, and a wrong unit here makes the whole result wrong
label = "label"             # the column of labels, 0 or 1
# scores = ["s1", "s2"]     # for a plan with classes: the columns of their scores, in its order
# class = "diagnosis"       # and the column of classes; that of label by default
# group = "ward"            # for a plan with private groups: their column
# person = "patient"        # for a plan with per_person: the column that says whose record it is,
                            # or: every_record_another_person = true

# What a new ledger allows; change it later with: tacit ledger limit
[limit]
epsilon = 3.0               # no more than this is spent
period = "365d"             # rolling window: 365d, 52w or 1y
# adjacency = "record"      # what the limit hides; "label" for protocols that show scores,
                            # "person" or "person-label" for plans with per_person

# Only for protocols that parties compute together: where the others reach this one
# [mpc]
# listen = "0.0.0.0:7070"
# address = "mpc.example.org:7070"    # where that differs from listen
# peers = ["mpc.other.example:7070"]  # the only addresses that this one connects to
"""

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
    text = PLAN.format(
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
    return PARTY.format(
        name=name,
        plan=plan,
        dataset=dataset,
        unit=f"{_unit_line(unit):{COLUMN - 1}} ",
        server=f"{reached:{COLUMN - 1}} ",
        file=f"{records:{COLUMN - 1}} ",
    )


def _unit_line(unit: str | None) -> str:
    return f'unit = "{unit or PROBABILITY}"'
