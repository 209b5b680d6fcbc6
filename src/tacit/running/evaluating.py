"""Evaluate a classifier on clients' data: one evaluation, or many repetitions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.metrics.ranking import auc
from tacit.privacy import composition
from tacit.privacy.noise import NoiseSource, SimulatedNoise, SystemNoise
from tacit.protocol.conversation import ClientState, Protocol
from tacit.protocol.declared import result_of_client, revealed_to
from tacit.results.concluding import evaluation_of
from tacit.results.evaluation import Evaluation
from tacit.results.run import Traffic
from tacit.results.server_result import ServerResult
from tacit.running import missing
from tacit.running.arguments import check_given
from tacit.running.mpc.processes import NO_LEDGERS, Ledgers
from tacit.running.mpc.runner import MPCRun, run_mpc
from tacit.running.persons import counted_clients, per_record, unit_of
from tacit.running.simulation import Run, replicate, simulate
from tacit.running.units import result_unit, taken_by

IDEAL = (
    "what clients would compute together was computed by a trusted party: this process saw all of "
    "their records; between real clients cryptography has to replace it"
)

HERE = (
    "the clients computed together by cryptography, each in a process of its own; all of them ran "
    "on this machine, whose user could read all records"
)

ENGINES = ("ideal", "spu")
"""Who computes joint steps: a trusted party, or the clients' processes."""


def evaluate(
    clients: Clients,
    protocol: Protocol,
    seed: int | None = None,
    *,
    state: ClientState | None = None,
    noise: NoiseSource | None = None,
    exact: bool = False,
    federation: str | None = None,
    engine: Literal["ideal", "spu"] = "ideal",
    ledgers: Ledgers = NO_LEDGERS,
    per_person: int | None = None,
    missing_epsilon: float | None = None,
) -> Evaluation:
    """Run one evaluation and return the estimate with its errors and its costs.

    Parameters
    ----------
    clients : the clients' records. The unit that they name decides where a protocol that counts
        scores in cells has them, unless a setting of the protocol does.
    protocol : which protocol to run, with its settings.
    seed : draws simulated noise from this seed. Without one, noise is simulated from fresh entropy
        for clients that were split from one party's records, and comes exact from the operating
        system for real clients.
    state : the clients' state, stored by the caller between evaluations: labels flipped once are
        then reused for the same records in the same order, at no further cost.
    noise : a noise source to use instead.
    exact : also compute the exact figure, which is not private.
    federation : what the records are called; results under one name are taken to be about the same
        records when they are compared.
    engine : who computes what clients compute together: ``"ideal"``, a trusted party in this
        process, or ``"spu"``, the clients by cryptography, each in a process of its own (the extra
        ``two-party``; docs/protocols/mpc.md).
    ledgers : with ``engine="spu"`` the file of every client's ledger, by the client's name. Clients
        that exist do not compute together without: each debits its ledger before it answers.
    per_person : where the clients say whose records they are (``Clients.persons``), the most
        records of a person that count at a client, 1 by default. They are drawn at random. Epsilon
        is then a person's, and the protocol runs with a part of it for each of these records
        (``tacit.running.persons``). A person with records at two clients is not covered.
    missing_epsilon : the part of the protocol's epsilon that goes to a noisy number of the records
        that were left out as incomplete (``Clients.left_out``). Without it the result says how many
        beside exact figures only, as that number is not private.

    Raises
    ------
    DataError : when the records cannot be evaluated: fewer than two, where the guarantee does not
        hide whether a record is there, a class absent where the protocol can tell, or scores in a
        unit that it cannot take.
    ValueError : for a seed together with a noise source, settings that do not go with the clients'
        unit, an unknown engine, or ledgers without the engine ``"spu"``; with it, for simulated
        noise, a protocol without joint steps, or clients that exist and have no ledgers; for a
        ``missing_epsilon`` where nothing was left out, or that leaves the protocol no budget.
    MPCError : when a client's process fails or does not answer in time.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 20000)
    >>> scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    >>> clients = tacit.Clients.split(scores, labels, clients=20, by="uniform", seed=0)
    >>> result = tacit.evaluate(clients, tacit.FedAUC(epsilon=1.0), seed=1, exact=True)
    >>> low, high = result.auc.interval(0.95)
    >>> low < result.exact < high
    True
    """
    check_given(clients, protocol, seed, noise)
    source = noise_source(clients, seed, engine) if noise is None else noise
    most = unit_of(clients, per_person)
    stored = ClientState() if most and state is None else state
    if most and stored is not None:
        clients = counted_clients(clients, most, stored, source)[0]
    run = protocol
    if missing_epsilon is not None:
        missing.check_countable(clients, most, engine)
        run = missing.shared_budget(protocol, missing_epsilon)
    result = evaluate_counted(
        clients,
        run,
        source,
        most,
        state=state,
        exact=exact,
        federation=federation,
        engine=engine,
        ledgers=ledgers,
    )
    if missing_epsilon is None:
        return replace(result, left_out=missing.left_out_in_result(clients, exact))
    return missing.with_noisy_count(result, clients, run, missing_epsilon, source)


