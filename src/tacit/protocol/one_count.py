"""The form of a protocol that asks clients for counts in cells, once, and for nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from tacit.arrays import Floats


@dataclass(frozen=True, eq=False)
class OneCount:
    """A protocol that counts once, and its cells: what somebody else can count for it.

    Parameters
    ----------
    protocol : the protocol in the form that counts once.
    edges : the inner edges of B cells as scores, ascending, shape (B-1,).
    ends : the least and the largest score there can be.
    groups : the private groups that are counted each by itself; empty for none.
    """

    protocol: Any
    edges: Floats
    ends: tuple[float, float]
    groups: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """A short word for these cells and groups: counts in others have another.

        Examples
        --------
        >>> import numpy as np
        >>> import tacit
        >>> OneCount(tacit.ExactAUC(), np.array([0.5]), (0.0, 1.0)).mark
        '2-4cfa5b42'
        """
        named = "\n".join(self.groups).encode()
        digits = hashlib.sha256(self.edges.astype("<f8").tobytes() + named).hexdigest()
        return f"{self.edges.size + 1}-{digits[:8]}"
