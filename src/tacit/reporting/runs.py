"""A run of a protocol as a picture: who sends what to whom, and which party adds the noise.

Everything is read from a dry run over a few synthetic records (``exchanges``): the values of a
query, the first line of the docstring of the step that answers, the distributions from which it
draws, its cost and the view of the server. ``templates/run.html`` draws it.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from tacit.privacy.cost import cost_line
from tacit.privacy.mechanisms.interface import Mechanism
from tacit.protocol.registry import with_settings, written_kind
from tacit.protocol.scenario import DRAWN_CLIENTS, Exchange, small_run
from tacit.protocol.steps import View
from tacit.running.spending import per_record

LINE_CHARACTERS, LINE, WIRE, GAP, TOP = 44, 17, 32, 8, 52
"""Characters of a line of text; heights of a line, an arrow, the gap below, and both parties."""

NAMES = {"knots": "cell edges", "height": "number of levels", "parts": "fractions of epsilon"}
"""Words for fields of queries whose names are short."""

SAME = 1 - 1e-9
"""Fraction of epsilon from which a round is taken to spend all of it; the rest is rounding."""

RESPONSE = "randomised response"
NOISES = {
    "DiscreteLaplace": "discrete Laplace noise",
    "PolyaShare": "discrete Laplace noise",
    "Laplace": "Laplace noise",
    "Gaussian": "Gaussian noise",
    "DiscreteGaussian": "discrete Gaussian noise",
    "Staircase": "staircase noise",
    "RandomisedResponse": RESPONSE,
}
"""Words for mechanisms, by their class."""

SEEN = {
    View.EACH: "The server sees the reply of each client.",
    View.SUM: "The server sees the sum over clients only.",
    View.MPC: "The server sees the joint outcome only.",
}


@dataclass(frozen=True)
class Row:
    """A part of the picture.

    Parameters
    ----------
    kind : ``"title"``, ``"text"``, ``"noise"``, ``"exact"``, ``"seen"``, ``"result"``, or an arrow:
        ``"query"``, ``"each"``, ``"sum"`` or ``"joint"``.
    y : the top.
    lines : the lines of text; none of an arrow.
    style : of an arrow to the server: ``"line"`` for a reply with noise, ``"second"`` for one
        without that no guarantee covers, else ``"axis"``.
    """

    kind: str
    y: int
    lines: tuple[str, ...] = ()
    style: str = ""

    @property
    def height(self) -> int:
        """The height, with the gap below."""
        if not self.lines:
            return WIRE
        return LINE * len(self.lines) + (2 * GAP if self.is_boxed else GAP // 2)

    @property
    def is_boxed(self) -> bool:
        """Whether the text stands in a box."""
        return self.kind in ("noise", "exact", "result")


@dataclass(frozen=True)
class RunPicture:
    """The rounds of one run.

    Parameters
    ----------
    name : starts the ids of its parts; unique on the page.
    title : read out instead of the picture.
    parts : kind, text and style of each row.
    divided : whether rounds have fractions of epsilon, which may depend on the records.
    """

    name: str
    title: str
    parts: tuple[tuple[str, str, str], ...]
    divided: bool = False
    width: ClassVar[int] = 400

    @property
    def rows(self) -> list[Row]:
        """The rows from the top down."""
        rows, y = list[Row](), TOP
        for kind, text, style in self.parts:
            y += GAP if kind == "title" else 0
            rows.append(Row(kind, y, tuple(textwrap.wrap(text, LINE_CHARACTERS)), style))
            y += rows[-1].height
        return rows

    @property
    def height(self) -> int:
        """The height of the picture."""
        return self.rows[-1].y + self.rows[-1].height + GAP

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return sum(kind == "title" for kind, _, _ in self.parts)

    @property
    def description(self) -> str:
        """All that the picture shows, in sentences."""
        return " ".join(text for _, text, _ in self.parts if text)


def run_picture(
    protocol: Mapping[str, Any],
    name: str,
    clients: int = DRAWN_CLIENTS,
    records: float = math.nan,
    person: Mapping[str, Any] | None = None,
) -> RunPicture | None:
    """The picture of a run under the settings of a result's ``protocol`` entry.

    None where they cannot be run here: the protocol or what it needs is not installed, a setting is
    unknown, or a run over a few records would be large.

    Parameters
    ----------
    protocol : the name and the settings.
    name : starts the ids of the picture's parts.
    clients, records : how many there are, on which the rounds may depend; NaN for unknown.
    person : the ``person`` entry of a result where the settings have the epsilon of a person, which
        is divided among the records that count.
    """
    known = records if math.isfinite(records) else math.nan  # one object, so that it is remembered
    made = _rounds(json.dumps([protocol, person]), clients, known)
    return made and RunPicture(name, *made)


@lru_cache(maxsize=64)
def _rounds(written: str, clients: int, records: float) -> Any:
    settings, person = json.loads(written)
    name, several = settings.pop("name"), ""
    try:
        protocol = with_settings(written_kind(name), name, settings)
        if person and settings.get("epsilon"):
            several = f" A person has up to {person['records']:d}: epsilon {settings['epsilon']:g}."
            protocol = per_record(protocol, person["records"])
        done = list(small_run(protocol, clients, records))
    # steps of any package ran on settings of any file: what fails is not drawn
    except Exception:
        return None
    sender = "record" if protocol.lone_records else "client"
    parts = [part for index, each in enumerate(done) for part in _parts_of(index, each, sender)]
    cost = cost_line(protocol.guarantee.to_dict(), unlimited="no differential privacy")
    result = f"Result: {protocol.figure}. All rounds together: {cost}.{several}"
    parts.append(("result", result.replace("epsilon ", "epsilon\u00a0"), ""))
    whole = protocol.guarantee.epsilon
    divided = math.isfinite(whole) and any(0 < each.cost.epsilon < whole * SAME for each in done)
    return f"A run of {protocol.title}", tuple(parts), divided


def _parts_of(index: int, exchange: Exchange, sender: str) -> Iterator[tuple[str, str, str]]:
    """The rows of one round; ``sender`` is what a client is here."""
    query, epsilon = exchange.query, exchange.cost.epsilon
    yield "title", f"Round {index + 1}:", ""
    yield "text", f"The server asks. {_sent(exchange)}", ""
    yield "query", "", ""
    yield "text", f"Answer: {query.step.summary}", ""
    yield ("noise" if 0 < epsilon < math.inf else "exact"), _noise(exchange, sender), ""
    style = "line" if 0 < epsilon < math.inf else "second" if epsilon else "axis"
    yield query.view.value, "", style
    yield "seen", SEEN[query.view], ""


def _sent(exchange: Exchange) -> str:
    """The names of a query's values."""
    given = {
        "To all": [key for key, value in exchange.query.broadcast.items() if value is not None],
        "To each its own": list(exchange.query.per_client),
    }
    return " ".join(
        f"{whom}: {', '.join(NAMES.get(key, key.replace('_', ' ')) for key in keys)}."
        for whom, keys in given.items()
        if keys
    )


def _noise(exchange: Exchange, sender: str) -> str:
    """Which party adds which noise, and what is spent."""
    epsilon, query = exchange.cost.epsilon, exchange.query
    if not 0 < epsilon < math.inf:
        return "No noise. " + ("No differential privacy." if epsilon else "No epsilon is spent.")
    drawn = [type(each).__name__ for each in exchange.drawn if isinstance(each, Mechanism)]
    noises = " or ".join(dict.fromkeys(NOISES.get(each, "noise") for each in drawn)) or RESPONSE
    shares = query.step.shares and query.step.shares(query)
    if query.view is View.MPC:
        who = "All clients together draw"
    elif query.view is View.SUM and shares:
        who = "Each client draws a share of"
    else:
        who = f"Each {sender} draws"
    return f"{who} {noises}: epsilon\u00a0{epsilon:.3g}."
