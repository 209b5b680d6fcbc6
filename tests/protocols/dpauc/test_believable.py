"""A client whose numbers no records and noise can give is named, and there is no figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit import DPAUC, Clients, DataError, Protocol, ScoreHistogram, evaluate
from tacit.privacy.noise import NoNoise
from tacit.protocol.conversation import ClientState
from tests.federations import binormal_clients

CLIENTS = binormal_clients(4000, 4000, 4)


def converse(
    protocol: Protocol, field: str, lie: int, client: int = 2, clients: Clients = CLIENTS
) -> Any:
    """The result where one client puts a number in place of its first one in a field."""
    conversation = protocol.conversation(clients.count)
    query = next(conversation)
    while True:
        query.step.cost(clients, query, ClientState())
        reply = dict(query.step.answer(clients, query, NoNoise(), ClientState()))
        if field in reply:
            changed = np.array(reply[field])
            changed.reshape(-1, clients.count)[0, client] = lie
            reply[field] = changed
        try:
            query = conversation.send(reply)
        except StopIteration as end:
            return end.value


FAR_OFF = [2**34, -(2**34), 2**62, np.iinfo(np.int64).max, np.iinfo(np.int64).min]


@pytest.mark.parametrize("lie", FAR_OFF)
@pytest.mark.parametrize("field", ["cells", "groups"])
def test_counts_beyond_all_records_are_refused(lie: int, field: str) -> None:
    with pytest.raises(DataError, match=f"{field} of client 2 must be from .* got"):
        converse(DPAUC(1.0), field, lie)


@pytest.mark.parametrize("lie", [2**50, -(2**50), 2**62, np.iinfo(np.int64).min])
@pytest.mark.parametrize("adjacency", ["record", "replace"])
def test_sums_beyond_all_records_are_refused(lie: int, adjacency: Any) -> None:
    protocol = ScoreHistogram("each", 1.0, adjacency=adjacency, aim="auc")
    with pytest.raises(DataError, match=r"sum of client 2 must be from .* got"):
        converse(protocol, "sum", lie)


@pytest.mark.parametrize("epsilon", [0.001, 1.0, 50.0])
def test_whatever_records_give_is_believed(epsilon: float) -> None:
    """All records of one client have the largest influence that there is."""
    scores = np.where(np.arange(8000) < 2000, 1.0, CLIENTS.scores)
    clients = Clients(scores, (np.arange(8000) < 2000).astype(np.int8), CLIENTS.offsets)
    for protocol in (DPAUC(epsilon), ScoreHistogram("each", epsilon, adjacency="replace")):
        converse(protocol, "no field", 0, clients=clients)
        evaluate(clients, protocol, seed=3)
