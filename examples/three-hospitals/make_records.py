"""Make the synthetic records of the three hospitals again: python make_records.py [FOLDER]."""

import sys
from pathlib import Path

import numpy as np
from numpy.random import default_rng

HOSPITALS = {"a": (400, 0.30), "b": (420, 0.25), "c": (380, 0.35)}
"""Records, and the share of positive labels."""


def records(seed: int, size: int, share: float) -> str:
    """Scores with four decimals and labels, as CSV; positives score higher by one deviation."""
    random = default_rng(seed)
    labels = (random.random(size) < share).astype(int)
    scores = 1 / (1 + np.exp(-random.normal(1.2 * labels - 0.6, 1.0)))
    rows = [f"{score:.4f},{label}" for score, label in zip(scores, labels, strict=True)]
    return "\n".join(["score,label", *rows]) + "\n"


def main(folder: Path) -> None:
    """Write ``records.csv`` into the folder of every hospital."""
    for seed, (name, (size, share)) in enumerate(HOSPITALS.items()):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "records.csv").write_text(records(seed, size, share), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
