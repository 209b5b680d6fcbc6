"""AUCs of hidden counts: exact on their thresholds, small messages, and nothing else in anybody's
hands."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import EncryptedAUC, FheAUC
from tacit.arrays import Integers
from tacit.crypto.homomorphic import engine, keys, schemes
from tacit.crypto.identities import Identity
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY, SCALES, named_scale
from tacit.protocol import Clients, ClientState, DataError, NoNoise, Query
from tacit.protocols.encrypted import masked_scheme, sessions, steps
from tacit.protocols.encrypted.masked_scheme import MaskedScheme, Products
from tacit.protocols.published.fhe import bfv, packing
from tacit.protocols.published.fhe import protocol as fhe
from tacit.protocols.published.fhe.packing import Counts, Layout, Scale, cumulative_counts
from tacit.running.simulation import simulate
from tacit.testing.checks import conversation_of
from tests.protocols.encrypted import variants
from tests.protocols.encrypted.variants import VARIANTS, Parties, federation

pytest.importorskip("tenseal")


def naive_trapezoid(clients: Clients, thresholds: int, scale: str = PROBABILITY) -> float:
    """The area under the pooled curve, point by point."""
    points = [(0, 0)]
    for threshold in named_scale(scale).scores(np.linspace(0, 1, thresholds))[::-1]:
        called = clients.scores >= threshold
        hits = int(clients.labels[called].sum())
        points.append((int(called.sum()) - hits, hits))
    area = sum((b[0] - a[0]) * (a[1] + b[1]) for a, b in pairwise(points))
    return area / (2 * points[-1][0] * points[-1][1])


def covers(made: tacit.Evaluation) -> bool:
    """Whether the certain range holds the exact AUC."""
    low, high = made.auc.interval()
    return made.exact is not None and low <= made.exact <= high


def run(clients: Clients, protocol: Any, **options: Any) -> float:
    return float(simulate(clients, protocol, NoNoise(), **options).server_result.value)


@pytest.mark.parametrize(
    ("form", "scale", "clients"),
    [
        (form, scale, (2, 7)[(row + column) % 2])
        for row, form in enumerate(variants.EXACT)
        for column, scale in enumerate(SCALES)
    ],
)
def test_exact_without_perturbation(form: str, scale: str, clients: int) -> None:
    """Also one party at a time: all that they share travelled encrypted, past the aggregator."""
    data = dense("crowded", clients)
    plain = VARIANTS[form](40, most_records=2000, perturbed=False, scale=scale)
    chunk = 1 if clients == 2 else None
    found = simulate(data, plain, NoNoise(), chunk=chunk).server_result
    half_range = naive_half_range(data, 40, scale)
    assert float(found.value) == naive_trapezoid(data, 40, scale)
    assert half_range <= Fraction(float(found.half_range))
    assert float(found.half_range) == pytest.approx(float(half_range), rel=2e-15)
    assert bool(found.covers(tacit.ExactAUC().exact(data)))


@pytest.mark.parametrize("form", VARIANTS)
def test_a_figure_is_off_by_a_millionth_and_told_to_seven_places(form: str) -> None:
    """With all its digits the aggregator, which knows how it answered, finds the class totals."""
    data = federation(4000, 5, seed=1)
    value = run(data, VARIANTS[form](40, most_records=5000))
    assert value == round(value, 7)
    assert value == pytest.approx(naive_trapezoid(data, 40), abs=1e-6)


@pytest.mark.parametrize(
    ("form", "thresholds", "clients", "most", "first"),
    [
        ("masked", 100, 100, 3000, 6200),
        ("masked, malicious", 100, 100, 7000, 12_000),
        ("bfv", 100, 5, 200_000, 1_400_000),
        ("bfv", None, 5, 200_000, 1_400_000),
        ("malicious", 100, 5, 400_000, 1_600_000),
    ],
)
def test_bytes_of_a_client(
    form: str, thresholds: int | None, clients: int, most: int, first: int
) -> None:
    protocol = VARIANTS[form](thresholds, most_records=5000)
    made = simulate(federation(4000, clients), protocol, NoNoise())
    assert made.rounds == (5 if protocol.checked else 4)
    assert np.all(made.bytes_sent[1:] <= most)
    assert made.bytes_sent[0] <= first


def naive_half_range(clients: Clients, thresholds: int, scale: str = PROBABILITY) -> Fraction:
    """Half the pairs that share a cell, over all; scores of 1 are ties among themselves."""
    edges = named_scale(scale).scores(np.linspace(0, 1, thresholds))
    cells = np.searchsorted(edges, clients.scores, side="right")
    inside = clients.scores < edges[-1]
    counts = [
        np.bincount(cells[inside & (clients.labels == label)], minlength=thresholds + 1)
        for label in (0, 1)
    ]
    positives = int(clients.labels.sum())
    return Fraction(int(counts[0] @ counts[1]), 2 * positives * (clients.records - positives))


def dense(kind: str, clients: int = 5) -> Clients:
    """Scores at both ends of [0, 1], on few points, or at its very ends."""
    scores, labels = tacit.binormal_scores(600, 1400, 0.75, seed=0)
    inside = np.clip(scores, 1e-9, 1 - 1e-9)
    made = {
        "crowded": 1 / (1 + (1 / inside - 1) ** 6),
        "tied": np.round(scores, 1),
        "at the ends": np.where(scores > 0.6, 1.0, np.where(scores < 0.4, 0.0, scores)),
        "apart": np.where(labels == 1, 0.95, 0.05),
    }
    return Clients.split(made[kind], labels, clients, seed=0)


KINDS = ("crowded", "tied", "at the ends", "apart")
FORMS = {**VARIANTS, "even": EncryptedAUC}


@pytest.mark.parametrize(
    ("kind", "form", "thresholds"),
    [
        (kind, form, (25, 50, 100)[(row + column) % 3])
        for row, kind in enumerate(KINDS)
        for column, form in enumerate(FORMS)
        if (row + column) % 2
    ],
)
def test_the_interval_holds_the_exact_auc_whatever_the_scores(
    kind: str, form: str, thresholds: int
) -> None:
    """It is the certain range, no wider than pairs in cells, perturbation and rounding make it.

    Every form meets two kinds of scores, and every kind three forms and numbers of thresholds.
    """
    data, scale = dense(kind), EVEN if form == "even" else PROBABILITY
    protocol = FORMS[form](thresholds, most_records=2000, scale=scale)
    made = tacit.evaluate(data, protocol, exact=True)
    assert covers(made)
    exact = float(naive_half_range(data, thresholds, scale))
    assert made.auc.half_range is not None
    assert made.auc.approximation_error == pytest.approx(made.auc.half_range / math.sqrt(3))
    assert exact <= made.auc.half_range < 1.01 * exact + (1e-5 if form in ("bfv", "ckks") else 3e-6)


def test_the_range_of_ckks_holds_the_scheme_s_own_error() -> None:
    """Rare positives: the denominator is near what the scheme can tell from 0."""
    scores, labels = tacit.binormal_scores(12, 5988, 0.9, seed=0)
    data = Clients.split(scores, labels, 3, seed=0)
    protocol = FheAUC(100, "ckks", most_records=12_000)
    made = tacit.evaluate(data, protocol, exact=True)
    assert covers(made)
    assert abs(made.auc.value - naive_trapezoid(data, 100)) < 1e-5


Numbers = tuple[int, int, int]


def on_masked_values(true: Numbers, parts: tuple[float, ...]) -> masked_scheme.Certain:
    """The figures of an answer about these numbers, with a share of every perturbation."""
    scheme = MaskedScheme(100, 2**17)
    multiplier = int(2 ** (scheme.least_bits + parts[3] * scheme.octaves))
    widest = [times * scheme.width(multiplier) - 1 for times in masked_scheme.WIDTHS]
    extra = [int(part * width) for part, width in zip(parts, widest, strict=False)]
    numerator, denominator, tied = (multiplier * number for number in true)
    numbers = Products(numerator + extra[0], denominator + extra[1], tied + extra[2])
    found = masked_scheme.certain(numbers, scheme)
    assert (
        found.half_range <= true[2] / (2 * true[1]) + masked_scheme.SLACK + masked_scheme.PRECISION
    )
    return found


def on_ciphertexts(true: Numbers, parts: tuple[float, ...]) -> masked_scheme.Certain:
    scale = Scale(2**17)
    extra = [int(part * scale.width) for part in parts]
    numerator, denominator, tied = (scale.bound // 2 * 2 * number for number in true)
    numbers = Products(numerator + extra[0], denominator + extra[1], tied + extra[2])
    return scale.area(numbers, perturbed=True)


@pytest.mark.parametrize("answered", [on_masked_values, on_ciphertexts])
@given(
    pairs=st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9)),
    parts=st.tuples(*[st.floats(0, 1)] * 4),
    decimals=st.integers(7, 12),
)
def test_no_perturbation_moves_the_range_off_the_exact_auc(
    answered: Callable[[Numbers, tuple[float, ...]], masked_scheme.Certain],
    pairs: Numbers,
    parts: tuple[float, ...],
    decimals: int,
) -> None:
    """For any numbers of pairs in one cell that count, none or all of them, and any u, v, w.

    Without the perturbations' width in the bounds this fails where no pair shares a cell.
    """
    before, tied, after = pairs
    total = before + tied + after + 10**9
    found = answered((2 * before + tied, total, tied), parts)
    for area in (found, found.rounded(decimals, 3)):
        value, reach = Fraction(area.value), Fraction(area.half_range)
        assert value - reach <= Fraction(before, total)
        assert Fraction(before + tied, total) <= value + reach


@pytest.mark.parametrize("changed", [Products(2**60, 5, 0), Products(10, 4, 0), Products(3, 4, 9)])
def test_numbers_that_no_honest_answer_holds_are_refused(changed: Products) -> None:
    with pytest.raises(packing.CheatingError, match="did not compute as agreed"):
        Scale(16).area(changed, perturbed=False)


def test_overflow_is_refused_before_anything_is_sent() -> None:
    assert FheAUC(scheme=variants.CHECKED, most_records=11_863_283)._exact.runs == 2
    with pytest.raises(DataError, match="most_records is 500 for all parties"):
        run(federation(4000, 5), EncryptedAUC(10, most_records=500))


@pytest.mark.parametrize(("factor", "runs"), [(1, 1), (2**13, 2), (2**30, 2)])
@pytest.mark.parametrize("perturbed", [True, False])
def test_more_records_than_a_modulus_holds(factor: int, runs: int, perturbed: bool) -> None:
    """Counts of up to 4 * 10^12 records: exact, but for the perturbation, modulo two primes."""
    data = federation(4000, 2)
    protocol = FheAUC(20, most_records=4000 * factor, perturbed=perturbed)
    party = protocol.scheme_party(os.urandom(32), bytes(16), 2)
    counts = cumulative_counts(data, protocol.threshold_scores)
    names = ("rising", "falling", "inside", "positives", "negatives")
    many = Counts(**{name: factor * getattr(counts, name) for name in names})
    uploads = party.uploads(many, [0, 1])
    assert {len(upload) for upload in uploads} == {runs}
    answers = protocol.scheme_aggregator(party.evaluation_keys()).answers(uploads)
    found, exact = party.decrypted(answers), naive_trapezoid(data, 20)
    assert abs(found.value - exact) < 1e-6 * exact
    assert (found.value == exact) == (not perturbed)
    assert found.half_range == pytest.approx(float(naive_half_range(data, 20)), abs=2e-6)


@pytest.mark.parametrize(
    ("form", "most_records", "error", "says"),
    [
        ("bfv", 1001, engine.HomomorphicError, "more than 1001 records"),
        ("malicious", 2**20, DataError, "agree on a bound nearer"),
        ("masked, malicious", 2**22, DataError, "without both classes|agree on a bound nearer"),
    ],
)
def test_a_bound_below_or_far_above_the_records_is_noticed_by_the_answer(
    form: str, most_records: int, error: type[Exception], says: str
) -> None:
    """No party alone is too large, but all together are four times what was agreed."""
    with pytest.raises(error, match=says):
        run(federation(4000), VARIANTS[form](10, most_records=most_records))


def reached(first: Integers, second: Integers) -> Integers:
    """How many pairs of positions, one of each, the square brings to every coefficient."""
    spectrum = [np.fft.rfft(np.bincount(own, minlength=schemes.DEGREE)) for own in (first, second)]
    return np.rint(np.fft.irfft(spectrum[0] * spectrum[1], schemes.DEGREE)).astype(np.int64)


def test_no_layout_has_collisions() -> None:
    """Sizes at both ends of those accepted, that of 100 thresholds, and some between.

    No other product of two used positions reaches a number of the answer, or the tag.
    """
    for size in [5, 6, 7, 8, 404, 908, 909, *range(9, 908, 300)]:
        layout = Layout(size)
        numerator, denominator, hidden, _ = layout.positions
        assert denominator == sum(layout.totals) % schemes.DEGREE
        rising, inside = (
            reached(each, layout.falling()) for each in (layout.rising(), layout.inside())
        )
        meant = 2 * np.array([rising[numerator], 1, inside[hidden], 0])
        found = reached(layout.used, layout.used)[list(layout.positions)]
        assert found.tolist() == meant.tolist()
        assert (rising[numerator], inside[hidden]) == (size, size)
        assert layout.used.max() < schemes.DEGREE
        assert np.unique(layout.used).size == 3 * size + 6


@pytest.mark.parametrize("products", [24, 44, 404, 909])
def test_other_coefficients_of_the_square_mix_many_products(products: int) -> None:
    """Where counts of two cells meet, at least J / 2 products of independent slots do.

    An aggregator that shifts the square would otherwise bring a single one into an answer.
    """
    layout = Layout(products)
    firsts = np.concatenate([layout.rising(), layout.inside()])
    across = np.flatnonzero(reached(firsts, layout.falling()))
    others = np.setdiff1d(across, layout.positions)
    assert (reached(layout.used, layout.used)[others] // 2).min() >= products // 2


def _numbers(perturbed: bool, times: int) -> tuple[list[Products], int, int]:
    """What key owners see of many answers to one set of counts, and the true numbers."""
    data = federation(records=2**16, clients=2)
    scheme = bfv.ExactScheme(20, Scale(2**16), False, perturbed)
    party = bfv.ExactParty(scheme, os.urandom(32), bytes(16), 2)
    thresholds = np.linspace(0.0, 1.0, 20)
    uploads = party.uploads(cumulative_counts(data, thresholds), [0, 1])
    aggregator = bfv.ExactAggregator(scheme, party.evaluation_keys())
    seen = [party._numbers(0, aggregator.answers(uploads)[0]) for _ in range(times)]
    counts = cumulative_counts(Clients.from_arrays(data.scores, data.labels), thresholds)
    numerator = 2 * int((counts.rising * counts.falling).sum())
    return seen, numerator, 2 * int(counts.positives[0]) * int(counts.negatives[0])


def test_perturbed_answers_betray_no_multiplier_by_their_gcd() -> None:
    """Unperturbed, the gcd of two is a multiple of c. Perturbed, one of fifteen above 2^15 is rare.

    The gcd of two random numbers is above g with probability below ``1 / g``: once in 2,000 runs.
    """
    exact, numerator, denominator = _numbers(False, 3)
    common = math.gcd(numerator, denominator)
    assert len({seen.denominator // denominator for seen in exact}) > 1
    for seen in exact:
        assert math.gcd(*seen[:2]) * denominator == common * seen.denominator
    perturbed, _, _ = _numbers(True, 5)
    assert all(math.gcd(*two) < 2**15 for seen in perturbed for two in combinations(seen, 2))
    for seen in perturbed:
        assert abs(seen[0] / seen[1] - numerator / denominator) < 1e-6


@pytest.mark.parametrize(("most_records", "share"), [(2**16, 1 / 3), (2**17, 1.0)])
def test_as_many_multipliers_fit_an_answer_as_is_said(most_records: int, share: float) -> None:
    """A party that tries every c finds even X, Y and Z within the perturbation for this many."""
    scale = Scale(most_records)
    half = most_records // 2
    true = np.array([2 * (half * half * 3 // 4), 2 * half * half, 2 * (half * half // 97)])
    added = np.array([packing.uniform_below(scale.width) for _ in range(3)])
    seen = scale.multiplier() * true + added
    tried = np.arange(scale.bound // packing.MULTIPLIER_RANGE, scale.bound + 1)[:, np.newaxis]
    even = seen // (2 * tried) * 2
    fits = (seen - tried * even < scale.width).all(axis=1)
    assert fits.mean() >= share - 1e-3


def test_identities_are_pinned() -> None:
    data, state = federation(4000, 3), variants.pinned(3)
    protocol = EncryptedAUC(10, most_records=5000)
    assert run(data, protocol, state=state) == pytest.approx(naive_trapezoid(data, 10), rel=1e-6)
    identities, roster, _ = state.recall(sessions.PINNED)
    for others, says in (
        ([Identity.generate() for _ in range(3)], "not those of the roster"),
        (identities[:2], "2 identities are pinned for 3 clients"),
    ):
        strangers = ClientState()
        sessions.pin(strangers, others, roster)
        with pytest.raises(engine.HomomorphicError, match=says):
            run(data, protocol, state=strangers)


@pytest.mark.parametrize("form", ["masked", "bfv"])
def test_the_aggregator_is_sent_no_key_and_no_count(form: str) -> None:
    """All bytes that reach the generator, searched for secrets; and counts in masked words."""
    protocol, state = VARIANTS[form](10, most_records=2000, reveal="parties"), ClientState()
    seen, secrets = b"", list[bytes]()
    for query, reply in conversation_of(federation(), protocol, NoNoise(), state):
        seen += b"".join(np.asarray(getattr(f, "values", f)).tobytes() for f in reply.values())
        seat = state.recall(sessions.NOTE)
        if seat is not None and seat.secret is not None:
            member, meeting = seat.members[0], seat.known_meeting
            seed = keys.key_seed(seat.secret, meeting.session)
            made = engine.stored(engine.secret_key_of(schemes.bfv_parameters(), seed))
            alone = [member.pair_key(meeting, other) for other in (1, 2, 3)]
            alone.append(member.party_key(meeting, b"blinding"))
            secrets = [seat.secret, seed, made[100:164], *alone]
        if query.step is steps.send_masked:
            words = protocol.masked_scheme.words
            for message in sessions.as_parts(reply["counts"]):
                # a count is below 2^11; a uniform word of 64 bits is so once in 2^53
                sent = protocol.masked_scheme.field.from_bytes(message[8:], words)
                assert all(word > 2**11 for word in sent)
    assert len(secrets) == 7
    assert not any(secret in seen for secret in secrets)
    assert state.recall(sessions.NOTE) is None


def test_steps_out_of_turn() -> None:
    parties = Parties(FheAUC(10, most_records=5000), federation(4000, 2))
    boxes = {"box": sessions.as_field([b"", b""])}
    counting = Query(fhe.send_counts, parties.protocol, per_client=boxes)
    with pytest.raises(engine.HomomorphicError, match="in no session"):
        parties.answer(0, counting)
    parties.answer(0)
    with pytest.raises(engine.HomomorphicError, match="not introduced themselves yet"):
        parties.answer(0, counting)
    with pytest.raises(engine.HomomorphicError, match="messages travel as bytes"):
        sessions.as_parts(np.zeros(3))


def test_the_secret_is_sealed_once() -> None:
    parties = Parties(FheAUC(20, most_records=5000), federation(4000, 2))
    parties.until(fhe.share_keys)
    parties.answer(0)
    with pytest.raises(engine.HomomorphicError, match="a key seals one message"):
        parties.answer(0)


OWN_EDGES = (-0.5, -0.25, 0.0, 0.25, 0.5, 0.75)


@pytest.mark.parametrize("form", ["masked", "bfv", "ckks"])
@pytest.mark.parametrize(("scale", "edges"), [("log-odds", None), ("real", OWN_EDGES)])
def test_scores_beyond_the_end_thresholds_stay_in_the_certain_range(
    scale: str, edges: tuple[float, ...] | None, form: str
) -> None:
    """Nearly all are beyond them, and in the wrong order: taken as ties, they would count half."""
    rng = np.random.default_rng(0)
    ends = np.concatenate([rng.normal(1e300, 1e290, 100), rng.normal(-50, 1, 100), [0.0, 0.3]])
    labels = (ends < np.median(ends)).astype(np.int8)
    data = Clients.split(ends, labels, 3, seed=0)
    protocol = VARIANTS[form](edges or 20, most_records=400, scale=scale)
    made = tacit.evaluate(data, protocol, exact=True)
    assert covers(made)
    assert protocol.threshold_scores[[0, -1]].tolist() == [-math.inf, math.inf]
    assert edges is None or protocol.threshold_scores[1:-1].tolist() == list(edges[1:-1])


@pytest.mark.parametrize("form", VARIANTS)
def test_terms_name_the_protocol_and_all_that_is_agreed(form: str) -> None:
    """Parties with other settings, or of another protocol, are in no session together."""
    protocol = VARIANTS[form](most_records=100)
    terms = json.loads(protocol.terms)
    assert terms == {"name": protocol.name, **protocol.settings}
    assert len({VARIANTS[each](20, most_records=100).terms for each in VARIANTS}) == len(VARIANTS)


@pytest.mark.parametrize(
    ("form", "scale", "expected"),
    [
        ("masked", PROBABILITY, 1000),
        ("masked, malicious", PROBABILITY, 1000),
        ("bfv", PROBABILITY, 909),
        ("bfv", "log-odds", 909),
        ("malicious", PROBABILITY, 226),
        ("masked", EVEN, 100),
        ("malicious", EVEN, 100),
        ("ckks", PROBABILITY, 100),
    ],
)
def test_as_many_thresholds_as_cost_no_bytes(form: str, scale: str, expected: int) -> None:
    assert VARIANTS[form](most_records=100, scale=scale).thresholds == expected
