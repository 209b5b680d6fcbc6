"""Party d's records are a Spark frame. tacit runs this program when a message reads them."""

from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def frame() -> DataFrame:
    """Synthetic records, equal in every message; of your own ``spark.table("ads.scored")``."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers of a local session
    options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    options |= {"spark.sql.shuffle.partitions": "2"}  # for few records
    spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    random = np.random.default_rng(3)
    labels = (random.random(400) < 0.3).astype(np.int64)
    scores = 1 / (1 + np.exp(-random.normal(1.2 * labels - 0.6, 1.0)))
    return spark.createDataFrame(pa.table({"score": scores, "label": labels}))
