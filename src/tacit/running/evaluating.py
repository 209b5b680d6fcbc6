"""Evaluate a classifier on clients' data in this process: one evaluation, or many repetitions.

A ``Setup`` is what every evaluation of this process begins with: ``tacit.evaluate``, groups and
comparisons. With a part of its epsilon an evaluation can also count incomplete records.

With a ledger, a run is debited in whole before anything is computed. Parties debit message by
message, since a coordinator may ask them anything. Here one program asks and answers, and its user
sees all of it: one debit of the whole guarantee, durable before the first step, covers whatever of
the run is seen, also of one that breaks off.
"""

from __future__ import annotations

import errno
import math
import os
import secrets
import warnings
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.data.errors import DataWarning
from tacit.ledger.entries import Entry, request_digest
from tacit.ledger.ledger import Ledger
from tacit.metrics.ranking import auc
from tacit.privacy import composition
from tacit.protocol import declared, registry
from tacit.protocol.settings import known_settings
from tacit.results import evaluation
from tacit.results.run import LeftOut, Traffic
from tacit.running.mpc.runner import NO_LEDGERS, Ledgers, run_mpc
from tacit.running.simulation import Run, replicate, simulate
from tacit.running.spending import counted_clients, per_record, unit_of
from tacit.running.units import result_unit, taken_by

IDEAL = (
    "what clients would compute together was computed by a trusted party: this process saw all of "
    "their records; between real clients cryptography has to replace it"
)

HERE = (
    "the clients computed together by cryptography, each in a process of its own; all of them ran "
    "on this machine, whose user could read all records"
)

Engine = Literal["ideal", "spu"]
"""Who computes joint steps: a trusted party, or the clients' processes."""
ENGINES = get_args(Engine)
UNDEBITED = "this simulation debited no ledger"
NONE_LEFT_OUT = "missing_epsilon counts records that were left out: read them with missing='drop'"
PERSONS = (
    "missing_epsilon counts records, of which a person may have many: it cannot be used where a "
    "person is the unit of privacy"
)


