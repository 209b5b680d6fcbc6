"""Options about records: how files are written, units, persons; and others that commands share.

The options of how files are written: words for labels, separator, decimal mark. The option
``--unit`` of commands that read files, and doubts about scales on the screen. The options
``--person`` and ``--per-person``, and ``--weights``, which is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from tacit.cli.shell import complain, json_option, refuse
from tacit.data import units
from tacit.data.checking import WEIGHTED
from tacit.data.clients import Clients
from tacit.data.columns import RULES, dealt_out
from tacit.data.engines.opening import files_of, is_address
from tacit.data.errors import DataError, DataWarning, ProblemError
from tacit.data.form import DECIMALS, FileForm
from tacit.data.persons import DIGESTS
from tacit.data.ragged import dealt
from tacit.data.reading import FileColumns
from tacit.data.tables import RECORD_FILES
from tacit.privacy import composition
from tacit.privacy.noise import SimulatedNoise
from tacit.protocol.steps import ClientState
from tacit.running.spending import counted_clients, unit_of

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator; the help lists them in this order."""

    def added(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return added


_NAMED = {"tab": "\t", "\\t": "\t", "semicolon": ";", "comma": ",", "space": " "}


def parted(
    option: str, texts: Sequence[str], files: Sequence[str]
) -> tuple[list[str], dict[str, list[str]]]:
    """An option's values for all files, and those for single ones, which are written FILE=VALUE.

    Parameters
    ----------
    option : as it is typed.
    texts : the values. One with the path of a file before ``=``, in whatever spelling, is for it.
    files : files, patterns and folders as they are typed.

    Raises
    ------
    click.UsageError : for the path of a file of records that is none of these files. Taken for a
        value it would be read for all of them: as a word, it would turn labels around.

    Examples
    --------
    >>> parted("--positive", ["yes", "ja"], ["north.csv", "south.csv"])
    (['yes', 'ja'], {})
    """
    for_all = [text for text in texts if "=" not in text]
    named: dict[str, list[str]] = {}
    if len(for_all) == len(texts):
        return for_all, named
    known = {Path(file).resolve(): file for file in read_files(files)}
    for text in texts:
        ends = [index for index, sign in enumerate(text) if sign == "="]
        path_ends = [end for end in ends if Path(text[:end]).resolve() in known]
        if path_ends:
            file = known[Path(text[: path_ends[-1]]).resolve()]
            named.setdefault(file, []).append(text[path_ends[-1] + 1 :])
        elif any(text[:end].lower().endswith(RECORD_FILES) for end in ends):
            allowed = ", ".join(known.values())
            remedy = f"names one of {allowed}" if known else "needs files, not a database"
            raise click.UsageError(f"{option} {text}: FILE= {remedy}")
        elif ends:
            for_all.append(text)
    return for_all, named


def read_files(files: Sequence[str]) -> list[str]:
    """The files that are read: those of patterns and folders, too; none of a database."""
    return [] if any(map(is_address, files)) else files_of(files)


def one_by_file(
    option: str, texts: Sequence[str], files: Sequence[str], usual: str | None
) -> str | dict[str, str]:
    """An option's one value for all files, or that of each.

    Parameters
    ----------
    option : as it is typed.
    texts, files : as ``parted`` takes them.
    usual : for files for which none was given; None where one must be.

    Raises
    ------
    click.UsageError : for two values for all files, or for one of them; for a file without one.
    """
    for_all, named = parted(option, texts, files)
    for several in (for_all, *named.values()):
        if len(several) > 1:
            raise click.UsageError(
                f"{option} is given twice, as {several[0]} and {several[1]}; give one value for "
                "all files, or FILE=VALUE for a file with another one"
            )
    shared = for_all[0] if for_all else usual
    if not named and shared is not None:
        return shared
    values = {file: named.get(file, [shared])[0] for file in read_files(files)}
    by_file = {file: value for file, value in values.items() if value is not None}
    for file in values:
        if file not in by_file:
            raise click.UsageError(f"{option} names no column of {file}")
    return by_file


def column_option(name: str, held: str, required: bool = False) -> Decorator:
    """An option for a column that a file may have by another name.

    Parameters
    ----------
    name, held : of the option, and what the column holds.
    required : whether it must be given; else the column is called as the option by default.
    """
    by_default = "" if required else f", {name} by default"
    return click.option(
        f"--{name}",
        multiple=True,
        required=required,
        metavar="[FILE=]COL",
        help=f"The column of {held}{by_default}. With FILE= that file's.",
    )


def gathered_columns(**usual: str | None) -> Decorator:
    """Give a command as ``columns`` what its options say of records.

    Parameters
    ----------
    usual : the column of options that name one; None for an option that must be given.
    """
    by_file = {"score": "score", "label": "label", "unit": units.PROBABILITY} | usual

    def gathered(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_columns(
            *args: Any, positive: Sequence[str], separator: str | None, decimal: str, **given: Any
        ) -> Any:
            files = given["files"]
            for name, shared in by_file.items():
                if given[name] or name != "unit":
                    given[name] = one_by_file(f"--{name}", given[name], files, shared)
            named = given["unit"] = given["unit"] or None
            for word in named.values() if isinstance(named, dict) else filter(None, [named]):
                units.check_unit(word)
            form = _form_of(positive, separator, decimal, files)
            of_records = [field.name for field in fields(FileColumns) if field.name in given]
            columns = FileColumns(form=form, **{name: given.pop(name) for name in of_records})
            return command(*args, columns=columns, **given)

        return with_columns

    return gathered


FILES = click.argument("files", nargs=-1, required=True, type=click.Path())

score_and_label = together(column_option("score", "scores"), column_option("label", "labels"))

one_score_and_label = together(
    click.option("--score", default="score", help="The column of scores."),
    click.option("--label", default="label", help="The column of labels."),
)
"""The columns of all files, or of a table."""

VALUE_COLUMNS = {
    "value": "a value in public bounds; chooses its protocol, and needs --bounds",
    "prediction": "predicted numbers, with --outcome; they choose their protocol",
    "outcome": "outcomes that were predicted, with --prediction",
    "time": "times to an event or to the end of observation, with --event; they choose their "
    "protocol, and --score is the risk",
    "event": "labels that say whether the event came, with --time",
}
"""Options that name columns of records without a score and a label, and what these hold."""

value_options = together(
    *(
        click.option(f"--{name}", metavar="COL", help=f"The column of {held}.")
        for name, held in VALUE_COLUMNS.items()
    )
)

second_option = click.option("--second", help="Kendall's tau: the column of second values.")

missing_option = click.option(
    "--missing",
    type=click.Choice(RULES),
    default=RULES[0],
    help="Records without a score or a label (empty, NA, NaN, n/d, null): an error, or left out.",
)

database_options = together(
    click.option("--table", metavar="NAME", help="With a database: the table of records."),
    click.option("--query", metavar="SQL", help="With a database: a query of the records."),
)

record_options = together(
    click.option(
        "--unit",
        multiple=True,
        metavar="[FILE=]UNIT",
        help="What the scores are: probability (the default), percent, log-odds, or real for any "
        "other numbers. With FILE= that file's; files that are not named then hold probabilities.",
    ),
    click.option(
        "--positive",
        multiple=True,
        metavar="[FILE=]WORD",
        help="A word that means a label of 1, such as yes; once for each. The one other word of a "
        "file then means 0. Without it labels are 0/1 or true/false. With FILE= in that file.",
    ),
    click.option(
        "--separator",
        metavar="CHARACTER",
        help="What stands between values in files of text, also by name: tab. By default the "
        "usual one, or where the header needs another, that one.",
    ),
    click.option(
        "--decimal",
        type=click.Choice(DECIMALS),
        default=".",
        help="The decimal mark of numbers. With a comma, numbers with a point are read, too.",
    ),
    click.option("--client", help="The column of client ids; without it each file is a client."),
    click.option(
        "--person",
        metavar="COL",
        help="The column that says whose record it is: epsilon then protects a person's counted "
        "records at a client together, not one record.",
    ),
)
"""The options of a command that reads files."""


def _form_of(
    positive: Sequence[str], separator: str | None, decimal: str, files: Sequence[str]
) -> FileForm | dict[str, FileForm]:
    """How values are written in all files, or in each."""
    mark = None if separator is None else _NAMED.get(separator.lower(), separator)
    for_all, named = parted("--positive", positive, files)
    try:
        form = FileForm(tuple(for_all), mark, decimal)
        by_file = {file: replace(form, positive=tuple(words)) for file, words in named.items()}
    except DataError as error:
        raise click.UsageError(str(error)) from None
    return {file: by_file.get(file, form) for file in read_files(files)} if by_file else form


ALL_AT_ONCE = "; all problems at once: tacit check"
"""What the first problem of files ends with."""


@contextmanager
def printed_doubts(files: Sequence[str] = ()) -> Iterator[None]:
    """Print doubts about scales, persons and clients on standard error: they are about records.

    Parameters
    ----------
    files : what is read. An error that is the first one of files names the command for all.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        try:
            yield
        except ProblemError as error:
            are_files = files and not any(map(is_address, files))
            raise DataError(f"{error}{ALL_AT_ONCE if are_files else ''}") from None
    for sentence in dict.fromkeys(str(each.message) for each in caught):
        complain(f"tacit: warning: {sentence}")


ALL = (
    "all records of a person cost what the largest number costs that was declared in advance: give "
    "that number; a person with more records is cut to it, and one with fewer counts in whole"
)
"""Why ``all`` is no number."""


class PerPerson(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """How many records of a person count."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """A whole number from 1 on; ``all`` is refused with what to give instead."""
        if value == "all":
            self.fail(ALL, param, ctx)
        return int(click.IntRange(1, composition.MAX_RECORDS).convert(value, param, ctx))


def _refuse_weights(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(WEIGHTED)


per_person_option = together(
    click.option(
        "--per-person",
        type=PerPerson(),
        metavar="K",
        help="With --person: the most records of a person that count at a client, drawn at random; "
        "each has a K-th of epsilon. By default 1. With --counts: as for their statement.",
    ),
    click.option(
        "--weights",
        metavar="COL",
        hidden=True,
        expose_value=False,
        callback=_refuse_weights,
    ),
)


def check_runs(params: Mapping[str, Any]) -> None:
    """Refuse options of a run that do not go together.

    Raises
    ------
    click.UsageError : for ``--per-person`` without ``--person``, and ``--client`` with ``--split``.
    """
    if params["person"] is None and params.get("counts") is None:
        refuse("{} needs --person", params, "per_person")
    if params["split"] is not None:
        sentence = "{} cannot be used with --split, which makes its own clients"
        refuse(sentence, params, "client")


def split_clients(clients: Clients, asked: SimpleNamespace, by: Any = "uniform") -> Clients:
    """Deal all records out to simulated clients; the split's random numbers are not the noise's.

    Where persons are known, their records are cut first, so that no more of a person's records
    count at all simulated clients together than would at one. Incomplete records that were left
    out are dealt out evenly.
    """
    left_out, split_seed = dealt_out(clients.left_out, asked.split), None
    if asked.seed is not None:
        split_seed = int(np.random.SeedSequence([asked.seed, 1]).generate_state(1)[0])
    most, persons = unit_of(clients, asked.per_person), None
    if most:
        pooled = clients.pooled()
        clients, _ = counted_clients(pooled, most, ClientState(), SimulatedNoise(split_seed))
        # all of these count: each may be of another person
        persons = np.arange(clients.records).astype(DIGESTS)
    clients = clients if clients.at_hand else clients.part(0, clients.count)
    order, offsets = dealt(clients.scores, asked.split, by, split_seed)
    made = replace(clients, persons=persons).taken(order, offsets)
    return replace(made, names=(), simulated=True, left_out=left_out)


LEDGER = (
    "A ledger that the run debits before anything is computed, about the data set --federation or "
    "its only one."
)


def ledger_rows(asked: SimpleNamespace) -> list[tuple[str, str]]:
    """Which ledger a run debited, or that none remembers it; nothing of a simulation."""
    if asked.split is not None or asked.seed is not None:
        return []
    without = "none: nothing remembers what was spent (--ledger FILE)"
    return [("ledger", without if asked.ledger is None else f"{asked.ledger}, debited")]


FEDERATION = click.option(
    "--federation",
    metavar="NAME",
    help="What these records are called; results of one name are compared as about the same.",
)

run_options = together(
    click.option(
        "--split",
        type=click.IntRange(min=1),
        metavar="K",
        help="Simulate: pool all records and deal them out to K clients.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        help="Simulate: fix the noise and the split. Without it, noise comes from the system, or "
        "with --split from fresh entropy.",
    ),
    FEDERATION,
    click.option(
        "--no-names",
        "names",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Leave the clients' names, up to 200, out of the JSON.",
    ),
    json_option,
    click.option("--plot", metavar="FILE", help="Save a picture (.png, .svg or .pdf)."),
    click.option(
        "--exact/--no-exact",
        default=None,
        help="Also compute the exact AUC, not private. By default only with --split.",
    ),
)
"""The options of a command that runs a protocol on files."""
