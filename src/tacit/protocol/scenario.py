"""The situation of a plan: how many records, how scores may be distributed, how much traffic.

A ``Scenario`` is what is known before an evaluation. Dry runs on records drawn from it measure
bytes and rounds, and the stated error of a run without noise. Others say what one conversation
asks, what answers, and from what the answers draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

from tacit.arrays import Floats
from tacit.data.categories import MAX_CATEGORIES
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY, REAL, named_scale
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.cost import Cost, check_budget
from tacit.privacy.mechanisms import interface
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise
from tacit.protocol.conversation import ONE_REPLICATE, Conversation, Protocol
from tacit.protocol.fields import bytes_sent
from tacit.protocol.forecast import Forecast
from tacit.protocol.steps import ClientState, Query, Reply
from tacit.protocol.values import encode_query

Form = Literal["even", "calibrated"]

GUESSES = (0.65, 0.775, 0.9)
"""The AUCs that are taken to be plausible where none is guessed; the middle one is central."""

MAX_RECORDS = 2**40
"""Beyond this, counts times ranks leave the 64-bit integers of the protocols."""


def planned_scale(name: str) -> str:
    """The scale of probabilities on which a protocol's scores are planned, by its scale's name.

    Shapes are those of probabilities. Cells of log-odds are the same cells; real numbers are taken
    to be spread alike.
    """
    return EVEN if name == EVEN else PROBABILITY


@dataclass(frozen=True)
class Shape:
    """How both classes' scores are distributed over [0, 1]: a binormal model.

    Latent values are normal with unit variance in both classes. ``"even"`` maps them by the normal
    distribution function, as ``binormal_scores`` does, so that scores fill [0, 1]; ``"calibrated"``
    maps them to the probability of being positive, so that scores of a rare class concentrate near
    0.

    Parameters
    ----------
    auc : the population's AUC, above 0.5 and below 1.
    form : how latent values become scores.

    Examples
    --------
    >>> positives, negatives = Shape(0.8).cell_fractions(2, 0.1)
    >>> round(float(positives[1]), 4), round(float(negatives[1]), 4)
    (0.7241, 0.2759)
    """

    auc: float
    form: Form = "even"

    @property
    def separation(self) -> float:
        """How far apart the classes' latent means are."""
        return math.sqrt(2.0) * float(ndtri(self.auc))

    def cell_fractions(
        self, cells: int, positive_fraction: float, scale: str = EVEN
    ) -> tuple[Floats, Floats]:
        """Both classes' fractions of equal cells of a scale, positives first, shapes (cells,).

        Scores are probabilities, or their log-odds; as numbers of any kind, even scores are latent
        values and calibrated ones log-odds.
        """
        edges = named_scale(scale).scores(np.linspace(0.0, 1.0, cells + 1))
        latent = self._latent(edges, scale, positive_fraction)
        half = self.separation / 2
        return np.diff(ndtr(latent - half)), np.diff(ndtr(latent + half))

    def reaching(self, threshold: float, positive_fraction: float) -> tuple[float, float]:
        """The fractions of positives and negatives whose scores reach a threshold."""
        edge = np.array([threshold])
        latent = ndtri(edge) if self.form == "even" else self._odds(edge, positive_fraction)
        half = self.separation / 2
        return float(ndtr(half - latent[0])), float(ndtr(-half - latent[0]))

    def scores(self, latent: Floats, positive_fraction: float) -> Floats:
        """The scores of latent values."""
        if self.form == "even":
            return np.asarray(ndtr(latent))
        return np.asarray(expit(logit(positive_fraction) + self.separation * latent))

    def _latent(self, edges: Floats, scale: str, positive_fraction: float) -> Floats:
        """The latent values of a scale's scores."""
        if scale in (PROBABILITY, EVEN):
            return ndtri(edges) if self.form == "even" else self._odds(edges, positive_fraction)
        if self.form == "calibrated":
            return np.asarray((edges - logit(positive_fraction)) / self.separation)
        if scale == REAL:
            return edges
        # of the lower tail, which a double tells apart from 0
        lower: Floats = ndtri(expit(-np.abs(edges)))
        return np.where(edges > 0, -lower, lower)

    def _odds(self, edges: Floats, positive_fraction: float) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray((logit(edges) - logit(positive_fraction)) / self.separation)


