"""Choices with parameters, which may be choices: as texts, as objects, and refused."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.protocol.settings.choices import chosen
from tacit.protocols.ustatistic.kernels import Area, Gini, Kendall, Listed, Range, Scaled

KINDS = (Gini, Kendall, Area)


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("gini", Gini()),
        ("gini(domain=range(high=5.0, bins=4))", Gini(Range(high=5, bins=4))),
        (
            "kendall(domain=range(high=5.0, bins=3), second=listed(values=0 1.5))",
            Kendall(Range(high=5, bins=3), Listed([0, 1.5])),
        ),
        ("auc(domain=scaled(bins=16))", Area(Scaled(bins=16))),
    ],
)
def test_a_choice_in_a_choice_is_written_and_read(text: str, choice: Any) -> None:
    assert str(choice) == text
    assert chosen("kernel", text, KINDS) == choice
    assert chosen("kernel", choice, KINDS) is choice


def test_a_parameter_may_be_given_as_its_text() -> None:
    given: Any = Gini("range(high=5)")  # type: ignore[arg-type]
    assert chosen("kernel", given, KINDS) == Gini(Range(high=5))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("gini(domain=scaled)", "kernel: domain must be one of range, listed, got 'scaled'"),
        (Gini(Scaled()), "kernel: domain must be one of range, listed"),  # type: ignore[arg-type]
        ("gini(domain=range(bins=x))", "kernel: domain: bins must be a number, got 'x'"),
        ("gini(domain=listed)", "kernel: domain: listed needs values"),
        ("gini(bins=4)", "kernel: gini has no parameter 'bins'"),
    ],
)
def test_what_a_parameter_does_not_take_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chosen("kernel", value, KINDS)
