"""Threat models that follow from a protocol, and figures that clients learn."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import tacit
from tacit import DPAUC, Clients, FedAUC, ScoreHistogram
from tacit.privacy.noise import NoiseSource
from tacit.protocol import ClientState, Conversation, Protocol, Query, Reply, declared, step
from tests.brier import Brier


def test_a_protocol_without_a_threat_model_gets_one_that_says_so() -> None:
    model = Brier.threats({"epsilon": 1.0})
    assert model.trust == declared.NONE_WRITTEN
    assert model.server == "The server sees of every client, its reply to `noisy_squares`."
    assert "epsilon 1 hides: the score and label of one record" in model.left_open


def test_settings_that_cannot_be_read_are_said_not_to_be() -> None:
    assert "cannot be read" in Brier.threats({"colour": "red"}).server


@pytest.mark.parametrize(
    ("protocol", "views"),
    [
        (DPAUC(1.0), [("noisy_histograms", "each")]),
        (ScoreHistogram("exact-sum", height=2), [("summed_trees", "sum")]),
        (
            FedAUC(1.0, trust="mpc"),
            [
                ("offer_sizes", "each"),
                ("rank_together", "joint"),
                ("noisy_hidden_rank_sums", "each"),
            ],
        ),
    ],
)
def test_views_are_read_from_the_conversation(
    protocol: Protocol, views: list[tuple[str, str]]
) -> None:
    assert list(declared.asked_views(protocol)) == views
    text = declared.derived_model(type(protocol), protocol.settings)
    assert all(f"`{step}`" in text.server for step, _ in views)
    assert ("only the sum" in text.server) == ("sum" in dict(views).values())


@step()
def show_scores(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    raise ValueError(f"a thousand records are needed, got {clients.records}")


@dataclass(frozen=True)
class Choosy(Brier):
    steps = (show_scores,)

    def conversation(self, clients: int) -> Conversation:
        yield Query(show_scores, self)
        raise AssertionError("the step answers")


def test_a_step_that_refuses_the_dry_run_is_not_said_to_show_nothing() -> None:
    with pytest.raises(ValueError, match="a thousand records are needed"):
        declared.derived_model(Choosy, {"epsilon": 1.0})
    assert next(declared.asked_views(Choosy(1.0))) == ("show_scores", "each")


def test_a_figure_is_taken_once() -> None:
    state = ClientState()
    assert declared.revealed_to(state) is None
    state.keep(declared.REVEALED, declared.Revealed(0.75, 0.01))
    assert declared.revealed_to(state) == declared.Revealed(0.75, 0.01)
    assert declared.revealed_to(state) is None


def test_the_result_is_the_protocols() -> None:
    result = declared.result_of_client(tacit.EncryptedAUC(), declared.Revealed(0.75, 0.01))
    assert result.value == 0.75


def test_a_protocol_that_declares_none_is_named() -> None:
    with pytest.raises(TypeError, match="fedauc must override revealed_result"):
        declared.result_of_client(tacit.FedAUC(epsilon=1.0), declared.Revealed(0.75, 0.01))
