from __future__ import annotations

import pytest

from tacit import DPAUC, FedAUC, ScoreHistogram
from tacit.protocol.conversation import Protocol
from tacit.protocol.declared import NONE_WRITTEN, asked_views, derived_model
from tests.brier import Brier


def test_a_protocol_without_a_threat_model_gets_one_that_says_so() -> None:
    model = Brier.threats({"epsilon": 1.0})
    assert model.trust == NONE_WRITTEN
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
    assert list(asked_views(protocol)) == views
    text = derived_model(type(protocol), protocol.settings)
    assert all(f"`{step}`" in text.server for step, _ in views)
    assert ("only the sum" in text.server) == ("sum" in dict(views).values())
