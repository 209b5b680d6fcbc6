"""The number of clients in a sum is not what a party says it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit import ScoreHistogram
from tacit.data.errors import DataError
from tacit.privacy.noise import NoNoise
from tacit.protocol.conversation import ClientState
from tacit.protocol.releases import answered_clients
from tacit.running.session import sums
from tacit.running.session.party import client_together
from tacit.testing.rehearsal import rehearse
from tests.federations import binormal_clients

PROTOCOLS = {
    "one round": ScoreHistogram("secure-sum", 2.0, 4),
    "two rounds": ScoreHistogram("secure-sum", 4.0, 4, aim="auc"),
    "looks": ScoreHistogram("secure-sum", 4.0),
}


def stated(protocol: ScoreHistogram) -> tuple[float, ...]:
    clients = binormal_clients(1500, 1500, 3)
    result = rehearse(clients, protocol, noise=lambda _: NoNoise()).server_result
    fields = result.value, result.privacy_error, result.approximation_error, result.positives_error
    return tuple(float(np.asarray(field)) for field in fields)


@pytest.mark.parametrize(
    ("name", "added"),
    [("one round", -2), ("one round", 5), ("two rounds", -7), ("looks", -2), ("looks", 5)],
)
def test_a_party_that_counts_itself_otherwise_changes_nothing(
    name: str, added: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, answers = stated(PROTOCOLS[name]), []
    flattened = sums.flattened

    def lying(reply: Any, layout: Any) -> Any:
        answers.append(reply)
        claimed = reply["clients"] + added * (len(answers) % 3 == 1)
        return flattened({**reply, "clients": claimed}, layout)

    monkeypatch.setattr(client_together, "flattened", lying)
    assert stated(PROTOCOLS[name]) == honest
    assert answers


@pytest.mark.parametrize("claimed", [-3, 0, 4, 2**40])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_sum_over_no_possible_number_of_clients_is_refused(name: str, claimed: int) -> None:
    """Where nobody counts the clients but they themselves."""
    clients, conversation = binormal_clients(150, 150, 3), PROTOCOLS[name].conversation(3)
    query = next(conversation)
    reply = query.step.answer(clients, query, NoNoise(), ClientState())
    with pytest.raises(DataError, match=f"a sum must be over 1 to 3 clients, got {claimed}"):
        conversation.send({**reply, "clients": np.asarray(claimed)})


def test_any_possible_number_is_taken() -> None:
    assert [answered_clients({"clients": np.asarray(each)}, 3) for each in (1, 2, 3)] == [1, 2, 3]
