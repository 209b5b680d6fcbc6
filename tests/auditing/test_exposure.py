"""Verdicts on attacks: few false alarms over all rows, and power against a broken guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from tacit.auditing.exposure import Exposure, advantage_bound, judged_together, label_ceiling
from tacit.auditing.inferring import _settled
from tacit.auditing.protocol_audit import CONFIDENCE, PART, audit
from tacit.cli.audit import audit_text
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol.audits import AttackSizes
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import kind_of
from tacit.protocols.dpauc.protocol import DPAUC

LABEL = Cost(1.0, adjacency=Adjacency.LABEL)
ROWS = 30
"""More rows with a ceiling than any audit of one protocol has."""


def guessed(right: int, tries: int, trials: int | None = None) -> Exposure:
    return Exposure("label", "counts", True, right, tries, 0.5, label_ceiling(LABEL), trials)


def least_alarming(tries: int, trials: int | None, false_alarm: float) -> int:
    """The fewest right guesses of which a row says that they exceed."""
    counts = range(math.floor(0.7 * tries), tries + 1)
    results = (replace(guessed(k, tries, trials), false_alarm=false_alarm) for k in counts)
    return next(one.right for one in results if not one.holds)


def test_an_attack_above_its_bound_is_told_with_its_chance() -> None:
    """As of labels flipped at epsilon 1, from which the best attack reaches the bound exactly."""
    result = guessed(1506, 2000)
    assert result.ceiling is not None
    assert result.advantage > result.ceiling
    assert result.chance == pytest.approx(binom.sf(1505, 2000, (1 + result.ceiling) / 2))
    assert result.verdict == "holds; above by chance (p 0.01)"
    assert guessed(1400, 2000).verdict == "holds"
    assert guessed(1700, 2000).verdict.startswith("EXCEEDED (p ")
    assert replace(result, ceiling=None).verdict == "no bound"


@pytest.mark.parametrize(("share", "times"), [(0.753, 2), (0.72, 1), (0.9, 1)])
def test_an_advantage_above_its_bound_by_chance_is_measured_again(share: float, times: int) -> None:
    """On ten times as many records, and others; one that refutes, or is below, is left as it is."""
    asked = list[tuple[int, int, int]]()

    def attack(protocol: Protocol, sizes: AttackSizes, seed: int) -> Iterator[Exposure]:
        asked.append((sizes.records, sizes.trials, seed))
        right = share if len(asked) == 1 else 0.72
        yield guessed(round(right * sizes.records), sizes.records)

    (settled,) = _settled(attack, DPAUC(1.0), AttackSizes(2000, 10), 3, 7)
    assert asked == [(2000, 10, 3), (20_000, 100, 7)][:times]
    assert settled.verdict.startswith("EXCEEDED" if share == 0.9 else "holds")
    assert "above" not in settled.verdict


@pytest.mark.parametrize(
    ("tries", "trials", "broken"), [(2000, None, 1.3), (200, None, 2.5), (1200, 200, 2.5)]
)
def test_sound_rows_raise_few_alarms_and_broken_ones_many(
    tries: int, trials: int | None, broken: float
) -> None:
    """The attacker is as good as allowed; the false alarms of all rows add up to PART at most.

    Where guesses are in clusters, all guesses of a cluster are taken to be right or wrong together,
    which is the worst that they can be.
    """
    each = PART / ROWS
    least = least_alarming(tries, trials, each)
    clusters = tries if trials is None else trials
    needed = math.ceil(least * clusters / tries)
    sound = (1 + advantage_bound(1.0)) / 2
    assert ROWS * binom.sf(needed - 1, clusters, sound) <= PART
    assert binom.sf(needed - 1, clusters, (1 + advantage_bound(broken)) / 2) > 0.9


def test_clustered_guesses_need_more_than_independent_ones() -> None:
    alone, together = guessed(960, 1200), guessed(960, 1200, trials=200)
    assert alone.chance is not None
    assert together.chance is not None
    assert not alone.holds
    assert together.holds
    assert together.chance > alone.chance


def test_rows_share_the_false_alarms_of_an_audit() -> None:
    rows = judged_together(
        [guessed(1, 2), guessed(1, 2), replace(guessed(1, 2), ceiling=None)], PART
    )
    assert [row.false_alarm for row in rows] == [PART / 2] * 3
    assert math.isclose(2 * PART, 1 - CONFIDENCE)


def test_every_row_of_an_audit_has_a_verdict() -> None:
    audit_result = audit(kind_of("dpauc").audit_cases()[-1:], 1.0, quick=True)
    assert audit_result.passed
    text = audit_text(audit_result)
    assert "raise a false alarm with probability 0.1% at most" in text
    rows = [line for line in text.splitlines() if line.startswith(("  + ", "  - "))]
    assert len(rows) == len(audit_result.exposures)
    assert all(row.endswith(("holds", "no bound")) or "by chance" in row for row in rows)
    assert all(one["verdict"] for one in audit_result.to_dict()["exposures"])
    wrong = replace(audit_result, exposures=(guessed(1900, 2000),))
    assert not wrong.passed
    assert "1 advantages what it allows" in audit_text(wrong)
    assert np.isfinite(
        [one.chance for one in audit_result.exposures if one.chance is not None]
    ).all()
