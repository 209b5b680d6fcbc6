"""R's golden numbers beside those of tacit, each with the difference that is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from tacit.api import evaluate
from tacit.data.clients import Clients
from tacit.metrics.functional import brier
from tacit.metrics.logistic import calibration_slope, intercept_beside_slope
from tacit.metrics.operating_points import partial_auc
from tacit.protocols.baselines import ExactAUC
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.results.evaluation import Evaluation
from tacit.results.measures import smooth_calibration
from tacit.results.measures.figures import CellView
from tacit_studies.golden.records import Scored

FINEST = 20
"""Height of the finest cells: 2**20 of them."""
RECORDS, CELLS, LINE, SMOOTH = 1e-9, 1e-4, 1e-3, 0.02
"""Allowed differences: of records, of the finest cells, of a logistic line, of another smoother
(restricted cubic splines of the log-odds here, lowess in rms)."""


@dataclass(frozen=True)
class Compared:
    """One figure by both."""

    name: str
    by_r: float
    by_tacit: float
    allowed: float

    @property
    def fits(self) -> bool:
        """Whether they differ by no more than is allowed."""
        return abs(self.by_r - self.by_tacit) <= self.allowed


def golden_numbers() -> dict[str, dict[str, Any]]:
    """The recorded numbers of every data set."""
    text = files("tacit_studies.golden").joinpath("golden.json").read_text(encoding="utf-8")
    made: dict[str, dict[str, Any]] = json.loads(text)
    return made


def compared(records: Scored, golden: dict[str, Any]) -> Iterator[Compared]:
    """Every figure of these records by R and by tacit, without noise."""
    clients = Clients.from_arrays(records.scores, records.labels.astype(np.int64))
    exact = evaluate(clients, ExactAUC())
    cells = evaluate(clients, ScoreHistogram("exact-sum", height=FINEST))
    for name, value in _by_records(records, exact).items():
        yield Compared(f"{name}, records", golden[name], value, RECORDS)
    for name, value in _by_cells(cells).items():
        allowed = CELLS if name in ("auc", "brier", "partial_auc") else LINE
        yield Compared(f"{name}, cells", golden[name], value, allowed)
    for name, value in _smoothed(cells).items():
        yield Compared(f"{name}, smoothed", golden[name], value, SMOOTH)


def _by_records(records: Scored, exact: Evaluation) -> dict[str, float]:
    """Figures of the records themselves: each is alone in its cell."""
    low, high = exact.auc.interval(0.95, about="population")
    counts = np.stack([records.labels, 1 - records.labels])
    squared = float(brier(counts, records.scores).value[0])
    return {"auc": exact.auc.value, "delong_low": low, "delong_high": high, "brier": squared}


def _by_cells(cells: Evaluation) -> dict[str, float]:
    """Figures of the finest cells."""
    if cells.histogram is None:
        raise ValueError("exact sums have a histogram")
    view = CellView.of(cells.histogram)
    slope = calibration_slope(view.counts, view.log_odds)
    intercept = intercept_beside_slope(view.counts, view.log_odds)
    if slope is None or intercept is None:
        raise ValueError("the records have no logistic fit")
    return {
        "auc": cells.auc.value,
        "brier": float(brier(view.counts, view.predicted).value[0]),
        "partial_auc": float(partial_auc(view.counts, 0.1).value[0]),
        "slope": float(slope.value[0]),
        "intercept": float(intercept.value[0]),
    }


def _smoothed(cells: Evaluation) -> dict[str, float]:
    """Distances of the smooth calibration curve, by their names in rms."""
    if cells.histogram is None:
        raise ValueError("exact sums have a histogram")
    measures = smooth_calibration.distance_measures(CellView.of(cells.histogram))
    distances = dict(zip(smooth_calibration.NAMES, measures, strict=True))
    names = {"eavg": "ici", "e90": "e90", "emax": "emax"}
    return {name: distances[measure].value for name, measure in names.items()}
