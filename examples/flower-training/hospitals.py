"""Synthetic records of three hospitals, with a plan and each hospital's own file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hospital_training.model import FEATURES, Floats, scores_of
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

HOSPITALS = {"a": (2000, -0.3), "b": (2400, 0.0), "c": (1600, 0.3)}
"""Test records, and how far the hospital's patients lie from the others'."""
SCALES = np.geomspace(0.1, 2.0, FEATURES)
EPSILON = 1.0
"""What a measurement costs each test record."""

PLAN = """\
[plan]
name = "flower-training"
min_clients = 3

[protocol]
name = "score-histogram"
trust = "secure-sum"
epsilon = {epsilon}

"""
PARTY = """\
[party]
name = "{name}"
plan = "../plan.toml"

[data]
file = "records.csv"
dataset = "test records"

[limit]
epsilon = {limit}
"""


def write_hospitals(folder: Path, limit: float, seed: int) -> Path:
    """Write records, party files and the plan; returns the plan's path.

    Parameters
    ----------
    folder : where.
    limit : the epsilon that every hospital's ledger allows in all.
    seed : of the records.
    """
    random = default_rng(seed)
    truth = random.normal(0.0, 0.5, FEATURES + 1)
    truth[-1] = -1.2
    for name, (size, shift) in HOSPITALS.items():
        home = folder / name
        home.mkdir(parents=True, exist_ok=True)
        for part, count in (("train", size // 2), ("test", size)):
            features, labels = _records(random, truth, count, shift)
            np.savez(home / f"{part}.npz", features=features, labels=labels)
        text = PARTY.format(name=name, limit=limit)
        (home / "party.toml").write_text(text, encoding="utf-8")
    parties = "\n".join(f'[[party]]\nname = "{name}"' for name in HOSPITALS)
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(epsilon=EPSILON) + parties + "\n", encoding="utf-8")
    return plan


def pooled_test_records(folder: Path) -> tuple[Floats, NDArray[np.int8]]:
    """All hospitals' test records, which nobody has outside a demonstration."""
    stored = [np.load(folder / name / "test.npz") for name in HOSPITALS]
    features = np.concatenate([part["features"] for part in stored])
    return features, np.concatenate([part["labels"] for part in stored])


def _records(
    random: Generator, truth: Floats, count: int, shift: float
) -> tuple[Floats, NDArray[np.int8]]:
    """Features on different scales, so that training takes some rounds, and labels."""
    reported = random.normal(shift, 1.0, (count, FEATURES))
    labels = random.random(count) < scores_of(truth, reported)
    return reported * SCALES, labels.astype(np.int8)
