"""Estimates from devices' payloads are those of a simulation, for every kind of report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.collecting.campaign import CampaignError
from tacit.collecting.estimating import concluded, stage_query
from tacit.metrics.ranking import auc
from tacit.privacy import exact
from tacit.privacy.noise import SimulatedNoise, SystemNoise
from tacit.protocol.conversation import ClientState, Query
from tacit.protocol.devices import Payloads, influences_of
from tests.collecting.support import DOUBLE, SINGLE, all_payloads, in_memory, records_of, terms_of

CASES = (*SINGLE, *DOUBLE)
LARGE = 20_000

Made = TypeVar("Made")


def cache_by_case(
    function: Callable[[tuple[str, dict[str, Any]]], Made],
) -> Callable[[tuple[str, dict[str, Any]]], Made]:
    """Run once for every case; a case holds a dictionary, which has no hash."""
    made: dict[str, Made] = {}

    def cached(case: tuple[str, dict[str, Any]]) -> Made:
        if str(case) not in made:
            made[str(case)] = function(case)
        return made[str(case)]

    return cached


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_estimate_is_within_four_of_its_errors(case: tuple[str, dict[str, Any]]) -> None:
    """False alarm below 1e-4 a case, by the normal tail at four errors."""
    clients = records_of(LARGE)
    terms = terms_of(case, LARGE)
    result = concluded(terms, in_memory(all_payloads(terms, clients, SimulatedNoise(1)))).result
    error = np.hypot(float(result.privacy_error), float(result.approximation_error or 0.0))
    assert abs(float(result.value) - auc(clients.scores, clients.labels)) < 4 * error


@pytest.mark.parametrize("case", CASES, ids=str)
def test_counts_give_what_the_reports_themselves_give(case: tuple[str, dict[str, Any]]) -> None:
    """The conversation of a simulation, once with its replies and once with their counts."""
    terms, clients, noise = terms_of(case, 3000), records_of(3000), SimulatedNoise(2)
    devices, state, sent = terms.reports, ClientState(), list[Payloads]()
    conversation = terms.protocol.conversation(terms.devices)
    query = next(conversation)
    try:
        while True:
            reply = query.step.answer(clients, query, noise, state)
            if devices.stage_of(query) is not None:
                sent.append(devices.payloads(query, reply))
                assert sent[-1].shape[1] == devices.payload_bytes(query)
            query = conversation.send(reply)
    except StopIteration as ended:
        expected = ended.value
    counted = concluded(terms, in_memory(sent))
    assert counted.result.value == expected.value
    assert counted.result.privacy_error == expected.privacy_error
    sizes = map(devices.reported, counted.queries, counted.counts)
    assert list(sizes) == [each.shape[0] for each in sent]


@pytest.mark.parametrize("case", CASES, ids=str)
@given(cuts=st.lists(st.integers(0, 900), max_size=5))
@settings(max_examples=10)
def test_counts_are_the_same_however_reports_are_divided(
    case: tuple[str, dict[str, Any]], cuts: list[int]
) -> None:
    terms = terms_of(case, 900)
    sent = payloads_of_900(case)
    for stage, payloads in enumerate(sent):
        query = queries_of_900(case)[stage]
        whole = terms.reports.counts(query, payloads)
        parts = np.split(payloads, sorted(min(cut, len(payloads)) for cut in cuts))
        assert np.array_equal(terms.reports.counts_of_batches(query, iter(parts)), whole)


@cache_by_case
def payloads_of_900(case: tuple[str, dict[str, Any]]) -> list[Payloads]:
    """What 900 devices send."""
    return all_payloads(terms_of(case, 900), records_of(900), SimulatedNoise(7))


@cache_by_case
def queries_of_900(case: tuple[str, dict[str, Any]]) -> tuple[Query, ...]:
    """What they are asked."""
    return concluded(terms_of(case, 900), in_memory(payloads_of_900(case))).queries


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_honest_report_is_refused(case: tuple[str, dict[str, Any]]) -> None:
    terms = terms_of(case)
    payloads = all_payloads(terms, records_of(4000), SystemNoise())
    for stage, sent in enumerate(payloads):
        query = stage_query(terms, in_memory(payloads[:stage]))
        assert not terms.reports.refused(query, sent).any()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_nobody_sends_is_refused(case: tuple[str, dict[str, Any]]) -> None:
    terms = terms_of(case)
    for stage in range(terms.reports.stages):
        before = all_payloads(terms, records_of(4000), SimulatedNoise(3))[:stage]
        query = stage_query(terms, in_memory(before))
        sent = np.full((1, terms.reports.payload_bytes(query)), 255, dtype=np.uint8)
        assert terms.reports.refused(query, sent).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_whatever_bytes_come_are_refused_or_counted(case: tuple[str, dict[str, Any]]) -> None:
    """No payload stops the one task that writes, and each that is stored is counted."""
    terms, rng = terms_of(case, 900), np.random.default_rng(8)
    for query in queries_of_900(case):
        if terms.reports.stage_of(query) is None:
            continue
        size = terms.reports.payload_bytes(query)
        sent = rng.integers(0, 256, (20_000, size), dtype=np.uint8)
        # small first bytes and many zeros are the forms that mechanisms have
        sent[::2, 0] %= 8
        sent[::3, 1:] &= rng.integers(0, 256, (len(sent[::3]), size - 1), dtype=np.uint8)
        taken = sent[~terms.reports.refused(query, sent)]
        counts = terms.reports.counts(query, taken)
        assert terms.reports.reported(query, counts) == len(taken)


def test_padding_levels_and_implausible_bits_are_refused() -> None:
    terms = terms_of()
    query = stage_query(terms, [])
    bad = np.array([[1, 0, 0], [5, 1, 1], [2, 0b00011000, 0], [4, 255, 255]], dtype=np.uint8)
    good = np.array([[2, 0b10010000, 0], [4, 0b10000000, 4]], dtype=np.uint8)
    assert terms.reports.refused(query, bad).all()
    assert not terms.reports.refused(query, good).any()


def worst(case: tuple[str, dict[str, Any]], honest: list[Payloads], up: bool) -> float:
    """The largest change of the estimate by one of many replacements of 1 % of the last stage."""
    terms, rng = terms_of(case, LARGE), np.random.default_rng(4)
    query = stage_query(terms, in_memory(honest[:-1]))
    value = float(concluded(terms, in_memory(honest)).result.value)
    sent, changes = honest[-1], [0.0]
    liars = sent.shape[0] // 100
    for candidate in rng.permutation(np.unique(sent, axis=0))[:40]:
        if not terms.reports.refused(query, candidate[np.newaxis])[0]:
            lied = np.concatenate([np.tile(candidate, (liars, 1)), sent[liars:]])
            ended = concluded(terms, in_memory([*honest[:-1], lied]))
            changes.append(float(ended.result.value) - value)
    return max(changes) if up else min(changes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_liars_move_the_estimate_no_further_than_it_says(case: tuple[str, dict[str, Any]]) -> None:
    """To first order: a tenth more is left for the second, and an error for the mean report."""
    terms = terms_of(case, LARGE)
    honest = all_payloads(terms, records_of(LARGE), SimulatedNoise(5))
    ended = concluded(terms, in_memory(honest))
    least, most = influences_of(terms.reports, ended)
    assert least < 0 < most
    for bound, up in ((most, True), (least, False)):
        assert abs(worst(case, honest, up)) < 0.011 * abs(bound) + 0.002


def test_the_bound_is_reached_by_the_worst_symbol() -> None:
    case = SINGLE[2]
    terms = terms_of(case, LARGE)
    honest = all_payloads(terms, records_of(LARGE), SimulatedNoise(6))
    most = influences_of(terms.reports, concluded(terms, in_memory(honest)))[1]
    assert worst(case, honest, up=True) > 0.008 * most


def test_too_few_reports_are_an_error() -> None:
    terms = terms_of()
    with pytest.raises(CampaignError, match="two reports, got 0"):
        concluded(terms, in_memory([np.zeros((0, 3), dtype=np.uint8)]))
    with pytest.raises(CampaignError, match="2 stages, got 1"):
        concluded(terms_of(DOUBLE[1]), in_memory([np.zeros((9, 2), dtype=np.uint8)]))


def test_the_device_and_the_step_draw_by_the_same_integers() -> None:
    """The threshold that devices get is the one below which the system's words flip a bit."""
    how = terms_of().reports.instructions(stage_query(terms_of(), []))
    threshold = int(how["set_words"])
    # likelier over rarer never exceeds exp(2), and falls short of it by less than 1e-12
    assert 0 <= np.exp(2.0) - (2**64 - threshold) / threshold < 1e-11
    assert exact.WORD == 64
