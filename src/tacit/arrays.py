"""Types of NumPy arrays, by what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Real numbers."""

Integers = NDArray[np.int64]
"""Whole numbers."""

Flags = NDArray[np.bool_]
"""Truth values."""

Labels = NDArray[np.int8]
"""Classes of records, 0 or 1."""
