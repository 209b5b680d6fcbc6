"""Make the synthetic clicks of a platform and three advertisers: python make_records.py [FOLDER].

The platform's file has click, advertiser and score; an advertiser's has click and label. Each side
has clicks that the other lacks.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from numpy.random import default_rng

ADVERTISERS = ("north", "south", "west")
CLICKS = 6000


def write(file: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Write rows as CSV."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([header, *rows])


def main(folder: Path) -> None:
    """Write ``clicks.csv`` into the folders of the platform and of every advertiser."""
    random = default_rng(33)
    clicks = [random.bytes(16).hex() for _ in range(CLICKS)]
    owners = random.choice(ADVERTISERS, CLICKS)
    labels = (random.random(CLICKS) < 0.1).astype(int)
    scores = np.round(1 / (1 + np.exp(2 - random.normal(1.2 * labels, 1.0))), 4)
    at_platform, at_advertiser = random.random((2, CLICKS)) < 0.97
    listed = list(zip(clicks, owners, scores, labels, at_platform, at_advertiser, strict=True))
    shown = [(click, owner, score) for click, owner, score, _, here, _ in listed if here]
    write(folder / "platform" / "clicks.csv", ("click", "advertiser", "score"), shown)
    for name in ADVERTISERS:
        kept = [each for each in listed if each[-1] and each[1] == name]
        own = [(click, label) for click, _, _, label, _, _ in kept]
        write(folder / name / "clicks.csv", ("click", "label"), own)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
