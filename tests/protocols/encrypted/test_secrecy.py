"""What opened answers say of the class totals, and what colluders and pairs of runs learn."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import Clients, ClientState, EncryptedAUC
from tacit.arrays import Floats, Integers
from tacit.crypto.masking import REACH, log_uniform, neighbours
from tacit.privacy.noise import NoNoise
from tacit.protocols.encrypted import masked_scheme as settings
from tacit.protocols.encrypted.masked_scheme import MaskedScheme, Products, class_cells
from tacit.protocols.encrypted.masked_sides import MaskedParty
from tacit.running.simulation import simulate
from tacit.testing.checks import conversation_of
from tests.protocols.encrypted.masked_strategies import paired_by

MOST, RECORDS, POSITIVES = 2**20, 800_009, 240_011
STATED = 2.0 ** (1 - settings.SPARE_BITS)
"""Total variation of a posterior of the class sizes from the prior, within the octaves."""
SCHEME = MaskedScheme(100, MOST)
SIZES = [POSITIVES, *map(int, np.random.default_rng(0).integers(170_000, 630_000, 24))]
"""Sizes that a party considers, whose products are within an octave of the true one."""


def multiplier_at(part: float) -> int:
    """A multiplier in this part of its octaves."""
    return int(2 ** (SCHEME.least_bits + part * SCHEME.octaves))


def shown(scheme: MaskedScheme, multiplier: int, area: float = 0.75) -> Products:
    """What parties open, perturbed as the aggregator does, in the docstring's formula."""
    pairs = POSITIVES * (RECORDS - POSITIVES)
    tied = pairs // 491
    numerator = int(2 * area * pairs) + (int(2 * area * pairs) - tied) % 2
    true = (numerator, pairs, tied)
    return Products(
        *(
            multiplier * number + extra
            for number, extra in zip(true, scheme.perturbations(multiplier), strict=True)
        )
    )


