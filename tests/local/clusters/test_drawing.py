"""Reports that are drawn together have the distribution of those that are drawn one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.arrays import Floats
from tacit.collecting.estimating import concluded
from tacit.privacy.noise import SimulatedNoise
from tacit.protocol.devices import ReportsByInput
from tests.collecting.support import (
    DOUBLE,
    SINGLE,
    all_payloads,
    device_payloads,
    in_memory,
    records_of,
    terms_of,
)

Case = tuple[str, dict[str, Any]]
SYMBOLS: Case = ("ustatistic", {"kernel": "auc(domain=range(bins=12))", "epsilon": 2.0})
TOGETHER = (SINGLE[0], SYMBOLS, *DOUBLE)
RUNS, RECORDS = 300, 800


def samples(case: Case, stage: int) -> tuple[Floats, Floats]:
    """Counts of runs one by one and together, each of shape (RUNS, numbers)."""
    terms, clients = terms_of(case, RECORDS), records_of(RECORDS)
    devices = terms.reports
    assert isinstance(devices, ReportsByInput)
    stages = in_memory(all_payloads(terms, clients, SimulatedNoise(0)))
    query = concluded(terms, stages).queries[stage]
    rng, apart, together = np.random.default_rng(1), [], []
    for run in range(RUNS):
        payloads = device_payloads(terms, query, clients, SimulatedNoise(run))
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
    [(case, stage) for case in TOGETHER for stage in range(2 if case in DOUBLE else 1)],
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
    apart, together = samples(SINGLE[0], 0)
    off = together.mean(axis=0) + 0.7 * (together - together.mean(axis=0))
    assert differences(apart, off)[1] < -0.5
    shifted = together + 0.3 * together.std(axis=0)
    assert np.abs(differences(apart, shifted)[0]).max() > 4.5
