"""Train a wide-and-deep model by split learning, and measure every epoch's AUC privately.

python examples/wide-and-deep/train.py --epochs 3 --records 60000
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from criteo import Features, Impressions, read_criteo
from measuring import EpochResult, Meter
from numpy.random import default_rng
from numpy.typing import NDArray
from synthetic import synthetic_impressions

try:
    from split_training import (
        FeatureParty,
        LabelParty,
        Layers,
        batches,
        labels_in_gradients,
        start_from,
    )
except ImportError as missing:
    sys.exit(f"train.py: {missing}")

Tell = Callable[[str], None]
HEAD = """\
              labels flipped once, and reused        fresh noise in every epoch
epoch  exact  AUC     95 % interval     total eps    AUC     95 % interval     total eps"""


@dataclass(frozen=True)
class Settings:
    """What is trained, on what, and how it is measured.

    Parameters
    ----------
    records : how many records, of which ``held_out`` are test records.
    epochs : passes over the training records.
    parties : label parties, among whom the records are dealt out at random.
    epsilon : the budget of one release about the test labels.
    batch : records a message, about.
    held_out : the share of every party's records that is only scored.
    layers : the sizes of the model.
    seed : of records, model, order and noise.
    """

    records: int = 60_000
    epochs: int = 3
    parties: int = 10
    epsilon: float = 1.0
    batch: int = 128
    held_out: float = 0.3
    layers: Layers = field(default_factory=Layers)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "parties", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.held_out < 1:
            raise ValueError(f"held_out must be between 0 and 1, got {self.held_out}")
        if self.records < 4 * self.parties:
            raise ValueError(
                f"records must be at least 4 a party, got {self.records} for {self.parties}"
            )


@dataclass
class Traffic:
    """What training sent, and what the server could read in it.

    Parameters
    ----------
    down : bytes of activations.
    up : bytes of gradients.
    labels : training labels used, counted once a use.
    read : how many of them the server reads from the gradients.
    """

    down: int = 0
    up: int = 0
    labels: int = 0
    read: int = 0


def run(settings: Settings, impressions: Impressions, tell: Tell) -> dict[str, Any]:
    """Train and measure; returns what the JSON file holds.

    Parameters
    ----------
    settings : all settings.
    impressions : the records.
    tell : is given each line of the table.
    """
    start_from(settings.seed)
    random = default_rng(settings.seed)
    owned = tuple(np.array_split(random.permutation(impressions.records), settings.parties))
    trained = tuple(max(1, round(part.size * (1 - settings.held_out))) for part in owned)
    tests = [np.arange(size, part.size) for size, part in zip(trained, owned, strict=True)]
    labels = [impressions.labels[part] for part in owned]
    features = Features.of(impressions, settings.layers.buckets)
    server = FeatureParty(features, owned, settings.layers)
    parties = [
        LabelParty(part[:size], settings.layers) for part, size in zip(labels, trained, strict=True)
    ]
    hidden = [part[size:] for part, size in zip(labels, trained, strict=True)]
    meter, traffic = Meter(hidden, settings.epsilon, settings.seed), Traffic()
    tell(HEAD)
    for _ in range(settings.epochs):
        for index, records in batches(trained, settings.batch, random):
            true = labels[index][records]
            train_batch(server, parties[index], index, records, true, traffic)
        scores = [part.score(server.infer(k, tests[k])) for k, part in enumerate(parties)]
        tell(line_of(meter.measure(scores)))
    return {
        "settings": asdict(settings),
        "test_records": sum(test.size for test in tests),
        "epochs": [result.to_dict() for result in meter.results],
        "traffic": asdict(traffic),
    }


def train_batch(
    server: FeatureParty,
    party: LabelParty,
    index: int,
    records: NDArray[np.int64],
    labels: NDArray[np.int8],
    traffic: Traffic,
) -> None:
    """One message to a label party and one back; ``labels`` only count what the server read."""
    activations = server.forward(index, records)
    gradients = party.learn(activations)
    server.backward(gradients)
    traffic.down += activations.size
    traffic.up += gradients.size
    traffic.labels += records.size
    traffic.read += int(np.count_nonzero(labels_in_gradients(gradients) == labels))


def line_of(result: EpochResult) -> str:
    """A line of the table."""
    line = f"{result.epoch:5}  {result.exact:.4f}"
    for release in (result.once, result.fresh):
        low, high = release.auc.interval(0.95)
        line += f" {release.auc.value:.4f}  {low:.4f} to {high:.4f}  {release.total:9g}   "
    return line.rstrip()


def notes_after(content: dict[str, Any]) -> str:
    """What the reader must know besides the table."""
    traffic, test = content["traffic"], content["test_records"]
    return (
        f"{test:,} test records; epsilon hides one test label; 95 % intervals are about these "
        "records. Parties and noise are simulated.\n"
        f"Training sent {traffic['down'] / 1e6:.1f} MB down and {traffic['up'] / 1e6:.1f} MB up, "
        f"and is not private: from the gradients the server read "
        f"{100 * traffic['read'] / traffic['labels']:.2f} % of the training labels."
    )


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=Settings.records)
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--parties", type=int, default=Settings.parties)
    parser.add_argument("--epsilon", type=float, default=Settings.epsilon)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--criteo", type=Path, help="the challenge's train.txt, or train.txt.gz")
    parser.add_argument("--json", type=Path, default=Path("out/wide-and-deep.json"))
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    """Train, print the table, and write the results."""
    requested = arguments(words)
    started = time.monotonic()
    try:
        settings = Settings(
            records=requested.records,
            epochs=requested.epochs,
            parties=requested.parties,
            epsilon=requested.epsilon,
            seed=requested.seed,
        )
        if requested.criteo is None:
            impressions = synthetic_impressions(settings.records, settings.seed)
        else:
            impressions = read_criteo(requested.criteo, settings.records)
        content = run(settings, impressions, lambda line: print(line, flush=True))
        requested.json.parent.mkdir(parents=True, exist_ok=True)
        content["data"] = "synthetic" if requested.criteo is None else requested.criteo.name
        requested.json.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
    except (ValueError, OSError) as error:
        sys.exit(f"train.py: {error}")
    print(notes_after(content))
    print(f"{time.monotonic() - started:.0f} s; written to {requested.json}")


if __name__ == "__main__":
    main()
