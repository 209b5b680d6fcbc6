"""A click model is measured on a Spark frame, and compared with the same records in memory.

python examples/spark/measure.py
"""

from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import tacit

RECORDS, CAMPAIGNS = 40_000, 8


def main() -> None:
    """Measure the frame and the same table in memory."""
    # the workers of a local session run the Python of this script
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    random = np.random.default_rng(1)
    clicked = random.random(RECORDS) < 0.1
    scores = 1 / (1 + np.exp(2.2 - random.normal(clicked, 1)))
    campaigns = random.integers(0, CAMPAIGNS, RECORDS)
    records = pa.table({"score": scores, "label": clicked, "campaign": campaigns})
    session = SparkSession.builder.master("local[2]").config(
        "spark.ui.showConsoleProgress", "false"
    )
    with session.getOrCreate() as spark:
        frame = spark.createDataFrame(records).repartition(4).cache()
        for table, where in ((frame, "Spark "), (records, "memory")):
            result = tacit.evaluate(table, epsilon=1.0, client="campaign", seed=1)
            print(f"{where}  AUC {result.auc}, {result.traffic.rounds} rounds")


if __name__ == "__main__":
    main()
