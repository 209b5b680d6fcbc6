"""Attacks on the client steps of a protocol: does any step exceed its declared epsilon?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.auditing import distinguishing
from tacit.auditing.questions import Question, neighbours, observe, questions_of
from tacit.privacy import doubles

MIN_FRACTION = 0.6
"""Fraction of a tight mechanism's epsilon that an attack should reach."""

WHOLE_RUN = "whole run"

IDLE_COLUMNS = 64
"""Number of columns that an attack uses where no column is known to depend on the record."""

COINS = 20
"""Number of seeds tried for a conversation in which every step concerns some record."""


@dataclass(frozen=True)
class Effort:
    """How much an attack may draw.

    Parameters
    ----------
    numbers : numbers drawn on each neighbour.
    tries : largest number of draws.
    pilot : number of draws for the choice of the neighbour and the columns.
    divided : divisor of a target's number of draws, where they are made one at a time.
    """

    numbers: int = 2**23
    tries: int = 120_000
    pilot: int = 2_000
    divided: int = 1

    def of(self, width: int) -> int:
        """The number of draws of ``width`` numbers each, where many are made at once."""
        return int(np.clip(self.numbers // max(width, 1), MIN_TRIES, self.tries))


MIN_TRIES = 4_000
FULL = Effort()
QUICK = Effort(numbers=2**21, tries=30_000, pilot=1_000, divided=3)
FEW = Effort(numbers=2**18, tries=MIN_TRIES, pilot=500)
"""Draws on two records: enough for a value that no noise hides."""

CHUNK = 2**21
"""Number of values drawn at once."""

PILOTS = 12
"""Number of draws of the attack for each draw of the pilot, where they are made one at a time."""


@dataclass(frozen=True, eq=False)
class Target:
    """What is attacked: one step, or all that a record spends in a run.

    Parameters
    ----------
    name : of the step, or ``WHOLE_RUN``.
    questions : the queries whose replies the attacker sees.
    declared : their total cost, as the protocol declares it.
    adjacency : what neighbours differ in.
    one_by_one : how many replies are drawn one at a time; 0 to draw many at once.
    tight : whether the declared epsilon should be within an attack's reach.
    """

    name: str
    questions: tuple[Question, ...]
    declared: tp.Cost
    adjacency: tp.Adjacency
    one_by_one: int = 0
    tight: bool = True

    @property
    def clients(self) -> tp.Clients:
        """The data set on which the attack starts."""
        return self.questions[0].clients

    @property
    def others(self) -> list[tp.Clients]:
        """Its neighbours that are tried."""
        return list(neighbours(self.clients, self.adjacency, self.questions[0].client))

    @property
    def constant_cost(self) -> bool:
        """Whether all neighbours have the declared cost, which is public."""
        return all(
            question.cost_on(other) == question.cost
            for question in self.questions
            for other in self.others
        )

    @cached_property
    def drawn(self) -> int:
        """The number of numbers that one draw makes, of which the attacker may use few."""
        noise = tp.SimulatedNoise(0)
        parts = (question.parts(self.clients, noise) for question in self.questions)
        made = sum(values.shape[-1] for reply in parts for values in reply.values())
        return max(made, int(observe(self.questions, self.clients, tp.SimulatedNoise(0)).shape[-1]))

    def draws(self, effort: Effort) -> tuple[int, int]:
        """Draws of the pilot and of the attack."""
        if self.one_by_one:
            tries = self.one_by_one // effort.divided
            return max(tries // PILOTS, 4), tries
        tries = effort.of(self.drawn)
        return min(effort.pilot, tries), tries

    def observed(
        self,
        clients: tp.Clients,
        noise: doubles.NoiseMaker,
        seed: int,
        tries: int,
        low_bits: bool = False,
        columns: Any = slice(None),
    ) -> Floats:
        """Independent draws of what the attacker sees if these are the clients, shape (tries, D).

        Parameters
        ----------
        clients : the data set.
        noise : makes the noise that the steps draw.
        seed : makes the draws repeatable.
        tries : how many draws.
        low_bits : whether the attack uses the low bits of floating-point numbers.
        columns : the numbers that the attack uses.
        """
        size = max(CHUNK // max(self.drawn, 1), 1)
        sizes = [min(size, tries - start) for start in range(0, tries, size)]
        seeds = np.random.SeedSequence(seed).generate_state(len(sizes), np.uint64)
        sources: Iterable[tp.NoiseSource] = map(noise, map(int, seeds), sizes)
        if self.one_by_one:
            sources = itertools.repeat(noise(seed, None), tries)
        return np.concatenate(
            [observe(self.questions, clients, source, low_bits)[:, columns] for source in sources]
        )


@dataclass(frozen=True)
class StepAudit:
    """The outcome of an attack on one target.

    Parameters
    ----------
    name : of the step, or ``WHOLE_RUN``.
    declared : what was declared.
    adjacency : what the neighbours differed in.
    bound : the bound and its data; None where the declared epsilon is infinite.
    tight : whether the declared epsilon should be within reach.
    visible : the bound that as many draws of randomised response at this epsilon would give. No
        attack can separate a mechanism from a more private one much better.
    constant_cost : whether neighbours have the same declared cost.
    """

    name: str
    declared: tp.Cost
    adjacency: tp.Adjacency
    bound: distinguishing.Distinguished | None
    tight: bool = True
    visible: float = 0.0
    constant_cost: bool = True

    @property
    def holds(self) -> bool:
        """Whether the bound is at most the declared epsilon, which tells nothing about records."""
        return self.constant_cost and self.within

    @property
    def within(self) -> bool:
        """Whether the bound is at most the declared epsilon."""
        return self.bound is None or self.bound.epsilon <= self.declared.epsilon

    @property
    def share(self) -> float | None:
        """The fraction of the declared epsilon that the bound reaches."""
        if self.bound is None or self.declared.epsilon == 0:
            return None
        return self.bound.epsilon / self.declared.epsilon

    @property
    def weak(self) -> bool:
        """Whether the bound is lower than an attack with this number of draws should reach."""
        needed = MIN_FRACTION * self.declared.epsilon
        if not self.tight or self.share is None or self.visible < needed:
            return False
        return self.share < MIN_FRACTION

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if self.bound is None:
            return "claims nothing"
        if not self.constant_cost:
            return "COST DEPENDS ON RECORDS"
        if not self.within:
            return "EXCEEDED"
        return "holds, weak attack" if self.weak else "holds"

    def to_dict(self) -> dict[str, Any]:
        """As plain values; an unbounded epsilon is null."""
        bound = {} if self.bound is None else vars(self.bound)
        return {
            "step": self.name,
            "declared": self.declared.to_dict() | {"adjacency": self.adjacency.value},
            "epsilon_bound": bound.get("epsilon"),
            "share": self.share,
            "visible": self.visible,
            "tight": self.tight,
            "event_rate": bound.get("event_rate"),
            "other_rate": bound.get("other_rate"),
            "tries": bound.get("tries", 0),
            "holds": self.holds,
            "verdict": self.verdict,
        }


def targets_of(
    protocol: tp.Protocol,
    clients: tp.Clients,
    one_by_one: int = 0,
    tight: bool = True,
    noise: doubles.NoiseMaker = doubles.simulated,
) -> list[Target]:
    """Every step of a conversation, and the whole run where it is not one step that spends it all.

    Parameters
    ----------
    protocol : the protocol.
    clients : the data set on which attacks start.
    one_by_one : how many replies are drawn one at a time, where they depend on private choices; 0
        to draw many at once.
    tight : whether the declared epsilon should be within an attack's reach.
    noise : makes the noise of the conversation.
    """
    questions = _spoken_conversation(protocol, clients, noise)
    default = protocol.guarantee.adjacency or tp.Adjacency.REPLACE
    targets, seen = [], set()
    for question in questions:
        cost = question.cost
        if question.name not in seen or cost != tp.NOTHING:
            adjacency = cost.adjacency or default
            single = one_by_one or protocol.draws_by_step.get(question.name, 0)
            targets.append(Target(question.name, (question,), cost, adjacency, single, tight))
        seen.add(question.name)
    spending = tuple(
        candidate
        for candidate in questions
        if candidate.client == 0 and 0 < candidate.cost.epsilon < math.inf and _heard(candidate)
    )
    guarantee = protocol.guarantee
    beyond = any(each.cost.epsilon > guarantee.epsilon * (1 + 1e-9) for each in spending)
    if (len(spending) > 1 or beyond) and math.isfinite(guarantee.epsilon):
        targets.append(Target(WHOLE_RUN, spending, guarantee, default, one_by_one, tight))
    return targets


def audit_target(
    target: Target,
    noise: doubles.NoiseMaker = doubles.simulated,
    seed: int = 0,
    effort: Effort = FULL,
    error: float = 0.001,
    low_bits: bool = False,
) -> StepAudit:
    """Attack a target: bound its epsilon from below, with confidence ``1 - error``.

    A pilot chooses the neighbour that differs most and the columns that a record moves. The bound
    comes from other draws. There is no attack where the declared epsilon is infinite.

    Parameters
    ----------
    target : what is attacked.
    noise : makes the noise that the steps draw.
    seed : makes the attack repeatable.
    effort : how much may be drawn.
    error : the chance that the bound exceeds the true epsilon.
    low_bits : whether the attack uses the low bits of floating-point numbers.

    Raises
    ------
    ValueError : for a reply whose size depends on the records.
    """
    claimed = target.name, target.declared, target.adjacency
    if math.isinf(target.declared.epsilon):
        return StepAudit(*claimed, None)
    seeds = [int(state) for state in np.random.SeedSequence(seed).generate_state(4, np.uint64)]
    pilot, tries = target.draws(effort)

    def draw(data: tp.Clients, index: int, times: int, columns: Any = slice(None)) -> Floats:
        return target.observed(data, noise, seeds[index], times, low_bits, columns)

    first = draw(target.clients, 0, pilot)
    piloted = [(other, draw(other, 1, pilot)) for other in target.others]
    other, second = max(piloted, key=lambda pair: _difference(first, pair[1]))
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(
            f"the size of a reply must not depend on the records: {target.name} sends "
            f"{first.shape[-1]} numbers, and {second.shape[-1]} for a neighbour"
        )
    moved = _moved_numbers(target, other, first, second, low_bits)
    drawn = draw(target.clients, 2, tries, moved), draw(other, 3, tries, moved)
    bound = distinguishing.distinguish(*drawn, target.declared.delta, error)
    visible = _of_response(target.declared.epsilon, bound.tries, error)
    return StepAudit(*claimed, bound, target.tight, visible, target.constant_cost)


def _of_response(epsilon: float, tries: int, error: float) -> float:
    """The bound that typical draws of randomised response at this epsilon give."""
    flipped = tp.RandomisedResponse(epsilon).probability if epsilon > 0 else 0.5
    unflipped = round(tries * (1 - flipped))
    return distinguishing.epsilon_bound(unflipped, tries - unflipped, tries, 0.0, error)


def _difference(first: Floats, second: Floats) -> float:
    """How much two sets of draws differ, by their chi-squares beyond chance."""
    if first.shape[-1] != second.shape[-1]:
        return math.inf
    statistics, freedom = distinguishing.chi_square(first, second)
    return float(np.sum(np.maximum(statistics - freedom, 0)))


def _moved_numbers(
    target: Target, other: tp.Clients, first: Floats, second: Floats, low_bits: bool
) -> NDArray[np.int64]:
    """The columns that a record moves: without noise, or visibly with noise."""
    bare = [
        observe(target.questions, data, doubles.BareCoins(), low_bits).ravel()
        for data in (target.clients, other)
    ]
    moved = np.flatnonzero((bare[0] != bare[1]) | distinguishing.telling(first, second))
    if moved.size:
        return moved
    return np.flatnonzero(np.ptp(np.vstack([first, second]), axis=0) > 0)[:IDLE_COLUMNS]


def _spoken_conversation(
    protocol: tp.Protocol, clients: tp.Clients, noise: doubles.NoiseMaker
) -> Sequence[Question]:
    """A conversation in which some record answers every query."""
    for seed in range(COINS):
        questions = questions_of(protocol, clients, noise(seed, None))
        if all(map(_heard, questions)):
            break
    return questions


def _heard(question: Question) -> bool:
    speaking = question.query.step.participates(question.clients, question.query)
    attacked = question.clients.client_of_record == question.client
    return bool((speaking & attacked).any()) or question.query.view is not tp.View.EACH
