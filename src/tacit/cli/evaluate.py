"""``tacit evaluate``: one protocol on files of records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click
import numpy as np

import tacit
from tacit.cli import evaluate_forms as forms
from tacit.cli import record_options, sources
from tacit.cli.setting_options import SettingsCommand, Spelled, chosen_protocol
from tacit.cli.shell import JsonOutput, check_signal, json_option, once_by_name, refuse, terminable
from tacit.data.reading import FileColumns
from tacit.data.scales import ByFile
from tacit.data.units import PROBABILITY
from tacit.output import OutputFile, PictureFile
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import protocol_names
from tacit.results.curves.calibrator import METHODS, Calibrator
from tacit.results.evaluation import Evaluation
from tacit.results.saved.integrity import with_fingerprint
from tacit.results.text import as_lines
from tacit.running.evaluating import ENGINES
from tacit.running.units import suited_to_scores, taken_by

WITHOUT_PROTOCOL = "{} needs --protocol: without it, --epsilon and --trust choose all settings"


@click.command(cls=SettingsCommand, settings_after="protocol")
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--protocol",
    type=Spelled(protocol_names()),
    help="What to run. Without it, protocol and settings follow from the number of clients, the "
    "rounded number of records, --epsilon and --trust, and the result says why.",
)
@forms.trust_option
@record_options.score_and_label
@click.option("--second", help="Kendall's tau: the column of second values.")
@click.option(
    "--rescale",
    type=(float, float),
    metavar="LOW HIGH",
    help="Map scores from these public bounds to 0 and 1.",
)
@forms.category_options
@record_options.unit_option
@record_options.form_options
@sources.missing_options
@sources.source_options
@click.option("--client", help="The column of client ids; without it each file is a client.")
@record_options.person_options
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
@record_options.split_option
@click.option(
    "--by",
    type=click.Choice(("uniform", "score")),
    help="With --split: deal out at random (the default), or similar scores together.",
)
@record_options.seed_option
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
    "--federation",
    metavar="NAME",
    help="What these records are called; results of one name are compared as about the same.",
)
@record_options.names_option
@json_option
@click.option("--plot", metavar="FILE", help="Save a picture (.png, .svg or .pdf).")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="What clients compute together: by a trusted party (ideal), or by cryptography between "
    "processes (spu, the extra two-party). By default spu where --ledger is given.",
)
@click.option(
    "--ledger",
    "ledgers",
    multiple=True,
    callback=once_by_name,
    metavar="CLIENT=FILE",
    help="With --engine spu: a client's ledger, which it debits before it answers; one for each "
    "client that exists.",
)
@click.option(
    "--exact/--no-exact",
    default=None,
    help="Also compute the exact AUC, not private. By default only with --split.",
)
@click.pass_context
@terminable()
@record_options.gathered_columns
def evaluate(
    context: click.Context,
    /,
    files: tuple[str, ...],
    protocol: str | None,
    trust: str | None,
    columns: FileColumns,
    rescale: tuple[float, float] | None,
    scores: tuple[str, ...] | None,
    private_group: str | None,
    missing_epsilon: float | None,
    table: str | None,
    query: str | None,
    counts: str | None,
    per_person: int | None,
    groups: str | None,
    group_name: tuple[str, ...],
    split: int | None,
    by: str | None,
    seed: int | None,
    calibrate: str | None,
    at: tuple[float, ...],
    save_calibrator: str | None,
    federation: str | None,
    names: bool,
    output: JsonOutput,
    plot: str | None,
    engine: Any,
    ledgers: dict[str, str],
    exact: bool | None,
    **settings: Any,
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
    one_group = {"--groups": groups, "--second": columns.second, "--rescale": rescale}
    categories, chosen, given = None, None, frozenset[str]()
    if protocol is None:
        names_of_one = ("groups", "second", "counts", "private_group")
        needing_one = [name for name in (*settings, *names_of_one) if name != "epsilon"]
        refuse(_named(context.params, needing_one), WITHOUT_PROTOCOL)
        categories = forms.class_columns(scores, one_group)
    else:
        settings["trust"] = trust
        named = scores, private_group, counts is not None
        categories = forms.category_columns(protocol, settings, *named, one_group)
        given = frozenset(name for name, value in settings.items() if value is not None)
        chosen = chosen_protocol(protocol, settings)
    _refuse_conflicts(context.params)
    _check_figures(chosen, calibrate, save_calibrator, at)
    if chosen is not None and isinstance(columns.unit, str) and rescale is None:
        chosen = suited_to_scores(chosen, columns.unit, given)
    needed = replace(columns, label=_label_column(chosen, columns))
    picture = None if plot is None else PictureFile.for_drawing(plot)
    if groups is not None and chosen is not None:
        forms.evaluate_by_group(context.params, needed, chosen, given, picture)
        return
    map_file = None if save_calibrator is None else OutputFile(save_calibrator)
    with record_options.printed_doubts():
        if categories is not None and categories.scores is not None:
            clients = categories.read_classes(files, columns)
        else:
            group = None if categories is None else categories.private
            chosen, clients = sources.read_source(
                files, chosen, needed, table=table, query=query, counts=counts, group=group
            )
    shows_exact = split is not None if exact is None else exact
    if missing_epsilon is None and not shows_exact:
        sources.say_left_out(clients, names)
    if rescale is not None:
        clients = tacit.rescale(clients, *rescale)
    chosen, reason = forms.chosen_or_default(
        chosen, clients, split, settings.get("epsilon"), trust, per_person
    )
    _check_figures(chosen, calibrate, save_calibrator, at)
    chosen, clients = taken_by(chosen, clients, given)
    if "thresholds" not in given:
        chosen = chosen.deciding(at)
    if split is not None:
        clients = record_options.split_clients(clients, split, by, seed, per_person)
    result = tacit.evaluate(
        clients,
        chosen,
        seed,
        exact=shows_exact,
        federation=federation,
        engine=engine or ("spu" if ledgers else "ideal"),
        ledgers=ledgers,
        per_person=per_person,
        missing_epsilon=missing_epsilon,
    )
    result = replace(
        result,
        participants=result.participants if names else (),
        decisions=tuple(dict.fromkeys(at)) or result.decisions,
        choice=reason,
    )
    fitted = result.calibrator(calibrate) if calibrate and result.has_signal else None
    output.show(_content(result, fitted), lambda: _lines(result, fitted))
    _save(result, fitted, picture, map_file)
    check_signal(result.has_signal)


def _refuse_conflicts(params: Mapping[str, Any]) -> None:
    """Refuse options that mean nothing with others."""
    split, files, counts = params["split"], params["files"], params["counts"]
    if params["groups"] is None and params["group_name"]:
        raise click.UsageError("--group-name needs --groups")
    if split is None and params["by"] is not None:
        raise click.UsageError("--by needs --split")
    record_options.refuse_split_clients(split, params["client"])
    sources.check_source(files, params["table"], params["query"], counts)
    alone = ("client", "person", "split", "scores", "private_group", "groups", "second", "rescale")
    if counts is not None:
        options = (*_named(params, alone), ("--exact", params["exact"] or None))
        refuse(options, "{} needs records, and --counts has none")
    idle = _named(params, ("scores", "private_group", "counts"))
    sources.check_missing(params["missing"], params["missing_epsilon"], files, idle)
    record_options.check_person_options(params["person"], params["per_person"])
    record_options.refuse_two_maps(params["unit"], params["rescale"])
    if params["groups"] is not None:
        given = _named(params, ("split", "calibrate"))
        ledgers, at = params["ledgers"] or None, params["at"] or None
        counted = ("--count-missing", params["missing_epsilon"])
        options = (*given, ("--at", at), ("--ledger", ledgers), counted)
        refuse(options, "{} cannot be used with --groups")


def _named(params: Mapping[str, Any], names: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """Options as they are typed, with their values."""
    return tuple((f"--{name.replace('_', '-')}", params[name]) for name in names)


def _save(
    result: Evaluation,
    calibrator: Calibrator | None,
    picture: PictureFile | None,
    map_file: OutputFile | None,
) -> None:
    """Write the files that were asked for."""
    if picture is not None:
        picture.save(result.plot().figure)
    if map_file is not None and calibrator is not None:
        map_file.write(calibrator.to_json().encode())


def _label_column(protocol: Protocol | None, columns: FileColumns) -> ByFile | None:
    """The column of labels where the protocol needs them; a second one must be named likewise.

    One that is still to be chosen needs labels and no second values.
    """
    if protocol is None:
        return columns.label
    if protocol.needs_second_values and columns.second is None:
        raise click.UsageError(f"--protocol {protocol.name} with these settings needs --second")
    return columns.label if protocol.needs_labels else None


def _check_figures(
    protocol: Protocol | None, calibrate: str | None, file: str | None, at: tuple[float, ...]
) -> None:
    """Refuse figures that could not be given; where no protocol is chosen yet, by any protocol."""
    if file is not None and calibrate is None:
        raise click.UsageError("--save-calibrator needs --calibrate")
    for probability in at:
        if not 0 < probability < 1:
            raise click.UsageError(f"--at must be between 0 and 1, got {probability:g}")
    if protocol is None or protocol.gives_histogram:
        return
    needing = ("--calibrate", calibrate), ("--at", at or None)
    refuse(needing, f"{{}} cannot be used with --protocol {protocol.name}")


def _content(result: Evaluation, calibrator: Calibrator | None) -> dict[str, Any]:
    content = result.to_dict()
    if calibrator is not None:
        content["calibrator"] = json.loads(calibrator.to_json())
    return with_fingerprint(content)


def _shown_scores(result: Evaluation) -> tuple[float, ...]:
    """Scores at which a calibrator is shown: fixed probabilities, or borders of buckets."""
    if result.histogram is None or result.histogram.axis.unit == PROBABILITY:
        return (0.1, 0.3, 0.5, 0.7, 0.9)
    borders = result.histogram.edges[result.histogram.starts][1:]
    chosen = np.unique(np.linspace(0, borders.size - 1, 5).astype(np.int64))
    return tuple(borders[chosen].tolist()) if borders.size else (0.0,)


def _lines(result: Evaluation, calibrator: Calibrator | None) -> str:
    rows = result.to_rows()
    if calibrator is not None:
        at = _shown_scores(result)
        mapped = calibrator.transform(np.array(at))
        pairs = ", ".join(f"{s:g} -> {p:.3f}" for s, p in zip(at, mapped, strict=True))
        rows.append((f"calibrator ({calibrator.method})", pairs))
    return as_lines(rows, result.warnings)