def likelihood(scheme: MaskedScheme, answer: Products, pairs: int) -> float:
    """Of one product of totals, nothing being known of X and Z but that they have one parity.

    By enumeration of every multiplier that fits, and of X and Z by their definition.
    """
    total, first = 0.0, 1 << scheme.least_bits
    last = min(answer.denominator // pairs, (first << scheme.octaves) - 1)
    most = 1 + scheme.reach // max(last, 1)
    for multiplier in range(max(answer.denominator // (pairs + most + 1), first), last + 1):
        width = scheme.width(multiplier)
        if not 0 <= answer.denominator - multiplier * pairs < width:
            continue
        rising = fitting(answer.numerator, multiplier, settings.WIDTHS[0] * (width - 1) + 1)
        tied = fitting(answer.tied, multiplier, settings.WIDTHS[2] * width)
        ways = sum(one * other for one, other in zip(rising, tied, strict=True))
        total += ways / multiplier / float(width) ** 3 / float(pairs) ** 2
    return total


def fitting(number: int, multiplier: int, width: int) -> tuple[int, int]:
    """How many even and odd whole numbers n have ``0 <= number - n multiplier < width``."""
    least, most = -((width - 1 - number) // multiplier), number // multiplier
    evens = most // 2 - (least - 1) // 2
    return evens, most - least + 1 - evens


def posterior(scheme: MaskedScheme, answer: Products, sizes: Sequence[int]) -> Floats:
    """Of the sizes of one class, all alike beforehand, shape (sizes,)."""
    weights = np.array([likelihood(scheme, answer, size * (RECORDS - size)) for size in sizes])
    return weights / weights.sum()


def distance(scheme: MaskedScheme, area: float = 0.75, multiplier: int = 0) -> float:
    """Of the posterior from the prior, in total variation."""
    drawn = multiplier or log_uniform(scheme.least_bits + 1, scheme.octaves - 2)
    found = posterior(scheme, shown(scheme, drawn, area), SIZES)
    return float(np.abs(found - 1 / len(SIZES)).sum() / 2)


@pytest.mark.parametrize(
    ("part", "area"),
    [(0.15, 0.3), (0.5, 0.75), (0.95, 0.3), (0.95, 0.75), (0.96, 0.1), (0.95, 0.1)],
)
def test_who_knows_the_number_of_records_learns_no_size(part: float, area: float) -> None:
    """Multipliers in all parts of their range; the sizes' products are within an octave."""
    assert distance(SCHEME, area, multiplier_at(part)) < STATED


def test_multipliers_below_the_products_would_betray_the_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack has power: with the shorter multipliers of before, from 2^12 on, few sizes fit."""
    monkeypatch.setattr(settings, "SPARE_BITS", -40)
    short = MaskedScheme(100, MOST)
    assert (short.least_bits, short.octaves) == (12, 10)
    assert distance(short) > 0.9
    answer = shown(short, log_uniform(short.least_bits + 1, short.octaves - 2))
    sizes = [
        size
        for size in range(1, RECORDS // 2)
        if answer.denominator // (pairs := size * (RECORDS - size))
        > (answer.denominator - short.reach) // pairs
        and likelihood(short, answer, pairs) > 0
    ]
    assert POSITIVES in sizes
    assert len(sizes) < 60


def test_one_guess_of_a_size_is_tested_no_better_than_the_prior() -> None:
    """The true size and a wrong one: the odds of both stay what they were, for 20 answers."""
    for _ in range(20):
        multiplier = log_uniform(SCHEME.least_bits + 1, SCHEME.octaves - 2)
        other = 200_000 + secrets.randbelow(200_000)
        found = posterior(SCHEME, shown(SCHEME, multiplier), [POSITIVES, other])
        assert abs(found[0] - 0.5) < STATED


@pytest.mark.parametrize(
    ("of", "name", "changed", "part", "least"),
    [
        (settings, "WIDTHS", (1, 1, 1), 0.96, 0.1),
        (MaskedScheme, "width", lambda self, multiplier: self.reach, 0.95, 5 * STATED),
    ],
    ids=["the numerator's as wide as the others", "no multiple of the multiplier"],
)
def test_other_perturbations_would_tell_sizes(
    monkeypatch: pytest.MonkeyPatch, of: Any, name: str, changed: Any, part: float, least: float
) -> None:
    """One would exclude sizes, whose numbers would be even and odd; with the other some multipliers
    would fit twice as often as others."""
    monkeypatch.setattr(of, name, changed)
    assert distance(SCHEME, 0.1, multiplier_at(part)) > least


@pytest.mark.parametrize("most", [2**17, 458_407, 2**20, 2**24, 2**32])
def test_the_conditions_of_the_statement_hold_for_every_bound(most: int) -> None:
    """V exceeds every product of totals by SPARE_BITS + 1, and every multiplier; accepted sizes."""
    scheme = MaskedScheme(100, most)
    assert scheme.reach >= (most**2 // 4) << (settings.SPARE_BITS + 1)
    assert scheme.reach == 1 << (scheme.least_bits + scheme.octaves)
    assert scheme.accepts(most**2 // 1000)
    for part in (0.0, 0.3, 0.99):
        multiplier = int(2 ** (scheme.least_bits + part * scheme.octaves))
        width = scheme.width(multiplier)
        assert width % multiplier == 0
        assert scheme.reach // 2 < width <= scheme.reach
    assert settings.MARGIN * scheme.honest_most < scheme.field.prime


def unevenness(parties: int, unknown: int, octaves: int) -> float:
    """By how much parties can tell whole numbers that fit from others, where parties perturb.

    ``unknown`` of them drew parts that a coalition of the others does not know. A sum of uniform
    parts has the density f; of numbers n the weights are ``f(x - n c)``. Their sum over n varies
    with x, which a wrong size makes random: the total variation from its mean, over x and over c,
    each of two such sums counted.
    """
    bins = 24
    part = 2**settings.SPREAD_BITS / parties
    found = []
    for place in np.arange(0.05, octaves, 0.1):
        step = max(round(bins * min(part * 2**place, 40.0)), 1)
        density, one = np.ones(1), np.full(step, 1 / step)
        spacing = round(step / (part * 2**place)) or 1
        for _ in range(unknown):
            density = np.convolve(density, one)
        padded = np.pad(density, (0, -density.size % spacing))
        sums = padded.reshape(-1, spacing).sum(axis=0) * spacing
        found.append(float(np.abs(sums - 1).mean() / 2))
    return 2 * float(np.mean(found))


@pytest.mark.parametrize(
    ("parties", "unknown", "stated"), [(3, 3, 0.01), (3, 1, 0.06), (15, 8, 0.01), (100, 100, 0.01)]
)
def test_what_parts_of_parties_leave_to_tell(parties: int, unknown: int, stated: float) -> None:
    """The figures of the threat model, for six octaves; a perturbation no wider would tell much."""
    assert unevenness(parties, unknown, 6) < stated


def test_a_narrow_sum_of_parts_would_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SPREAD_BITS", 0)
    assert unevenness(100, 100, 10) > 0.3


PARTIES, HONEST, THRESHOLDS = 5, (1, 3), 12


def federation(owners: list[int]) -> Clients:
    """Records of five parties; ``owners`` divides those of the two that do not collude."""
    rng = np.random.default_rng(0)
    scores, labels = rng.random(500), rng.integers(0, 2, 500)
    parties = np.arange(500) % PARTIES
    parties[np.isin(parties, HONEST)] = owners
    return Clients.from_arrays(scores, labels, parties)


@pytest.mark.parametrize("checked", [False, True])
def test_with_all_parties_but_two_only_the_sum_of_these_is_left(checked: bool) -> None:
    """Colluders know every key but the one that the two share, and their own.

    They take every other mask off, and have words ``w_1 + s`` and ``w_3 - s``, s uniform: their sum
    and nothing else. However records are divided over the two, the sum of their words is the same.
    """
    scheme = MaskedScheme(THRESHOLDS, 2**17, checked=checked)
    everybody = MaskedParty(scheme, bytes(16), bytes(range(16)), PARTIES, paired_by(b""))
    field, divisions = scheme.field, ([1, 3] * 100, [1] * 150 + [3] * 50)
    thresholds = np.linspace(0.0, 1.0, THRESHOLDS)
    made = [class_cells(federation(owners), thresholds) for owners in divisions]
    sent = []
    for cells in made:
        uploads = everybody.uploads(*cells, range(PARTIES))
        end = -settings.SEED_BYTES if checked else None
        sent.append([upload[settings.TAG_BYTES : end] for upload in uploads])
    first, second = (
        [field.from_bytes(words[party], scheme.sent_words) for party in HONEST] for words in sent
    )
    difference = first[0] + first[1] - second[0] - second[1]
    assert not np.any(difference % field.prime)
    assert all((one != other).any() for one, other in zip(first, second, strict=True))

    def summed_counts(cells: tuple[Integers, Integers], parties: tuple[int, ...]) -> Any:
        return np.concatenate(cells)[:, list(parties)].sum(axis=1)

    total = field.summed(sent[0], scheme.sent_words)[: 2 * THRESHOLDS]
    known = everybody._masks.joined[: 2 * THRESHOLDS]
    colluders = tuple(set(range(PARTIES)) - set(HONEST))
    left = (total - known - summed_counts(made[0], colluders)) % field.prime
    assert left.tolist() == summed_counts(made[0], HONEST).tolist()


def test_from_102_parties_on_two_that_share_no_mask_may_be_left() -> None:
    """So the table's 99 colluders are the most of which it says that two others are hidden."""
    whole = 2 * REACH + 1
    assert all(len(neighbours(party, whole)) == whole - 1 for party in range(whole))
    assert REACH + 1 not in neighbours(0, whole + 1)
    assert set(range(1, whole + 1)) - set(neighbours(0, whole + 1)) == {REACH + 1}


def one_more(clients: Clients) -> Clients:
    """The same records, and a positive one with the highest score."""
    owners = np.append(clients.client_of_record, 0)
    return Clients.from_arrays(np.append(clients.scores, 1.0), np.append(clients.labels, 1), owners)


@pytest.mark.parametrize(("positives", "within"), [(2000, 4), (5000, 24)])
def test_two_runs_that_differ_in_one_record_tell_the_size_of_its_class(
    positives: int, within: int
) -> None:
    """Of one figure many sizes fit; of two whose difference is a known record's few.

    The record's score beats all negatives, so ``A' = (P A + 1) / (P + 1)``. Both figures are off by
    at most 1e-7, by the last digit and the perturbation.
    """
    scores, labels = tacit.binormal_scores(positives, 3 * positives, 0.75, seed=0)
    clients = Clients.split(scores, labels, 3, seed=0)
    protocol = EncryptedAUC(most_records=5 * positives)
    before, after = (
        float(simulate(each, protocol, NoNoise()).server_result.value)
        for each in (clients, one_more(clients))
    )
    least, most = ((1 - before) / (after - before + off) - 1 for off in (2e-7, -2e-7))
    assert least - 1 <= positives <= most + 1
    assert most - least < 4 * within
    # and who does not know the record has a bound
    assert positives <= max(before, 1 - before) / abs(after - before - 2e-7)


def test_two_runs_that_differ_in_one_record_are_alike_to_who_is_told_nothing() -> None:
    """Every reply has the same fields and sizes, and the words of no party come again."""
    clients = federation([1, 3] * 100)
    protocol = EncryptedAUC(THRESHOLDS, most_records=1000, reveal="parties")
    runs = [
        list(conversation_of(each, protocol, NoNoise(), ClientState()))
        for each in (clients, one_more(clients))
    ]
    for (_, first), (_, second) in zip(*runs, strict=True):
        assert first.keys() == second.keys()
        for name in first:
            one, other = (
                np.asarray(getattr(each[name], "values", each[name])) for each in (first, second)
            )
            assert one.shape == other.shape
            if name == "counts":
                assert np.mean(one == other) < 0.1  # tags differ too
    assert all(np.all(np.asarray(run[-1][1]["opened"]) == 1) for run in runs)