@dataclass(frozen=True, eq=False)
class Setup:
    """What a run in this process begins with: records that all count, and their noise.

    Parameters
    ----------
    clients : the records, of which no client has more than ``per_person`` of one person.
    inside : which of the records given to ``of`` these are, shape (M,); None where records are
        stored of which not all count.
    source : the noise.
    per_person : 0 where a record is the unit of privacy.
    state : the clients' state.
    federation, engine, ledgers : as for ``tacit.evaluate``.
    given : the records as they were given to ``of``.
    ledger : the file that a run that is no simulation debits; None for none.
    """

    clients: tp.Clients
    inside: NDArray[np.bool_] | None
    source: tp.NoiseSource
    per_person: int
    state: tp.ClientState
    federation: str | None
    engine: Engine
    ledgers: Ledgers
    given: tp.Clients
    ledger: str | os.PathLike[str] | None

    @classmethod
    def of(
        cls,
        clients: tp.Clients,
        protocol: tp.Protocol,
        seed: int | None = None,
        *,
        noise: tp.NoiseSource | None = None,
        state: tp.ClientState | None = None,
        per_person: int | None = None,
        federation: str | None = None,
        engine: Engine = "ideal",
        ledgers: Ledgers = NO_LEDGERS,
        ledger: str | os.PathLike[str] | None = None,
    ) -> Setup:
        """The set-up of these clients, whose counted records are drawn where persons are known.

        Parameters
        ----------
        clients, seed, noise, state, per_person, federation, engine, ledgers, ledger : as for
            ``tacit.evaluate``.
        protocol : with its settings.

        Raises
        ------
        TypeError : for anything but clients and a protocol, with what was probably meant.
        DataError : for ``per_person`` without persons.
        ValueError : for a seed together with a noise source, an unknown engine, for ledgers or a
            state that the engine does not use, and for a state together with a ledger.
        """
        check_given(clients, protocol, seed, noise)
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {ENGINES}, got {engine!r}")
        if ledgers and engine != "spu":
            raise ValueError("clients' processes debit ledgers: ledgers need engine 'spu'")
        if ledger is not None and engine == "spu":
            raise ValueError("with engine 'spu' every client has a ledger: give ledgers")
        if ledger is not None and state is not None:
            raise ValueError(
                "a ledger is debited the whole cost of a run, and labels that a state has flipped "
                "cost nothing again: give ledger or state, not both"
            )
        if engine == "spu" and state is not None:
            raise ValueError(
                "clients in separate processes have a state each: state cannot be given"
            )
        for sentence in protocol.doubts(clients):
            warnings.warn(sentence, DataWarning, stacklevel=4)
        source = noise_source(clients, seed, engine) if noise is None else noise
        stored, most = tp.ClientState() if state is None else state, unit_of(clients, per_person)
        counted, inside = counted_clients(clients, most, stored, source)
        asked = (federation, engine, ledgers)
        return cls(counted, inside, source, most, stored, *asked, clients, ledger)

    @property
    def simulated(self) -> bool:
        """Whether the clients do not exist, or the noise is not fit for a release."""
        return self.clients.simulated or not isinstance(self.source, tp.SystemNoise)

    def debit(self, *protocols: tp.Protocol, exact: bool = False) -> None:
        """Debit runs of these protocols together, durably, before any of them computes anything.

        Parameters
        ----------
        protocols : each with the budget of one of a person's counted records.
        exact : whether the exact figure is shown, too, which protects nothing.

        Raises
        ------
        BudgetError : where the ledger does not allow it, or cannot be read or written.
        ValueError : for no federation, where the ledger does not have one data set.
        OSError : for a ledger that is not there, or cannot be opened.
        """
        if self.ledger is None or self.simulated:
            return
        cost = tp.UNPROTECTED if exact else tp.NOTHING
        for each in protocols:
            cost += composition.of_person(each.guarantee, self.per_person)
        if not Path(self.ledger).exists():
            sentence = "there is no such ledger; `tacit ledger limit` makes one"
            raise FileNotFoundError(errno.ENOENT, sentence, os.fspath(self.ledger))
        with Ledger.open_readonly(self.ledger) as pages:  # it makes none
            known = pages.datasets() if self.federation is None else [self.federation]
        if len(known) != 1:
            listed = ", ".join(map(repr, known)) or "none"
            raise ValueError(
                f"{os.fspath(self.ledger)} must have one data set where the run names none, got "
                f"{listed}: name the records' data set as the federation"
            )
        session = secrets.token_bytes(16)
        asked = protocols[0].name, "0 whole run", session.hex(), request_digest(session)
        with Ledger(self.ledger) as ledger:
            mark, _ = self.given.marks(ledger.record_key)
            ledger.debit(Entry(known[0], mark, *asked, composition.stated_cost(cost, cost)))

    def evaluated(
        self, protocol: tp.Protocol, *also: tp.Protocol, exact: bool = False
    ) -> evaluation.Evaluation:
        """The evaluation of one run.

        Parameters
        ----------
        protocol : with the budget of a person, where a person is the unit of privacy.
        also : what runs after it and is debited with it.
        exact : also compute the exact figure.

        Raises
        ------
        DataError, ValueError, OSError, MPCError : as ``tacit.evaluate``.
        """
        if not protocol.guarantee.hides_presence:
            _check_records(self.clients)
        protocol, clients = taken_by(protocol, self.clients)
        divided, most = per_record(protocol, self.per_person), self.per_person
        self.debit(divided, *also, exact=exact)
        if self.engine == "spu":
            run = run_mpc(clients, divided, self.source, ledgers=self.ledgers, per_person=most)
        else:
            run = simulate(clients, divided, self.source, self.state)
        revealed = declared.revealed_to(self.state)
        return replace(self, clients=clients).concluded(
            protocol,
            run,
            known=None if revealed is None else declared.result_of_client(divided, revealed),
            exact=protocol.exact(clients) if exact else None,
        )

    def evaluated_with_missing(
        self, protocol: tp.Protocol, missing_epsilon: float | None, *, exact: bool = False
    ) -> evaluation.Evaluation:
        """The evaluation with what a result may say of records left out as incomplete.

        Parameters
        ----------
        protocol : with the whole budget.
        missing_epsilon : the part of its epsilon for a noisy number of these records; None for
            none.
        exact : as for ``evaluated``.

        Raises
        ------
        ValueError : where nothing was left out, the number would not be covered by the guarantee,
            or the part leaves the protocol no budget.
        """
        if missing_epsilon is None:
            result = self.evaluated(protocol, exact=exact)
            return replace(result, left_out=left_out_in_result(self.clients, exact))
        if self.clients.left_out is None:
            raise ValueError(NONE_LEFT_OUT)
        if self.per_person:
            raise ValueError(PERSONS)
        if self.engine != "ideal":
            raise ValueError(
                f"missing_epsilon counts in this process, not with engine {self.engine!r}"
            )
        protocol = shared_budget(protocol, missing_epsilon)
        counting = counting_protocol(protocol, missing_epsilon)
        result = self.evaluated(protocol, counting, exact=exact)
        run = simulate(self.clients, counting, self.source)
        traffic = Traffic(
            result.traffic.rounds + run.rounds, result.traffic.bytes_sent + run.bytes_sent
        )
        left_out = LeftOut(estimate=run.server_result.published().estimate(), spent=run.spent)
        return replace(result, spent=result.spent + run.spent, traffic=traffic, left_out=left_out)

    def concluded(
        self,
        protocol: tp.Protocol,
        run: Run,
        *,
        known: tp.ServerResult | None = None,
        exact: float | None = None,
    ) -> evaluation.Evaluation:
        """The evaluation of a run of these clients.

        Parameters
        ----------
        protocol : what the result names, with the whole budget of a person where one is the unit.
        run : the rounds, with what the server concluded and what they cost.
        known : the result, where a client knows it and the server does not.
        exact : the exact figure, for a user who asked for it.
        """
        clients, source = self.clients, self.source
        by_processes = self.engine == "spu"
        computed = HERE if by_processes else IDEAL
        undebited = (UNDEBITED,) * (self.simulated and self.ledger is not None)
        return evaluation.evaluation_of(
            protocol,
            run.server_result if known is None else known,
            # processes state a person's cost; elsewhere a record's counts per_person times
            spent=run.spent if by_processes else composition.of_person(run.spent, self.per_person),
            traffic=Traffic(run.rounds, run.bytes_sent),
            clients=clients.count,
            noise=noise_name(source) if protocol.draws_noise else "none",
            exact=exact,
            before=(*simulation_warnings(clients, source), *undebited, *(computed,) * run.mpc),
            names=clients.names,
            federation=self.federation,
            simulated=self.simulated,
            time=None if isinstance(source, tp.SimulatedNoise) else datetime.now(UTC),
            unit=result_unit(protocol, clients),
            per_person=self.per_person,
        )