@dataclass(frozen=True)
class Scenario:
    """How many records there are, who holds them, and the privacy budget.

    Parameters
    ----------
    records, positives : M and P, of all clients together.
    clients : K; records are taken to be dealt out at random, equally many each.
    epsilon : the privacy budget of one evaluation.
    classes : C; of more than two, ``positives`` are the records of one class, and all others the
        negatives, with the shape's AUC for every class.

    Raises
    ------
    ValueError : for a plan that no data could follow; the message names bound and value.

    Examples
    --------
    >>> Scenario(40_000, 4_000, 10, 1.0).positive_fraction
    0.1
    """

    records: int
    positives: int
    clients: int
    epsilon: float
    classes: int = 2

    def __post_init__(self) -> None:
        for name, least, most, why in (
            ("records", 2, MAX_RECORDS, ""),
            ("positives", 1, self.records - 1, ", fewer than the records"),
            ("clients", 1, self.records, ", as each holds a record"),
            ("classes", 2, MAX_CATEGORIES, ""),
        ):
            if not least <= getattr(self, name) <= most:
                got = getattr(self, name)
                raise ValueError(f"{name} must be from {least} to {most}{why}, got {got}")
        check_budget(self.epsilon)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes while they have none: their numbers."""
        return tuple(map(str, range(self.classes)))

    @property
    def negatives(self) -> int:
        """N, the number of records that are not positive."""
        return self.records - self.positives

    @property
    def positive_fraction(self) -> float:
        """The fraction of the positives."""
        return self.positives / self.records

    @property
    def records_per_client(self) -> float:
        """The mean number of records of a client."""
        return self.records / self.clients

    def counts(self, shape: Shape, cells: int, scale: str = EVEN) -> tuple[Floats, Floats]:
        """The expected positives and negatives in equal cells of a scale, shapes (cells,)."""
        positive_fractions, negative_fractions = shape.cell_fractions(
            cells, self.positive_fraction, scale
        )
        return self.positives * positive_fractions, self.negatives * negative_fractions

    def sampling_error(self, shape: Shape) -> float:
        """The standard error of an exact AUC of these records about the population's."""
        return math.sqrt(plug_in_variance(shape.auc, self.positives, self.negatives))

    def scaled(self, factor: float) -> Scenario:
        """The scenario with this many times the records, in the same proportions.

        Clients of one record keep one record, and their number grows. The number of other clients
        stays, and each has more records.
        """
        records = max(2, round(self.records * factor))
        positives = min(max(1, round(records * self.positive_fraction)), records - 1)
        lone = self.clients == self.records
        clients = records if lone else min(self.clients, records)
        return Scenario(records, positives, clients, self.epsilon, self.classes)

    def drawn(self, shape: Shape, seed: int | None = None) -> Clients:
        """Records drawn from the shape, dealt out to simulated clients.

        Examples
        --------
        >>> clients = Scenario(100, 20, 5, 1.0).drawn(Shape(0.8), seed=0)
        >>> clients.count, clients.records
        (5, 100)
        """
        rng = np.random.default_rng(seed)
        if self.classes > 2:
            return self._drawn_by_class(shape, rng)
        sizes = [self.positives, self.negatives]
        labels = np.repeat(np.array([1, 0], dtype=np.int8), sizes)
        latent = rng.standard_normal(self.records) + shape.separation * (labels - 0.5)
        dealt = int(rng.integers(2**62))
        return Clients.split(
            shape.scores(latent, self.positive_fraction), labels, self.clients, seed=dealt
        )

    def _drawn_by_class(self, shape: Shape, rng: np.random.Generator) -> Clients:
        """Classes of equal size, whose scores are independent of each other."""
        of_record = rng.permutation(self.records) % self.classes
        own = of_record[:, np.newaxis] == np.arange(self.classes)
        latent = rng.standard_normal(own.shape) + shape.separation * (own - 0.5)
        scores = shape.scores(latent, 1 / self.classes)
        dealt = np.arange(self.records) % self.clients
        return Clients.from_classes(scores, of_record, self.class_names, dealt)


def plausible_shapes(guess: float | None) -> tuple[Shape, ...]:
    """The shapes that a plan considers, the central one first.

    Both forms of the central AUC; without a guess the even form of the others too.

    Raises
    ------
    ValueError : for a guess that is not above 0.5 and below 1.
    """
    if guess is not None and not 0.5 < guess < 1:
        raise ValueError(f"the guessed AUC must be above 0.5 and below 1, got {guess}")
    central = GUESSES[1] if guess is None else guess
    others = (Shape(GUESSES[0]), Shape(GUESSES[-1])) if guess is None else ()
    return (Shape(central), Shape(central, "calibrated"), *others)


