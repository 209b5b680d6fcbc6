"""An aggregator that learns from refusals: one bit of each, and no second one."""

from __future__ import annotations

from typing import Literal

import pytest

from tacit.crypto.masking.field import MaskedValueError
from tacit.data.errors import DataError
from tacit.privacy.sampling.noise import NoNoise
from tacit.protocol.conversation import ClientState, PublicRefusalError
from tacit.protocols.encrypted.masked import aggregator
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.running.simulation import simulate
from tests.protocols.encrypted.forging import RECORDS, THRESHOLDS, federation, true_numbers

REVEAL: Literal["parties", "aggregator"] = "parties"
CHECKED = EncryptedAUC(
    THRESHOLDS, "malicious", "masked", most_records=RECORDS, scale="even", reveal=REVEAL
)
RUNS = 20


def is_accepted(multiplier: int, state: ClientState, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A run in which all is computed as agreed, but for how the multiplier is chosen."""
    monkeypatch.setattr(aggregator, "log_uniform", lambda *bits: multiplier)
    try:
        simulate(federation(), CHECKED, NoNoise(), state)
    except (MaskedValueError, DataError):
        return False
    return True


def test_refusals_in_many_runs_would_give_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parties that forget: the largest multiplier that they accept gives Y, although untold."""
    scheme = CHECKED.masked_scheme
    low, high = (1 << (scheme.least_bits + octaves) for octaves in (0, scheme.octaves + 2))
    for _ in range(RUNS):
        middle = (low + high) // 2
        taken = is_accepted(middle, ClientState(), monkeypatch)
        low, high = (middle, high) if taken else (low, middle)
    # 2 (c Y + e) <= accepted_most: Y is what the parties accept at most, over 2 c
    assert scheme.accepted_most / (2 * low) == pytest.approx(true_numbers()[1] // 2, rel=1e-4)


def test_after_a_refusal_no_session_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ClientState()
    assert is_accepted(2**13, state, monkeypatch)
    assert is_accepted(2**13, state, monkeypatch)
    assert not is_accepted(2**60, state, monkeypatch)
    with pytest.raises(PublicRefusalError, match="agree on other settings, such as most_records"):
        is_accepted(2**13, state, monkeypatch)
