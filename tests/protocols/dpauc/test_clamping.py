"""The stated errors of clamped and ordered counts."""

from __future__ import annotations

import numpy as np

from tacit import DPAUC
from tacit.running.evaluating import repeat_results
from tests.federations import binormal_clients


def test_errors_include_that_of_the_estimated_bias() -> None:
    """The bias of clamping is estimated from noisy counts: its error is a part of the result's.

    150 runs know the ratio of errors to 6 % and the coverage to 2 %.
    """
    clients = binormal_clients(200, 5_000, 5)
    protocol = DPAUC(1.0, 30, mechanism="gaussian", delta=1e-6)
    results = repeat_results(clients, protocol, 150, seed=3)
    exact = protocol.exact(clients)
    errors = results.value - results.bias - exact
    assert np.sqrt(np.mean(errors**2) / np.mean(results.standard_error**2)) < 1.06
    assert results.covers(exact).mean() >= 0.93
