"""AUCs of several classes on masked counts: exact, and under keys and multipliers of each class."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import tacit
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.masking import MaskedValueError
from tacit.protocol import Clients, DataError, NoNoise, declared, steps, values
from tacit.protocols.encrypted import classes as by_class
from tacit.protocols.encrypted import hidden, masked_scheme, sessions
from tacit.protocols.encrypted.classes import ClassesRevealed, EncryptedClassAUC, pieces
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.protocols.shared.declared import one_against_rest
from tacit.running.simulation import simulate
from tacit.testing.checks import conversation_of
from tests.classified import CLASSES, breakdown_of, class_clients, known_classes
from tests.protocols.encrypted.variants import Parties

RECORDS = 2000
SMALL = EncryptedClassAUC(CLASSES, thresholds=20, most_records=RECORDS)


def without_class(clients: Clients, number: int) -> Clients:
    """The records of a class as records of the first one."""
    assert clients.categories is not None
    of_record = np.where(clients.categories.of_record == number, 0, clients.categories.of_record)
    return replace(clients, categories=replace(clients.categories, of_record=of_record))


@pytest.mark.parametrize("scale", ["probability", "even"])
@pytest.mark.parametrize("thresholds", [10, 1000])
def test_certain_ranges_hold_the_aucs_of_scikit_learn(thresholds: int, scale: str) -> None:
    data = class_clients(RECORDS, 3)
    scores, classes = known_classes(data)
    protocol = EncryptedClassAUC(CLASSES, thresholds, RECORDS, scale=scale)
    result = tacit.evaluate(data, protocol, exact=True)
    one_hot = classes[:, np.newaxis] == np.arange(len(CLASSES))
    low, high = result.estimate.interval()
    assert result.exact == pytest.approx(roc_auc_score(one_hot, scores, average="macro"), abs=1e-12)
    assert result.exact is not None
    assert low <= result.exact <= high
    made = breakdown_of(result)
    for number, part in enumerate(made.parts):
        low, high = part.figures["AUC"].interval()
        assert low <= roc_auc_score(one_hot[:, number], scores[:, number]) <= high
        assert high - low < (0.004 if thresholds == 1000 else 0.5)
        assert math.isnan(part.positives)
    assert made.overall == {}


def test_each_class_has_the_figures_of_a_session_of_its_own() -> None:
    """Without perturbation both are exact on the thresholds, to the last digits; the mean has the
    mean of the half-ranges."""
    data = class_clients(RECORDS, 4)
    protocol = replace(SMALL, perturbed=False)
    result = tacit.evaluate(data, protocol)
    alone = EncryptedAUC(20, most_records=RECORDS, perturbed=False)
    figures = [part.figures["AUC"] for part in breakdown_of(result).parts]
    for found, each in zip(figures, one_against_rest(data, *known_classes(data)), strict=True):
        expected = tacit.evaluate(each, alone).estimate
        assert found.value == pytest.approx(expected.value, abs=1e-15)
        assert found.half_range == pytest.approx(expected.half_range, abs=1e-15)
    reach = np.mean([figure.half_range or math.nan for figure in figures])
    assert result.estimate.value == pytest.approx(np.mean([f.value for f in figures]), abs=1e-15)
    assert result.estimate.value == pytest.approx(protocol.noiseless_value(data), abs=1e-14)
    assert result.estimate.half_range == pytest.approx(reach, abs=1e-14)


@pytest.mark.parametrize("order", [[1, 0, 2, 3], [0, 0, 0, 0]])
def test_answers_of_one_class_open_no_other(order: list[int]) -> None:
    """Swapped, or all of them the first class's: no honest numbers, and no AUC."""
    parties = Parties(SMALL, class_clients(RECORDS, 3))
    answer = parties.until(by_class.open_masked_classes).broadcast["answer"]
    sent = pieces(answer, len(CLASSES))
    moved = {"answer": b"".join(sent[place] for place in order)}
    with pytest.raises(MaskedValueError, match="no honest computation"):
        parties.answer(0, steps.Query(by_class.open_masked_classes, SMALL, broadcast=moved))


