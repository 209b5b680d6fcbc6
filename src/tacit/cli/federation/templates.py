"""The files that ``tacit init`` writes."""

from __future__ import annotations

from collections.abc import Mapping

PLAN = """\
# What a federation computes, with whom, and for how long it waits. Every party keeps a copy of
# this file and answers nothing that it does not name; the copies must say the same.

[plan]
name = "{name}"             # what results call the federation
{coordinator}
fewest = {fewest}                  # parties without whom there is no result
# colluders = 1             # parties that may collude with a coordinator that lies; a fifth of
                            # all by default. Secure sums need more than half of all and them.
deadline = 120.0            # seconds that each leg of a run waits for replies
retries = 1                 # how often a letter that went unanswered is sent again within a leg
on_loss = "fail"            # when a party vanishes after others answered with regard to it:
                            # "fail", or "restart" without it, at the cost of a run once more
# unit = "probability"      # in what the protocol takes scores; "percent", "log-odds" or "real"
                            # only where it ranks scores (fedauc, exact)

# A protocol and its settings, as in: tacit evaluate --help
[protocol]
name = "score-histogram"
trust = "distributed-dp"
epsilon = 1.0
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
ledger = "ledger.db"        # the budget book, made when it is needed

[data]
file = "records.csv"        # CSV or Parquet, one record a row
dataset = "{dataset}"  # under which name the book keeps these records
score = "score"             # the column of scores
unit = "probability"        # what the scores are: "probability" (from 0 to 1), "percent",
                            # "log-odds", or "real" for any other numbers; they are converted to
                            # the plan's unit, and a wrong word here spoils everybody's result
label = "label"             # the column of labels, 0 or 1

# What a new book allows; change it later with: tacit ledger limit
[limit]
epsilon = 3.0               # no more than this is spent
period = "365d"             # in any so many days (d), weeks (w) or years (y)
# adjacency = "record"      # what the limit hides; "label" for protocols that show scores
"""


def plan_text(name: str, parties: Mapping[str, str | None], coordinator: str | None = None) -> str:
    """A commented plan.

    Parameters
    ----------
    name : what the federation is called.
    parties : names, each with its public identity key in hexadecimal digits where that is known.
    coordinator : the coordinator's key, likewise.
    """
    known = UNKNOWN_COORDINATOR if coordinator is None else f'coordinator = "{coordinator}"'
    text = PLAN.format(name=name, fewest=len(parties), coordinator=known)
    for party, key in parties.items():
        line = UNKNOWN_KEY if key is None else f'key = "{key}"'
        text += PLAN_PARTY.format(name=party, key=line)
    return text


def party_text(name: str, plan: str = "plan.toml", dataset: str = "my-records") -> str:
    """A commented party's file."""
    return PARTY.format(name=name, plan=plan, dataset=dataset)