def repeat(
    clients: tp.Clients, protocol: tp.Protocol, times: int, seed: int | None = None
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
    clients: tp.Clients, protocol: tp.Protocol, times: int, seed: int | None = None
) -> tp.ServerResult:
    """As ``repeat``, with every repetition's own errors and class sizes."""
    check_given(clients, protocol)
    _check_records(clients)
    protocol, clients = taken_by(protocol, clients)
    return replicate(clients, protocol, times, seed)


def exact_auc(clients: tp.Clients) -> float:
    """The exact AUC of all clients' records, which is not private."""
    return auc(clients.scores, clients.labels)


def _check_records(clients: tp.Clients) -> None:
    if clients.records < 2:
        raise tp.DataError(f"an evaluation needs at least two records, got {clients.records}")


def noise_source(clients: tp.Clients, seed: int | None, engine: str = "ideal") -> tp.NoiseSource:
    """Simulated noise where a seed or clients that do not exist ask for it, else the system's.

    Clients in separate processes draw noise from the system where no seed is given.
    """
    simulated = seed is not None or (clients.simulated and engine != "spu")
    return tp.SimulatedNoise(seed) if simulated else tp.SystemNoise()


def noise_name(source: tp.NoiseSource) -> str:
    """What a result calls its noise."""
    if isinstance(source, tp.SystemNoise):
        return "system"
    return "simulated" if isinstance(source, tp.SimulatedNoise) else "none"


def simulation_warnings(clients: tp.Clients, source: tp.NoiseSource) -> tuple[str, ...]:
    """What a result says where nothing is protected."""
    if clients.simulated:
        return (
            f"this is a simulation: the records were dealt out to {clients.count} clients that do "
            "not exist, and nothing is protected",
        )
    if not isinstance(source, tp.SystemNoise):
        return ("this is a simulation: its noise is not fit for a release",)
    return ()


