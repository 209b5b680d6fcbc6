"""Write the golden numbers of survival analysis: ``python -m tacit_studies.golden.survival``.

It needs lifelines and scikit-survival, with their own NumPy: run it in an environment of its own.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PATH = Path(__file__).with_name("survival.json")
UNTIL, HORIZONS, RECORDS = 800.0, (320.0, 640.0), 3000


def records() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Risks, whole days and events, of which some are tied."""
    rng = np.random.default_rng(20)
    risk = np.round(rng.beta(2, 3, RECORDS), 4)
    event = rng.exponential(300 / (0.2 + 1.6 * risk))
    last = rng.uniform(60, 1000, RECORDS)
    return risk, np.ceil(np.minimum(event, last)), (event <= last).astype(np.int64)


def main() -> None:
    """Compute with both libraries."""
    from lifelines import KaplanMeierFitter  # noqa: PLC0415 -- asks for another NumPy
    from lifelines.statistics import logrank_test  # noqa: PLC0415
    from sksurv import metrics  # noqa: PLC0415

    risk, days, died = records()
    ends = np.linspace(80, UNTIL, 10)
    known = KaplanMeierFitter().fit(days, died)
    pairs = np.array(list(zip(died == 1, days, strict=True)), dtype=[("e", bool), ("t", float)])
    cut = died * (days <= UNTIL) == 1
    died_by, last = cut, np.minimum(days, UNTIL + 1)
    made = {
        "versions": {
            name: importlib.metadata.version(name) for name in ("lifelines", "scikit-survival")
        },
        "survival": known.survival_function_at_times(ends).tolist(),
        "concordance": metrics.concordance_index_censored(died_by, last, risk)[0],
        "auc": metrics.cumulative_dynamic_auc(pairs, pairs, risk, HORIZONS)[0].tolist(),
        "brier": metrics.brier_score(pairs, pairs, np.stack([1 - risk] * 2, 1), HORIZONS)[
            1
        ].tolist(),
        "log-rank": logrank_test(days[::2], days[1::2], died[::2], died[1::2]).test_statistic,
    }
    PATH.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
