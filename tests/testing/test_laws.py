"""The laws as a package of somebody else has them, and that broken protocols fail them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tacit import DPAUC, FedAUC
from tacit.arrays import Floats
from tacit.protocol import ErrorCase, LawTraits, Step
from tacit.testing import checks
from tacit.testing.laws import LAWS, laws_for
from tests import brier
from tests.federations import binormal_clients
from tests.terminal import in_python

globals().update(laws_for(brier.Brier))

CLIENTS = binormal_clients(8, 12, 4)


@dataclass(frozen=True)
class Batchwise(brier.Brier):
    """Its server weighs clients by their place."""

    def total(self, squares: Floats) -> Floats:
        return squares @ np.arange(1.0, squares.shape[-1] + 1)


@dataclass(frozen=True)
class Exempt(brier.Brier):
    @property
    def law_traits(self) -> LawTraits:
        return LawTraits(inexact="squares are rounded")

    @classmethod
    def error_cases(cls) -> dict[str, ErrorCase]:
        return {}


def test_every_law_applies_by_default() -> None:
    names = set(laws_for(brier.Brier))
    assert {law.name for law in LAWS} == names
    assert len(names) == 17


def test_what_a_protocol_declares_exempts_it() -> None:
    left_out = set(laws_for(brier.Brier)) - set(laws_for(Exempt))
    assert left_out == {
        "test_without_noise_the_estimate_is_exact_on_what_is_measured",
        "test_predicted_errors_and_intervals_hold",
        "test_a_noise_scale_30_percent_off_is_noticed",
        "test_intervals_hold_on_few_records",
        "test_the_sampling_error_is_that_of_the_population",
    }


def test_configurations_are_cases_of_their_names() -> None:
    (cases,) = laws_for(DPAUC(1.0), FedAUC(1.0))[LAWS[0].name].pytestmark  # type: ignore[attr-defined]
    assert cases.args == ("name", ["dpauc", "fedauc"])
    with pytest.raises(ValueError, match="two cases of the laws are called 'dpauc'"):
        laws_for(DPAUC(1.0), DPAUC(2.0))


@pytest.mark.parametrize("check", [checks.check_exactness, checks.check_order])
def test_a_server_that_weighs_clients_breaks_laws(check: Callable[..., None]) -> None:
    with pytest.raises(AssertionError):
        check(Batchwise(1.0), CLIENTS)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (brier.largest_beside, "without noise"),
        (brier.free_positives, "without noise"),
        (brier.cost_that_tells, "the declared cost depends on the records"),
        (brier.positives_only, "the size of a reply depends on the records"),
        (brier.free_positives_only, "the size of a reply depends on the records"),
    ],
    ids=["largest", "free", "cost", "size", "free size"],
)
def test_what_no_noise_hides_breaks_the_privacy_law(asked: Step, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        checks.check_neighbours(brier.Telling(1.0, asked=asked), 0)


def test_without_pytest_one_sentence_says_what_to_install() -> None:
    program = "import sys; sys.modules['pytest'] = None; import tacit.testing.laws"
    assert in_python(program).stderr.splitlines()[-1] == (
        "ImportError: the laws need pytest and hypothesis: pip install pytest hypothesis"
    )
