"""A click model is measured on a Ray dataset, and compared with the same records in memory.

python examples/ray/measure.py
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import ray

import tacit

RECORDS, CAMPAIGNS = 40_000, 8


def main() -> None:
    """Measure the dataset and the same table in memory."""
    random = np.random.default_rng(1)
    clicked = random.random(RECORDS) < 0.1
    scores = 1 / (1 + np.exp(2.2 - random.normal(clicked, 1)))
    campaigns = random.integers(0, CAMPAIGNS, RECORDS)
    records = pa.table({"score": scores, "label": clicked, "campaign": campaigns})
    ray.init(num_cpus=2, log_to_driver=False)
    dataset = ray.data.from_arrow(records).repartition(4)
    for table, where in ((dataset, "Ray   "), (records, "memory")):
        result = tacit.evaluate(table, epsilon=1.0, client="campaign", seed=1)
        print(f"{where}  AUC {result.auc}, {result.traffic.rounds} rounds")
    ray.shutdown()


if __name__ == "__main__":
    main()
