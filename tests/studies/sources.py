"""Evaluation sets that are small enough for tests, and what holds of all rows."""

import json
from collections.abc import Sequence

import numpy as np

from tacit import Clients, binormal_scores
from tacit_studies.rows import Measured
from tacit_studies.sources import LARGE, SMALL, EvaluationSet, Scores

FEW = EvaluationSet(300, 700, SMALL.auc)
MORE = EvaluationSet(600, 1_400, LARGE.auc)
SOME = EvaluationSet(5_000, 15_000, SMALL.auc)


def few(real: Clients | None = None) -> Scores:
    """A thousand records, and two thousand."""
    return Scores(real, small=FEW, large=MORE)


def real_clients(positives: int = 900, negatives: int = 2_100) -> Clients:
    """Records as they come from a file: shuffled, with ties and scores at both ends."""
    scores, labels = binormal_scores(positives, negatives, 0.7, seed=5)
    order = np.random.default_rng(6).permutation(scores.size)
    return Clients.from_arrays(np.round(scores[order], 2), labels[order])


def check_rows(rows: Sequence[Measured], name: str | None = None) -> None:
    """Rows of one table, each named once, which survive JSON."""
    assert rows
    assert {row.table for row in rows} == {name or rows[0].table}
    assert len({(row.row, row.column) for row in rows}) == len(rows)
    entries = [row.to_dict() for row in rows]
    assert json.loads(json.dumps(entries, allow_nan=False)) == entries
