"""Campaigns: what is signed, what is refused, and that nothing changes under a name.

Estimates from devices' payloads are those of a simulation, for every kind of report.

The central guarantee of sealed batches: where it is said, of what, and beside the local one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.collecting import campaign
from tacit.collecting.folder import Folder, sealed_payloads, serial_of, write_batch
from tacit.collecting.log import Disk, Log
from tacit.crypto.identities import Identity
from tacit.privacy import exact
from tacit.privacy.shuffling import shuffled_epsilon
from tacit.protocol import ClientState, Query, SimulatedNoise, SystemNoise, protocol_of
from tacit.protocol.devices import Payloads, influences_of
from tests import known
from tests.collecting.support import (
    DOUBLE,
    LOCAL_TREE,
    SINGLE,
    all_payloads,
    in_memory,
    messages_of,
    new_folder,
    records_of,
    terms_of,
)
from tests.terminal import run, succeeded

TOML = """
name = "a trial"
protocol = "score-histogram"
devices = 100
opens = 2026-01-01T00:00:00Z
closes = 2026-02-01T00:00:00Z
[settings]
trust = "local"
epsilon = 1.0
height = 3
scale = "even"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "campaign.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_gives_the_terms(tmp_path: Path) -> None:
    terms = campaign.Terms.from_toml(written(tmp_path, TOML))
    assert terms.devices == 100
    assert terms.protocol == protocol_of(LOCAL_TREE[0], {**LOCAL_TREE[1], "epsilon": 1.0})


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ('name = "a trial"', 'name = ""', "name must have 1 to 100 characters"),
        ("devices = 100", "devices = 1", "devices must be at least 2, got 1"),
        ("closes = 2026-02-01", "closes = 2025-02-01", "closes must be after opens"),
        ("T00:00:00Z\ncloses", "T00:00:00\ncloses", "opens must be a date and time"),
        ("devices = 100", "devices = 100\nspeed = 3", r"unknown fields \['speed'\]"),
        ("devices = 100", f"devices = {'[' * 5000}", "campaign.toml: maximum recursion depth"),
        ("devices = 100", "", r"missing fields \['devices'\]"),
        ('trust = "local"', 'trust = "secure-sum"', "has no reports of single devices"),
        ("height = 3", "height = 9", "height must be at most 7"),
        ("epsilon = 1.0", "epsilon = -1.0", "epsilon must be positive and finite, got -1.0"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, before: str, after: str, error: str) -> None:
    path = written(tmp_path, TOML.replace(before, after))
    with pytest.raises(ValueError, match=error):
        Folder(tmp_path / "campaign").signed(campaign.Terms.from_toml(path))


def test_a_campaign_is_signed_once_and_never_changes(folder: Folder) -> None:
    digest = folder.campaign.digest
    assert Folder(folder.path).signed(terms_of()).digest == digest
    changed = replace(
        terms_of(), protocol=protocol_of(LOCAL_TREE[0], {**LOCAL_TREE[1], "epsilon": 3.0})
    )
    with pytest.raises(campaign.CampaignError, match="with other epsilon, settings; devices"):
        Folder(folder.path).signed(changed)


