"""Pictures of runs in the site, made from the protocols' declarations as in reports."""

from __future__ import annotations

import json
import re
from typing import Any

from tacit.reporting.page import environment
from tacit.reporting.runs import run_picture

PLACE = re.compile(r"<!-- run: (?P<name>\S+)(?: (?P<settings>\{.*?\}))? -->")
"""Where a page gets a picture: a protocol and those of its settings that are not the defaults."""


def on_page_content(html: str, **_: Any) -> str:
    """Draw the runs that a page of mkdocs names."""
    return PLACE.sub(_drawn, html)


def _drawn(place: re.Match[str]) -> str:
    settings = json.loads(place["settings"] or "{}")
    picture = run_picture({"name": place["name"], **settings}, f"run-{place.start()}")
    if picture is None:
        raise ValueError(f"no run can be drawn of {place[0]}")
    drawn = environment().get_template("run.html").module.run(picture, caption=picture.title)  # type: ignore[attr-defined]
    return str(drawn)
