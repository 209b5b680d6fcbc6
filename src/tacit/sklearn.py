"""Private figures in the shape of scikit-learn's: ``private_roc_auc_score`` and a scorer.

scikit-learn itself is not needed: a scorer is a callable with the arguments that it passes.

>>> import tacit.sklearn
>>> scores, labels = tacit.binormal_scores(500, 1500, 0.8, seed=0)
>>> hospitals = ["north", "south"] * 1000
>>> value = tacit.sklearn.private_roc_auc_score(labels, scores, client=hospitals, epsilon=1.0)
>>> 0.6 < value < 1.0
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.api import evaluate
from tacit.data import units
from tacit.data.clients import Clients
from tacit.privacy.cost import NOTHING, Cost
from tacit.protocol.conversation import Protocol
from tacit.results.evaluation import Evaluation

Owners = Callable[[Any], ArrayLike]
"""What says whose each row of a scorer's X is, shape (M,)."""


def private_roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    client: ArrayLike | None = None,
    epsilon: float | None = None,
    protocol: Protocol | str | None = None,
    unit: str | None = None,
    seed: int | None = None,
    **settings: Any,
) -> float:
    """The AUC of all clients' records, estimated at this cost in privacy.

    Every call spends epsilon again. The estimate alone is returned; ``tacit.evaluate`` also gives
    its errors and what was spent.

    Parameters
    ----------
    y_true : 0/1 or booleans, shape (M,).
    y_score : the scores of the positive class, shape (M,).
    client : whose each record is, shape (M,), integers or strings; None for one client.
    epsilon, protocol, seed, settings : as ``tacit.evaluate`` takes them.
    unit : what the scores are; None for probabilities.

    Returns
    -------
    The estimate; NaN where the noise left no signal.

    Raises
    ------
    DataError, TypeError, ValueError : as ``tacit.evaluate``.
    """
    clients = Clients.from_arrays(y_score, y_true, client, unit=unit)
    return float(evaluate(clients, protocol, seed, epsilon=epsilon, **settings).estimate)


class PrivateScorer:
    """A scorer for ``cross_val_score`` and searches: called with an estimator, X and y.

    Every call spends epsilon on the records of X. A search over S settings with F folds makes S
    calls on each fold, so that a record spends S times epsilon; ``calls`` and ``spent`` count.
    Where calls run in other processes (``n_jobs``), each process counts its own.

    Parameters
    ----------
    epsilon : the budget of one call.
    client : a function of X that says whose each row is, shape (M,); None for one client.
    protocol, settings : as ``tacit.evaluate`` takes them.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(4000, 2))
    >>> labels = (features[:, 0] + rng.normal(size=4000) > 0).astype(int)
    >>> scorer = PrivateScorer(epsilon=1.0)
    >>> folds = cross_val_score(LogisticRegression(), features, labels, scoring=scorer, cv=2)
    >>> folds.shape, scorer.calls, scorer.spent
    ((2,), 2, Cost(epsilon=2.0, delta=0.0, adjacency=<Adjacency.RECORD: 'record'>, rho=None))
    """

    def __init__(
        self,
        epsilon: float,
        client: Owners | None = None,
        protocol: Protocol | str | None = None,
        **settings: Any,
    ) -> None:
        self.epsilon, self.client, self.protocol = epsilon, client, protocol
        self.settings = settings
        self.results: list[Evaluation] = []

    @property
    def calls(self) -> int:
        """How many times it was called."""
        return len(self.results)

    @property
    def spent(self) -> Cost:
        """An upper bound on what a record spent: that of one that was in every call.

        With F folds a record is in one of them, and has spent an F-th.
        """
        return reduce(add, (result.spent for result in self.results), NOTHING)

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        """The estimated AUC of an estimator's scores for X; NaN where the noise left no signal.

        Parameters
        ----------
        estimator : fitted, with ``predict_proba``, or else ``decision_function``.
        X : the rows, as the estimator takes them.
        y : 0/1 or booleans, shape (M,).
        """
        scores, unit = _scores_of(estimator, X)
        owners = None if self.client is None else self.client(X)
        clients = Clients.from_arrays(scores, y, owners, unit=unit)
        result = evaluate(clients, self.protocol, epsilon=self.epsilon, **self.settings)
        self.results.append(result)
        return float(result.estimate)


def _scores_of(estimator: Any, rows: Any) -> tuple[NDArray[np.float64], str]:
    """The scores of the positive class, and their unit.

    Raises
    ------
    TypeError : for an estimator without scores, or with more than two classes.
    """
    if hasattr(estimator, "predict_proba"):
        scores, unit = np.asarray(estimator.predict_proba(rows))[:, 1:], units.PROBABILITY
    elif hasattr(estimator, "decision_function"):
        made = np.asarray(estimator.decision_function(rows))
        scores, unit = made.reshape(len(made), -1), units.REAL
    else:
        raise TypeError(
            f"{type(estimator).__name__} has neither predict_proba nor decision_function"
        )
    if scores.shape[1] != 1:
        raise TypeError(f"the AUC is of two classes, got scores of shape {scores.shape}")
    return scores[:, 0].astype(np.float64), unit
