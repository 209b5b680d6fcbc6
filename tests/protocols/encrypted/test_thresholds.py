"""The number of thresholds by the wanted interval."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.protocol import Clients, NoNoise
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.running.simulation import simulate


def federation(power: float = 1.0) -> Clients:
    scores, labels = tacit.binormal_scores(600, 1400, 0.75, seed=0)
    inside = np.clip(scores, 1e-9, 1 - 1e-9)
    return Clients.split(1 / (1 + (1 / inside - 1) ** power), labels, 3, seed=0)


@pytest.mark.parametrize("half_range", [0.02, 0.002])
@pytest.mark.parametrize("scale", ["probability", "even"])
def test_spread_scores_have_the_wanted_interval(scale: str, half_range: float) -> None:
    protocol = EncryptedAUC(most_records=2000, scale=scale, half_range=half_range)
    result = simulate(federation(), protocol, NoNoise()).server_result
    # the perturbation adds 2e-6, rounding up a hundredth
    assert float(result.half_range) <= 1.01 * half_range + 3e-6
    assert not any("wider than" in warning for warning in result.warnings)


def test_a_second_session_with_the_thresholds_that_a_warning_names() -> None:
    """Crowded scores on even thresholds: wider than wanted; narrow enough with twice as many."""
    data = federation(2.5)
    protocol = EncryptedAUC(most_records=2000, scale="even", half_range=0.02)
    first = simulate(data, protocol, NoNoise()).server_result
    (warning,) = (each for each in first.warnings if "wider than 0.02" in each)
    more = int(warning.split("about ")[1].split()[0])
    assert more > protocol.threshold_count
    again = EncryptedAUC(2 * more, most_records=2000, scale="even")
    assert float(simulate(data, again, NoNoise()).server_result.half_range) < 0.02


def test_thresholds_follow_from_public_numbers_and_warnings_from_the_wanted_range() -> None:
    assert EncryptedAUC(half_range=5e-4).threshold_count == 5000
    assert "about 300 thresholds" in EncryptedAUC(100).result_of(0.75, 0.03).warnings[0]
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match=r"half_range must be from 1e-05 to 0.1, got"):
            EncryptedAUC(half_range=wrong)
    chosen = EncryptedAUC(100, half_range=0.02)
    assert chosen.threshold_count == 100
    assert chosen.result_of(0.75, 0.019).warnings == ()
    assert "wider than 0.02" in chosen.result_of(0.75, 0.021).warnings[0]
