"""Laws that every registered protocol obeys, in each configuration that it declares."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tacit import Clients, DataError, evaluate
from tacit.protocol import Adjacency, Cost, NoNoise, Protocol
from tacit.protocol.registry import protocol_kinds
from tacit.testing.checks import conversation_of, losses, one_client
from tacit.testing.laws import laws_for
from tacit.testing.recording import Recorder, loss_between, neighbours

KINDS = list(protocol_kinds().values())

PROTOCOLS: dict[str, Protocol] = {
    name: protocol for kind in KINDS for name, protocol in kind.law_cases().items()
}


def conversation_of_case(protocol: Protocol) -> tuple[object, ...]:
    """What decides which messages are sent, to whom, and which costs are counted."""
    chosen = (protocol.settings.get(name) for name in ("trust", "allocation"))
    cost = protocol.guarantee
    return type(protocol), *chosen, protocol.steps, cost.adjacency, cost.delta > 0


CONVERSATIONS: list[str] = list(
    {conversation_of_case(each): name for name, each in reversed(PROTOCOLS.items())}.values()
)
"""The first case of those that send the same messages and count the same costs."""


def messages_of_case(name: str) -> tuple[object, ...]:
    """What decides which messages a protocol sends: its steps, and whether replies are summed."""
    protocol = PROTOCOLS[name]
    return type(protocol), protocol.steps, "sum" in str(protocol.settings.get("trust"))


ONE_OF_EACH: list[str] = list({messages_of_case(name): name for name in CONVERSATIONS}.values())
"""A case for each kind of messages, whatever they cost."""

globals().update(laws_for(*KINDS))


def test_the_privacy_law_has_power() -> None:
    """Noise 30 % too small for what is declared is caught, as is a value without noise."""
    clients = one_client(0)
    queries = list(conversation_of(clients, PROTOCOLS["fedauc-adaptive"], NoNoise()))
    query = queries[-1][0]
    cost = Cost(query.protocol.epsilon / 1.3, adjacency=Adjacency.LABEL)
    found = losses(clients, neighbours(clients, Adjacency.LABEL), query, cost)
    assert max(loss.delta(cost.epsilon) for loss in found) == 1.0
    quiet = Recorder()
    other = {"positives": np.array([9]), "residuals": np.array([0])}
    with pytest.raises(AssertionError, match="without noise"):
        loss_between(queries[-1][1], other, quiet)


LABELS = np.arange(60) % 2
TINY = {
    "five": Clients.from_arrays([0.1, 0.4, 0.35, 0.8, 0.9], [0, 0, 1, 1, 1]),
    "five clients": Clients.from_arrays([0.1, 0.4, 0.35, 0.8, 0.9], [0, 0, 1, 1, 1], range(5)),
    "two": Clients.from_arrays([0.2, 0.7], [0, 1], [0, 1]),
    "positives": Clients.from_arrays(np.linspace(0, 1, 60), LABELS * 0 + 1),
    "negatives": Clients.from_arrays(np.linspace(0, 1, 60), LABELS * 0, range(60)),
    "equal": Clients.from_arrays(np.full(60, 0.5), LABELS, np.arange(60) % 7),
    "zeros": Clients.from_arrays(np.zeros(60), LABELS),
}
"""Few records, one class alone, and one score."""


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_tiny_data_never_give_confident_nonsense(name: str) -> None:
    """No figure, a warning about the classes, a wide error, or a value near the exact one."""
    case = PROTOCOLS[name]
    for data, tiny in TINY.items():
        if tiny.count < case.law_traits.min_clients:
            continue
        clients = case.trial_records(tiny)
        protocol = case.sized_for(clients)
        for seed in range(2):
            try:
                result = evaluate(clients, protocol, seed=seed)
            except DataError as refusal:
                assert "undefined without both classes" in str(refusal), data
                continue
            json.dumps(result.to_dict(), allow_nan=False)
            rows, said = result.to_rows(), " ".join(result.warnings)
            value, error = result.estimate.value, result.estimate.standard_error
            if not result.has_signal:
                assert "not enough signal" in said or "no figure" in said, data
                assert (result.figure, "not enough signal") in rows, data
            elif "smaller class" not in said and "came out as" not in said and error < 0.1:
                assert data not in ("positives", "negatives") or "auc" not in result.to_dict()
                assert abs(value - protocol.exact(clients)) < 5 * error + 1e-6, data
