"""``tacit evaluate``: one protocol on files of records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

import tacit
from tacit.cli import evaluate_forms as forms
from tacit.cli import record_options, sources
from tacit.cli.setting_options import Normalised, SettingsCommand, as_names, chosen_protocol
from tacit.cli.shell import (
    JsonOutput,
    OutputFile,
    PictureFile,
    check_signal,
    one_or_by_name,
    refuse,
    terminable,
)
from tacit.data import units
from tacit.data.clients import Clients
from tacit.data.reading import FileColumns
from tacit.data.scales import ByFile
from tacit.planning.planner import choose
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import kind_of, protocol_for_columns, protocol_names
from tacit.protocol.trust import Trust, trust_words
from tacit.results.curves.calibrator import METHODS, Calibrator
from tacit.results.evaluation import Evaluation
from tacit.results.saved.integrity import with_fingerprint
from tacit.results.text import as_lines
from tacit.running.evaluating import ENGINES
from tacit.running.spending import unit_of
from tacit.running.units import suited_to_scores, taken_by

WITHOUT_PROTOCOL = "{} needs --protocol NAME, one of `tacit protocols`; else tacit chooses all"

NEEDED = {"group_name": "groups", "by": "split", "save_calibrator": "calibrate"}
"""Options, and the option that each of them needs."""

NEEDING_RECORDS = (
    *("client", "person", "split", "scores", "private_group", "groups", "second", "rescale"),
    "exact",
)
"""Options that mean nothing for counts."""


@click.command(cls=SettingsCommand)
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--protocol",
    type=Normalised(protocol_names()),
    help="What to run. Without it, protocol and settings follow from the number of clients, the "
    "rounded number of records, --epsilon and --trust, and the result says why.",
)
@click.option(
    "--trust",
    type=Normalised(trust_words()),
    metavar="WORD",
    help=f"Who may see what: {', '.join(trust.value for trust in Trust)} (`tacit plan --help`). By "
    "default secure-sum for up to 1,000 clients, and local for more.",
)
@record_options.score_and_label
@record_options.value_options
@record_options.second_option
@click.option(
    "--rescale",
    type=(float, float),
    metavar="LOW HIGH",
    help="Map scores from these public bounds to 0 and 1.",
)
@click.option(
    "--scores",
    type=as_names,
    metavar="A,B,...",
    help="With several classes: the column of scores of each class.",
)
@click.option(
    "--private-group",
    metavar="COL",
    help="The column of private groups, which the protocol protects like labels.",
)
@record_options.missing_option
@click.option(
    "--count-missing",
    type=float,
    metavar="EPSILON",
    help="With --missing drop: a noisy number of the records left out, for this part of "
    "--epsilon. Without it the result does not say how many, and the screen does.",
)
@record_options.database_options
@click.option(
    "--counts",
    metavar="FILE",
    help="Instead of FILES: what the statement of `tacit sql` returned, as CSV.",
)
@record_options.record_options
@record_options.per_person_option
@click.option(
    "--groups",
    metavar="COL",
    help="The column of public groups: evaluate each separately, at no more cost in all.",
)
@click.option(
    "--group-name",
    multiple=True,
    metavar="NAME",
    help="With --groups: an agreed group, once for each; else groups are read off the records.",
)
@record_options.run_options
@click.option(
    "--by",
    type=click.Choice(("uniform", "score")),
    help="With --split: deal out at random (the default), or similar scores together.",
)
@click.option(
    "--calibrate",
    type=click.Choice(tuple(METHODS)),
    help="With a score histogram: also fit a map from scores to calibrated probabilities.",
)
@click.option(
    "--at",
    multiple=True,
    type=float,
    metavar="PROBABILITY",
    help="With a score histogram: net benefit, predictive values and likelihood ratios at this "
    "probability, instead of the usual ones; once for each.",
)
@click.option("--save-calibrator", metavar="FILE", help="With --calibrate: save the map as JSON.")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="What clients compute together: by a trusted party (ideal), or by cryptography between "
    "processes (spu, the extra two-party). By default spu where --ledger is given.",
)
@click.option(
    "--ledger",
    multiple=True,
    callback=one_or_by_name,
    metavar="[CLIENT=]FILE",
    help=f"{record_options.LEDGER} With --engine spu: that of CLIENT, "
    "which debits it before it answers; one for each client that exists.",
)
@terminable()
@record_options.gathered_columns()
def evaluate(
    columns: FileColumns, settings: dict[str, Any], output: JsonOutput, **options: Any
) -> None:
    """Estimate the AUC, or another figure, of the records in FILES, a client each.

    FILES are CSV or Parquet. The noise is exact and comes from the operating system, unless --split
    or --seed ask for a simulation; a simulation says so, and protects nothing.

    Examples:
      tacit evaluate north.csv south.csv --epsilon 1
      tacit evaluate north.csv south.csv --protocol fedauc --epsilon 1
      tacit evaluate phones.parquet --client phone --protocol dpauc --epsilon 2 --json
      tacit evaluate north.csv --split 20 --seed 7 --protocol dpauc --epsilon 4 --plot roc.png
      tacit evaluate phones.parquet --client phone --protocol two-round-auc --epsilon 2
      tacit evaluate north.csv south.csv --protocol score-histogram --epsilon 1 --calibrate bbq
      tacit evaluate north.csv south.csv --protocol score-histogram --epsilon 1 --at 0.2
      tacit evaluate north.csv south.csv --protocol paired-ustatistic --kernel auc --epsilon 2
      tacit evaluate models.parquet --score new --protocol fedauc --epsilon 1 --groups ward
      tacit evaluate pets.parquet --scores cat,dog,bird --protocol multiclass-histogram --epsilon 1
      tacit evaluate visits.csv --person patient --per-person 2 --protocol dpauc --epsilon 1
      tacit evaluate north.csv south.csv --unit north.csv=percent --protocol fedauc --epsilon 1
      tacit evaluate north.csv --missing drop --count-missing 0.05 --protocol dpauc --epsilon 1
      tacit evaluate odds.parquet --unit log-odds --split 50 --protocol score-histogram --epsilon 1

    Exit status:
      0    there is an estimate
      2    an error; one sentence says which
      3    the noise left no signal: the result is printed without an estimate
      130  interrupted
    """
    asked, params = SimpleNamespace(**options), vars(columns) | options
    ledgers = asked.ledger if isinstance(asked.ledger, dict) else {}
    asked.ledger = None if isinstance(asked.ledger, dict) else asked.ledger
    chosen, given, reason = None, frozenset[str](), None
    columns = _of_values(asked, columns)
    if asked.protocol is None:
        refuse(WITHOUT_PROTOCOL, settings, *(name for name in settings if name != "epsilon"))
        refuse(WITHOUT_PROTOCOL, params, "groups", "second", "counts", "private_group")
        names = forms.category_names(None, settings, params)
    else:
        if asked.groups is not None and settings.get("group_names") is not None:
            raise click.UsageError("--groups takes --group-name, once for each group")
        settings |= {} if asked.trust is None else {"trust": asked.trust}
        names = forms.category_names(asked.protocol, settings, params)
        given = frozenset(settings)
        chosen = chosen_protocol(asked.protocol, settings)
    _refuse_conflicts(params)
    _check_figures(chosen, asked)
    if chosen is not None and isinstance(columns.unit, str) and asked.rescale is None:
        chosen = suited_to_scores(chosen, columns.unit, given)
    needed = replace(columns, label=_label_column(chosen, columns))
    picture = None if asked.plot is None else PictureFile(asked.plot)
    if asked.groups is not None and chosen is not None:
        forms.evaluate_by_group(asked, needed, chosen, given, picture, output)
        return
    map_file = None if asked.save_calibrator is None else OutputFile(asked.save_calibrator)
    chosen, clients = _read(asked, chosen, needed if asked.scores is None else columns, names)
    if chosen is None:
        most, count = unit_of(clients, asked.per_person), asked.split or clients.count
        classes, epsilon = clients.scored_classes, settings.get("epsilon")
        choice = choose(count, clients.records, epsilon, asked.trust, most, classes)
        chosen, reason = choice.protocol, choice.line
        _check_figures(chosen, asked)
    chosen, clients = taken_by(chosen, clients, given)
    if "thresholds" not in given:
        chosen = chosen.deciding(asked.at)
    if asked.split is not None:
        clients = record_options.split_clients(clients, asked, asked.by or "uniform")
    with record_options.printed_doubts():
        result = tacit.evaluate(
            clients,
            chosen,
            asked.seed,
            exact=_shows_exact(asked),
            federation=asked.federation,
            engine=asked.engine or ("spu" if ledgers else "ideal"),
            ledgers=ledgers,
            ledger=asked.ledger,
            per_person=asked.per_person,
            missing_epsilon=asked.count_missing,
        )
    result = replace(
        result,
        participants=result.participants if asked.names else (),
        decisions=tuple(dict.fromkeys(asked.at)) or result.decisions,
        choice=reason,
    )
    fits = asked.calibrate is not None and result.has_signal
    fitted = result.calibrator(asked.calibrate) if fits else None
    told = [] if ledgers else record_options.ledger_rows(asked)
    output.show(_content(result, fitted), lambda: _lines(result, fitted, told))
    if picture is not None:
        picture.save(result.plot().figure)
    if map_file is not None and fitted is not None:
        map_file.write(fitted.to_json().encode())
    check_signal(result.has_signal)


def _of_values(asked: SimpleNamespace, columns: FileColumns) -> FileColumns:
    """The columns that options for values name, which choose the protocol where none is named.

    Raises
    ------
    click.UsageError : for options that no protocol takes together, or another one is named.
    """
    named = {name: getattr(asked, name) for name in record_options.VALUE_COLUMNS}
    named = {name: column for name, column in named.items() if column is not None}
    if not named:
        return columns
    name = protocol_for_columns(named)
    if asked.protocol not in (None, name):
        raise click.UsageError(f"--{next(iter(named))} is for --protocol {name}")
    asked.protocol, taken_as = name, kind_of(name).record_columns
    first, missing = f"--{next(iter(named))}", [each for each in taken_as if each not in named]
    if missing:
        raise click.UsageError(f"{first} needs {' and '.join(f'--{each}' for each in missing)}")
    given = click.get_current_context().get_parameter_source
    unread = {*taken_as.values(), *(() if kind_of(name).needs_labels else ("label", "positive"))}
    surplus = [each for each in named if each not in taken_as]
    surplus += [each for each in sorted(unread) if given(each) is ParameterSource.COMMANDLINE]
    if surplus:
        raise click.UsageError(f"--{surplus[0]} cannot be used with {first}")
    return replace(columns, **{taken_as[each]: column for each, column in named.items()})


def _read(
    asked: SimpleNamespace, protocol: Protocol | None, columns: FileColumns, names: tuple[str, ...]
) -> tuple[Protocol | None, Clients]:
    """The clients, and the protocol in a form that they can answer."""
    with record_options.printed_doubts(asked.files):
        if asked.scores is not None:
            clients = forms.read_classes(asked, columns, names)
        else:
            group = None if asked.private_group is None else (asked.private_group, names)
            protocol, clients = sources.read_source(asked, protocol, columns, group)
    if asked.count_missing is None and not _shows_exact(asked):
        sources.say_left_out(clients, asked.names)
    if asked.rescale is not None:
        clients = tacit.rescale(clients, *asked.rescale)
    return protocol, clients


def _shows_exact(asked: SimpleNamespace) -> bool:
    """Whether the exact figure is computed, too: where that was asked for, or in a simulation."""
    return bool(asked.split is not None if asked.exact is None else asked.exact)


def _refuse_conflicts(params: Mapping[str, Any]) -> None:
    """Refuse options that mean nothing with others."""
    for option, needed in NEEDED.items():
        if params[needed] is None:
            refuse(f"{{}} needs --{needed}", params, option)
    record_options.check_runs(params)
    sources.check_source(params)
    if params["counts"] is not None:
        refuse("{} needs records, and --counts has none", params, *NEEDING_RECORDS)
    if params["rescale"] is not None and params["unit"] not in (None, units.REAL):
        raise click.UsageError("--rescale maps scores of --unit real, got another unit")
    if params["groups"] is not None:
        refuse("{} cannot be used with --groups; a protocol's --thresholds can", params, "at")
        alone = ("split", "calibrate", "count_missing")
        refuse("{} cannot be used with --groups", params, *alone)
        if isinstance(params["ledger"], dict):
            refuse("{} CLIENT=FILE cannot be used with --groups", params, "ledger")


def _label_column(protocol: Protocol | None, columns: FileColumns) -> ByFile | None:
    """The column of labels where the protocol needs them; a second one must be named likewise.

    One that is still to be chosen needs labels and no second values.
    """
    if protocol is None:
        return columns.label
    if protocol.needs_second_values and columns.second is None:
        options = [f"--{name}" for name in protocol.record_columns] or ["--second"]
        needed = " and ".join(options)
        raise click.UsageError(f"--protocol {protocol.name} with these settings needs {needed}")
    return columns.label if protocol.needs_labels else None


def _check_figures(protocol: Protocol | None, asked: SimpleNamespace) -> None:
    """Refuse figures that could not be given; where no protocol is chosen yet, by any protocol."""
    for probability in asked.at:
        if not 0 < probability < 1:
            raise click.UsageError(f"--at must be between 0 and 1, got {probability:g}")
    if protocol is not None and not protocol.gives_histogram:
        sentence = f"{{}} cannot be used with --protocol {protocol.name}"
        refuse(sentence, vars(asked), "calibrate", "at")


def _content(result: Evaluation, calibrator: Calibrator | None) -> dict[str, Any]:
    content = result.to_dict()
    if calibrator is not None:
        content["calibrator"] = json.loads(calibrator.to_json())
    return with_fingerprint(content)


def _shown_scores(result: Evaluation) -> tuple[float, ...]:
    """Scores at which a calibrator is shown: fixed probabilities, or borders of buckets."""
    if result.histogram is None or result.histogram.axis.unit == units.PROBABILITY:
        return (0.1, 0.3, 0.5, 0.7, 0.9)
    borders = result.histogram.edges[result.histogram.starts][1:]
    chosen = np.unique(np.linspace(0, borders.size - 1, 5).astype(np.int64))
    return tuple(borders[chosen].tolist()) if borders.size else (0.0,)


def _lines(result: Evaluation, calibrator: Calibrator | None, told: list[tuple[str, str]]) -> str:
    rows = [*result.to_rows(), *told]
    if calibrator is not None:
        at = _shown_scores(result)
        mapped = calibrator.transform(np.array(at))
        pairs = ", ".join(f"{s:g} -> {p:.3f}" for s, p in zip(at, mapped, strict=True))
        rows.append((f"calibrator ({calibrator.method})", pairs))
    return as_lines(rows, result.warnings)