ROUND_SECONDS = 2.0
"""The assumed time of a round: clients of a deployment ask for work every second or so."""

RECORD_SECONDS = 1e-6
"""Sorting, counting and drawing noise, for each record of a client and on the server."""

DRY_CLIENTS = 8
"""The number of clients of a dry run; a plan's clients are all alike."""

DRY_RECORDS = 32
"""Records of a client in the smaller of two dry runs, from which larger clients follow."""


@dataclass(frozen=True)
class Traffic:
    """What an evaluation costs in messages.

    Parameters
    ----------
    bytes_per_client : what a client of the usual size sends in protocol messages.
    rounds : how often the server asks.
    seconds : a rough estimate: ``ROUND_SECONDS`` a round, and computing.
    beyond : bytes a client besides, for the cryptography between clients.
    bytes_to_client : what a client receives in queries; None where it is not known.
    """

    bytes_per_client: int
    rounds: int
    seconds: float
    beyond: int = 0
    bytes_to_client: int | None = None


@dataclass(frozen=True)
class Round:
    """The mean bytes of a client in one round.

    Parameters
    ----------
    sent : the client's reply.
    received : the server's query.
    """

    sent: float
    received: float


def measured_traffic(protocol: Protocol, scenario: Scenario) -> Traffic:
    """The traffic of a protocol's rounds, as a dry run measures them.

    Sums count as one message of each client, without the masks and keys of secure aggregation.

    Examples
    --------
    >>> from tacit import DPAUC
    >>> scenario, protocol = Scenario(40_000, 4_000, 10, 1.0), DPAUC(1.0, 20)
    >>> measured_traffic(protocol, scenario).bytes_per_client
    455
    """
    return traffic_of_rounds(measured_rounds(protocol, scenario), scenario)


def measured_forecast(protocol: Protocol, scenario: Scenario, shape: Shape) -> Forecast:
    """The error that a protocol's server states of records drawn from a shape, without noise.

    It is a prediction where errors follow from what the steps declare, not from the noise that was
    drawn. Settings that are refused in a run predict nothing.

    Raises
    ------
    ValueError : for settings that a run refuses.
    """
    clients, state = protocol.trial_records(_drawn(scenario, shape)), ClientState()
    conversation = protocol.conversation(scenario.clients)
    query = next(conversation)
    while True:
        reply = query.step.answer(clients, query, NoNoise(), state)
        try:
            query = conversation.send(reply)
        except StopIteration as ended:
            return Forecast(float(ended.value.standard_error))


@lru_cache(maxsize=4)
def _drawn(scenario: Scenario, shape: Shape) -> Clients:
    return scenario.drawn(shape, seed=0)


def traffic_of_rounds(rounds: Sequence[Round], scenario: Scenario) -> Traffic:
    """The traffic of rounds of known sizes."""
    return Traffic(
        round(sum(each.sent for each in rounds)),
        len(rounds),
        round_seconds(len(rounds), scenario),
        bytes_to_client=round(sum(each.received for each in rounds)),
    )


def round_seconds(rounds: int, scenario: Scenario) -> float:
    """About how long so many rounds take, computing included."""
    return rounds * ROUND_SECONDS + RECORD_SECONDS * (
        scenario.records + scenario.records_per_client
    )


def measured_rounds(protocol: Protocol, scenario: Scenario) -> list[Round]:
    """The rounds of a conversation that asks all clients, of which a few simulated ones answer.

    Clients of more than ``2 DRY_RECORDS`` records follow from two smaller sizes, as a linear
    function: a message has a fixed part, and so many bytes a record. A protocol whose messages grow
    otherwise, or whose rounds depend on the number of records, overrides ``Protocol.traffic``:
    where two dry runs differ in their rounds, the larger one is all that is known.
    """
    records = scenario.records_per_client
    if records <= 2 * DRY_RECORDS:
        return dry_run(protocol, scenario, records)
    small, large = (dry_run(protocol, scenario, size) for size in (DRY_RECORDS, 2 * DRY_RECORDS))
    if len(small) != len(large):
        return large
    beyond = records / DRY_RECORDS - 2
    return [
        Round(
            more.sent + beyond * (more.sent - less.sent),
            more.received + beyond * (more.received - less.received),
        )
        for less, more in zip(small, large, strict=True)
    ]


