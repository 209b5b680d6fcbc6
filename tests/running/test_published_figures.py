"""What results say of a figure: within what it can be, holding the estimate, or nothing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import demonstration
from tacit.privacy.cost import MAX_BUDGET
from tacit.results.estimate import About
from tests.federations import binormal_clients
from tests.laws import CONVERSATIONS, PROTOCOLS

THREE = tacit.Clients.from_arrays([0.2, 0.9, 0.4], [0, 1, 1])
CASES = {name: PROTOCOLS[name] for name in CONVERSATIONS if PROTOCOLS[name].figure == "AUC"}
FEWER: dict[str, tuple[int, int]] = dict.fromkeys(
    ("encrypted", "published-fhe-bfv", "published-fhe-ckks"), (14, 46)
)
"""Positives and negatives of a case that takes no more records."""

SILENT = {"noisy-scores"}
"""Cases without an interval."""

BUDGETED = sorted(
    name
    for name, case in CASES.items()
    if case.settings.get("epsilon") and not case.guarantee.delta
)
LEVELS = (0.5, 0.95, 0.999)
ABOUT: tuple[About, ...] = ("data", "population")


@pytest.mark.parametrize("name", sorted(CASES.keys() - FEWER.keys()))
def test_a_hospital_of_three_records_gets_a_figure_that_exists_or_none(name: str) -> None:
    for seed in range(8):
        evaluation = tacit.evaluate(THREE, CASES[name], seed=seed)
        if not evaluation.has_signal:
            message = " ".join(evaluation.warnings)
            assert "not enough signal" in message or "no figure" in message
            assert evaluation.roc is None
            assert evaluation.histogram is None
            continue
        for about in ABOUT:
            low, high = evaluation.auc.interval(0.95, about)
            assert 0 <= low <= evaluation.auc.value <= high <= 1 or np.isnan(low)


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_interval_and_every_written_one_lies_within_what_the_figure_can_be(name: str) -> None:
    """On records that the scores all but tell apart, where an error reaches beyond 1."""
    clients = binormal_clients(*FEWER.get(name, (1200, 2800)), 5, auc=0.995)
    given = 0
    for seed in range(2):
        evaluation = tacit.evaluate(clients, CASES[name], seed=seed)
        if not evaluation.has_signal or not np.isfinite(evaluation.auc.interval(0.95).low):
            continue
        given += 1
        bounds = [evaluation.auc.interval(level, about) for level in LEVELS for about in ABOUT]
        # some protocols do not know the sampling error
        known = [bound for bound in bounds if np.isfinite(bound.low)]
        for low, high in (*known, evaluation.to_dict()["auc"]["interval"]):
            assert 0 <= low <= evaluation.auc.value <= high <= 1
    assert given or name in SILENT


@pytest.mark.parametrize("name", BUDGETED)
def test_the_largest_epsilon_is_computed_without_a_warning_and_more_is_refused(name: str) -> None:
    case: Any = CASES[name]
    largest = 1e6 if name == "noisy-scores" else MAX_BUDGET
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clients = binormal_clients(*FEWER.get(name, (60, 140)), 5)
        tacit.evaluate(clients, replace(case, epsilon=largest), seed=1)
    with pytest.raises(ValueError, match=rf"epsilon must be at most {largest}, got 1000000000.0"):
        replace(case, epsilon=1e9)


def test_a_difference_and_its_interval_lie_between_minus_one_and_one() -> None:
    clients = binormal_clients(60, 140, 5, auc=0.98)
    reversed_scores = 1 - clients.scores
    for seed in range(20):
        comparison = tacit.compare(clients, reversed_scores, tacit.FedAUC(0.3), seed=seed)
        if comparison.has_signal:
            low, high = comparison.difference.interval()
            assert -1 <= low <= comparison.difference.value <= high <= 1


def lines_of_text() -> Iterator[str]:
    """Every line with a figure that people read, but for warnings."""
    clients = binormal_clients(300, 700, 5)
    cases: list[tuple[str, Any]] = [(name, CASES[name]) for name in BUDGETED if name not in FEWER]
    groups = tacit.Groups.from_arrays(np.arange(1000) % 2, names=("0", "1"))
    results: list[tacit.Evaluation | tacit.Comparison | tacit.GroupedEvaluation] = [
        tacit.evaluate(clients, replace(case, epsilon=4.0), seed=1, exact=True)
        for name, case in cases
    ]
    results.append(tacit.compare(clients, clients.scores**2, tacit.FedAUC(4.0), seed=1))
    results += [
        tacit.evaluate_groups(clients, groups, protocol, seed=1)
        for protocol in (tacit.FedAUC(4.0), tacit.DPAUC(4.0))
    ]
    for result in results:
        yield from (f"{name}  {value}" for name, value in result.to_rows())
    scene = demonstration.compare("demo", clients, demonstration.protocols_of("hospitals"), 1)
    yield from demonstration.report([scene]).splitlines()


def test_every_line_names_what_its_interval_is_about() -> None:
    results = list(lines_of_text())
    assert sum("95 % interval" in line for line in results) > 2 * len(BUDGETED)
    for line in results:
        assert "+-" not in line
        if line.startswith(("note on", "simulation,", "sites: ")):  # the sites' own name it
            continue
        for name in re.finditer(r"95 % interval|standard error", line):
            assert line[name.end() :].startswith((" (these records)", " (population)")), line
