"""Attacks on the client steps of a protocol: is the declared epsilon ever exceeded?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.bounds import epsilon_bound
from tacit.auditing.distinguishing import Distinguished, distinguish
from tacit.auditing.evidence import chi_square, telling
from tacit.auditing.neighbours import neighbours
from tacit.auditing.questions import BareCoins, PublicCoins, Question, observe, questions_of
from tacit.data.clients import Clients
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.privacy.noise import NoiseSource, SimulatedNoise
from tacit.privacy.response import flip_probability
from tacit.protocols.conversation import Protocol, View

Floats = NDArray[np.float64]
NoiseMaker = Callable[[int, int | None], NoiseSource]
"""A noise source from a seed and a number of replicates."""

POWER = 0.6
"""The share of a tight mechanism's epsilon that an attack should reach."""

WHOLE_RUN = "whole run"

IDLE_COLUMNS = 64
"""So many numbers are looked at where none is known to depend on the record."""

COINS = 20
"""Seeds tried for a conversation in which every step concerns somebody."""


@dataclass(frozen=True)
class Effort:
    """How much an attack may draw.

    Parameters
    ----------
    numbers : numbers drawn on each neighbour.
    tries : at most so many draws.
    pilot : draws to choose neighbour and numbers by.
    divided : by how much the draws that are made one at a time are fewer than a target says.
    """

    numbers: int = 2**23
    tries: int = 120_000
    pilot: int = 2_000
    divided: int = 1

    def of(self, width: int) -> int:
        """How many draws of so many numbers each, made many at a time."""
        return int(np.clip(self.numbers // max(width, 1), FEWEST, self.tries))


FEWEST = 4_000
FULL = Effort()
QUICK = Effort(numbers=2**21, tries=30_000, pilot=1_000, divided=3)
CHUNK = 2**21
"""Numbers drawn at once."""

ONE_BY_ONE = {"report_influences": 4_000}
"""Steps that cannot answer one ask many times at once, with the draws that are made."""

PILOTS = 12
"""A pilot one at a time is so many times smaller than the attack."""


@dataclass(frozen=True, eq=False)
class Target:
    """What is attacked: one step, or all that a record spends in a run.

    Parameters
    ----------
    name : of the step, or ``WHOLE_RUN``.
    questions : the asks whose replies the attacker sees.
    declared : what the protocol says that they cost together.
    adjacency : what neighbours differ in.
    one_by_one : how many replies are drawn one at a time; 0 to draw many at once.
    tight : whether the declared epsilon should be within an attack's reach.
    """

    name: str
    questions: tuple[Question, ...]
    declared: Cost
    adjacency: Adjacency
    one_by_one: int = 0
    tight: bool = True

    @property
    def clients(self) -> Clients:
        """The data set on which the attack starts."""
        return self.questions[0].clients

    @property
    def others(self) -> list[Clients]:
        """Its neighbours that are tried."""
        return list(neighbours(self.clients, self.adjacency, self.questions[0].client))

    @property
    def width(self) -> int:
        """How many numbers the replies hold."""
        return int(observe(self.questions, self.clients, SimulatedNoise(0)).shape[-1])

    def draws(self, effort: Effort) -> tuple[int, int]:
        """Draws of the pilot and of the attack."""
        if self.one_by_one:
            tries = self.one_by_one // effort.divided
            return max(tries // PILOTS, 4), tries
        tries = effort.of(self.width)
        return min(effort.pilot, tries), tries


@dataclass(frozen=True)
class StepAudit:
    """The outcome of an attack on one target.

    Parameters
    ----------
    name : of the step, or ``WHOLE_RUN``.
    declared : what was declared.
    adjacency : what the neighbours differed in.
    found : the bound and what it rests on; None where nothing is claimed that could be refuted.
    tight : whether the declared epsilon should be within reach.
    visible : the bound that as many draws of randomised response at this epsilon would give: no
        mechanism can be told from a more private one much better.
    """

    name: str
    declared: Cost
    adjacency: Adjacency
    found: Distinguished | None
    tight: bool = True
    visible: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the bound is at most the declared epsilon."""
        return self.found is None or self.found.epsilon <= self.declared.epsilon

    @property
    def share(self) -> float | None:
        """The share of the declared epsilon that the bound reaches."""
        if self.found is None or self.declared.epsilon == 0:
            return None
        return self.found.epsilon / self.declared.epsilon

    @property
    def weak(self) -> bool:
        """Whether the attack should have reached more, as far as its draws allow."""
        needed = POWER * self.declared.epsilon
        if not self.tight or self.share is None or self.visible < needed:
            return False
        return self.share < POWER

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if self.found is None:
            return "claims nothing"
        if not self.holds:
            return "EXCEEDED"
        return "holds, weak attack" if self.weak else "holds"

    def to_dict(self) -> dict[str, Any]:
        """As plain values; an unbounded epsilon is null."""
        found = self.found
        return {
            "step": self.name,
            "declared": self.declared.to_dict() | {"adjacency": self.adjacency.value},
            "epsilon_bound": None if found is None else found.epsilon,
            "share": self.share,
            "visible": self.visible,
            "tight": self.tight,
            "event_rate": None if found is None else found.event_rate,
            "other_rate": None if found is None else found.other_rate,
            "tries": 0 if found is None else found.tries,
            "holds": self.holds,
            "verdict": self.verdict,
        }


def simulated(seed: int, replicates: int | None) -> NoiseSource:
    """Simulated noise; where many replies are drawn at once, with the same choices in all."""
    return SimulatedNoise(seed) if replicates is None else PublicCoins(seed, replicates)


def targets_of(
    protocol: Protocol,
    clients: Clients,
    one_by_one: int = 0,
    tight: bool = True,
    noise: NoiseMaker = simulated,
) -> list[Target]:
    """Every step of a conversation, and the whole run where a record spends in several.

    Parameters
    ----------
    protocol : the protocol.
    clients : the data set on which attacks start.
    one_by_one : how many replies are drawn one at a time, where they depend on private choices; 0
        to draw many at once.
    tight : whether the declared epsilon should be within an attack's reach.
    noise : makes the noise of the conversation.
    """
    asked = _spoken_conversation(protocol, clients, noise)
    default = protocol.guarantee.adjacency or Adjacency.REPLACE
    targets, seen = [], set()
    for question in asked:
        cost = question.cost
        if question.name not in seen or cost != NOTHING:
            own = cost.adjacency or default
            single = one_by_one or ONE_BY_ONE.get(question.name, 0)
            targets.append(Target(question.name, (question,), cost, own, single, tight))
        seen.add(question.name)
    spending = tuple(
        one for one in asked if one.client == 0 and 0 < one.cost.epsilon < math.inf and _heard(one)
    )
    guarantee = protocol.guarantee
    if len(spending) > 1 and math.isfinite(guarantee.epsilon):
        targets.append(Target(WHOLE_RUN, spending, guarantee, default, one_by_one, tight))
    return targets


def audit_target(
    target: Target,
    noise: NoiseMaker = simulated,
    seed: int = 0,
    effort: Effort = FULL,
    error: float = 0.001,
    low_bits: bool = False,
) -> StepAudit:
    """Attack a target: bound its epsilon from below, with confidence ``1 - error``.

    The neighbour and the numbers that tell most are chosen by a pilot; the bound is from other
    draws. Nothing is attacked where the declared epsilon is infinite.

    Parameters
    ----------
    target : what is attacked.
    noise : makes the noise that the steps draw.
    seed : makes the attack repeatable.
    effort : how much may be drawn.
    error : the chance that the bound exceeds the true epsilon.
    low_bits : whether the low bits of floating-point numbers are looked at.
    """
    if math.isinf(target.declared.epsilon):
        return StepAudit(target.name, target.declared, target.adjacency, None)
    seeds = [int(one) for one in np.random.SeedSequence(seed).generate_state(4, np.uint64)]
    pilot, tries = target.draws(effort)

    def draw(own: Clients, place: int, times: int, kept: Any = slice(None)) -> Floats:
        return _draws(target, own, noise, seeds[place], times, low_bits, kept)

    ours = draw(target.clients, 0, pilot)
    piloted = [(other, draw(other, 1, pilot)) for other in target.others]
    other, theirs = max(piloted, key=lambda own: _difference(ours, own[1]))
    kept = _kept(target, other, ours, theirs, low_bits)
    drawn = draw(target.clients, 2, tries, kept), draw(other, 3, tries, kept)
    found = distinguish(*drawn, target.declared.delta, error)
    visible = _of_response(target.declared.epsilon, found.tries, error)
    return StepAudit(target.name, target.declared, target.adjacency, found, target.tight, visible)


def _of_response(epsilon: float, tries: int, error: float) -> float:
    """The bound that typical draws of randomised response at this epsilon give."""
    kept = round(tries * (1 - flip_probability(epsilon))) if epsilon > 0 else tries // 2
    return epsilon_bound(kept, tries - kept, tries, 0.0, error)


def _draws(
    target: Target,
    clients: Clients,
    noise: NoiseMaker,
    seed: int,
    tries: int,
    low_bits: bool,
    kept: Any,
) -> Floats:
    """Independent draws of what the attacker sees, shape (tries, D), of the columns kept."""
    if target.one_by_one:
        source = noise(seed, None)
        rows = [observe(target.questions, clients, source, low_bits)[:, kept] for _ in range(tries)]
        return np.concatenate(rows)
    size = max(CHUNK // max(target.width, 1), 1)
    sizes = [min(size, tries - start) for start in range(0, tries, size)]
    seeds = np.random.SeedSequence(seed).generate_state(len(sizes), np.uint64)
    return np.concatenate(
        [
            observe(target.questions, clients, noise(int(own), count), low_bits)[:, kept]
            for own, count in zip(seeds, sizes, strict=True)
        ]
    )


def _difference(ours: Floats, theirs: Floats) -> float:
    """How much two sets of draws differ, by their chi-squares beyond chance."""
    if ours.shape[-1] != theirs.shape[-1]:
        return math.inf
    found, freedom = chi_square(ours, theirs)
    return float(np.sum(np.maximum(found - freedom, 0)))


def _kept(
    target: Target, other: Clients, ours: Floats, theirs: Floats, low_bits: bool
) -> NDArray[np.int64]:
    """The numbers worth looking at: those that a record moves, without noise or visibly with it."""
    bare = [
        observe(target.questions, own, BareCoins(), low_bits).ravel()
        for own in (target.clients, other)
    ]
    kept = np.flatnonzero((bare[0] != bare[1]) | telling(ours, theirs))
    if kept.size:
        return kept
    return np.flatnonzero(np.ptp(np.vstack([ours, theirs]), axis=0) > 0)[:IDLE_COLUMNS]


def _spoken_conversation(
    protocol: Protocol, clients: Clients, noise: NoiseMaker
) -> Sequence[Question]:
    """A conversation in which somebody answers every ask."""
    for seed in range(COINS):
        asked = questions_of(protocol, clients, noise(seed, None))
        if all(map(_heard, asked)):
            break
    return asked


def _heard(question: Question) -> bool:
    speaking = question.ask.step.speaks(question.clients, question.ask)
    own = question.clients.client_of_record == question.client
    return bool((speaking & own).any()) or question.ask.view is not View.EACH
