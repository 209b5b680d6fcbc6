"""``tacit evaluate``: one protocol on files of records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import click
import numpy as np

import tacit
from tacit.cli.grouped import evaluate_by_group, refuse_with_groups
from tacit.cli.options import SettingsCommand, chosen_protocol
from tacit.cli.persons import check_person_options, person_options, split_clients
from tacit.cli.shared_options import json_option, names_option, seed_option, split_option
from tacit.cli.shell import NO_SIGNAL, as_json, as_lines, show
from tacit.cli.units import printed_doubts, refuse_two_maps, unit_option
from tacit.data.file_units import Units
from tacit.data.units import PROBABILITY
from tacit.output import OutputFile, PictureFile
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import protocol_names
from tacit.results.calibrator import METHODS, Calibrator
from tacit.results.evaluation import Evaluation
from tacit.results.integrity import with_fingerprint
from tacit.results.picture import new_axes
from tacit.running.evaluating import ENGINES
from tacit.running.units import suited_to_scores, taken_by

EVALUATE_EXAMPLES = """\b
Examples:
  tacit evaluate north.csv south.csv --protocol fedauc --epsilon 1
  tacit evaluate phones.parquet --client phone --protocol dpauc --epsilon 2 --json
  tacit evaluate north.csv --split 20 --seed 7 --protocol dpauc --epsilon 4 --plot roc.png
  tacit evaluate phones.parquet --client phone --protocol two-round-auc --epsilon 2
  tacit evaluate north.csv south.csv --protocol score-histogram --epsilon 1 --calibrate bbq
  tacit evaluate north.csv south.csv --protocol paired-ustatistic --kernel auc --epsilon 2
  tacit evaluate models.parquet --score new --protocol fedauc --epsilon 1 --groups ward
  tacit evaluate visits.csv --person patient --per-person 2 --protocol dpauc --epsilon 1
  tacit evaluate north.csv south.csv --unit north.csv=percent --protocol fedauc --epsilon 1
  tacit evaluate logits.parquet --unit log-odds --split 50 --protocol score-histogram --epsilon 1

\b
Exit status:
  0    there is an estimate
  2    an error; one sentence says which
  3    the noise left no signal: the result is printed without an estimate
  130  interrupted