def test_class_sizes_that_add_up_fit_an_answer_as_well_as_the_true_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A party that knows the number of records tries all sizes of three classes.

    With multipliers shorter than products of totals a wrong size hardly ever fits, and so the true
    ones show.
    """
    most, sizes = 2**20, np.array([400_000, 250_000, 150_000])
    total = int(sizes.sum())
    others = np.random.default_rng(0).integers(200_000, 300_000, (200, 2))
    wrong = np.column_stack([others, total - others.sum(axis=1)])
    fits = []
    for spare in (masked_scheme.SPARE_BITS, -40):
        monkeypatch.setattr(masked_scheme, "SPARE_BITS", spare)
        protocol = replace(SMALL, most_records=most)
        shown = [_shown(protocol.masked_scheme, int(size), total) for size in sizes]

        def all_fit(row: Any, shown: list[int] = shown, settings: Any = protocol) -> bool:
            pairs = zip(shown, map(int, row), strict=True)
            return all(_fits(settings.masked_scheme, *pair, total) for pair in pairs)

        assert all_fit(sizes)
        fits.append(np.mean([all_fit(row) for row in wrong]))
    assert fits[0] == 1.0
    assert fits[1] < 0.01


def _shown(settings: masked_scheme.MaskedScheme, size: int, total: int) -> int:
    """A denominator's number as the parties open it."""
    multiplier = 3 << (settings.least_bits + 2)
    return multiplier * size * (total - size) + settings.perturbations(multiplier)[1]


def _fits(settings: masked_scheme.MaskedScheme, shown: int, size: int, total: int) -> bool:
    """Whether a whole c, and v below the largest perturbation, make ``c P N + v`` that number."""
    pairs = size * (total - size)
    # c P N <= W < c P N + V
    return shown // pairs > (shown - settings.reach) // pairs


def test_an_absent_class_has_no_auc_and_the_others_have_theirs() -> None:
    result = tacit.evaluate(without_class(class_clients(RECORDS, 3), 2), SMALL)
    assert math.isnan(result.estimate.value)
    assert any("class c has no AUC" in warning for warning in result.warnings)
    reasons = [part.reason for part in breakdown_of(result).parts]
    assert reasons == ["", "", by_class.ABSENT, ""]
    assert result.to_dict()["estimate"]["value"] is None


def test_parties_alone_are_told() -> None:
    """The aggregator's result has no figure; each party keeps those of all classes."""
    data, state = class_clients(RECORDS, 3), steps.ClientState()
    protocol = replace(SMALL, reveal="parties")
    *_, (_, reply) = conversation_of(data, protocol, NoNoise(), state)
    assert list(reply) == ["opened"]
    told = state.recall(declared.REVEALED)
    assert isinstance(told, ClassesRevealed)
    written = values.encode_values({"told": told}, [values.Kind.of(ClassesRevealed)])
    read = values.decode_values(written, [values.Kind.of(ClassesRevealed)])["told"]
    assert np.array_equal(read.areas, told.areas)
    assert (read.value, read.half_range) == (told.value, told.half_range)
    known_to_parties = protocol.revealed_result(told)
    assert float(known_to_parties.value) == pytest.approx(
        float(tacit.evaluate(data, SMALL).estimate.value), abs=2 * masked_scheme.SLACK
    )
    assert known_to_parties.breakdown is not None
    server = simulate(data, protocol, NoNoise()).server_result
    assert math.isnan(float(server.value))
    assert server.breakdown is None
    assert hidden.PARTIES_ONLY in server.warnings


def test_masked_counts_are_sent_once_a_session_with_the_words_of_all_classes() -> None:
    parties = Parties(SMALL, class_clients(RECORDS, 3))
    parties.until(by_class.send_masked_classes)
    sent = sessions.as_parts(parties.replies()["counts"])
    assert {len(message) for message in sent} == {4 * SMALL.masked_scheme.upload_bytes}
    with pytest.raises(HomomorphicError, match="sent already"):
        parties.answer(0)
    with pytest.raises(MaskedValueError, match="not those of 4 classes"):
        pieces(bytes(10), 4)
    with pytest.raises(MaskedValueError, match="0 bytes are not those of 4 classes"):
        pieces(b"", 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ("a",)}, "classes must be 2 to 200 names that differ, got 1"),
        ({"most_records": 2**32 + 1}, "most_records must be from 2 to 4294967296 with masked"),
        ({"classes": ("a", "b", "c", "e")}, "classes must be a, b, c, e, got a, b, c, d"),
        ({"most_records": 64}, "most_records is 64"),
    ],
)
def test_settings_outside_their_range_or_that_records_do_not_fit_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, DataError), match=message):
        tacit.evaluate(class_clients(RECORDS, 3), replace(SMALL, **changes))
