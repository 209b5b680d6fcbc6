"""Compare two models on the same records, in one spend of privacy."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

import tacit.protocol as tp
from tacit.data.checking import as_scores
from tacit.data.clients import Clients
from tacit.metrics.ranking import auc
from tacit.protocol.registry import comparison_names
from tacit.results.server_result import ComparisonResult
from tacit.results.several import Comparison
from tacit.running import evaluating, simulation, spending


def compare(
    first: Clients,
    second: Clients | ArrayLike | None,
    protocol: tp.Protocol,
    seed: int | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    state: tp.ClientState | None = None,
    noise: tp.NoiseSource | None = None,
    exact: bool = False,
    federation: str | None = None,
    per_person: int | None = None,
    ledger: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Both models' AUCs and their difference, at the cost of one evaluation.

    Two evaluations cost twice, and their noises add up. Here one noisy sum is about the difference
    itself, in which a record weighs as much as the two models disagree about it, and labels that
    are flipped serve both models; so the difference is known far better than either AUC.

    Parameters
    ----------
    first : the clients' records with the first model's scores.
    second : the same records with the second model's scores, or these scores alone, shape (M,), in
        the order of the clients' records; None where the first's second values are these scores.
    protocol : one that compares models (``Protocol.comparison``), such as ``ComparedAUC``, or
        ``FedAUC`` with its epsilon and mechanism.
    seed, state, noise, federation : as for ``evaluate``. With the mechanism
        ``"randomised-response"`` labels that ``state`` has flipped at this epsilon are used again
        for the same records, and then the comparison costs nothing. ``ClientState`` says when
        records with other scores are the same.
    names : what the two models are called.
    exact : also compute the exact AUCs, which are not private.
    per_person, ledger : as for ``evaluate``.

    Raises
    ------
    DataError : for records that are not the same, or fewer than two.
    ValueError : for another protocol or settings that a comparison does not use, a seed together
        with a noise source, names that are equal, and where the ledger does not allow it.
    OSError : for a ledger that is not there.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 20000)
    >>> truth = rng.normal(labels, 1.0)
    >>> clients = tacit.Clients.split(truth, labels, clients=20, seed=0)
    >>> worse = clients.scores + rng.normal(0, 0.5, 20000)
    >>> comparison = tacit.compare(clients, worse, tacit.FedAUC(1.0), seed=1, exact=True)
    >>> comparison.spent.epsilon, comparison.better()
    (1.0, 'first')
    >>> low, high = comparison.difference.interval(0.95)
    >>> low < comparison.exact[0] - comparison.exact[1] < high
    True
    """
    evaluating.check_given(first, protocol, seed, noise)
    if len(set(names)) != 2:
        raise ValueError(f"two models need two names, got {names!r}")
    chosen = protocol.comparison()
    if chosen is None:
        listed = ", ".join(comparison_names())
        raise ValueError(f"models are compared by {listed}, got {protocol.name}")
    setup = evaluating.Setup.of(
        _together(first, second),
        chosen,
        seed,
        noise=noise,
        state=state,
        per_person=per_person,
        federation=federation,
        ledger=ledger,
    )
    divided = spending.per_record(chosen, setup.per_person)
    setup.debit(divided, exact=exact)
    run = simulation.simulate(setup.clients, divided, setup.source, setup.state)
    server_result = run.server_result.published()
    if (
        not isinstance(server_result, ComparisonResult)
        or server_result.first is None
        or server_result.second is None
    ):
        raise TypeError(f"{chosen.name} has a result about one model only")
    return Comparison(
        names,
        server_result.first.published().estimate(),
        server_result.second.published().estimate(),
        setup.concluded(chosen, run),
        _exact(setup.clients) if exact else None,
    )


def _together(first: Clients, second: Clients | ArrayLike | None) -> Clients:
    """The first model's records with the second model's scores as second values."""
    if second is None:
        return first
    if not isinstance(second, Clients):
        return replace(first, second=as_scores(second, "the second model's scores"))
    same = np.array_equal(first.offsets, second.offsets) and first.names == second.names
    if not same:
        raise tp.DataError("two models are compared on the same clients with the same records")
    different = np.flatnonzero(first.labels != second.labels)
    if different.size:
        raise tp.DataError(
            "two models are compared on the same records, "
            f"got different labels in {first.location(int(different[0]))}"
        )
    return replace(first, second=second.scores)


def _exact(clients: Clients) -> tuple[float, float]:
    second = clients.scores if clients.second is None else clients.second
    return auc(clients.scores, clients.labels), auc(second, clients.labels)
