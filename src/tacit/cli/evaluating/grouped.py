"""``tacit evaluate --groups``: every public group of records by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

import tacit
from tacit.cli.shell import NO_SIGNAL, as_json, show
from tacit.data.clients import Clients
from tacit.data.groups import Groups
from tacit.output import PictureFile
from tacit.results.drawing.several import draw_groups
from tacit.results.parts.grouped import GroupedEvaluation
from tacit.results.text import as_lines
from tacit.running.units import taken_by


def evaluate_by_group(
    context: click.Context,
    read: tuple[Clients, Groups],
    protocol: tacit.Protocol,
    seed: int | None,
    *,
    rescale: tuple[float, float] | None,
    given: frozenset[str],
    exact: bool,
    federation: str | None,
    engine: Any,
    names: bool,
    print_json: bool,
    per_person: int | None = None,
    picture: PictureFile | None = None,
) -> None:
    """Evaluate every group and print the result; the options are those of ``tacit evaluate``.

    Parameters
    ----------
    given : the protocol's settings that were given, by name.
    picture : where to save a picture; None for none.
    """
    clients, groups = read
    if rescale is not None:
        clients = tacit.rescale(clients, *rescale)
    protocol, clients = taken_by(protocol, clients, given)
    chosen_engine: Any = engine or "ideal"
    result = tacit.evaluate_groups(
        clients,
        groups,
        protocol,
        seed,
        exact=exact,
        federation=federation,
        engine=chosen_engine,
        per_person=per_person,
    )
    if not names:
        result = _without_names(result)
    show(as_json(result.to_dict()) if print_json else _lines(result))
    if picture is not None:
        picture.save(draw_groups(result))
    if not result.has_signal:
        context.exit(NO_SIGNAL)


def refuse_with_groups(options: Sequence[tuple[str, object]]) -> None:
    """Refuse options that say nothing about groups.

    Parameters
    ----------
    options : options with their values; None for those not given.

    Raises
    ------
    click.UsageError : for the first that was given.
    """
    for option, value in options:
        if value is not None:
            raise click.UsageError(f"{option} cannot be used with --groups")


def _without_names(result: GroupedEvaluation) -> GroupedEvaluation:
    groups = tuple(
        group
        if group.evaluation is None
        else replace(group, evaluation=replace(group.evaluation, participants=()))
        for group in result.groups
    )
    return replace(result, groups=groups)


def _lines(result: GroupedEvaluation) -> str:
    return as_lines(result.to_rows(), result.warnings)
