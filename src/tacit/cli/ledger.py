"""``tacit ledger``: look at a ledger, set its limits, check it, hand it on."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import click
from click.exceptions import Exit

from tacit.cli.shell import OutputFile, as_json, show
from tacit.ledger import entries
from tacit.ledger.accounts import Spending
from tacit.ledger.files import Pages
from tacit.ledger.ledger import Ledger
from tacit.privacy import composition
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.results.text import aligned, unformulated

BROKEN = 1

NOTES = """\
summed: holds whatever questions followed from earlier replies, as limits do. tightest: holds if the
costs were fixed before the first reply. unlimited: what that adjacency hides was shown as it is.
The same person's records in several data sets spend from all of them."""
ALL = "(all together)"
_SPENT = ("summed epsilon", "delta", "tightest epsilon", "delta", "by", "mu", "advantage")
BOUND_HEADING = ("data set", "hidden", "debits", *_SPENT)
_ALLOWED = ("limit epsilon", "delta", "by", "spent epsilon", "delta", "rho")
ACT_HEADING = ("data set", "plan", "approval", "by", "run", "time")
RUN_HEADING = ("data set", "time", "run", "protocol", "debits", "epsilon", "delta", "refused")
MOST_RUNS = 20
LIMIT_HEADING = ("data set", "hidden", "period", *_ALLOWED)


@click.group(invoke_without_command=True)
@click.pass_context
def ledger(context: click.Context) -> None:
    """Show a client's ledger, set its limits, check it, hand it on.

    Examples:
      tacit ledger limit budget.db --dataset registry --epsilon 3 --period 365d
    """
    if context.invoked_subcommand is None:
        show(context.get_help())


@ledger.command("show")
@click.argument("path", metavar="LEDGER", type=click.Path())
@click.option("--dataset", metavar="NAME", help="This data set only.")
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, max_open=True),
    default=1e-6,
    help="At which delta costs are composed.",
)
def show_ledger(path: str, dataset: str | None, delta: float) -> None:
    """Print what was spent, by data set and adjacency, and what the limits leave.

    Examples:
      tacit ledger show budget.db
      tacit ledger show budget.db --dataset registry --delta 1e-9
    """
    with Ledger.open_readonly(path) as pages:
        names = pages.datasets()
        if dataset is not None and dataset not in names:
            raise click.UsageError(f"the ledger has no data set {dataset!r}")
        chosen = names if dataset is None else [dataset]
        limits = [(name, *_limit_cells(each)) for name in chosen for each in pages.spending(name)]
        lines = [*_heading(pages), "", *aligned([LIMIT_HEADING, *limits]), ""]
        runs = _run_rows(pages, chosen)
        lines += [*aligned([RUN_HEADING, *runs[-MOST_RUNS:]]), ""]
        if len(runs) > MOST_RUNS:
            lines[-1:] = [f"the last {MOST_RUNS} of {len(runs)}; all: tacit ledger export", ""]
        lines += [*aligned(_bound_rows(pages, chosen, delta, together=dataset is None)), ""]
        acts = [_act_cells(line) for line in pages.lines() if line.kind == entries.APPROVAL]
        acts = [cells for cells in acts if cells[0] in chosen]
        lines += [*aligned([ACT_HEADING, *acts]), ""] if acts else []
        lines.append(NOTES)
    show("\n".join(lines))


def _period(context: Any, option: Any, text: str | None) -> timedelta | None:
    try:
        return None if text is None else entries.period_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@ledger.command("limit")
