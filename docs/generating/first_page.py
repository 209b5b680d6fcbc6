"""Writes the picture and the report that the site's first page shows, from simulated records."""

from __future__ import annotations

from pathlib import Path

import tacit

ASSETS = Path(__file__).resolve().parents[1] / "assets"
DOTS_PER_INCH = 100


def main() -> None:
    """Write ``roc.png`` and ``example-report.html`` into ``docs/assets``."""
    scores, labels = tacit.binormal_scores(3000, 7000, 0.8, seed=0)
    clients = tacit.Clients.split(scores, labels, clients=10, seed=0)
    result = tacit.evaluate(clients, tacit.ScoreHistogram(epsilon=1.0), seed=1)
    result.plot().figure.savefig(ASSETS / "roc.png", dpi=DOTS_PER_INCH)
    (ASSETS / "example-report.html").write_text(result.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main()
