"""The central guarantee of sealed batches: where it is said, of what, and beside the local one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli import main
from tacit.collecting.batches import sealed_payloads, serial_of, write_batch
from tacit.collecting.estimating import DELTA, shuffled_of
from tacit.collecting.folder import Folder
from tacit.collecting.log import Disk, Log
from tacit.privacy.shuffling import shuffled_epsilon
from tests.collecting.support import DOUBLE, SINGLE, messages_of, new_folder, terms_of


def sealed_folder(path: Path, sizes: tuple[int, ...]) -> Folder:
    """A campaign with sealed batches of these sizes."""
    folder = new_folder(path)
    for number, size in enumerate(sizes, 1):
        bodies = messages_of(folder, size, seed=number)
        serials = np.array([serial_of(body) for body in bodies], dtype=np.uint64)
        write_batch(folder.reports, folder.spent, number, sealed_payloads(bodies, 1), serials)
    return folder


def estimated(folder: Folder, *options: str) -> str:
    outcome = CliRunner().invoke(main, ["collect", "estimate", str(folder.path), *options])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_the_smallest_batch_and_its_honest_reports_count() -> None:
    found = shuffled_of(terms_of(), [5000, 4000, 9000], 0.5)
    assert found is not None
    assert (found.batches, found.reports, found.least) == (3, 18_000, 4000)
    bound = shuffled_epsilon(2.0, 2000, DELTA)
    assert bound < found.epsilon < 1.05 * bound
    assert found.local_epsilon == 2.0


@pytest.mark.parametrize("case", [SINGLE[1], *DOUBLE], ids=str)
def test_no_guarantee_is_said_where_none_is_derived(case: tuple[str, dict[str, Any]]) -> None:
    """Public labels split a batch into classes; a second stage depends on the first."""
    assert shuffled_of(terms_of(case), [10_000]) is None


@pytest.mark.parametrize("case", [SINGLE[0], SINGLE[2]], ids=str)
def test_a_guarantee_is_said_of_one_stage(case: tuple[str, dict[str, Any]]) -> None:
    found = shuffled_of(terms_of(case), [10_000])
    assert found is not None
    assert found.epsilon < 0.2


def test_a_batch_of_few_has_the_local_guarantee() -> None:
    found = shuffled_of(terms_of(), [1, 10_000])
    assert found is not None
    assert found.epsilon == pytest.approx(2.0, rel=1e-5)
    assert found.epsilon <= 2.0


def test_an_estimate_says_both_guarantees(tmp_path: Path) -> None:
    folder = sealed_folder(tmp_path, (2500, 2000))
    text = " ".join(estimated(folder).split())
    assert "privacy spent" in text
    assert "epsilon 2 a client" in text
    assert "2 with 4,500 reports: epsilon 0." in text
    assert "if at least 90 % of the reports of each batch are honest" in text
    entry = json.loads(estimated(folder, "--json", "--honest", "0.5"))
    assert entry["spent"]["epsilon"] == 2.0
    assert entry["shuffled"]["least"] == 2000
    assert entry["shuffled"]["honest"] == 0.5


def test_a_report_says_both_guarantees(tmp_path: Path) -> None:
    page = tmp_path / "result.html"
    estimated(sealed_folder(tmp_path, (2000,)), "--report", str(page))
    text = page.read_text(encoding="utf-8")
    assert "Each client spent at most epsilon 2" in text
    assert "Sealed batches: 1 with 2,000 reports: epsilon 0." in text


def test_reports_that_are_not_sealed_have_no_other_guarantee(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    log = Log(folder.reports / "log-1.bin", Disk())
    log.append(messages_of(folder, 2000))
    log.close()
    assert folder.sealed_sizes() == []
    assert "sealed batches" not in estimated(folder)
    assert "shuffled" not in json.loads(estimated(folder, "--json"))


@pytest.mark.parametrize("honest", ["0", "1.5", "nan"])
def test_a_part_that_is_none_is_refused(tmp_path: Path, honest: str) -> None:
    folder = new_folder(tmp_path)
    outcome = CliRunner().invoke(
        main, ["collect", "estimate", str(folder.path), "--honest", honest]
    )
    assert outcome.exit_code == 2