@click.argument("path", metavar="LEDGER", type=click.Path())
@click.option("--dataset", required=True, metavar="NAME", help="The data set's name.")
@click.option(
    "--epsilon",
    required=True,
    type=float,
    help="The most that may be spent; inf writes all down and refuses nothing.",
)
@click.option("--delta", type=float, default=0.0, help="Of delta, likewise.")
@click.option(
    "--period",
    callback=_period,
    metavar="N[m|h|d|w]",
    help="Length of the rolling window, as 30m, 12h, 365d or 52w; the whole history by default.",
)
@click.option(
    "--adjacency",
    type=click.Choice([adjacency.value for adjacency in Adjacency]),
    default=Adjacency.RECORD.value,
    help="What is hidden.",
)
@click.option(
    "--accounting",
    type=click.Choice(entries.ACCOUNTINGS),
    default="basic",
    help="Add epsilons and deltas, or rhos up to the largest that gives both.",
)
def set_limit(
    path: str,
    dataset: str,
    epsilon: float,
    delta: float,
    period: timedelta | None,
    adjacency: str,
    accounting: entries.Accounting,
) -> None:
    """Set a limit, in a new ledger if there is none; a data set without one is never answered for.

    It replaces the limit with the same adjacency and period, and is itself an entry of the
    ledger. What was spent before counts.

    Examples:
      tacit ledger limit budget.db --dataset registry --epsilon 3 --period 365d
      tacit ledger limit budget.db --dataset registry --epsilon 1 --period 24h --adjacency label
    """
    hidden = Adjacency(adjacency)
    # refused before a file is made
    entries.Limit(dataset, epsilon, delta, hidden, period, accounting)
    with Ledger(path) as ledger:
        receipt = ledger.limit(dataset, epsilon, delta, period, hidden, accounting)
        spendings, paid = ledger.spending(dataset), ledger.paid(dataset)
    of_last = [line.entry.cost for line in paid if line.session == paid[-1].session]
    last = sum(of_last, NOTHING) if of_last else None
    left = "\n".join(each.line(last) for each in spendings)
    show(f"entry {receipt.number}: limit set\n{left}\nhead {receipt.hash.hex()}")


@ledger.command("verify")
@click.argument("path", metavar="LEDGER", type=click.Path())
@click.option("--head", metavar="HEX", help="A head noted before, which the ledger must have had.")
def verify(path: str, head: str | None) -> None:
    """Follow the chain of hashes: was an entry changed, removed, inserted or moved?

    Entries cut off at the end, or a whole ledger rewritten, show only against a head that was
    noted elsewhere.

    Examples:
      tacit ledger verify budget.db

    Exit status:
      0  every entry follows from those before it, and the head given is one of theirs
      1  one does not, or the file is no ledger; one sentence says which
      2  an error; one sentence says which
    """
    noted = None if head is None else _bytes(head)
    try:
        with Ledger.open_readonly(path) as pages:
            number = pages.verify(noted)
            last = pages.head.hex()
    except entries.LedgerError as error:
        show(str(error))
        raise Exit(BROKEN) from None
    show(f"{path} verifies: {number} entries\nhead {last}")


@ledger.command("export")
@click.argument("path", metavar="LEDGER", type=click.Path())
@click.option("--format", "form", type=click.Choice(("json", "csv")), default="json")
@click.option("--output", metavar="FILE", help="Where to write; standard output by default.")
def export(path: str, form: str, output: str | None) -> None:
    """Print all entries, with all that their hashes bind; digests are keyed and say nothing.

    Examples:
      tacit ledger export budget.db
      tacit ledger export budget.db --format csv --output budget.csv
    """
    file = None if output is None else OutputFile(output)
    with Ledger.open_readonly(path) as pages:
        exported = [_exported(line) for line in pages.lines()]
    text = as_json(exported) if form == "json" else _csv(exported)
    if file is None:
        show(text)
    else:
        file.write(f"{text}\n".encode())


def _heading(pages: Pages) -> list[str]:
    lines = pages.lines()
    kinds = [line.kind for line in lines]
    counted = ", ".join(f"{kinds.count(kind)} {kind}s" for kind in entries.KINDS)
    span = f"{_day(lines[0])} to {_day(lines[-1])}" if lines else "none yet"
    ahead = sum(line.clock < line.time for line in lines)
    skew = [f"clock    behind the ledger's own time in {ahead} entries"] if ahead else []
    return [
        f"ledger   {pages.path}",
        f"entries  {len(lines)}: {counted}",
        f"time     {span}",
        *skew,
        f"head     {pages.head.hex()}",
    ]


