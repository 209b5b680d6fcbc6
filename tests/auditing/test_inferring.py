"""Verdicts on attacks: few false alarms over all rows, and power against a broken guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tacit import DPAUC, Clients, ExactAUC, FedAUC, HierarchicalAUC, NoisyScores, ScoreHistogram
from tacit.auditing import inferring
from tacit.auditing.protocol_audit import CONFIDENCE, PART, audit
from tacit.cli.audit import audit_text
from tacit.metrics.ranking import top_hits
from tacit.protocol import UNPROTECTED, Adjacency, AttackSizes, Cost, Protocol, kind_of
from tacit.protocols.published.dpauc import PublishedDPAUC, cells_of_lone_records

records = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1)), min_size=1, max_size=40)


@given(records)
def test_top_hits_are_those_of_a_sorted_list(rows: list[tuple[int, int]]) -> None:
    scores = np.array([score for score, _ in rows], dtype=float)
    labels = np.array([label for _, label in rows], dtype=np.int8)
    ranked = [label for _, label in sorted(rows, key=lambda row: -row[0])]
    sizes = np.arange(1, len(rows) + 1)
    expected = [sum(ranked[:size]) for size in sizes]
    assert top_hits(scores, labels, sizes).tolist() == expected


def naive_rates(scores: list[int], labels: list[int], edges: range) -> list[list[float]]:
    totals = [max(labels.count(0), 1), max(labels.count(1), 1)]
    pairs = list(zip(scores, labels, strict=True))
    return [
        [sum(s >= edge and y == label for s, y in pairs) / totals[label] for edge in edges]
        for label in (0, 1)
    ]


@given(records.filter(lambda rows: 0 < sum(y for _, y in rows) < len(rows)))
def test_an_exact_curve_and_the_scores_give_every_cells_positives(
    rows: list[tuple[int, int]],
) -> None:
    """Unless the curve is the diagonal, where any share of positives fits."""
    scores, labels = [s for s, _ in rows], [y for _, y in rows]
    edges = range(21)
    rates = np.array(naive_rates(scores, labels, edges))
    counts = np.bincount(scores, minlength=21)
    positives = np.bincount(scores, weights=labels, minlength=21)
    result = inferring.positives_from_curve(counts, *rates)
    if np.allclose(rates[0], rates[1]):
        return
    np.testing.assert_allclose(result * counts, positives, atol=1e-9)


def test_candidates_are_the_curves_of_all_labellings() -> None:
    scores, labels, hidden = [0, 1, 1, 2, 3, 3], [0, 1, 0, 1, 0, 1], [2, 4]
    clients = Clients.from_arrays(np.array(scores), np.array(labels))
    curves = inferring.candidate_curves(clients, np.arange(4.0), np.array(hidden))
    for curve, guess in zip(curves, inferring.all_labellings(2), strict=True):
        tried = labels.copy()
        for index, label in zip(hidden, guess, strict=True):
            tried[index] = int(label)
        np.testing.assert_allclose(curve, naive_rates(scores, tried, range(4)))
        nearest = inferring.all_labellings(2)[inferring.nearest(curve, curves)]
        assert nearest.tolist() == guess.tolist()


@given(st.lists(st.integers(0, 8), min_size=1, max_size=9))
def test_a_lone_records_cell_is_where_the_count_falls(cells: list[int]) -> None:
    reached = np.array([[int(cell >= edge) for cell in cells] for edge in range(9)])
    assert cells_of_lone_records(reached).tolist() == cells


@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_bound_on_advantages_is_the_best_of_all_two_valued_mechanisms(
    epsilon: float, delta: float
) -> None:
    keep = np.linspace(0, 1, 20_001)
    lie = 1 - keep
    private = keep <= np.exp(epsilon) * lie + delta + 1e-12
    best = float(np.max((keep - lie)[private]))
    assert inferring.advantage_bound(epsilon, delta) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize(
    ("adjacency", "ceiling"),
    [
        (Adjacency.LABEL, math.tanh(0.5)),
        (Adjacency.REPLACE, math.tanh(0.5)),
        (Adjacency.RECORD, math.tanh(1.0)),
        (Adjacency.SCORE, None),
    ],
)
def test_ceilings_follow_from_what_is_hidden(adjacency: Adjacency, ceiling: float | None) -> None:
    assert inferring.label_ceiling(Cost(1.0, adjacency=adjacency)) == pytest.approx(ceiling)
    assert inferring.label_ceiling(UNPROTECTED) is None


def test_an_advantage_is_measured_from_a_blind_guess() -> None:
    result = inferring.Exposure(
        "labels", "scores", False, right=75, tries=100, blind=0.5, guarantee=LABEL
    )
    low, high = result.bounds
    assert result.advantage == 0.5
    assert low < 0.5 < high
    assert result.holds
    assert not inferring.Exposure(
        "labels", "scores", True, 750, 1000, 0.5, Cost(0.6, adjacency=LABEL.adjacency)
    ).holds


def exposures_of(protocol: Protocol, seed: int) -> list[inferring.Exposure]:
    return inferring.exposures_of(protocol, inferring.QUICK, seed)


def by_release(result: list[inferring.Exposure], attack: str) -> dict[str, inferring.Exposure]:
    return {one.release: one for one in result if attack in one.attack}


def test_dpauc_hides_what_exact_counts_and_curves_betray() -> None:
    """Advantages far above 0.9 without noise; with it, at most what epsilon allows."""
    published = exposures_of(PublishedDPAUC(1.0, 20, scale="even"), seed=2)
    exposures = exposures_of(DPAUC(1.0, 100, scale="even"), seed=2)
    cells = by_release(published + exposures, "cell")
    assert cells["exact counts per threshold"].advantage == 1.0
    assert cells["counts of flipped labels"].advantage == 1.0
    assert not cells["counts of flipped labels"].protected
    assert cells["noisy histograms"].advantage < 0.05
    labels = by_release(published + exposures, "label, from its counts")
    assert labels["exact counts per threshold"].advantage == 1.0
    flipped = labels["counts of flipped labels"]
    assert flipped.bounds[0] <= math.tanh(0.5) <= flipped.bounds[1] + 0.02
    whole = by_release(exposures, "all labels")
    assert whole["exact curve at every score"].advantage == 1.0
    for attack in ("six labels", "one label"):
        exact, noisy = by_release(exposures, attack).values()
        assert exact.advantage > 0.9
        assert noisy.advantage < 0.4
        assert noisy.holds


def test_looks_and_the_number_hide_what_exact_counts_betray() -> None:
    """The published cells are few: even their exact curve betrays less than one at every score."""
    exposures = exposures_of(DPAUC(1.0), seed=2)
    whole = by_release(exposures, "all labels")
    assert whole["exact curve at every score"].advantage == 1.0
    assert whole["exact curve at the same thresholds"].advantage < 0.5
    exact, one = by_release(exposures, "one label").values()
    assert exact.advantage > 0.9
    for noisy in (whole["dpauc, epsilon 1"], one):
        assert noisy.advantage < 0.4
        assert noisy.holds


def test_attacks_on_aucs_have_power_where_epsilon_is_large() -> None:
    (_, noisy) = by_release(exposures_of(FedAUC(10.0), seed=0), "one label").values()
    assert noisy.advantage > 0.9


def test_scores_betray_labels_unless_nobody_knows_whose_they_are() -> None:
    linked, alone, many = by_release(exposures_of(FedAUC(1.0), seed=3), "from scores").values()
    assert linked.bounds[0] > 0.4
    assert alone.right == linked.right
    assert not alone.protected
    assert abs(many.advantage) < 0.2
    plain, noisy = exposures_of(NoisyScores(1.0), seed=3)
    assert noisy.advantage < plain.advantage / 2
    hidden = exposures_of(FedAUC(1.0, trust="mpc"), seed=3)
    assert list(by_release(hidden, "from scores")) == ["scores with their records"]


def test_only_attacks_that_concern_a_protocol_are_run() -> None:
    assert inferring.exposures_of(ExactAUC(), inferring.QUICK) == []
    assert inferring.exposures_of(HierarchicalAUC(1.0), inferring.QUICK) == []
    local = inferring.exposures_of(ScoreHistogram("local", 1.0), AttackSizes(2000, 10))
    assert {one.attack for one in local} > {"one label, from AUCs without and with its record"}


LABEL = Cost(1.0, adjacency=Adjacency.LABEL)
ROWS = 30
"""More rows with a ceiling than any audit of one protocol has."""


def guessed(right: int, tries: int, trials: int | None = None) -> inferring.Exposure:
    return inferring.Exposure("label", "counts", True, right, tries, 0.5, LABEL, trials)


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
    assert replace(result, guarantee=None).verdict == "no bound"


@pytest.mark.parametrize(("share", "times"), [(0.753, 2), (0.72, 1), (0.9, 1)])
def test_an_advantage_above_its_bound_by_chance_is_measured_again(share: float, times: int) -> None:
    """On ten times as many records, and others; one that refutes, or is below, is left as it is."""
    asked = list[tuple[int, int, int]]()

    def attack(protocol: Protocol, sizes: AttackSizes, seed: int) -> Iterator[inferring.Exposure]:
        asked.append((sizes.records, sizes.trials, seed))
        right = share if len(asked) == 1 else 0.72
        yield guessed(round(right * sizes.records), sizes.records)

    (settled,) = inferring._settled(attack, DPAUC(1.0), AttackSizes(2000, 10), 3, 7)
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
    sound = (1 + inferring.advantage_bound(1.0)) / 2
    assert ROWS * binom.sf(needed - 1, clusters, sound) <= PART
    assert binom.sf(needed - 1, clusters, (1 + inferring.advantage_bound(broken)) / 2) > 0.9


def test_rows_share_the_false_alarms_of_an_audit() -> None:
    rows = inferring.judged_together(
        [guessed(1, 2), guessed(1, 2), replace(guessed(1, 2), guarantee=None)], PART
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