def test_keys_are_readable_by_their_owner_only(folder: Folder) -> None:
    assert folder.coordinator_key.stat().st_mode & 0o077 == 0
    assert folder.tokens
    assert (folder.path / "keys" / "tokens.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"document": 3}', "null", "[" * 100_000])
def test_what_is_no_signed_document_is_refused(text: str) -> None:
    with pytest.raises(campaign.CampaignError, match="no signed document"):
        campaign.Signed.from_json(text)


def test_a_changed_document_and_one_of_another_format_are_refused(folder: Folder) -> None:
    signed = folder.campaign.signed
    forged = replace(signed, document=signed.document.replace(b"2.0", b"9.0"))
    with pytest.raises(campaign.CampaignError, match="signature"):
        campaign.Signed.from_json(forged.to_json())
    other = campaign.Signed.by(Identity.generate(), {"format": "tacit-campaign/2"})
    with pytest.raises(campaign.CampaignError, match="format must be 'tacit-campaign/1'"):
        campaign.Campaign(other)


def test_the_document_says_what_a_device_computes(folder: Folder) -> None:
    content: dict[str, Any] = json.loads(folder.campaign.signed.document)
    assert content["report"]["kind"] == "unary"
    assert content["epsilon"] == 2.0
    assert content["protects"] == "replace"
    assert datetime.fromtimestamp(content["opens"], UTC).year == 2020


CASES = {str(case): case for case in (*SINGLE, *DOUBLE)}
LARGE = 20_000


@cache
def payloads_of_900(name: str) -> list[Payloads]:
    """What 900 devices send."""
    return all_payloads(terms_of(CASES[name], 900), records_of(900), SimulatedNoise(7))


@cache
def queries_of_900(name: str) -> tuple[Query, ...]:
    """What they are asked."""
    return campaign.concluded(terms_of(CASES[name], 900), in_memory(payloads_of_900(name))).queries


@pytest.mark.parametrize("name", CASES)
def test_counts_give_what_the_reports_themselves_give(name: str) -> None:
    """The conversation of a simulation, once with its replies and once with their counts."""
    terms, clients, noise = terms_of(CASES[name], 3000), records_of(3000), SimulatedNoise(2)
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
    counted = campaign.concluded(terms, in_memory(sent))
    assert counted.result.value == expected.value
    assert counted.result.privacy_error == expected.privacy_error
    sizes = map(devices.reported, counted.queries, counted.counts)
    assert list(sizes) == [each.shape[0] for each in sent]


@pytest.mark.parametrize("name", CASES)
@given(cuts=st.lists(st.integers(0, 900), max_size=5))
@settings(max_examples=10)
def test_counts_are_the_same_however_reports_are_divided(name: str, cuts: list[int]) -> None:
    terms = terms_of(CASES[name], 900)
    sent = payloads_of_900(name)
    for stage, payloads in enumerate(sent):
        query = queries_of_900(name)[stage]
        whole = terms.reports.counts(query, payloads)
        parts = np.split(payloads, sorted(min(cut, len(payloads)) for cut in cuts))
        assert np.array_equal(terms.reports.counts_of_batches(query, iter(parts)), whole)


@pytest.mark.parametrize("name", CASES)
def test_no_honest_report_is_refused_and_what_nobody_sends_is(name: str) -> None:
    terms = terms_of(CASES[name])
    payloads = all_payloads(terms, records_of(4000), SystemNoise())
    for stage, sent in enumerate(payloads):
        query = campaign.stage_query(terms, in_memory(payloads[:stage]))
        assert not terms.reports.refused(query, sent).any()
        assert terms.reports.refused(query, np.full_like(sent[:1], 255)).all()


@pytest.mark.parametrize("name", CASES)
def test_whatever_bytes_come_are_refused_or_counted(name: str) -> None:
    """No payload stops the one task that writes, and each that is stored is counted."""
    terms, rng = terms_of(CASES[name], 900), np.random.default_rng(8)
    for query in queries_of_900(name):
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
    query = campaign.stage_query(terms, [])
    bad = np.array([[1, 0, 0], [5, 1, 1], [2, 0b00011000, 0], [4, 255, 255]], dtype=np.uint8)
    good = np.array([[2, 0b10010000, 0], [4, 0b10000000, 4]], dtype=np.uint8)
    assert terms.reports.refused(query, bad).all()
    assert not terms.reports.refused(query, good).any()


def worst(terms: campaign.Terms, honest: list[Payloads]) -> tuple[float, float]:
    """Least and largest change of the estimate by a replacement of 1 % of the last stage, of 40."""
    rng, query = np.random.default_rng(4), campaign.stage_query(terms, in_memory(honest[:-1]))
    value = float(campaign.concluded(terms, in_memory(honest)).result.value)
    sent, changes = honest[-1], [0.0]
    liars = sent.shape[0] // 100
    for candidate in rng.permutation(np.unique(sent, axis=0))[:40]:
        if not terms.reports.refused(query, candidate[np.newaxis])[0]:
            lied = np.concatenate([np.tile(candidate, (liars, 1)), sent[liars:]])
            ended = campaign.concluded(terms, in_memory([*honest[:-1], lied]))
            changes.append(float(ended.result.value) - value)
    return min(changes), max(changes)


@pytest.mark.parametrize("name", CASES)
def test_liars_move_the_estimate_no_further_than_it_says(name: str) -> None:
    """To first order: a tenth more is left for the second, and an error for the mean report.

    Where there are few reports, the worst of them reaches the bound.
    """
    terms = terms_of(CASES[name], LARGE)
    honest = all_payloads(terms, records_of(LARGE), SimulatedNoise(5))
    bounds = influences_of(terms.reports, campaign.concluded(terms, in_memory(honest)))
    assert bounds[0] < 0 < bounds[1]
    moved = worst(terms, honest)
    for move, bound in zip(moved, bounds, strict=True):
        assert abs(move) < 0.011 * abs(bound) + 0.002
    if CASES[name] == SINGLE[2]:
        assert moved[1] > 0.008 * bounds[1]


def test_too_few_reports_are_an_error() -> None:
    terms = terms_of()
    with pytest.raises(campaign.CampaignError, match="two reports, got 0"):
        campaign.concluded(terms, in_memory([np.zeros((0, 3), dtype=np.uint8)]))


def test_the_device_and_the_step_draw_by_the_same_integers() -> None:
    """The threshold that devices get is the one below which the system's words flip a bit."""
    how = terms_of().reports.instructions(campaign.stage_query(terms_of(), []))
    threshold = int(how["set_words"])
    # likelier over rarer never exceeds exp(2), and falls short of it by less than 1e-12
    assert 0 <= np.exp(2.0) - (2**64 - threshold) / threshold < 1e-11
    assert exact.WORD == 64


def sealed_folder(path: Path, sizes: tuple[int, ...]) -> Folder:
    """A campaign with sealed batches of these sizes."""
    folder = new_folder(path)
    for number, size in enumerate(sizes, 1):
        bodies = messages_of(folder, size, seed=number)
        serials = np.array([serial_of(body) for body in bodies], dtype=np.uint64)
        write_batch(folder.reports, folder.spent, number, sealed_payloads(bodies, 1), serials)
    return folder


def estimated(folder: Folder, *options: str) -> str:
    outcome = succeeded(run("collect", "estimate", folder.path, *options))
    return outcome.output


def test_the_smallest_batch_and_its_honest_reports_count() -> None:
    found = known(campaign.shuffled_of(terms_of(), [5000, 4000, 9000], 0.5))
    assert (found.batches, found.reports, found.least) == (3, 18_000, 4000)
    bound = shuffled_epsilon(2.0, 2000, campaign.DELTA)
    assert bound < found.epsilon < 1.05 * bound
    assert found.local_epsilon == 2.0


@pytest.mark.parametrize("name", CASES)
def test_a_guarantee_is_said_of_one_stage_without_public_labels(name: str) -> None:
    """Public labels split a batch into classes; a second stage depends on the first."""
    found = campaign.shuffled_of(terms_of(CASES[name]), [10_000])
    assert (found is not None) == (CASES[name] in (SINGLE[0], SINGLE[2]))
    assert found is None or found.epsilon < 0.2


def test_a_batch_of_few_has_the_local_guarantee() -> None:
    found = known(campaign.shuffled_of(terms_of(), [1, 10_000]))
    assert found.epsilon == pytest.approx(2.0, rel=1e-5)
    assert found.epsilon <= 2.0


def test_an_estimate_and_its_report_say_both_guarantees(tmp_path: Path) -> None:
    folder, page = sealed_folder(tmp_path, (2500, 2000)), tmp_path / "result.html"
    text = " ".join(estimated(folder, "--report", str(page)).split())
    assert "privacy spent" in text
    assert "epsilon 2 a client" in text
    assert "2 with 4,500 reports: epsilon 0." in text
    assert "if at least 90 % of the reports of each batch are honest" in text
    entry = json.loads(estimated(folder, "--json", "--honest", "0.5"))
    assert entry["spent"]["epsilon"] == 2.0
    assert (entry["shuffled"]["least"], entry["shuffled"]["honest"]) == (2000, 0.5)
    html = page.read_text(encoding="utf-8")
    assert "Each client spent at most epsilon 2" in html
    assert "Sealed batches: 2 with 4,500 reports: epsilon 0." in html


def test_reports_that_are_not_sealed_have_no_other_guarantee(folder: Folder) -> None:
    log = Log(folder.reports / "log-1.bin", Disk())
    log.append(messages_of(folder, 2000))
    log.close()
    assert folder.stages()[0].sealed == []
    assert "sealed batches" not in estimated(folder)
    assert "shuffled" not in json.loads(estimated(folder, "--json"))


@pytest.mark.parametrize("honest", ["0", "1.5", "nan"])
def test_a_part_that_is_none_is_refused(tmp_path: Path, honest: str) -> None:
    assert run("collect", "estimate", tmp_path, "--honest", honest).exit_code == 2
