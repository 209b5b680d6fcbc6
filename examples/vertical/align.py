"""Align a platform's clicks with advertisers' labels, without a join in the clear.

At the platform, and then at each advertiser:

    python align.py platform
    python align.py north

The platform writes into an advertiser's folder what it sends it: a key, and for each of this
advertiser's clicks a tag and a rank. A tag is the HMAC-SHA256 of the click's id under the key; a
rank is the number of different smaller scores of all the platform's clicks. The advertiser tags
its own clicks by the same key, and keeps those that have a rank, with their labels.
"""

import csv
import hmac
import os
import secrets
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def read(file: Path, *columns: str) -> list[tuple[str, ...]]:
    """Columns of a CSV file, the first of which must not repeat a value.

    A click that counted twice would move the sums twice as far as their noise assumes.
    """
    with file.open(newline="", encoding="utf-8") as opened:
        rows = [tuple(row[name] for name in columns) for row in csv.DictReader(opened)]
    if len({row[0] for row in rows}) < len(rows):
        raise SystemExit(f"{file} names one {columns[0]} twice: leave one line for each")
    return rows


def write(file: Path, header: tuple[str, str], rows: list[tuple[object, object]]) -> None:
    """Write two columns as CSV."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([header, *rows])


def key_of(file: Path) -> bytes:
    """The key in a file that its owner alone can read; drawn where there is none."""
    if not file.exists():
        write_secret(file, secrets.token_bytes(32))
    return bytes.fromhex(file.read_text())


def write_secret(file: Path, key: bytes) -> None:
    """Write a key into a file that its owner alone can read."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(key.hex())


def tag(key: bytes, click: str) -> str:
    """What stands for a click between two sides with one key."""
    return hmac.digest(key, click.encode(), "sha256").hex()


def offer(folder: Path) -> None:
    """At the platform: write every advertiser's key and ranks, sorted by tag, into its folder."""
    own = folder / "platform"
    clicks = read(own / "clicks.csv", "click", "advertiser", "score")
    ranks = np.unique([float(score) for _, _, score in clicks], return_inverse=True)[1].tolist()
    for name in sorted({advertiser for _, advertiser, _ in clicks}):
        key = key_of(own / f"{name}.key")
        pairs = zip(clicks, ranks, strict=True)
        offered = [(tag(key, click), rank) for (click, whose, _), rank in pairs if whose == name]
        write_secret(folder / name / "click.key", key)
        write(folder / name / "ranks.csv", ("tag", "rank"), sorted(offered))


def join(own: Path) -> None:
    """At an advertiser: write the ranks and labels of the clicks that both sides have."""
    key = bytes.fromhex((own / "click.key").read_text())
    ranks = dict(read(own / "ranks.csv", "tag", "rank"))
    clicks = read(own / "clicks.csv", "click", "label")
    if len({label for _, label in clicks}) < 2:
        raise SystemExit(
            f"{own / 'clicks.csv'} has one label only: list every click, with a sale and without; "
            "the platform sees which clicks take part"
        )
    tagged = [(tag(key, click), label) for click, label in clicks]
    records = [(ranks[each], label) for each, label in tagged if each in ranks]
    write(own / "records.csv", ("rank", "label"), records)
    print(f"{len(records):,} of {len(clicks):,} clicks have a rank")


if __name__ == "__main__":
    if sys.argv[1:] == ["platform"]:
        offer(HERE)
    else:
        join(HERE / sys.argv[1])
