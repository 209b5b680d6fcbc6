"""The AUC of every epoch on test labels that the server may not see, and what that costs.

Test labels are used for nothing else: not in training, not in any label party's layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit


@dataclass(frozen=True)
class PriorEstimate:
    """A private AUC, and what all releases so far have cost every test label.

    Parameters
    ----------
    auc : the estimate with its errors.
    spent : the epsilon of this epoch's release.
    total : the epsilon of this and all earlier ones.
    """

    auc: tacit.Estimate
    spent: float
    total: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.auc.to_dict(), "spent": self.spent, "total": self.total}


@dataclass(frozen=True)
class EpochResult:
    """One line of the table.

    Parameters
    ----------
    epoch : counted from 1.
    exact : the exact AUC, which is not private.
    once : from labels that were flipped once, before the first epoch.
    fresh : from fresh noise.
    """

    epoch: int
    exact: float
    once: PriorEstimate
    fresh: PriorEstimate

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "epoch": self.epoch,
            "exact": self.exact,
            "once": self.once.to_dict(),
            "fresh": self.fresh.to_dict(),
        }


class Meter:
    """Measures epoch after epoch on the same test records.

    Each label party sends its scores, receives their ranks, and answers with two numbers
    (``tacit.FedAUC``; Sun et al. 2022a). Two answers are compared, each at epsilon:

    - ``once``: every test label is flipped by randomised response before the first epoch, and kept
      in the notebook. All epochs' sums are of these flipped labels, hence post-processing of one
      release: epsilon in all (Sun et al. 2022a, section 4.1).
    - ``fresh``: staircase noise on the sums, drawn again, which costs epsilon an epoch.

    Parameters
    ----------
    labels : every label party's test labels.
    epsilon : of one release.
    seed : of the noise, which is simulated, as are the parties.
    """

    def __init__(self, labels: list[NDArray[np.int8]], epsilon: float, seed: int) -> None:
        self._labels = np.concatenate(labels)
        self._offsets = np.cumsum([0, *(part.size for part in labels)], dtype=np.int64)
        self._once = tacit.FedAUC(epsilon, trust="local")
        self._fresh = tacit.FedAUC(epsilon)
        self.notebook = tacit.ClientState(same_places=True)
        self._seeds = np.random.SeedSequence(seed)
        self._totals = {"once": tacit.Cost(0.0), "fresh": tacit.Cost(0.0)}
        self.results: list[EpochResult] = []

    def measure(self, scores: list[NDArray[np.float64]]) -> EpochResult:
        """Measure the scores of one epoch, which keep the order of the labels."""
        clients = tacit.Clients(np.concatenate(scores), self._labels, self._offsets, simulated=True)
        once = tacit.evaluate(clients, self._once, self._seed(), state=self.notebook, exact=True)
        fresh = tacit.evaluate(clients, self._fresh, self._seed())
        result = EpochResult(
            len(self.results) + 1,
            once.exact if once.exact is not None else float("nan"),
            self._release("once", once),
            self._release("fresh", fresh),
        )
        self.results.append(result)
        return result

    def _release(self, name: str, result: tacit.Evaluation) -> PriorEstimate:
        self._totals[name] = self._totals[name] + result.spent
        return PriorEstimate(result.auc, result.spent.epsilon, self._totals[name].epsilon)

    def _seed(self) -> int:
        return int(self._seeds.spawn(1)[0].generate_state(1)[0])