def _run_rows(pages: Pages, names: Sequence[str]) -> list[Sequence[str]]:
    """A row a run: its last time, what it debited in all, and how often it was refused."""
    runs, rows = dict[tuple[str, str], list[entries.Line]](), list[Sequence[str]]()
    for line in pages.lines():
        if line.kind in (entries.DEBIT, entries.REFUSAL) and line.dataset in names:
            runs.setdefault((line.dataset, str(line.session)), []).append(line)
    for (name, session), lines in runs.items():
        paid = [line for line in lines if line.kind == entries.DEBIT]
        sums = [_number(sum(getattr(line, key) for line in paid)) for key in ("epsilon", "delta")]
        about = (session[:8], str(lines[-1].protocol), str(len(paid)), *sums)
        rows.append((name, _day(lines[-1]), *about, str(len(lines) - len(paid))))
    return rows


def _bound_rows(
    pages: Pages, names: Sequence[str], delta: float, together: bool
) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [BOUND_HEADING]
    histories = [(name, pages.history(name)) for name in names]
    if together and len(names) > 1:
        histories.append((ALL, pages.history()))
    for name, history in histories:
        for adjacency in _shown(history):
            bound = composition.bound(history, adjacency, delta)
            costs = (bound.summed, bound.tightest)
            cells = [_number(value) for cost in costs for value in (cost.epsilon, cost.delta)]
            attacks = (_number(bound.mu), f"{bound.advantage:.3f}")
            rows.append((name, adjacency.value, str(bound.releases), *cells, bound.way, *attacks))
    return rows


def _shown(history: Mapping[Cost, int]) -> list[Adjacency]:
    """The adjacencies of records, and those of persons where a run was about persons."""
    about_persons = any(cost.adjacency in composition.OF_PERSON.values() for cost in history)
    return [each for each in Adjacency if about_persons or each in composition.OF_PERSON]


def _limit_cells(spending: Spending) -> tuple[str, ...]:
    limit = spending.limit
    spent = math.inf if spending.unlimited else spending.epsilon
    return (
        limit.adjacency.value,
        "ever" if limit.period is None else str(limit.period).removesuffix(", 0:00:00"),
        _number(limit.epsilon),
        _number(limit.delta),
        limit.accounting,
        _number(spent),
        _number(spending.delta),
        _number(spending.rho),
    )


def _act_cells(line: entries.Line) -> tuple[str, ...]:
    plan, run = (line.request or b"").hex()[:16], str(line.session or "")[:8]
    return line.dataset, plan, str(line.reason), str(line.step), run, _day(line)


def _number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "unlimited"


def _exported(line: entries.Line) -> dict[str, Any]:
    """A line's fields for others to read: times in UTC, digests in hexadecimal."""
    values = {name: getattr(line, name) for name in entries.COLUMNS}
    values |= {name: each.hex() for name, each in values.items() if isinstance(each, bytes)}
    values["epsilon"] = line.epsilon if math.isfinite(line.epsilon) else "unlimited"
    return values | {"time": _time(line.time), "clock": _time(line.clock)}


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, entries.COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        # numbers stay numbers
        texts = {name: unformulated(value) for name, value in row.items() if isinstance(value, str)}
        writer.writerow(row | texts)
    return text.getvalue().rstrip("\n")


def _time(microseconds: int) -> str:
    return entries.instant(microseconds).isoformat(timespec="microseconds")


def _day(line: entries.Line) -> str:
    return f"{entries.instant(line.time):%Y-%m-%d %H:%M:%S} UTC"


def _bytes(text: str) -> bytes:
    try:
        noted = bytes.fromhex(text)
    except ValueError:
        noted = b""
    if len(noted) != 32:
        raise click.UsageError(f"a head is 64 hexadecimal digits, got {text!r}")
    return noted
