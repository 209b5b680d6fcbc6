"""A figure that clients learn has a result only where the protocol declares it."""

import pytest

import tacit
from tacit.protocol.conversation import ClientState
from tacit.protocol.declared import REVEALED, Revealed, result_of_client, revealed_to


def test_a_figure_is_taken_once() -> None:
    state = ClientState()
    assert revealed_to(state) is None
    state.keep(REVEALED, Revealed(0.75, 0.01))
    assert revealed_to(state) == Revealed(0.75, 0.01)
    assert revealed_to(state) is None


def test_the_result_is_the_protocols() -> None:
    result = result_of_client(tacit.EncryptedAUC(), Revealed(0.75, 0.01))
    assert result.value == 0.75


def test_a_protocol_that_declares_none_is_named() -> None:
    with pytest.raises(TypeError, match="fedauc must be a RevealsFigure"):
        result_of_client(tacit.FedAUC(epsilon=1.0), Revealed(0.75, 0.01))
