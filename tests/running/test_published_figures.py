"""What results say of a figure: within what it can be, holding the estimate, or nothing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit import demonstration
from tacit.cli import main
from tacit.privacy.cost import MAX_BUDGET
from tacit.protocol.registry import protocol_of
from tacit.results.estimate import About
from tests.federations import binormal_clients
from tests.laws import CONVERSATIONS, PROTOCOLS

ROOT = Path(__file__).parents[2]
THREE = tacit.Clients.from_arrays([0.2, 0.9, 0.4], [0, 1, 1])
SETTINGS: tuple[tuple[str, dict[str, object]], ...] = (
    ("fedauc", {}),
    ("published-fedauc", {"mechanism": "staircase"}),
    ("published-fedauc", {"allocation": "fixed"}),
    ("fedauc", {"trust": "local"}),
    ("dpauc", {}),
    ("dpauc", {"adjacency": "label"}),
    ("published-dpauc", {}),
    ("published-dpauc", {"mechanism": "laplace(accounting=paper)", "adjacency": "label"}),
    ("published-dpauc", {"mechanism": "randomised-response", "adjacency": "label"}),
    ("score-histogram", {}),
    ("score-histogram", {"trust": "local"}),
    ("two-round-auc", {}),
    ("hierarchical-auc", {}),
    ("ustatistic", {"kernel": "auc"}),
    ("paired-ustatistic", {"kernel": "auc"}),
)

CASES = {name: PROTOCOLS[name] for name in CONVERSATIONS if PROTOCOLS[name].figure == "AUC"}
FEWER: dict[str, tuple[int, int]] = dict.fromkeys(
    ("encrypted", "published-fhe-bfv", "published-fhe-ckks"), (14, 46)
)
"""Positives and negatives of a case that takes no more records."""

SILENT = {"noisy-scores"}
"""Cases without an interval."""

LEVELS = (0.5, 0.95, 0.999)
ABOUT: tuple[About, ...] = ("data", "population")


def made(name: str, settings: dict[str, object], epsilon: float) -> tacit.Protocol:
    return protocol_of(name, {**settings, "epsilon": epsilon})


@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=str)
def test_a_hospital_of_three_records_gets_a_figure_that_exists_or_none(
    name: str, settings: dict[str, object]
) -> None:
    for seed in range(8):
        evaluation = tacit.evaluate(THREE, made(name, settings, 1.0), seed=seed)
        if not evaluation.has_signal:
            message = " ".join(evaluation.warnings)
            assert "not enough signal" in message or "no figure" in message
            assert evaluation.roc is None
            assert evaluation.histogram is None
            continue
        for about in ("data", "population"):
            low, high = evaluation.auc.interval(0.95, about)
            assert 0 <= low <= evaluation.auc.value <= high <= 1
        low, high = evaluation.auc.interval(0.95)
        assert high - low < 1


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


def test_the_command_ends_with_3_where_no_figure_exists(tmp_path: Path) -> None:
    file = tmp_path / "three.csv"
    file.write_text("score,label\n0.2,0\n0.9,1\n0.4,1\n")
    words = ["evaluate", str(file), "--protocol", "dpauc", "--epsilon", "1"]
    results = [CliRunner().invoke(main, [*words, "--seed", str(seed)]) for seed in range(8)]
    silent = [result for result in results if result.exit_code == 3]
    assert silent
    for result in silent:
        (line,) = (line for line in result.output.splitlines() if line.startswith("AUC "))
        assert line.split(maxsplit=1)[1] == "not enough signal"
        assert "no figure: " in result.output or "not enough signal at" in result.output


@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=str)
def test_the_largest_epsilon_is_computed_without_a_warning_and_more_is_refused(
    name: str, settings: dict[str, object]
) -> None:
    clients = binormal_clients(60, 140, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tacit.evaluate(clients, made(name, settings, MAX_BUDGET), seed=1)
        with pytest.raises(ValueError, match=r"epsilon must be at most 700.0, got 1000000000.0"):
            made(name, settings, 1e9)


def test_noise_on_scores_has_a_bound_too() -> None:
    clients = binormal_clients(60, 140, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tacit.evaluate(clients, tacit.NoisyScores(1e6), seed=1)
    with pytest.raises(ValueError, match=r"epsilon must be at most 1000000.0, got 1000000000.0"):
        tacit.NoisyScores(1e9)


def test_every_row_of_the_demonstration_holds_its_own_estimate() -> None:
    for _, clients, protocols in (
        (*demonstration.hospital_clients(), demonstration.HOSPITAL_PROTOCOLS),
        (*demonstration.advertiser_clients(), demonstration.LABEL_PROTOCOLS),
    ):
        for _, result in demonstration.compare("rows", clients, protocols, seed=5).results:
            low, high = result.auc.interval(0.95)
            assert 0 <= low <= result.auc.value <= high <= 1


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
    clients = binormal_clients(600, 1400, 5)
    groups = tacit.Groups.from_arrays(np.arange(2000) % 2, names=("0", "1"))
    results: list[tacit.Evaluation | tacit.Comparison | tacit.GroupedEvaluation] = [
        tacit.evaluate(clients, made(name, settings, 4.0), seed=1, exact=True)
        for name, settings in SETTINGS
    ]
    results.append(tacit.compare(clients, clients.scores**2, tacit.FedAUC(4.0), seed=1))
    results += [
        tacit.evaluate_groups(clients, groups, protocol, seed=1)
        for protocol in (tacit.FedAUC(4.0), tacit.DPAUC(4.0))
    ]
    for result in results:
        yield from (f"{name}  {value}" for name, value in result.to_rows())
    scene = demonstration.compare("demo", clients, demonstration.HOSPITAL_PROTOCOLS, 1)
    yield from demonstration.report([scene]).splitlines()


def test_every_line_names_what_its_interval_is_about() -> None:
    results = list(lines_of_text())
    assert sum("95 % interval" in line for line in results) > 2 * len(SETTINGS)
    for line in results:
        assert "+-" not in line
        if line.startswith(("note on", "simulation,", "sites: ")):  # the sites' own name it
            continue
        for name in re.finditer(r"95 % interval|standard error", line):
            assert line[name.end() :].startswith((" (these records)", " (population)")), line


PAGES = (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_shows_a_bare_plus_or_minus(page: Path) -> None:
    assert not re.search(r"\d \+- \d", page.read_text(encoding="utf-8"))
