"""The report that the first page shows is what the package writes today."""

from __future__ import annotations

import re
from pathlib import Path

import tacit

SHOWN = Path(__file__).parents[2] / "docs" / "assets" / "example-report.html"

VOLATILE = re.compile(
    r'<tr><th scope="row">(numpy|python|tacit|Fingerprint.*?)</th>.*?</tr>|sha256-\S+'
)
"""Versions, and digests of a result that has them."""


def lines(page: str) -> list[str]:
    """A page without what differs between machines; numbers to six digits."""
    text = VOLATILE.sub("", page)
    return re.sub(r"\d+\.\d{6,}(e-\d+)?", lambda found: f"{float(found[0]):.5g}", text).split("\n")


def test_the_example_is_today_s_report() -> None:
    scores, labels = tacit.binormal_scores(3000, 7000, 0.8, seed=0)
    clients = tacit.Clients.split(scores, labels, clients=10, seed=0)
    result = tacit.evaluate(clients, tacit.ScoreHistogram(epsilon=1.0), seed=1)
    assert lines(result.to_html()) == lines(SHOWN.read_text(encoding="utf-8"))