"""


@click.command(cls=SettingsCommand, settings_after="protocol", epilog=EVALUATE_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--protocol", required=True, type=click.Choice(protocol_names()), help="What to run.")
@click.option("--score", default="score", show_default=True, help="The column of scores.")
@click.option("--label", default="label", show_default=True, help="The column of labels.")
@click.option("--second", help="Kendall's tau: the column of second values.")
@click.option(
    "--rescale",
    type=(float, float),
    metavar="LOW HIGH",
    help="Map scores from these public bounds to 0 and 1.",
)
@unit_option
@click.option("--client", help="The column of client ids; without it each file is a client.")
@person_options
@click.option(
    "--groups",
    metavar="COL",
    help="The column of public groups: evaluate each by itself, at no more cost in all.",
)
@click.option(
    "--group-name",
    multiple=True,
    metavar="NAME",
    help="With --groups: an agreed group, once for each; else groups are read off the records.",
)
@split_option
@click.option(
    "--by",
    type=click.Choice(("uniform", "score")),
    help="With --split: deal out at random (the default), or similar scores together.",
)
@seed_option
@click.option(
    "--calibrate",
    type=click.Choice(tuple(METHODS)),
    help="With a score histogram: also fit a map from scores to calibrated probabilities.",
)
@click.option("--save-calibrator", metavar="FILE", help="With --calibrate: save the map as JSON.")
@click.option(
    "--federation",
    metavar="NAME",
    help="What these records are called; results of one name are compared as about the same.",
)
@names_option
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
def evaluate(
    context: click.Context,
    /,
    files: tuple[str, ...],
    protocol: str,
    score: str,
    label: str,
    second: str | None,
    rescale: tuple[float, float] | None,
    unit: Units,
    client: str | None,
    person: str | None,
    per_person: int | None,
    groups: str | None,
    group_name: tuple[str, ...],
    split: int | None,
    by: str | None,
    seed: int | None,
    calibrate: str | None,
    save_calibrator: str | None,
    federation: str | None,
    names: bool,
    print_json: bool,
    plot: str | None,
    engine: Any,
    ledgers: tuple[str, ...],
    exact: bool | None,
    **settings: Any,
) -> None:
    """Estimate the AUC, or another figure, of the records in FILES (CSV or Parquet), a client each.

    The noise is exact and comes from the operating system, unless --split or --seed ask for a
    simulation; a simulation says so, and protects nothing.
    """
    given = frozenset(name for name, value in settings.items() if value is not None)
    chosen = chosen_protocol(protocol, settings)
    shown = split is not None if exact is None else exact
    _refuse_idle(split, by, client)
    check_person_options(person, per_person)
    if group_name and groups is None:
        raise click.UsageError("--group-name needs --groups")
    _refuse_calibration(chosen, calibrate, save_calibrator)
    refuse_two_maps(unit, rescale)
    if isinstance(unit, str) and rescale is None:
        chosen = suited_to_scores(chosen, unit, given)
    needed = _label_column(chosen, label, second)
    if groups is not None:
        idle = (("--split", split), ("--calibrate", calibrate), ("--plot", plot))
        refuse_with_groups((*idle, ("--ledger", ledgers or None)))
        with printed_doubts():
            both = tacit.read_with_groups(
                files, groups, score, needed, client, second, unit, group_name or None, person
            )
        evaluate_by_group(
            context,
            both,
            chosen,
            seed,
            rescale=rescale,
            given=given,
            exact=shown,
            federation=federation,
            engine=engine,
            names=names,
            print_json=print_json,
            per_person=per_person,
        )
        return
    picture = _picture(plot)
    map_file = None if save_calibrator is None else OutputFile(save_calibrator)
    with printed_doubts():
        clients = tacit.read(files, score, needed, client, second, unit, person)
    if rescale is not None:
        clients = tacit.rescale(clients, *rescale)
    chosen, clients = taken_by(chosen, clients, given)
    if split is not None:
        clients = split_clients(clients, split, by, seed, per_person)
    result = tacit.evaluate(
        clients,
        chosen,
        seed,
        exact=shown,
        federation=federation,
        engine=engine or ("spu" if ledgers else "ideal"),
        ledgers=_by_client(ledgers),
        per_person=per_person,
    )
    if not names:
        result = replace(result, participants=())
    fitted = result.calibrator(calibrate) if calibrate and result.has_signal else None
    show(_json(result, fitted) if print_json else _lines(result, fitted))
    if picture is not None:
        picture.save(result.plot().figure)
    if map_file is not None and fitted is not None:
        map_file.write(fitted.to_json().encode())
    if not result.has_signal:
        context.exit(NO_SIGNAL)


def _label_column(protocol: Protocol, label: str, second: str | None) -> str | None:
    """The column of labels where the protocol needs them; a second one must be named likewise."""
    if protocol.needs_second_values and second is None:
        raise click.UsageError(f"--protocol {protocol.name} with these settings needs --second")
    return label if protocol.needs_labels else None


def _refuse_idle(split: int | None, by: str | None, client: str | None) -> None:
    if split is None and by is not None:
        raise click.UsageError("--by needs --split")
    if split is not None and client is not None:
        raise click.UsageError("--client cannot be used with --split, which makes its own clients")


def _refuse_calibration(protocol: Protocol, method: str | None, file: str | None) -> None:
    if method is not None and not protocol.gives_histogram:
        raise click.UsageError(f"--calibrate cannot be used with --protocol {protocol.name}")
    if file is not None and method is None:
        raise click.UsageError("--save-calibrator needs --calibrate")


def _by_client(ledgers: tuple[str, ...]) -> dict[str, str]:
    """The ledger of every client; a client's second ledger would evade the limit of its first."""
    by_client: dict[str, str] = {}
    for name, file in map(_client_and_file, ledgers):
        if name in by_client:
            raise click.UsageError(
                f"--ledger names two files for {name!r}: a client has one ledger"
            )
        by_client[name] = file
    return by_client


def _client_and_file(text: str) -> tuple[str, str]:
    name, equals, file = text.rpartition("=")
    if not (name and equals and file):
        raise click.UsageError(f"--ledger must be CLIENT=FILE, got {text!r}")
    return name, file


def _picture(path: str | None) -> PictureFile | None:
    if path is None:
        return None
    new_axes()
    return PictureFile(path)


def _json(result: Evaluation, calibrator: Calibrator | None) -> str:
    content = result.to_dict()
    if calibrator is not None:
        content["calibrator"] = json.loads(calibrator.to_json())
    return as_json(with_fingerprint(content))


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
