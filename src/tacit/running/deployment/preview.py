"""What joining means for a party, in words: what the plan asks, its cost, what the ledger
allows."""

from __future__ import annotations

import math

import numpy as np

from tacit.data.clients import Clients
from tacit.data.units import LOG_ODDS, PERCENT, UNITS, converted, outside
from tacit.ledger.accounts import Spending
from tacit.ledger.ledger import Ledger
from tacit.privacy import composition
from tacit.privacy.cost import HIDDEN, Cost, amount_line
from tacit.privacy.noise import NoNoise
from tacit.protocol.conversation import Protocol
from tacit.protocol.steps import ClientState
from tacit.results.text import protocol_line
from tacit.running.session.approval import Draft, Subject
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk
from tacit.running.spending import counted_clients
from tacit.running.units import for_plan


def check_records(desk: PartyDesk) -> None:
    """Refuse records that do not fit the plan's protocol: its first question is answered here.

    Nothing leaves this process, and nothing is spent.

    Raises
    ------
    PlanError : for a unit that cannot be converted to the plan's; no record was read.
    DataError : with the record at fault.
    """
    desk.check_unit()
    plan, divided = desk.plan, desk.plan.divided
    query = next(divided.conversation(len(plan.parties)))
    taken = for_plan(desk.records, desk.party_file.unit, plan.unit, divided)
    if taken.knows_persons:
        taken = counted_clients(taken, plan.per_person, ClientState())[0]
    query.step.answer(taken, query, NoNoise(), ClientState())


def doubts(desk: PartyDesk) -> list[str]:
    """Sentences about the party's records, their name and the scale of scores, for its screen only.

    Others would see a refusal, and learn something about a record from it. So the protocol takes
    scores out of range as the nearest end, and the party reads how many they are.
    """
    plan, records = desk.plan, desk.records
    unit = desk.party_file.unit or plan.unit

    def wrong(part: Clients) -> int:
        rescaled = converted(part.all_scores, unit, plan.unit)
        moved = rescaled != for_plan(part, unit, plan.unit, plan.protocol).all_scores
        if unit != plan.unit:
            moved |= outside(part.all_scores, unit)
        return int(np.count_nonzero(moved))

    sentences, ends = _name_doubts(desk), Clients.from_values(records.ends)
    # maps rise: where none of stored scores' ends is moved, none between them is
    is_checked = not desk.party_file.counted and (records.at_hand or wrong(ends))
    count = sum(map(wrong, records.batches())) if is_checked else 0
    if count:
        scores = records.all_scores.size if records.at_hand else records.records
        sentences.append(
            f"{count:,} of {scores:,} scores are outside of what the plan "
            f"takes as {unit}, and count as the nearest that it takes; if they are in another "
            f"unit, name it: under [data], unit is one of {', '.join(UNITS)}"
        )
    if unit in (PERCENT, LOG_ODDS) and records.ends[0] >= 0 and records.ends[1] <= 1:
        sentences.append(f"all scores are from 0 to 1, and are read as {unit}")
    if desk.records.records > plan.most_records:
        sentences.append(
            f"{desk.records.records:,} records are more than the {plan.most_records:,} of a party "
            "for which the plan's sums have room (most_records): larger counts are cut to it, and "
            "the result is wrong; agree on a plan with more"
        )
    return sentences


def _name_doubts(desk: PartyDesk) -> list[str]:
    """A sentence where the ledger has answered about other names only: one may be of these records.

    Then every run would be declined. Which records a name has needs the ledger's key, and is left.
    """
    party_file = desk.party_file
    if not party_file.ledger.exists():
        return []
    with Ledger.open_readonly(party_file.ledger) as pages:
        names = [name for name in pages.datasets() if pages.history(name)]
    if not names or party_file.dataset in names:
        return []
    return [
        f"the ledger has answered about {', '.join(names)} and not about {party_file.dataset}: the "
        "same records under another name are declined; if they are the same, restore dataset "
        "under [data]"
    ]


def preview(desk: PartyDesk) -> list[tuple[str, str]]:
    """Labelled lines for the person who decides whether to join; the record count stays here.

    Parameters
    ----------
    desk : the party's files, opened and checked.
    """
    party_file, plan = desk.party_file, desk.plan
    rows = [
        *_who_rows(plan, party_file.name),
        ("scores", _unit_line(desk)),
        *run_rows(plan),
    ]
    records = f"{desk.records.records:,} records in {party_file.records}"
    rows.append(("data set", f"{party_file.dataset}: {records}"))
    left_out = desk.records.left_out
    if left_out is not None:
        scores, labels = left_out.sum(axis=1).tolist()
        rows.append(("left out", f"{scores:,} records without a score, {labels:,} without a label"))
    rows += [("ledger", line) for line in _ledger_lines(desk, plan.guarantee)]
    if party_file.approval is not None:
        rows.append(("approval", approval_line(Subject(party_file, plan))))
    return rows


