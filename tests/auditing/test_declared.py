"""A protocol of any package is audited with what the base class declares for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from tacit.auditing.inferring import QUICK, exposures_of
from tacit.auditing.protocol_audit import Audit, audit
from tacit.auditing.steps import FEW, audit_target, targets_of
from tacit.cli.audit import audit_text
from tacit.protocol import Protocol, Step, registry
from tacit.protocol.registry import kind_of, protocol_kinds
from tests import brier, known


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(brier.Brier)
    registry.register(brier.HalfDeclared)


def audited(name: str) -> Audit:
    return audit(kind_of(name).audit_cases(), 1.0, seed=3, quick=True)


def test_a_registered_protocol_is_audited_by_default() -> None:
    """It holds with probability 0.999; the attack reaches 60 % of epsilon at least."""
    result = audited("squared-errors")
    assert result.passed
    (step,) = result.steps
    assert (step.name, step.verdict) == ("noisy_squares", "holds")
    assert step.declared == brier.Brier(1.0).guarantee
    assert 0.6 < known(step.share) <= 1
    assert {"squared-errors", "half-declared"} <= protocol_kinds().keys()
    assert kind_of("squared-errors").audit_case({}).records == 4


@dataclass(frozen=True)
class Scaled(brier.Brier):
    scale: float = field(kw_only=True)

    name = "scaled"

    @property
    def settings(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "scale": self.scale}

    @classmethod
    def law_cases(cls) -> dict[str, Protocol]:
        return {"scaled-twice": cls(1.0, scale=2.0)}


def test_what_has_no_default_is_taken_from_the_laws() -> None:
    registry.register(Scaled)
    assert [case.settings for case in kind_of("scaled").audit_cases()] == [{"scale": 2.0}]
    (case,) = kind_of("scaled").audit_cases()
    assert case.protocol(3.0) == Scaled(3.0, scale=2.0)
    with pytest.raises(TypeError, match="must override law_cases: no default for scale"):
        super(Scaled, Scaled).law_cases()


def test_half_a_guarantee_is_rejected() -> None:
    result = audited("half-declared")
    assert not result.passed
    (step,) = result.steps
    assert step.verdict == "EXCEEDED"
    assert known(step.bound).epsilon > 0.5


def telling(step: Step) -> str:
    """Register a protocol that asks this step before the honest one."""

    @dataclass(frozen=True)
    class Told(brier.Telling):
        asked: Step = step
        name = "told"

    registry.register(Told)
    return Told.name


def test_two_records_show_an_exact_value_that_more_records_hide() -> None:
    """Of four records two have a large error, so that no changed record moves the exact bit."""
    result = audited(telling(brier.largest_beside))
    verdicts = {step.name: step.verdict for step in result.steps}
    assert verdicts["largest_beside"] == "EXCEEDED"
    assert not result.passed
    (case,) = kind_of("told").audit_cases()
    protocol = case.protocol(1.0)
    target = targets_of(protocol, case.clients(protocol))[0]
    assert target.name == brier.largest_beside.name
    assert audit_target(target, effort=FEW).holds


def test_a_cost_that_depends_on_the_records_is_rejected() -> None:
    result = audited(telling(brier.cost_that_tells))
    assert "COST DEPENDS ON RECORDS" in [step.verdict for step in result.steps]
    assert not result.passed
    assert "1 declared costs DEPEND on the records" in audit_text(result)


def test_a_size_that_depends_on_the_records_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="the size of a reply must not depend on the records: pos"):
        audited(telling(brier.positives_only))


def test_labels_are_guessed_from_the_fields_that_the_server_receives() -> None:
    """Certain without noise; with it at most what epsilon allows, which a low epsilon halves."""
    exact, noisy = exposures_of(brier.Brier(1.0), QUICK, seed=1)
    assert exact.attack == noisy.attack == "one label, from the replies that the server receives"
    assert (exact.advantage, exact.protected, noisy.protected) == (1.0, False, True)
    assert noisy.ceiling == pytest.approx(math.tanh(0.5))
    assert noisy.advantage > 0.2
    assert noisy.holds
    (_, low) = exposures_of(brier.Brier(0.1), QUICK, seed=1)
    assert low.advantage < noisy.advantage / 2
    (_, broken) = exposures_of(brier.HalfDeclared(4.0), QUICK, seed=1)
    assert not broken.holds