def dry_run(
    protocol: Protocol, scenario: Scenario, records: float, few: int = DRY_CLIENTS
) -> list[Round]:
    """The rounds that a few simulated clients with so many records each take part in."""
    count = min(scenario.clients, few)
    total = max(2, round(count * records))
    positives = min(max(1, round(total * scenario.positive_fraction)), total - 1)
    sample = replace(scenario, records=total, positives=positives, clients=count)
    clients = protocol.trial_records(sample.drawn(Shape(GUESSES[1]), seed=0))
    noise, state = SimulatedNoise(0), ClientState()
    return answered_rounds(
        protocol.conversation(scenario.clients),
        lambda query: query.step.answer(clients, query, noise, state),
        clients.count,
    )


def answered_rounds(
    conversation: Conversation, answer: Callable[[Query], Reply], clients: int
) -> list[Round]:
    """The rounds of a conversation in which a function answers for this many clients."""
    rounds = []
    query = next(conversation)
    while True:
        reply = answer(query)
        queries = [len(encode_query(query.part(k, k + 1))) for k in range(clients)]
        sent = bytes_sent(reply, query, clients)
        rounds.append(Round(float(sent.mean()), float(np.mean(queries))))
        try:
            query = conversation.send(reply)
        except StopIteration:
            return rounds


DRAWN_CLIENTS, MOST_RECORDS, LONE_RECORDS = 10, 2**16, 64
"""The most clients and records of a run that is drawn, and the records where each is a client."""

MOST_NUMBERS = 2**24
"""Numbers in memory above which nothing is run to be drawn."""


@dataclass(frozen=True)
class Exchange:
    """A query of a dry run with its reply.

    Parameters
    ----------
    query : of the server.
    reply : of a batch of all clients.
    cost : the largest cost of a record, before the step ran.
    drawn : every distribution from which the step drew.
    """

    query: Query
    reply: Reply
    cost: Cost
    drawn: tuple[interface.Distribution, ...]


class _NotingNoise(NoiseSource):
    """Another source, whose draws are noted."""

    def __init__(self, source: NoiseSource) -> None:
        self.drawn: list[interface.Distribution] = []
        self._source = source

    def draw(self, distribution: interface.Distribution, shape: interface.Shape) -> NDArray[Any]:
        """Draws from the other source."""
        self.drawn.append(distribution)
        return self._source.draw(distribution, shape)


def exchanges(protocol: Any, clients: Clients, noise: NoiseSource) -> Iterator[Exchange]:
    """The exchanges of one conversation, which these clients answer.

    Raises
    ------
    ValueError : where a step or the server refuses these records.
    """
    clients, state = protocol.trial_records(clients), ClientState()
    conversation = protocol.conversation(clients.count)
    reply = None
    while True:
        try:
            query = next(conversation) if reply is None else conversation.send(reply)
        except StopIteration:
            return
        noting = _NotingNoise(noise)
        cost = query.step.cost(clients, query, state)
        with np.errstate(all="ignore"):
            reply = query.step.answer(clients, query, noting, state)
        yield Exchange(query, reply, cost, tuple(noting.drawn))


def small_run(protocol: Any, clients: int, records: float) -> Iterator[Exchange]:
    """The exchanges of a run with simulated noise over synthetic records, to be drawn.

    Parameters
    ----------
    protocol : the protocol.
    clients, records : how many there are, on which rounds may depend; NaN for an unknown number.
        At most ``DRAWN_CLIENTS`` and ``MOST_RECORDS`` are made; a protocol's own bound of records,
        which must be near their number, is then ``MOST_RECORDS`` too.

    Raises
    ------
    ValueError : for settings that would need much memory, or refuse these records.
    """
    few, most = max(1, min(clients, DRAWN_CLIENTS)), MOST_RECORDS
    bound = getattr(protocol, "most_records", most)
    if bound > most:
        protocol = replace(protocol, most_records=most)
    most = min(most, bound)
    count = max(2 * few, min(round(records), most) if math.isfinite(records) else most)
    batch = protocol.audit_federation(LONE_RECORDS if protocol.lone_records else count, apart=True)
    if not protocol.lone_records:
        batch = batch.taken(slice(None), np.linspace(0, count, few + 1).astype(np.int64))
    if MOST_NUMBERS < protocol.replicate_size(batch) != ONE_REPLICATE:
        raise ValueError(f"a run of {protocol.title} is too large to be drawn")
    yield from exchanges(protocol, batch, SimulatedNoise(0))