def approval_line(subject: Subject) -> str:
    """Whether a plan is approved now, in a sentence for the site's own people."""
    standing, draft = subject.now, subject.draft
    if standing.problem or draft is None:
        return f"not approved: {standing.problem}"
    left = draft.runs - len(standing.sessions)
    return f"approved by {', '.join(standing.names)}; {left} of {draft.runs} runs are left"


def approval_page(subject: Subject, draft: Draft) -> list[tuple[str, str]]:
    """Labelled lines for the people who approve: all that a signature allows, in words.

    Parameters
    ----------
    subject : the plan, and the site's file.
    draft : what is to be signed.
    """
    file, plan, rule = subject.party_file, subject.plan, subject.rule
    threats = plan.protocol.threats(plan.protocol.settings)
    total = amount_line(draft.runs * plan.guarantee.epsilon, draft.runs * plan.guarantee.delta)
    more = ", and more where a sum starts again" if plan.on_loss == "restart" else ""
    return [
        *_who_rows(plan, file.name),
        ("digest", plan.digest.hex()[:32]),
        ("about", f"data set {file.dataset} of {file.name}: {file.records}"),
        *run_rows(plan),
        ("server sees", threats.server),
        ("others see", threats.others),
        ("you trust", threats.trust),
        ("not hidden", threats.left_open),
        ("how often", f"{draft.runs} runs at most, which cost at most {total} together{more}"),
        ("until", f"{draft.until}, the whole day in UTC"),
        ("who signs", f"{rule.needed} of {', '.join(sorted(rule.keys))}"),
        ("signed by", ", ".join(subject.signers(draft)) or "no one yet"),
        ("now", approval_line(subject)),
    ]


def _who_rows(plan: Plan, name: str) -> list[tuple[str, str]]:
    """Who asks, and with whom a party of this name computes."""
    others = ", ".join(party.name for party in plan.parties if party.name != name)
    needs = f"{plan.name}, with {others or 'no other party'}; a result needs {plan.min_clients}"
    return [("plan", needs), ("coordinator", (plan.coordinator or b"").hex())]


def run_rows(plan: Plan) -> list[tuple[str, str]]:
    """Labelled lines on what a run of a plan computes and costs."""
    protocol = plan.protocol
    rows = [
        ("protocol", protocol_line({"name": protocol.name, **protocol.settings})),
        ("asks for", _asked_line(protocol)),
        ("a run costs", _cost_line(plan.guarantee)),
    ]
    if plan.per_person:
        rows.append(("", composition.person_line(plan.per_person, plan.guarantee.epsilon)))
    if plan.on_loss == "restart":
        again = "and the same again each time a lost party makes a run or its sum start again"
        rows.append(("", again))
    return rows


def _asked_line(protocol: Protocol) -> str:
    """What a run of a protocol shows its coordinator."""
    if protocol.gives_histogram:
        return (
            f"{protocol.figure}, and from the same counts its curves, the rates at every "
            "threshold and the calibration"
        )
    return protocol.figure


def _unit_line(desk: PartyDesk) -> str:
    file_unit, plan_unit = desk.party_file.unit or desk.plan.unit, desk.plan.unit
    if file_unit == plan_unit:
        return file_unit
    return f"{file_unit}, converted to the plan's {plan_unit}"


def _cost_line(cost: Cost) -> str:
    """A cost in words."""
    if math.isinf(cost.epsilon) or cost.adjacency is None:
        return "everything: no differential privacy"
    return f"at most {amount_line(cost.epsilon, cost.delta)}; hides {HIDDEN[cost.adjacency.value]}"


def spendings_of(party_file: PartyFile) -> list[Spending]:
    """What was spent under every limit of a party's records; under that of its file before a run.

    Raises
    ------
    LedgerError, OSError : for a ledger that cannot be read.
    """
    spendings: list[Spending] = []
    if party_file.ledger.exists():
        with Ledger.open_readonly(party_file.ledger) as pages:
            spendings = pages.spending(party_file.dataset)
    if not spendings and party_file.limit is not None:
        spendings = [Spending(party_file.limit, 0.0, 0.0, 0.0, 0)]
    return spendings


def _ledger_lines(desk: PartyDesk, cost: Cost) -> list[str]:
    """What every limit leaves, and for how many runs that is enough."""
    spendings = spendings_of(desk.party_file)
    if not spendings:
        return ["sets no limit for this data set: nothing will be answered (tacit ledger limit)"]
    return [spending.line(cost) for spending in spendings]
