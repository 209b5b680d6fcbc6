"""Types of NumPy arrays, by what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Real numbers."""

Integers = NDArray[np.int64]
"""Whole numbers."""
