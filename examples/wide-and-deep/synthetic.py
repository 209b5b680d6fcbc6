"""Synthetic records of Criteo's shape: heavy tails, gaps, long lists of categories, rare clicks."""

from __future__ import annotations

import numpy as np
from criteo import CATEGORIES, INTEGERS, MISSING, Impressions, mixed
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLICKS = 117_317 / 458_407
"""The share of positive labels in Sun et al. 2022a's small evaluation set (Table 4)."""
SIGNAL = 1.25
"""The standard deviation of the log-odds of a click; an ideal classifier has an AUC near 0.79."""
SHARES = (1.0, 0.8, 0.4)
"""How much of it integers tell, categories, and pairs of both."""
MAX_COLUMN = 20_000


def synthetic_impressions(records: int, seed: int) -> Impressions:
    """So many records with clicks that depend on integers, on categories, and on pairs of both.

    Parameters
    ----------
    records : M, at least 1.
    seed : the same seed makes the same records. What a click depends on is part of it.

    Raises
    ------
    ValueError : for no records.
    """
    if records < 1:
        raise ValueError(f"records must be at least 1, got {records}")
    random = default_rng(seed)
    integers, reported = _integers(random, records)
    categories, effects = _categories(random, records)
    parts = (
        reported @ random.normal(size=INTEGERS),
        effects.sum(axis=1),
        (effects[:, :INTEGERS] * reported).sum(axis=1),
    )
    weighed = [
        share * part / max(float(part.std()), 1e-9)
        for share, part in zip(SHARES, parts, strict=True)
    ]
    chances = _clicks(np.sum(weighed, axis=0))
    labels = (random.random(records) < chances).astype(np.int8)
    return Impressions(labels, integers, categories)


def _integers(random: Generator, records: int) -> tuple[Floats, Floats]:
    """Log-normal counts with gaps, and what they tell: standard normal, 0 where missing."""
    common = random.normal(size=(records, 1))
    reported = 0.6 * common + 0.8 * random.normal(size=(records, INTEGERS))
    centre, spread = random.uniform(0.5, 6.0, INTEGERS), random.uniform(0.8, 1.8, INTEGERS)
    counts = np.floor(np.exp(centre + spread * reported))
    counts[:, 1] -= 3  # the challenge's second integer falls below 0
    gaps = random.random((records, INTEGERS)) < random.uniform(0.0, 0.5, INTEGERS)
    return np.where(gaps, np.nan, counts), np.where(gaps, 0.0, reported)


def _categories(random: Generator, records: int) -> tuple[NDArray[np.int64], Floats]:
    """Categories with frequencies near 1/rank, hashed to 32 bits; rarer ones tell less."""
    sizes = np.geomspace(3, MAX_COLUMN, CATEGORIES).astype(np.int64)
    random.shuffle(sizes)
    columns = np.arange(CATEGORIES, dtype=np.int64)
    ranks = (sizes ** random.random((records, CATEGORIES))).astype(np.int64) - 1
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    effects = random.normal(size=int(sizes.sum()))[starts + ranks] / np.sqrt(1 + ranks)
    gaps = random.random((records, CATEGORIES)) < random.uniform(0.0, 0.4, CATEGORIES)
    codes = np.where(gaps, MISSING, mixed(ranks, columns) * 2)
    return codes, np.where(gaps, 0.0, effects)


def _clicks(signal: Floats) -> Floats:
    """The chances of clicks from a signal, scaled and shifted so that their mean is ``CLICKS``."""
    log_odds = SIGNAL * (signal - signal.mean()) / max(float(signal.std()), 1e-9)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        if np.mean(1 / (1 + np.exp(-log_odds - middle))) < CLICKS:
            low = middle
        else:
            high = middle
    return np.asarray(1 / (1 + np.exp(-log_odds - low)))
