"""The records of golden numbers: scores of a logistic model whose log-odds are distorted."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy

from tacit.metrics.logistic import logistic_fit
from tacit_studies.small_records import cancer_features
from tacit_studies.sources import Floats

SHIFT, FACTOR = 0.3, 0.8
"""What the log-odds of the fitted model become: ``0.3 + 0.8 x``."""
NEEDS_R = "aSAH comes with R's package pROC: apt-get install r-base-core r-cran-proc r-cran-rms"


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores and labels, shape (n,) each."""

    scores: Floats
    labels: Floats


def cancer() -> Scored:
    """569 records of scikit-learn's breast cancer: malignant by three features.

    The model is a logistic regression on ``cancer_features``, fitted to convergence on all records.
    """
    features, malignant = cancer_features()
    design = np.vstack([np.ones(malignant.size), features])
    fit = logistic_fit(np.stack([malignant, 1 - malignant]), design)
    if fit is None:
        raise ValueError("the model of the breast cancer records has no fit")
    return Scored(scipy.special.expit(SHIFT + FACTOR * (fit.coefficients @ design)), malignant)


def asah() -> Scored:
    """113 records of pROC's aSAH: a poor outcome by s100b, wfns and age; R fits the model.

    Raises
    ------
    FileNotFoundError : where R is not installed.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "asah.csv"
        run_r("scores", "asah", str(file))
        with file.open() as lines:
            rows = [(float(row["score"]), float(row["label"])) for row in csv.DictReader(lines)]
    scores, labels = np.array(rows).T
    return Scored(scores, labels)


RECORDS = {"breast-cancer": cancer, "asah": asah}
"""The data sets by name; the second needs R."""


def figures_by_r(records: Scored) -> dict[str, Any]:
    """R's figures of these records, with the versions of its packages."""
    with TemporaryDirectory() as folder:
        source, made = Path(folder) / "records.csv", Path(folder) / "figures.json"
        rows = zip(records.scores.tolist(), records.labels.astype(int).tolist(), strict=True)
        lines = [f"{score!r},{label}" for score, label in rows]
        source.write_text("\n".join(["score,label", *lines]) + "\n", encoding="utf-8")
        run_r("figures", str(source), str(made))
        figures: dict[str, Any] = json.loads(made.read_text(encoding="utf-8"))
    return figures


def run_r(*arguments: str) -> None:
    """Run our script by R.

    Raises
    ------
    FileNotFoundError : where R is not installed.
    RuntimeError : where it fails, with its last words.
    """
    program = shutil.which("Rscript")
    if program is None:
        raise FileNotFoundError(NEEDS_R)
    with as_file(files("tacit_studies.golden").joinpath("golden.R")) as script:
        command = [program, str(script), *arguments]
        # our own script
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise RuntimeError(f"R failed: {' '.join(said)[-200:]}")
