"""Reports of stored records: the same for every partition, with the right figure and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.arrays import Floats
from tacit.collecting.campaign import concluded
from tacit.data.reading import RecordFiles
from tacit.local import drawing as module
from tacit.local.drawing import Drawing, evaluate_one_record_clients
from tacit.local.summing import in_processes
from tacit.metrics.ranking import auc
from tacit.protocol import DataError, SimulatedNoise, protocol_of
from tacit.protocol.devices import ReportsByInput
from tests.collecting import support

CASES = (*support.SINGLE, *support.DOUBLE)
Case = tuple[str, dict[str, Any]]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_RECORDS", 700)


def written(folder: Path, count: int, files: int = 1, group: int = 400) -> RecordFiles:
    """Records in so many files, in row groups of this size."""
    clients = support.records_of(count)
    paths = []
    for number, part in enumerate(np.array_split(np.arange(count), files)):
        paths.append(str(folder / f"{files}-{group}-{number}.parquet"))
        table = pa.table({"score": clients.scores[part], "label": clients.labels[part]})
        pq.write_table(table, paths[-1], row_group_size=group)
    return RecordFiles.of(paths)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_numbers_however_the_files_are_cut(tmp_path: Path, case: Case) -> None:
    protocol = protocol_of(*case)
    results = [
        evaluate_one_record_clients(written(tmp_path, 3000, *cut), protocol, seed=3)
        for cut in ((1, 3000), (3, 333), (2, 50))
    ]
    assert len({float(result.estimate.value) for result in results}) == 1
    other = evaluate_one_record_clients(written(tmp_path, 3000), protocol, seed=4)
    assert other.estimate.value != results[0].estimate.value


def test_processes_add_up_the_same(tmp_path: Path) -> None:
    drawing = Drawing(written(tmp_path, 3000), protocol_of(*support.LOCAL_TREE), seed=5)
    summed = in_processes(2)(drawing.vector, drawing.blocks, lambda blocks: None)
    assert np.array_equal(summed, drawing.vector(0))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_estimate_is_within_four_of_its_errors(tmp_path: Path, case: Case) -> None:
    """False alarm below 1e-4 a case, by the normal tail at four errors; the seed is fixed."""
    clients = support.records_of(20_000)
    records = written(tmp_path, 20_000, group=20_000)
    result = evaluate_one_record_clients(records, protocol_of(*case), seed=6)
    estimate = result.estimate
    error = np.hypot(estimate.privacy_error, estimate.approximation_error or 0.0)
    assert abs(estimate.value - auc(clients.scores, clients.labels)) < 4 * error
    assert result.simulated
    assert result.clients == 20_000
    assert result.warnings[0].startswith("this is a simulation: every record is taken")
    assert result.to_dict()["traffic"]["bytes_sent"] > 0


def test_turns_are_uniform_and_every_record_reports_once(tmp_path: Path) -> None:
    """Both stages together have all records; 4 standard deviations, a false alarm of 6e-5."""
    drawing = Drawing(written(tmp_path, 20_000), protocol_of(*support.DOUBLE[1]), seed=7)
    early = drawing.devices.reported(drawing.query, drawing.counts(drawing.vector(0)))
    part = drawing.devices.first_turns / 256
    assert abs(early - 20_000 * part) < 4 * np.sqrt(20_000 * part * (1 - part))


def test_one_record_and_protocols_without_reports_of_one_record_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="at least two records, got 1"):
        evaluate_one_record_clients(written(tmp_path, 1), protocol_of(*support.LOCAL_TREE))
    with pytest.raises(ValueError, match="fedauc"):
        evaluate_one_record_clients(written(tmp_path, 10), protocol_of("fedauc", {"epsilon": 1.0}))


SYMBOLS: Case = ("ustatistic", {"kernel": "auc(domain=range(bins=12))", "epsilon": 2.0})
TOGETHER = (support.SINGLE[0], SYMBOLS, *support.DOUBLE)
RUNS, RECORDS = 300, 800


def samples(case: Case, stage: int) -> tuple[Floats, Floats]:
    """Counts of runs one by one and together, each of shape (RUNS, numbers)."""
    terms, clients = support.terms_of(case, RECORDS), support.records_of(RECORDS)
    devices = terms.reports
    assert isinstance(devices, ReportsByInput)
    stages = support.in_memory(support.all_payloads(terms, clients, SimulatedNoise(0)))
    query = concluded(terms, stages).queries[stage]
    rng, apart, together = np.random.default_rng(1), [], []
    for run in range(RUNS):
        payloads = support.device_payloads(terms, query, clients, SimulatedNoise(run))
        apart.append(devices.counts(query, payloads))
        held = devices.input_counts(query, clients, rng)
        assert held.sum() == RECORDS
        together.append(devices.simulated_counts(query, held, rng))
        assert devices.reported(query, together[-1]) == RECORDS
    return np.array(apart, dtype=np.float64), np.array(together, dtype=np.float64)


def differences(first: Floats, second: Floats) -> tuple[Floats, float]:
    """The means' differences in standard errors, and the mean logarithm of the variances' ratio."""
    variances = first.var(axis=0, ddof=1), second.var(axis=0, ddof=1)
    used = np.minimum(*variances) > 1
    errors = np.sqrt((variances[0] + variances[1]) / RUNS)[used]
    ratio = np.log(variances[1][used] / variances[0][used])
    return (second.mean(axis=0) - first.mean(axis=0))[used] / errors, float(ratio.mean())


@pytest.mark.parametrize(
    ("case", "stage"),
    [(case, stage) for case in TOGETHER for stage in range(2 if case in support.DOUBLE else 1)],
    ids=str,
)
def test_means_and_variances_are_those_of_single_reports(case: Case, stage: int) -> None:
    """A false alarm of at most 2e-3 a case: at most 130 means, each beyond 4.5 errors with 7e-6.

    The mean logarithm of the ratio of variances has an error of 0.12 over the root of the number
    of counts, at least 16, so 0.12 is four of them.
    """
    apart, together = samples(case, stage)
    means, ratio = differences(apart, together)
    assert means.size >= 16
    assert np.abs(means).max() < 4.5
    assert abs(ratio) < 0.12


def test_a_scale_thirty_percent_off_is_noticed() -> None:
    apart, together = samples(support.SINGLE[0], 0)
    off = together.mean(axis=0) + 0.7 * (together - together.mean(axis=0))
    assert differences(apart, off)[1] < -0.5
    shifted = together + 0.3 * together.std(axis=0)
    assert np.abs(differences(apart, shifted)[0]).max() > 4.5