def evaluate_counted(
    clients: Clients,
    protocol: Protocol,
    source: NoiseSource,
    per_person: int,
    *,
    state: ClientState | None = None,
    exact: bool = False,
    federation: str | None = None,
    engine: Literal["ideal", "spu"] = "ideal",
    ledgers: Ledgers = NO_LEDGERS,
) -> Evaluation:
    """As ``evaluate``, of records that all count.

    Parameters
    ----------
    clients : the records, of which no client has more than ``per_person`` of one person.
    protocol : with the budget of a person, where a person is the unit of privacy.
    source : the noise.
    per_person : 0 where a record is the unit of privacy.
    state, exact, federation, engine, ledgers : as for ``evaluate``.
    """
    if not protocol.guarantee.hides_presence:
        _check_records(clients)
    protocol, clients = taken_by(protocol, clients)
    divided = per_record(protocol, per_person)
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {ENGINES}, got {engine!r}")
    if ledgers and engine != "spu":
        raise ValueError("clients' processes debit ledgers: ledgers need engine 'spu'")
    if engine == "spu" and state is not None:
        raise ValueError("clients in separate processes have a state each: state cannot be given")
    stored = ClientState() if state is None and engine == "ideal" else state
    run: Run
    if engine == "spu":
        run = run_mpc(clients, divided, source, ledgers=ledgers, per_person=per_person)
    else:
        run = simulate(clients, divided, source, stored)
    revealed = None if stored is None else revealed_to(stored)
    return concluded_here(
        clients,
        protocol,
        run,
        source,
        per_person,
        known=None if revealed is None else result_of_client(divided, revealed),
        exact=protocol.exact(clients) if exact else None,
        federation=federation,
    )


def concluded_here(
    clients: Clients,
    protocol: Protocol,
    run: Run,
    source: NoiseSource,
    per_person: int,
    *,
    known: ServerResult | None = None,
    exact: float | None = None,
    federation: str | None = None,
) -> Evaluation:
    """The evaluation of a run in this process, whose clients were all here.

    Parameters
    ----------
    clients : whose records were evaluated.
    protocol : what the result names, with the whole budget of a person where one is the unit.
    run : the rounds, with what the server concluded and what they cost.
    source : where the run's noise came from.
    per_person : 0 where a record is the unit of privacy.
    known : the result, where a client knows it and the server does not.
    exact : the exact figure, for a user who asked for it.
    federation : as for ``evaluate``.
    """
    by_processes = isinstance(run, MPCRun)
    return evaluation_of(
        protocol,
        run.server_result if known is None else known,
        # Processes state what a person spends; elsewhere a record's cost counts per_person times.
        spent=run.spent if by_processes else composition.of_person(run.spent, per_person),
        traffic=Traffic(run.rounds, run.bytes_sent),
        clients=clients.count,
        noise=noise_name(source) if protocol.draws_noise else "none",
        exact=exact,
        before=(*simulation_warnings(clients, source), *_mpc_warnings(run)),
        names=clients.names,
        federation=federation,
        simulated=clients.simulated or not isinstance(source, SystemNoise),
        time=None if isinstance(source, SimulatedNoise) else datetime.now(UTC),
        unit=result_unit(protocol, clients),
        per_person=per_person,
    )


def repeat(
    clients: Clients, protocol: Protocol, times: int, seed: int | None = None
) -> NDArray[np.float64]:
    """The estimates of many independent simulated evaluations, shape (times,).

    Noise is drawn vectorised and ranks are computed once; NaN where the noise left no signal.

    Examples
    --------
    >>> import tacit
    >>> scores, labels = tacit.binormal_scores(500, 1500, 0.8, seed=0)
    >>> clients = tacit.Clients.split(scores, labels, clients=10, seed=0)
    >>> tacit.repeat(clients, tacit.FedAUC(epsilon=1.0), times=100, seed=1).shape
    (100,)
    """
    return repeat_results(clients, protocol, times, seed).value


def repeat_results(
    clients: Clients, protocol: Protocol, times: int, seed: int | None = None
) -> ServerResult:
    """As ``repeat``, with every repetition's own errors and class sizes."""
    check_given(clients, protocol)
    _check_records(clients)
    protocol, clients = taken_by(protocol, clients)
    return replicate(clients, protocol, times, seed)


def exact_auc(clients: Clients) -> float:
    """The exact AUC of all clients' records, which is not private."""
    return auc(clients.scores, clients.labels)


def _mpc_warnings(run: Run) -> tuple[str, ...]:
    if isinstance(run, MPCRun):
        return (HERE,)
    return (IDEAL,) if run.mpc else ()


def _check_records(clients: Clients) -> None:
    if clients.records < 2:
        raise DataError(f"an evaluation needs at least two records, got {clients.records}")


def noise_source(clients: Clients, seed: int | None, engine: str = "ideal") -> NoiseSource:
    """Simulated noise where a seed or clients that do not exist ask for it, else the system's.

    Clients in separate processes draw noise from the system where no seed is given.
    """
    simulated = seed is not None or (clients.simulated and engine != "spu")
    return SimulatedNoise(seed) if simulated else SystemNoise()


def noise_name(source: NoiseSource) -> str:
    """What a result calls its noise."""
    if isinstance(source, SystemNoise):
        return "system"
    return "simulated" if isinstance(source, SimulatedNoise) else "none"


def simulation_warnings(clients: Clients, source: NoiseSource) -> tuple[str, ...]:
    """What a result says where nothing is protected."""
    if clients.simulated:
        return (
            f"this is a simulation: the records were dealt out to {clients.count} clients that do "
            "not exist, and nothing is protected",
        )
    if not isinstance(source, SystemNoise):
        return ("this is a simulation: its noise is not fit for a release",)
    return ()
