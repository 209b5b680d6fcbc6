"""How many bytes a client sends, in how many rounds, and about how long that takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.planning.ranked_scores import opening_share
from tacit.planning.scenario import Scenario
from tacit.protocols.conversation import Protocol
from tacit.protocols.division import CHOICE_UNITS
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.encrypted_auc import EncryptedAUC
from tacit.protocols.encrypted_packing import Scale
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.hierarchical_auc import HierarchicalAUC
from tacit.protocols.messages import encode, sum_size
from tacit.protocols.paired_noise import RESPONSE as FLIPPED
from tacit.protocols.paired_ustatistic import PairedUStatistic
from tacit.protocols.rank_noise import RESPONSE
from tacit.protocols.score_histogram import ScoreHistogram
from tacit.protocols.tree_steps import FIRST_CELLS, level_name, report_bytes
from tacit.protocols.two_round_auc import TwoRoundAUC
from tacit.protocols.ustatistic import BYTE, UStatistic

ROUND_SECONDS = 2.0
"""What a round is taken to cost: clients of a deployment ask for work every second or so."""

RECORD_SECONDS = 1e-6
"""Sorting, counting and drawing noise, for each record of a client and on the server."""

PAIR_SECONDS, PAIR_BYTES = 3.3e-5, 340
"""A pair between two clients under cryptography, in a session that is open; measured."""

CIPHERTEXT_BYTES = 197_000
"""What a client sends of one encrypted polynomial with keys and introductions; measured."""

CIPHERTEXT_SECONDS, KEY_SECONDS = 0.001, 0.6
"""The aggregator's time for a client's ciphertext, and making keys once; measured."""


@dataclass(frozen=True)
class Traffic:
    """What an evaluation costs in messages.

    Parameters
    ----------
    bytes_per_client : what a client of the usual size sends in protocol messages.
    rounds : how often the server asks.
    seconds : a rough estimate: ``ROUND_SECONDS`` a round, and computing.
    beyond : bytes a client besides, for the cryptography between clients.
    """

    bytes_per_client: int
    rounds: int
    seconds: float
    beyond: int = 0


def traffic_of(protocol: Protocol, scenario: Scenario) -> Traffic:
    """The expected traffic of a protocol, from the form of its messages.

    Sums count as one message of each client, without the masks and keys of secure aggregation.

    Raises
    ------
    TypeError : for a protocol that is not planned.

    Examples
    --------
    >>> traffic_of(FedAUC(1.0, "randomised-response"), Scenario(1000, 300, 10, 1.0)).rounds
    2
    """
    own = scenario.own_records
    if isinstance(protocol, FedAUC):
        found = _fedauc(protocol, scenario)
    elif isinstance(protocol, DPAUC):
        found = _dpauc(protocol), 1
    elif isinstance(protocol, ScoreHistogram):
        found = _tree(protocol, scenario)
    elif isinstance(protocol, HierarchicalAUC):
        height = protocol.height_for(scenario.clients)
        found = _message(reports=own * protocol.answers(height) * 4), 1
    elif isinstance(protocol, UStatistic):
        symbols = protocol.space(protocol.bins_for(scenario.clients)).symbols
        found = _message(symbols=own * (1 if symbols <= BYTE else 4)), 1
    elif isinstance(protocol, TwoRoundAUC):
        labels = {"labels": own} if protocol.labels == "public" else {}
        opening = _message(turns=own, **labels)
        found = opening + _message(reports=own) + _message(reports=0.0), 3
    elif isinstance(protocol, PairedUStatistic):
        return _paired(protocol, scenario)
    elif isinstance(protocol, EncryptedAUC):
        return _encrypted(protocol, scenario)
    else:
        raise TypeError(f"there is no plan for {type(protocol).__name__}")
    size, rounds = found
    return Traffic(round(size), rounds, _seconds(rounds, scenario))


def _seconds(rounds: int, scenario: Scenario) -> float:
    return rounds * ROUND_SECONDS + RECORD_SECONDS * (scenario.records + scenario.own_records)


def _message(**ragged: float) -> float:
    """The bytes of a message of ragged fields with so many bytes of content each."""
    empty = len(encode({}))
    return empty + sum(3 + len(name) + 8 + content for name, content in ragged.items())


def _of_arrays(**arrays: NDArray[np.int64]) -> int:
    """The bytes of a message of arrays of one client."""
    return len(encode(arrays))


def _fedauc(protocol: FedAUC, scenario: Scenario) -> tuple[float, int]:
    scores = _message(scores=8 * scenario.own_records)
    one = np.zeros((), dtype=np.int64)
    pair = _of_arrays(positives=one, residuals=one)
    twice = protocol.mechanism != RESPONSE and opening_share(protocol, scenario) > 0
    rounds = 2 if twice else 1
    return scores + rounds * pair, 1 + rounds


def _dpauc(protocol: DPAUC) -> float:
    cells = protocol.edges.size
    one_class = np.zeros(cells, dtype=np.int64)
    if protocol.mechanism == RESPONSE:
        return _of_arrays(positives=one_class, records=one_class)
    labelled = protocol.adjacency == "label"
    shape = (lambda size: (size,)) if labelled else (lambda size: (2, size))
    fields = {"cells": np.zeros(shape(cells), dtype=np.int64)}
    if protocol.levels.groups:
        fields["groups"] = np.zeros(shape(protocol.levels.groups), dtype=np.int64)
    if labelled:
        fields["records"] = one_class
    return _of_arrays(**fields)


def _tree(protocol: ScoreHistogram, scenario: Scenario) -> tuple[float, int]:
    height = protocol.tree_height(scenario.clients)
    own = scenario.own_records
    if protocol.trust == "local-dp":
        levels = np.arange(FIRST_CELLS, height + FIRST_CELLS)
        shares = np.array(protocol.shares(height), dtype=np.float64) / CHOICE_UNITS
        return _message(levels=own, bits=own * float(shares @ report_bytes(levels))), 1
    one = np.zeros((), dtype=np.int64)
    sums = {
        level_name(level): np.zeros(1 << level, dtype=np.int64)
        for level in protocol.level_scales(height)
    }
    first = sum_size(sums | {"clients": one})
    if not protocol.second_round:
        return first, 1
    return first + sum_size({"sums": np.zeros(2, dtype=np.int64), "clients": one}), 2


def _paired(protocol: PairedUStatistic, scenario: Scenario) -> Traffic:
    """Numbers, class sizes and values up; the values are the clients' in equal parts."""
    one = np.zeros((), dtype=np.int64)
    size = _of_arrays(records=one, numbers=one) + _of_arrays(positives=one)
    matchings, half = protocol.pairs_a_record, scenario.records // 2
    kind = np.uint8 if protocol.kind == FLIPPED else np.int64
    values = len(encode({"values": np.zeros((matchings, 0), dtype=kind)}))
    values += matchings * half * np.dtype(kind).itemsize
    pairs = matchings * scenario.own_records * (1 - 1 / scenario.clients)
    return Traffic(
        size + -(-values // scenario.clients),
        3,
        _seconds(3, scenario) + PAIR_SECONDS * pairs,
        round(PAIR_BYTES * pairs),
    )


def _encrypted(protocol: EncryptedAUC, scenario: Scenario) -> Traffic:
    single = (
        Scale.fitting(protocol.most_records).moduli == 1 and protocol.adversary == "semi-honest"
    )
    runs = 1 if single else 2
    computing = KEY_SECONDS + runs * CIPHERTEXT_SECONDS * scenario.clients
    return Traffic(runs * CIPHERTEXT_BYTES, 4, _seconds(4, scenario) + computing)
