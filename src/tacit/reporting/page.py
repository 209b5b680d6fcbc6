"""A report: one HTML page of one or several results, which needs no network and no other file.

``templates`` say what the page holds, and escape every value; modules next to this one say it in
words, and where lines lie in pictures.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from tacit.protocol.declared import ThreatModel
from tacit.protocol.registry import written_kind
from tacit.reporting import pictures, tables, words
from tacit.reporting.comparing import differences
from tacit.reporting.runs import run_picture
from tacit.results.estimate import POPULATION_INTERVAL, RECORDS_INTERVAL, decimals
from tacit.results.measures.catalogue import label
from tacit.results.saved import reading

MOST_WHOLE = 12
"""Most groups of which the page shows everything; of more it shows the table."""

MOST_DRAWN = 40
"""Most parts or groups in a forest plot; a table has all of them."""

MOST_TITLED = 4
"""Most clients that a page names in its title."""

UNKNOWN = ThreatModel(
    "This report has no description of the protocol; see the protocol's documentation.",
    *["See the protocol's documentation."] * 3,
)


def report(documents: Sequence[reading.Document], title: str | None = None) -> str:
    """The page of one result, or of several with their differences from the first.

    Comparisons of two models and results of groups are sections of the same page. Nothing is
    loaded: style and script stand in the page, and its content-security policy allows these two
    alone. Every value is escaped.

    Parameters
    ----------
    documents : at least one result, comparison of models or result of groups.
    title : the page's heading; None for the federation's name, or else what was measured of whom.

    Raises
    ------
    ValueError : for no document, and for several results that cannot be compared.
    """
    if not documents:
        raise ValueError("a report needs at least one result, got none")
    results = [each for each in documents if isinstance(each, reading.Result)]
    shown = dict(_shown_results(documents))
    style, script = (
        files("tacit.reporting.templates").joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js")
    )
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    plain = {"data": _data(shown), "style": style, "script": script, "policy": policy}
    template = environment().get_template("page.html")
    return template.render(
        title=title or _default_title(documents[0]),
        documents=documents,
        results=results,
        differences=differences(results) if len(results) > 1 else [],
        shown=shown,
        **{name: Markup(text) for name, text in plain.items()},  # noqa: S704
    )


class _Absent(StrictUndefined):
    """An entry that a result does not have: it may be asked for, and not shown."""

    def __bool__(self) -> Literal[False]:  # type: ignore[override]
        return False


@cache
def environment() -> Environment:
    """What templates may call."""
    made = Environment(
        loader=PackageLoader("tacit.reporting"),
        autoescape=True,
        undefined=_Absent,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["finite"] = math.isfinite
    made.filters |= {"repr": repr, "with_code": _with_code}
    # templates call what these modules define
    for module in (pictures, reading, tables, words):
        own = {name: each for name, each in vars(module).items() if not name.startswith("_")}
        made.globals |= own
    made.globals |= {
        "INTERVALS": [RECORDS_INTERVAL, POPULATION_INTERVAL],
        "MOST_DRAWN": MOST_DRAWN,
        "MOST_WHOLE": MOST_WHOLE,
        "decimals": decimals,
        "label": label,
        "run_picture": run_picture,
        "threats_of": threats_of,
    }
    return made


def threats_of(protocol: Mapping[str, Any]) -> ThreatModel:
    """The threat model of a result's ``protocol`` entry.

    Examples
    --------
    >>> threats_of({"name": "hierarchical-auc", "epsilon": 1.0}).others
    'Nothing.'
    """
    kind = written_kind(protocol["name"])
    if kind is object:
        return UNKNOWN
    settings = {key: value for key, value in protocol.items() if key != "name"}
    threats: ThreatModel = kind.threats(settings)
    return threats


def _with_code(text: str) -> Markup:
    """A text whose commands stand between grave accents."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704


def _shown_results(documents: Sequence[reading.Document]) -> Iterator[tuple[str, reading.Result]]:
    """Every result of the page with the prefix of its parts."""
    for index, document in enumerate(documents):
        if isinstance(document, reading.Result):
            yield f"r{index}", document
        elif isinstance(document, reading.ComparedModels):
            yield f"r{index}", document.difference
        else:
            for place, group in enumerate(document.groups):
                if group.result is not None:
                    yield f"r{index}g{place}", group.result


def _default_title(first: reading.Document) -> str:
    if isinstance(first, reading.GroupedResult):
        return f"{first.figure} of groups of records"
    if isinstance(first, reading.ComparedModels):
        return f"{first.models[0].label} and {first.models[1].label} compared"
    name = first.content["federation"]["name"]
    if name:
        return str(name)
    names = [str(each["name"]) for each in first.content.get("participants", ()) if "name" in each]
    clients = f"{first.content['clients']:,} clients"
    return f"{first.figure} of {words.joined(names) if 0 < len(names) <= MOST_TITLED else clients}"


def _data(results: Mapping[str, reading.Result]) -> str:
    """The rates that the slider moves through, as JSON that cannot end its script.

    Thresholds are there as they are read, too.
    """
    rates: dict[str, Any] = {
        prefix: result.content["rates"]
        | {"shown": list(map(words.threshold_text, result.content["rates"]["thresholds"]))}
        for prefix, result in results.items()
        if "rates" in result.content
    }
    return htmlsafe_json_dumps(rates, separators=(",", ":"), allow_nan=False)


def _hash(text: str) -> str:
    """The digest by which a content-security policy knows a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
