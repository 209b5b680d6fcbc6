"""Every client step of every protocol keeps what it declares, and the attack comes near it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit import Adjacency, ClientState, Cost, PublishedFedAUC, TwoRoundAUC
from tacit.auditing import steps
from tacit.auditing.questions import copied, neighbours, observe, questions_of
from tacit.data.splitting import federation
from tacit.privacy.doubles import PublicCoins
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.privacy.mechanisms.response import Choices
from tacit.protocol import AuditCase, SimulatedNoise
from tacit.protocol.registry import kind_of, protocol_kinds, protocol_of
from tacit.testing import recording

EPSILON = 2.0
CASES = {name: kind.audit_cases() for name, kind in protocol_kinds().items()}
FEW = steps.Effort(numbers=2**20, tries=20_000, pilot=1_000, divided=6)
MANY = steps.Effort(numbers=2**25, tries=60_000)
SLOW = {"encrypted-auc", "published-fhe"}
SAME = {"score-histogram": 5}
"""A case whose steps another one, and whose trust a shorter one has."""
ATTACKED = [
    pytest.param(
        case, id=f"{name}-{place}", marks=[pytest.mark.thorough] if SAME.get(name) == place else []
    )
    for name in CASES
    if name not in SLOW
    for place, case in enumerate(CASES[name])
]


def targets(case: AuditCase, epsilon: float = EPSILON) -> list[steps.Target]:
    protocol = case.protocol(epsilon)
    return steps.targets_of(protocol, case.clients(protocol), case.one_by_one, case.tight)


def attacked(case: AuditCase) -> list[steps.StepAudit]:
    """With few draws first, and many where these show too little: a loss of several numbers."""
    results = []
    for target in targets(case):
        result = steps.audit_target(target, seed=1, effort=FEW, error=1e-4)
        results.append(result)
        if result.weak:
            results[-1:] = [steps.audit_target(target, seed=2, effort=MANY, error=1e-4)]
            assert result.holds, result
    return results


@pytest.mark.parametrize("case", ATTACKED)
def test_no_step_shows_more_than_it_declares_and_tight_ones_nearly_that(case: AuditCase) -> None:
    """A bound exceeds a true guarantee with probability below 1e-4, for all cases below 0.01."""
    for result in attacked(case):
        assert result.holds, result
        assert not result.weak, result


@pytest.mark.parametrize("name", list(CASES))
def test_the_cases_of_a_protocol_make_every_step_answer(name: str) -> None:
    if name in SLOW:
        pytest.importorskip("tenseal")
    declared = {step.name for case in CASES[name] for step in case.protocol(EPSILON).steps}
    answered = {part.name for case in CASES[name] for part in targets(case)}
    assert declared == answered - {steps.WHOLE_RUN}


def test_ciphertexts_of_neighbours_look_alike() -> None:
    """So few draws would only notice a length or a sum of bytes that is certain to differ."""
    pytest.importorskip("tenseal")
    case = CASES["published-fhe"][0]
    result = attacked(replace(case, one_by_one=8 * FEW.divided))
    assert all(audit.holds for audit in result)
    assert [audit.verdict for audit in result] == ["holds", "holds", "holds", "claims nothing"]


def test_a_whole_run_is_attacked_where_a_record_spends_twice() -> None:
    case = AuditCase("paired-ustatistic", {"kernel": "auc"}, 2, True)
    names = [target.name for target in targets(case)]
    assert names == ["offer_numbers", "count_positives", "compute_pairs", steps.WHOLE_RUN]
    assert steps.WHOLE_RUN not in [target.name for target in targets(CASES["two-round-auc"][0])]


def test_small_epsilons_are_not_called_weak() -> None:
    (first, *_) = [
        target for target in targets(AuditCase("fedauc"), 1.0) if 0 < target.declared.epsilon < 0.1
    ]
    result = steps.audit_target(first, effort=FEW)
    assert result.share is not None
    assert result.share < steps.MIN_FRACTION
    assert not result.weak


def test_an_attack_is_repeatable() -> None:
    (target,) = targets(AuditCase("dpauc", {"thresholds": 4}))
    first, again, other = (steps.audit_target(target, seed=seed, effort=FEW) for seed in (3, 3, 4))
    assert first == again != other


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_neighbours_differ_in_one_record_and_are_among_all(adjacency: Adjacency) -> None:
    clients = federation(4, apart=False)
    start = sorted(zip(clients.scores, clients.labels, strict=True))
    results = list(neighbours(clients, adjacency))
    assert results
    for other in results:
        rows = sorted(zip(other.scores, other.labels, strict=True))
        common = [row for row in start if row in rows]
        assert len(common) == 3
        assert len(rows) == (3 if adjacency is Adjacency.RECORD else 4)
        if adjacency is Adjacency.LABEL:
            np.testing.assert_array_equal(other.scores, clients.scores)
        if adjacency is Adjacency.SCORE:
            np.testing.assert_array_equal(other.labels, clients.labels)
    if adjacency is Adjacency.LABEL:
        known = [one.labels.tolist() for one in recording.neighbours(clients, adjacency)]
        assert all(other.labels.tolist() in known for other in results)


def test_neighbours_change_the_client_that_is_named() -> None:
    clients = federation(3, apart=True)
    for other in neighbours(clients, Adjacency.REPLACE, client=2):
        np.testing.assert_array_equal(other.scores[:2], clients.scores[:2])
        assert (other.scores[2], other.labels[2]) != (clients.scores[2], clients.labels[2])


def test_replicates_are_rows_and_notebooks_stay_as_they_are() -> None:
    clients = federation(8, apart=True)
    protocol = TwoRoundAUC(1.0)
    questions = questions_of(protocol, clients, SimulatedNoise(0))
    cells = next(part for part in questions if part.name == "report_cells")
    rows = observe([cells], clients, PublicCoins(1, 50))
    assert rows.shape == (50, 1)
    assert len(np.unique(rows)) > 5
    assert observe([cells], clients, PublicCoins(1, None)).shape == (1, 1)
    np.testing.assert_array_equal(rows, observe([cells], clients, PublicCoins(1, 50)))


def test_differences_of_two_replies_are_seen() -> None:
    clients = federation(4, apart=False)
    questions = questions_of(PublishedFedAUC(1.0), clients, SimulatedNoise(0))
    pair = questions[-1]
    rows = observe([pair, pair], clients, PublicCoins(0, 5))
    assert rows.shape == (5, 6)
    np.testing.assert_allclose(np.sort(rows[:, 4:]), np.sort(rows[:, 2:4] - rows[:, :2]))


def test_public_coins_fall_alike_and_noise_does_not() -> None:
    left, right = PublicCoins(1, None), PublicCoins(2, None)
    first, second = (source.draw(Choices((1, 1)), (50,)) for source in (left, right))
    np.testing.assert_array_equal(first, second)
    first, second = (source.draw(Laplace(1, 1.0), (5,)) for source in (left, right))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("name", "settings", "apart"),
    [
        ("score-histogram", {"trust": "local", "height": 2}, True),
        ("dpauc", {"thresholds": 7}, False),
        ("ustatistic", {"kernel": "gini(domain=range(low=10, high=30))"}, True),
        ("ustatistic", {"kernel": "collision(values=2 5)"}, True),
        ("ustatistic", {"kernel": "kendall"}, True),
    ],
)
def test_chosen_settings_get_a_federation_that_suits_them(
    name: str, settings: dict[str, object], apart: bool
) -> None:
    case = kind_of(name).audit_case(settings)
    protocol = protocol_of(name, {**settings, "epsilon": 1.0})
    clients = case.clients(protocol)
    assert (clients.count > 1) == apart
    results = [steps.audit_target(target, effort=FEW) for target in targets(case, 1.0)]
    assert all(target.holds for target in results)
    assert any((target.share or 0) > 0.2 for target in results)


def test_verdicts() -> None:
    (target,) = targets(AuditCase("dpauc", {"thresholds": 4}))
    lower = replace(target, declared=Cost(EPSILON / 1.5, adjacency=Adjacency.RECORD))
    refuted = steps.audit_target(lower, effort=FEW)
    assert (refuted.holds, refuted.verdict) == (False, "EXCEEDED")
    higher = replace(target, declared=Cost(EPSILON * 3, adjacency=Adjacency.RECORD))
    loose = steps.audit_target(higher, effort=FEW)
    assert (loose.holds, loose.weak, loose.verdict) == (True, True, "holds, weak attack")
    unclaimed = steps.audit_target(replace(target, declared=Cost(math.inf)), effort=FEW)
    assert (unclaimed.verdict, unclaimed.share) == ("claims nothing", None)
    assert unclaimed.to_dict()["declared"]["epsilon"] is None


def test_a_memory_can_be_copied_without_its_owner() -> None:
    state = ClientState()
    state.keep(("note",), 1)
    state.part(1, 2).keep(("own",), 2)
    made = copied(state, 1)
    made.keep(("note",), 3)
    assert state.recall(("note",)) == 1
    assert made.part(1, 2).recall(("own",)) == 2
