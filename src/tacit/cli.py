"""The command ``tacit``: evaluate files, see a demonstration, reproduce the papers' tables."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NoReturn

import click
import numpy as np

import tacit
from tacit import demonstration
from tacit.data.clients import Clients
from tacit.output import OutputFile, PictureFile
from tacit.protocols.baselines import ExactAUC, NoisyScores
from tacit.protocols.conversation import Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.fedauc import ALLOCATIONS, FedAUC
from tacit.reproducing import TABLES, Measured, Scores, Table, format_rows, summary_lines
from tacit.results.evaluation import Evaluation
from tacit.results.picture import new_axes

FAILED, NO_SIGNAL, INTERRUPTED = 2, 3, 130
PROTOCOLS: dict[str, Any] = {kind.name: kind for kind in (FedAUC, DPAUC, ExactAUC, NoisyScores)}

EVALUATE_EXAMPLES = """\b
Examples:
  tacit evaluate north.csv south.csv --protocol fedauc --epsilon 1
  tacit evaluate phones.parquet --client phone --protocol dpauc --epsilon 2 --json
  tacit evaluate north.csv --split 20 --seed 7 --protocol dpauc --epsilon 4 --plot roc.png

\b
Exit status:
  0    there is an estimate
  2    an error; one sentence says which
  3    the noise left no signal: the result is printed without an estimate
  130  interrupted
"""
DEMO_EXAMPLES = """\b
Examples:
  tacit demo
  tacit demo --seed 7 --plot comparison.pdf
"""
REPRODUCE_EXAMPLES = """\b
Examples:
  tacit reproduce list
  tacit reproduce fedauc-figure-8
  tacit reproduce fedauc-table-3 --repeats 2 --json results/table-3.json
"""
MAIN_EXAMPLES = """\b
Examples:
  tacit demo
  tacit evaluate north.csv south.csv --protocol fedauc --epsilon 1
  tacit reproduce list
"""


class _Tacit(click.Group):
    """Commands whose every error is one sentence on standard error, and never a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run as click does, with errors in this command's own form."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
        except (click.Abort, KeyboardInterrupt):
            _fail("interrupted", INTERRUPTED)
        except click.ClickException as error:
            _fail(error.format_message())
        except OSError as error:
            _fail(_reason(error))
        except (ValueError, ImportError, ArithmeticError) as error:
            _fail(str(error))
        except MemoryError:
            _fail("there is not enough memory for these records and settings")
        sys.exit(code if isinstance(code, int) else 0)


@click.group(
    cls=_Tacit,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    epilog=MAIN_EXAMPLES,
)
@click.version_option(tacit.__version__, prog_name="tacit")
@click.pass_context
def main(context: click.Context) -> None:
    """Measure a classifier's AUC on data that several parties may not show each other."""
    if context.invoked_subcommand is None:
        _print(context.get_help())


