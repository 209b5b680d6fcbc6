"""What dry runs measure: bytes and rounds of a small one, the stated error of one without noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.data.clients import Clients
from tacit.privacy.sampling.noise import NoNoise, SimulatedNoise
from tacit.protocol.conversation import ClientState, Conversation, Protocol, Query, Reply
from tacit.protocol.declarations.forecast import Forecast
from tacit.protocol.declarations.scenario import GUESSES, Scenario, Shape
from tacit.protocol.fields import bytes_sent
from tacit.protocol.values import encode_query

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
    clients, state = _drawn(scenario, shape), ClientState()
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

    Clients of more than ``2 DRY_RECORDS`` records follow from two smaller sizes, along a straight
    line: a message has a fixed part, and so many bytes a record. A protocol whose messages grow
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
    clients, noise, state = _few_clients(scenario, records, few), SimulatedNoise(0), ClientState()
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


def _few_clients(scenario: Scenario, records: float, few: int) -> Clients:
    """Simulated clients with so many records each, and records of both classes."""
    count = min(scenario.clients, few)
    total = max(2, round(count * records))
    positives = min(max(1, round(total * scenario.positive_fraction)), total - 1)
    sample = Scenario(total, positives, count, scenario.epsilon, scenario.classes)
    return sample.drawn(Shape(GUESSES[1]), seed=0)
