"""The options of ``tacit evaluate``, and the protocols that they belong to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tacit.protocols.conversation import Protocol
from tacit.protocols.division import AIMS
from tacit.protocols.encrypted_auc import ADVERSARIES, SCHEMES
from tacit.protocols.fedauc import ALLOCATIONS
from tacit.protocols.hierarchical_auc import ESTIMATORS
from tacit.protocols.pair_kernels import KERNELS
from tacit.protocols.paired_noise import NOISES
from tacit.protocols.registry import SettingError, protocol_of
from tacit.protocols.score_histogram import TRUSTS

Command = TypeVar("Command", bound=Callable[..., Any])


def _numbers(context: Any, option: Any, text: str | None) -> tuple[float, ...] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not numbers separated by commas") from None


_SETTINGS = (
    click.option("--epsilon", type=float, help="Privacy budget; every private protocol needs it."),
    click.option(
        "--trust",
        type=click.Choice(TRUSTS),
        help="score-histogram: who may see what; distributed-dp by default.",
    ),
    click.option(
        "--mechanism",
        help="fedauc: staircase, discrete-laplace, laplace, gaussian, randomised-response. "
        "dpauc: histogram, laplace, gaussian, randomised-response. two-round-auc: "
        "window, bit. The first is the default.",
    ),
    click.option(
        "--allocation",
        type=click.Choice(ALLOCATIONS),
        help="fedauc: how a client divides epsilon; influence by default, fixed with --ranks mpc.",
    ),
    click.option(
        "--sensitivity",
        type=click.Choice(("local", "global")),
        help="fedauc, fixed: local by default, global with --ranks mpc.",
    ),
    click.option(
        "--ranks",
        type=click.Choice(("server", "mpc")),
        help="fedauc: who ranks the scores: the server (the default), or the clients together, "
        "who then show them to nobody.",
    ),
    click.option(
        "--alpha",
        type=float,
        help="fedauc, fixed: the rank sum's share of epsilon, 0.5 by default.",
    ),
    click.option(
        "--beta",
        type=float,
        help="fedauc, orthogonal: the count's share of epsilon, 0.5 by default.",
    ),
    click.option(
        "--delta",
        type=float,
        help="Gaussian noise, hierarchical-auc: the chance that epsilon fails.",
    ),
    click.option(
        "--thresholds", type=int, help="dpauc, encrypted-auc: thresholds or cells, 100 by default."
    ),
    click.option(
        "--adversary",
        type=click.Choice(ADVERSARIES),
        help="encrypted-auc: what the aggregator may do; semi-honest by default.",
    ),
    click.option(
        "--scheme", type=click.Choice(SCHEMES), help="encrypted-auc: bfv (exact) by default."
    ),
    click.option(
        "--edges",
        callback=_numbers,
        metavar="0,A,...,1",
        help="encrypted-auc: the thresholds themselves, agreed beforehand; evenly by default.",
    ),
    click.option(
        "--most-records", type=int, help="encrypted-auc: a public bound of all records, 2**20."
    ),
    click.option(
        "--accounting",
        type=click.Choice(("tight", "paper")),
        help="dpauc, laplace or gaussian: tight by default.",
    ),
    click.option(
        "--adjacency",
        type=click.Choice(("record", "label", "replace")),
        help="dpauc, score-histogram: what epsilon hides; record by default where it applies.",
    ),
    click.option(
        "--clamp/--no-clamp",
        default=None,
        help="dpauc, laplace or gaussian: clamp and order noisy counts, as the paper does.",
    ),
    click.option(
        "--height",
        type=int,
        help="score-histogram, hierarchical-auc: 2**height cells of scores.",
    ),
    click.option(
        "--buckets", type=int, help="score-histogram: equi-depth buckets of curves and calibration."
    ),
    click.option(
        "--budget",
        type=click.Choice(("split", "sample")),
        help="score-histogram: divide epsilon over the tree's levels, or the records.",
    ),
    click.option(
        "--aim",
        type=click.Choice(AIMS),
        help="score-histogram: what that division serves best; auc by default.",
    ),
    click.option(
        "--dropouts",
        type=float,
        help="score-histogram, distributed-dp: the share of clients that may vanish, 0 by default.",
    ),
    click.option(
        "--second-round",
        type=float,
        help="score-histogram, distributed-dp: epsilon's part for a second pass, 0 by default.",
    ),
    click.option(
        "--labels",
        type=click.Choice(("public", "private")),
        help="two-round-auc: whether the server may know the classes; private by default.",
    ),
    click.option(
        "--estimator",
        type=click.Choice(ESTIMATORS),
        help="hierarchical-auc: consistent by default.",
    ),
    click.option(
        "--kernel",
        type=click.Choice(tuple(KERNELS)),
        help="ustatistic, paired-ustatistic: the function of two records.",
    ),
    click.option(
        "--matchings",
        type=int,
        help="paired-ustatistic: how many pairs a record is in; 1, more where epsilon is large.",
    ),
    click.option(
        "--noise",
        type=click.Choice(NOISES),
        help="paired-ustatistic: what hides a pair's value. randomised-response by default for the "
        "AUC and collisions, else laplace.",
    ),
    click.option("--bins", type=int, help="ustatistic: into how many bins values are cut."),
    click.option(
        "--domain",
        type=(float, float),
        metavar="LOW HIGH",
        help="ustatistic; paired-ustatistic, gini: the public range of values, 0 1 by default.",
    ),
    click.option(
        "--values",
        callback=_numbers,
        metavar="A,B,...",
        help="ustatistic: the public values themselves, where they are few.",
    ),
    click.option(
        "--second-domain", type=(float, float), metavar="LOW HIGH", help="ustatistic: of --second."
    ),
    click.option(
        "--second-values", callback=_numbers, metavar="A,B,...", help="ustatistic: of --second."
    ),
)


def protocol_settings(command: Command) -> Command:
    """Give a command every protocol's options."""
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


def chosen_protocol(name: str, settings: dict[str, Any]) -> Protocol:
    """The protocol with the settings that were given, all of which it must use."""
    try:
        return protocol_of(name, {k: given for k, given in settings.items() if given is not None})
    except SettingError as error:
        flag, place = f"--{error.name.replace('_', '-')}", f"--protocol {name}"
        if error.missing:
            raise click.UsageError(f"{place} needs {flag}") from None
        place = ", ".join((place, *error.choices))
        raise click.UsageError(f"{flag} cannot be used with {place}") from None
