"""The page of measures has every figure of the catalogue."""

from __future__ import annotations

import re
from pathlib import Path

import tacit

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "measures.md"

GIVEN = re.compile(r"(?<=_)(\d[\d.]*|[trx])$")
"""What a figure is asked at: a number, for which the page has a letter."""


def test_every_figure_has_a_row() -> None:
    scores, labels = tacit.binormal_scores(500, 1500, 0.8, seed=0)
    clients = tacit.Clients.split(scores, labels, clients=10, seed=0)
    names = tacit.evaluate(clients, epsilon=1.0, seed=1).measures.by_name
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    documented = {GIVEN.sub("", name) for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {GIVEN.sub("", name) for name in names} <= documented