@main.command(epilog=EVALUATE_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--protocol", required=True, type=click.Choice(list(PROTOCOLS)), help="What to run.")
@click.option("--epsilon", type=float, help="Privacy budget; needed by every private protocol.")
@click.option(
    "--mechanism",
    help="fedauc: staircase, discrete-laplace, laplace, gaussian, randomised-response. "
    "dpauc: histogram, laplace, gaussian, randomised-response. The first is the default.",
)
@click.option(
    "--allocation",
    type=click.Choice(ALLOCATIONS),
    help="fedauc: how a client divides epsilon; influence by default.",
)
@click.option(
    "--sensitivity", type=click.Choice(("local", "global")), help="fedauc, fixed: local by default."
)
@click.option(
    "--alpha", type=float, help="fedauc, fixed: the rank sum's share of epsilon, 0.5 by default."
)
@click.option(
    "--beta", type=float, help="fedauc, orthogonal: the count's share of epsilon, 0.5 by default."
)
@click.option("--delta", type=float, help="Gaussian noise: the chance that epsilon fails.")
@click.option("--thresholds", type=int, help="dpauc: thresholds or cells, 100 by default.")
@click.option(
    "--accounting",
    type=click.Choice(("tight", "paper")),
    help="dpauc, laplace or gaussian: tight by default.",
)
@click.option(
    "--adjacency",
    type=click.Choice(("record", "label", "replace")),
    help="dpauc: what epsilon hides; record by default.",
)
@click.option(
    "--clamp/--no-clamp",
    default=None,
    help="dpauc, laplace or gaussian: clamp and order noisy counts, as the paper does.",
)
@click.option("--score", default="score", show_default=True, help="The column of scores.")
@click.option("--label", default="label", show_default=True, help="The column of labels.")
@click.option("--client", help="The column of client ids; without it each file is a client.")
@click.option(
    "--split",
    type=click.IntRange(min=1),
    metavar="K",
    help="Simulate: pool all records and deal them out to K clients.",
)
@click.option(
    "--by",
    type=click.Choice(("uniform", "score")),
    help="With --split: deal out at random (the default), or similar scores together.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Simulate: fix the noise and the split. Without it, noise comes from the system, or "
    "with --split from fresh entropy.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--plot", metavar="FILE", help="Save a picture (.png, .svg or .pdf).")
@click.option("--exact/--no-exact", default=True, help="Also compute the exact AUC, not private.")
@click.pass_context
def evaluate(
    context: click.Context,
    /,
    files: tuple[str, ...],
    protocol: str,
    score: str,
    label: str,
    client: str | None,
    split: int | None,
    by: str | None,
    seed: int | None,
    as_json: bool,
    plot: str | None,
    exact: bool,
    **settings: Any,
) -> None:
    """Estimate the AUC of the records in FILES (CSV or Parquet), one client a file.

    The noise is exact and comes from the operating system, unless --split or --seed ask for a
    simulation; a simulation says so, and protects nothing.
    """
    chosen = _protocol(protocol, settings)
    _refuse_idle(split, by, client)
    picture = _picture(plot)
    clients = tacit.read(files, score, label, client)
    if split is not None:
        clients = _split(clients, split, by, seed)
    result = tacit.evaluate(clients, chosen, seed, exact=exact)
    _print(_as_json(result.to_dict()) if as_json else _as_lines(result))
    if picture is not None:
        picture.save(result.plot().figure)
    if not result.has_signal:
        context.exit(NO_SIGNAL)


@main.command(epilog=DEMO_EXAMPLES)
@click.option("--seed", type=click.IntRange(min=0), help="Make the noise repeatable.")
@click.option(
    "--plot",
    metavar="FILE",
    default="tacit-demo.png",
    show_default=True,
    help="Where to save the picture (.png, .svg or .pdf).",
)
def demo(seed: int | None, plot: str) -> None:
    """Compare all protocols on five small hospitals and on a thousand synthetic clients.

    Takes less than a minute. All noise is simulated.
    """
    demonstration.require_matplotlib()
    picture = PictureFile(plot)
    comparisons = demonstration.demonstrate(seed)
    _print(demonstration.report(comparisons))
    picture.save(demonstration.draw(comparisons))
    _print(f"\nPicture: {picture.path}")


@main.command(epilog=REPRODUCE_EXAMPLES)
@click.argument("table", metavar="list|TABLE")
@click.option("--scores", metavar="FILE", help="Real scores (CSV or Parquet) to resample.")
@click.option("--score", default="score", show_default=True, help="The column of scores.")
@click.option("--label", default="label", show_default=True, help="The column of labels.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="How often each setting is measured; the table's own number by default.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed.")
@click.option("--json", "json_file", metavar="FILE", help="Also write the rows to FILE as JSON.")
def reproduce(
    table: str,
    scores: str | None,
    score: str,
    label: str,
    repeats: int | None,
    seed: int,
    json_file: str | None,
) -> None:
    """Measure a table or figure of the papers again, beside the printed numbers.

    `list` prints the names of all tables. Without --scores, the records are synthetic: binormal
    scores of the papers' numbers of records and AUCs. All noise is simulated.
    """
    if table == "list":
        _print(_list_of_tables())
        return
    if table not in TABLES:
        raise click.UsageError(f"there is no table {table!r}; see: tacit reproduce list")
    file = None if json_file is None else OutputFile(json_file, create_parents=True)
    source = Scores() if scores is None else Scores.from_file(scores, score, label)
    rows = _measure(TABLES[table], source, repeats, seed)
    heading = f"{table}: {TABLES[table].description}"
    origin = "synthetic scores" if scores is None else f"scores resampled from {scores}"
    _print("\n".join([heading, origin, "", format_rows(rows), "", *summary_lines(rows)]))
    if file is not None:
        file.write(f"{_as_json([row.to_dict() for row in rows])}\n".encode())


def _measure(table: Table, source: Scores, repeats: int | None, seed: int) -> list[Measured]:
    """The table's rows, with a progress bar on a terminal."""
    with _prompt_interrupt():
        if not sys.stderr.isatty():
            return table.measure(source, repeats, seed)
        steps = 1000
        with click.progressbar(length=steps, label=table.name, file=sys.stderr) as bar:
            return table.measure(
                source, repeats, seed, lambda share: bar.update(round(share * steps) - bar.pos)
            )


@contextmanager
def _prompt_interrupt() -> Iterator[None]:
    """End at once when interrupted: threads at work would be waited for, and have nothing to save.

    An interrupt that the caller ignores stays ignored.
    """

    def end(number: int, frame: object) -> NoReturn:
        cursor = "\033[?25h\n" if sys.stderr.isatty() else ""
        click.echo(f"{cursor}tacit: interrupted", err=True)
        os._exit(INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _list_of_tables() -> str:
    width = max(map(len, TABLES))
    return "\n".join(f"{name:{width}}  {table.description}" for name, table in TABLES.items())


def _protocol(name: str, settings: dict[str, Any]) -> Protocol:
    """The protocol with the settings that were given, all of which it must use."""
    kind = PROTOCOLS[name]
    given = {key: value for key, value in settings.items() if value is not None}
    known = {field.name for field in fields(kind)}
    _refuse(given.keys() - known, f"--protocol {name}")
    if "epsilon" in known and "epsilon" not in given:
        raise click.UsageError(f"--protocol {name} needs --epsilon")
    protocol: Protocol = kind(**given)
    used = protocol.settings
    choices = [f"{key} {used[key]}" for key in ("mechanism", "allocation") if key in used]
    _refuse(given.keys() - used.keys(), ", ".join([f"--protocol {name}", *choices]))
    return protocol


def _refuse(names: Iterable[str], place: str) -> None:
    options = " and ".join(f"--{name}" for name in sorted(names))
    if options:
        raise click.UsageError(f"{options} cannot be used with {place}")


def _refuse_idle(split: int | None, by: str | None, client: str | None) -> None:
    if split is None and by is not None:
        raise click.UsageError("--by needs --split")
    if split is not None and client is not None:
        raise click.UsageError("--client cannot be used with --split, which makes its own clients")


def _picture(path: str | None) -> PictureFile | None:
    if path is None:
        return None
    new_axes()
    return PictureFile(path)


def _split(clients: Clients, count: int, by: Any, seed: int | None) -> Clients:
    """Deal the records out; the split's random numbers are not the noise's."""
    own = None if seed is None else int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])
    return Clients.split(clients.scores, clients.labels, count, by or "uniform", own)


def _as_json(content: Any) -> str:
    return json.dumps(content, indent=2, allow_nan=False)


def _as_lines(result: Evaluation) -> str:
    rows = result.to_rows()
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:{width}}  {value}" for name, value in rows]
    return "\n".join(lines + [f"warning: {warning}" for warning in result.warnings])


def _print(text: str) -> None:
    """Print to standard output; a full disk behind it is an error like any other."""
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(
            f"the result cannot be written to standard output: {_reason(error)}"
        ) from None


def _reason(error: OSError) -> str:
    place = "" if error.filename is None else f"{error.filename}: "
    return f"{place}{error.strerror or error}"


def _fail(sentence: str, code: int = FAILED) -> NoReturn:
    line = " ".join(sentence.split()).rstrip(".")
    click.echo(f"tacit: {line or 'failed without a reason'}", err=True)
    _settle_standard_output()
    sys.exit(code)


def _settle_standard_output() -> None:
    """Drop what standard output does not take, or the interpreter fails again as it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
