"""The unit of privacy of a run: what a record spends, and which records of a person count."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.data import persons
from tacit.privacy import composition
from tacit.privacy.cost import MIN_BUDGET, Cost, worst_case
from tacit.privacy.mechanisms.response import UniformIntegers
from tacit.protocol.settings import known_settings

MAX_ROUNDS = 60
"""Rounds of a run that cost something; which of them a record spoke in fits into an integer."""

SLACK = 1 + 1e-9
"""Factor by which roundings of floating-point numbers may exceed a guarantee."""

NOTE = ("counted records of persons",)
"""Key of the draw's seed in a client's state."""

NO_PERSONS = "its own file does not say whose its records are"
"""Reason that a party gives where a plan lets so many records of a person count."""

PERSONS_UNUSED = "its own file names persons, and the plan protects records"
"""Reason that a party gives where a plan would protect only one record of a person."""


@dataclass(frozen=True, eq=False)
class Payment:
    """What one round cost each record that spoke in it.

    Parameters
    ----------
    cost : the declared cost, for every record that spoke.
    speaking : which records the reply depended on, shape (M,).
    """

    cost: Cost
    speaking: NDArray[np.bool_]

    @property
    def by_all(self) -> bool:
        """Whether every record spoke, as one value that is read M times (a stride of 0)."""
        return bool(self.speaking.size) and self.speaking.strides == (0,) and bool(self.speaking[0])


def payment_values(payment: Payment) -> dict[str, Any]:
    """A payment for a state: where every record spoke, their number stands for what each did."""
    by_all, speaking = payment.by_all, payment.speaking
    return {"cost": payment.cost, "speaking": speaking.size if by_all else speaking}


def payment_of(cost: Cost, speaking: NDArray[np.bool_] | int) -> Payment:
    """The payment of such values."""
    by_all = isinstance(speaking, int)
    return Payment(cost, np.broadcast_to(np.True_, speaking) if by_all else np.asarray(speaking))


def most_spent(payments: Sequence[Payment]) -> Cost:
    """The largest total cost of a record: the sum of the costs of the rounds in which it spoke.

    Without any record, it is the cost of a record that would have spoken in all rounds: a
    guarantee about added records also costs where no record is there.

    Examples
    --------
    Two records, each of which spoke in one of two rounds:

    >>> import numpy as np
    >>> from tacit import Adjacency
    >>> one = Cost(1.0, adjacency=Adjacency.RECORD)
    >>> first, second = np.array([True, False]), np.array([False, True])
    >>> most_spent([Payment(one, first), Payment(one, second)]).epsilon
    1.0
    """
    paid = [payment for payment in payments if payment.cost != tp.NOTHING]
    if not paid:
        return tp.NOTHING
    if len(paid) > MAX_ROUNDS:
        raise ValueError(f"records are asked at most {MAX_ROUNDS} paid questions, got {len(paid)}")
    records = max(payment.speaking.size for payment in paid)
    always = sum(1 << index for index, payment in enumerate(paid) if payment.by_all)
    some = [(index, payment) for index, payment in enumerate(paid) if not payment.by_all]
    spoken = sum(
        (payment.speaking.astype(np.int64) << index for index, payment in some),
        np.zeros(records if some else min(records, 1), dtype=np.int64),
    )
    patterns = np.unique(spoken + always)
    if not patterns.size:
        patterns = np.array([(1 << len(paid)) - 1])
    return worst_case(
        sum(
            (payment.cost for index, payment in enumerate(paid) if pattern >> index & 1), tp.NOTHING
        )
        for pattern in patterns.tolist()
    )


def exceeds(spent: Cost, allowed: Cost) -> bool:
    """Whether a cost exceeds a guarantee; sums of parts may have an error in the last digit.

    Examples
    --------
    >>> from tacit import Adjacency
    >>> one = Cost(1.0, adjacency=Adjacency.LABEL)
    >>> exceeds(one, one), exceeds(one + one, one)
    (False, True)
    """
    if spent == tp.NOTHING or allowed.epsilon == np.inf:
        return False
    return (
        spent.adjacency != allowed.adjacency
        or spent.epsilon > allowed.epsilon * SLACK
        or spent.delta > allowed.delta * SLACK
    )


def added(before: Cost, after: Cost) -> Cost:
    """The cost to add to one cost to reach another.

    Examples
    --------
    >>> from tacit import Adjacency
    >>> one = Cost(1.0, adjacency=Adjacency.RECORD)
    >>> added(one, one + one).epsilon, added(one, one).epsilon
    (1.0, 0.0)
    """
    if np.isinf(after.epsilon):
        return after if np.isfinite(before.epsilon) else tp.NOTHING
    rho = None if after.rho is None else max(after.rho - (before.rho or 0.0), 0.0)
    epsilon, delta = max(after.epsilon - before.epsilon, 0.0), max(after.delta - before.delta, 0.0)
    return Cost(epsilon, delta, after.adjacency, rho) if epsilon or delta or rho else tp.NOTHING


@dataclass(frozen=True)
class CountedSeed(tp.Lasting):
    """What draws a client's counted records; a client has one, so that every run counts the same.

    Parameters
    ----------
    seed : 32 secret random bytes.
    """

    seed: bytes = field(repr=False)


def persons_misfit(per_person: int, named: bool, one_each: bool) -> str:
    """Why a party cannot answer a plan, by words of configuration alone; empty where it can.

    Parameters
    ----------
    per_person : of the plan; 0 where it protects records.
    named : whether the party's file names a column of persons.
    one_each : whether it says that every record is another person's.
    """
    if per_person and not (named or one_each):
        return NO_PERSONS
    return PERSONS_UNUSED if named and not per_person else ""


def counted_clients(
    clients: tp.Clients, per_person: int, state: tp.ClientState, noise: tp.NoiseSource | None = None
) -> tuple[tp.Clients, NDArray[np.bool_] | None]:
    """The records that count, as client steps see them, and which those are, shape (M,).

    Which they are is None for records that are not in memory.

    Parameters
    ----------
    clients : all records, with their persons where ``per_person`` is not 0.
    per_person : the most records of a person that count at a client; 0 where a record is the unit.
    state : the clients' state, which keeps the draw.
    noise : where a simulation's draw comes from. Others come from the operating system.

    Raises
    ------
    DataError : for records whose persons are not known.
    """
    if per_person == 0:
        return clients, np.ones(clients.records, dtype=np.bool_)
    note: CountedSeed | None = state.recall(NOTE)
    if note is None:
        note = CountedSeed(_drawn_seed(noise))
        state.keep(NOTE, note)
    return clients.counted(per_person, note.seed)


def unit_of(clients: tp.Clients, per_person: int | None) -> int:
    """How many records of a person count: one, where persons are known and no number is given.

    Raises
    ------
    DataError : for a number without persons.
    ValueError : for a number that cannot be.
    """
    if not clients.knows_persons and per_person is not None:
        raise tp.DataError("per_person needs persons: nothing says whose records these are")
    if not clients.knows_persons:
        return 0
    chosen = 1 if per_person is None else per_person
    composition.check_per_person(chosen)
    return chosen


def _drawn_seed(noise: tp.NoiseSource | None) -> bytes:
    if noise is None or isinstance(noise, tp.SystemNoise):
        return secrets.token_bytes(persons.SEED_BYTES)
    words: NDArray[Any] = noise.draw(UniformIntegers(2**32), (persons.SEED_BYTES // 4,))
    return words.ravel()[: persons.SEED_BYTES // 4].astype("<u4").tobytes()


def per_record(protocol: tp.Protocol, per_person: int) -> tp.Protocol:
    """The protocol with the part of its budget that one of a person's counted records has.

    The epsilon of the settings is a person's: a record has a k-th of it, and the delta with which k
    records of a person make the whole (``privacy.composition``).

    Parameters
    ----------
    protocol : with the budget of a person.
    per_person : k, the most records of a person that count; 0 for a budget of a record.

    Raises
    ------
    ValueError : for a protocol without a budget, or too little of it for a record.

    Examples
    --------
    >>> import tacit
    >>> per_record(tacit.DPAUC(1.0), 4).epsilon
    0.25
    """
    if per_person == 0:
        return protocol
    composition.check_per_person(per_person)
    guarantee = protocol.guarantee
    settings = {name: getattr(protocol, name) for name in known_settings(type(protocol))}
    if math.isinf(guarantee.epsilon) or "epsilon" not in settings:
        raise ValueError(
            f"{protocol.name} protects no record by differential privacy, so it protects no "
            "person: leave per_person out"
        )
    if protocol.counts_missing:
        raise ValueError(
            f"{protocol.name} counts incomplete records, of which a person may have any number, so "
            "it protects no person: leave per_person out"
        )
    if per_person == 1:
        return protocol
    budget = float(settings["epsilon"])
    epsilon = budget / per_person
    if epsilon < MIN_BUDGET:
        raise ValueError(
            f"epsilon must be at least {per_person * MIN_BUDGET:g} where {per_person} records of a "
            f"person count, got {budget:g}"
        )
    changes: dict[str, Any] = {"epsilon": epsilon}
    if guarantee.delta > 0:
        weights = composition.delta_weights(guarantee.epsilon / per_person, per_person)
        changes |= _with_delta(settings, guarantee.delta / weights)
    changeable: Any = protocol
    divided: tp.Protocol = replace(changeable, **changes)
    spent = composition.of_person(divided.guarantee, per_person)
    if spent.epsilon > guarantee.epsilon * SLACK or spent.delta > guarantee.delta * SLACK:
        raise ValueError(
            f"{protocol.name} with these settings has no budget that could be divided among "
            f"{per_person} records of a person"
        )
    return divided


def _with_delta(settings: Mapping[str, Any], delta: float) -> dict[str, Any]:
    """The settings that hold a delta, with another: one of that name, or a choice's parameter."""
    if "delta" in settings:
        return {"delta": delta}
    return {
        name: replace(value, delta=delta)
        for name, value in settings.items()
        if "delta" in getattr(value, "__dataclass_fields__", {})
    }