def check_given(
    clients: Any, protocol: Any, seed: int | None = None, noise: tp.NoiseSource | None = None
) -> None:
    """Refuse anything but clients, with how they are made, and a protocol with its settings.

    Raises
    ------
    TypeError : naming the type that was given.
    ValueError : for a seed together with a noise source.
    """
    if not isinstance(clients, tp.Clients):
        raise TypeError(
            f"clients must be tacit.Clients, got {type(clients).__name__}: make them by "
            "tacit.Clients.from_frame(frame, client=COLUMN), from_arrays(scores, labels, ids), or "
            "tacit.read(files)"
        )
    check_protocol(protocol)
    if seed is not None and noise is not None:
        raise ValueError("give a seed or a noise source, not both")


def check_protocol(protocol: Any) -> None:
    """Refuse anything but a protocol with its settings, with what was probably meant.

    Raises
    ------
    TypeError : naming what was given.

    Examples
    --------
    >>> check_protocol(1.0)
    Traceback (most recent call last):
    TypeError: protocol must be a protocol with its settings, got 1.0: write epsilon=1.0
    """
    if isinstance(protocol, tp.Protocol):
        return
    got = type(protocol).__name__
    if isinstance(protocol, type) and issubclass(protocol, tp.Protocol):
        settings = "epsilon=1.0" if "epsilon" in known_settings(protocol) else ""
        got = f"the class {protocol.__name__}: write {protocol.__name__}({settings})"
    elif isinstance(protocol, int | float):
        got = f"{protocol!r}: write epsilon={protocol!r}"
    elif hasattr(protocol, "__array__") or isinstance(protocol, list | tuple):
        got += ": scores and labels are one argument, (scores, labels)"
    elif isinstance(protocol, str):
        got = f"the name {protocol!r}: only tacit.evaluate takes names, with the settings"
    raise TypeError(f"protocol must be a protocol with its settings, got {got}")


def shared_budget(protocol: tp.Protocol, missing_epsilon: float) -> tp.Protocol:
    """The protocol with what is left of its epsilon for it.

    Parameters
    ----------
    protocol : with the whole budget.
    missing_epsilon : the part for the count of incomplete records.

    Raises
    ------
    ValueError : for a part that is not below the whole, and for a protocol without a budget.
    """
    tp.check_budget(missing_epsilon)
    changeable: Any = protocol
    if math.isinf(protocol.guarantee.epsilon) or "epsilon" not in protocol.settings:
        raise ValueError(
            f"{protocol.name} with these settings has no epsilon of which a count of incomplete "
            "records could take a part"
        )
    hiding_labels = tp.Adjacency.RECORD, tp.Adjacency.REPLACE, tp.Adjacency.LABEL
    if protocol.guarantee.adjacency not in hiding_labels:
        raise ValueError(f"{protocol.name} hides no label, so no count of missing ones is private")
    whole: float = changeable.epsilon
    if missing_epsilon >= whole:
        raise ValueError(f"missing_epsilon must be below epsilon, {whole:g}, got {missing_epsilon}")
    rest: tp.Protocol = replace(changeable, epsilon=whole - missing_epsilon)
    return rest


def counting_protocol(protocol: tp.Protocol, epsilon: float) -> tp.Protocol:
    """The protocol that counts incomplete records under the trust and adjacency of another.

    It counts by a sum where all that the other one asks for are sums, and else by client.
    """
    counting = next(kind for kind in registry.protocol_kinds().values() if kind.counts_missing)
    summed = all(step.view_under(protocol) is tp.View.SUM for step in protocol.steps)
    trust = tp.Trust.SECURE_SUM if summed else tp.Trust.EACH
    adjacency = protocol.guarantee.adjacency
    made: tp.Protocol = counting(
        epsilon=epsilon, trust=trust.value, adjacency=None if adjacency is None else adjacency.value
    )
    return made


def left_out_in_result(clients: tp.Clients, exact: bool) -> LeftOut | None:
    """What a result without a noisy count says of incomplete records; None where none may be.

    Parameters
    ----------
    clients : with the records that were left out.
    exact : whether the result has exact figures anyway. The exact number of incomplete records is
        outside of every guarantee, as ``Evaluation.exact`` is, and written with it only.
    """
    if clients.left_out is None:
        return None
    return LeftOut(clients.left_out if exact else None)
