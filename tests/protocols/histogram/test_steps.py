"""Steps of score histograms: what they cost, computed exactly, and what they send."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit import Clients, PublishedHistogram, ScoreHistogram
from tacit.protocol import NoiseSource, NoNoise, Query, Ragged, SecureSum, SimulatedNoise, View
from tacit.protocols.histogram.local_rounds import report_bytes, set_bits, unary_reports
from tacit.protocols.histogram.steps import leaves_of, summed_trees
from tacit.protocols.shared import counting
from tacit.testing.recording import Recorder
from tests.protocols.histogram.losses import HEIGHT, answer, hospital


def unary_query(protocol: ScoreHistogram) -> Query:
    shared = {"clients": 1, "height": protocol.tree_height(1)}
    return Query(unary_reports, protocol, broadcast=shared)


def tree_query(protocol: ScoreHistogram, clients: int = 1) -> Query:
    return Query(
        summed_trees, protocol, broadcast={"clients": clients, "height": HEIGHT}, view=View.SUM
    )


class TestSharesOfNoise:
    """All clients' shares make the whole noise, whoever answers for how many of them."""

    @pytest.mark.parametrize("sizes", [(10,), (1,) * 10, (3, 3, 4), (9, 1)])
    @pytest.mark.parametrize("dropouts", [0.0, 0.25, 0.5])
    def test_shares_of_batches_add_up(self, sizes: tuple[int, ...], dropouts: float) -> None:
        shares = [SecureSum(dropouts).share(size, 10) for size in sizes]
        assert sum(shares) == Fraction(10, math.ceil(10 * (1 - dropouts)))

    @pytest.mark.parametrize(("asked", "dropouts"), [(10, 0.1), (7, 0.3), (1000, 0.29), (3, 0.9)])
    def test_enough_is_left_when_that_many_vanish(self, asked: int, dropouts: float) -> None:
        left = asked - math.floor(Fraction(str(dropouts)) * asked)
        assert SecureSum(dropouts).share(left, asked) >= 1
        assert left == 1 or SecureSum(dropouts).share(left - 1, asked) < 1

    def test_a_step_draws_the_share_of_its_clients(self) -> None:
        protocol = PublishedHistogram("secure-sum(dropouts=0.2)", 1.0, HEIGHT, aim="auc")
        clients = Clients.from_arrays(np.linspace(0, 1, 8), [0, 1] * 4, np.arange(8) // 2)
        for first, last in ((0, 4), (0, 1), (1, 4)):
            noise = Recorder()
            answer(tree_query(protocol, 10), clients.part(first, last), noise)
            assert set(noise.shares) == {(last - first) / 8}


class TestWhatIsSent:
    """Counts, and unary bits in their bytes."""

    @pytest.mark.parametrize("scale", ["even", "probability"])
    def test_scores_at_the_ends_have_a_cell(self, scale: str) -> None:
        protocol = ScoreHistogram("exact-sum", scale=scale)
        clients = Clients.from_arrays([0.0, 1.0, np.nextafter(1.0, 0.0), 0.5], [1, 1, 0, 0])
        assert leaves_of(clients, 3, protocol).tolist() == [0, 7, 15, 12]

    def test_levels_say_nothing_of_what_records_hold(self) -> None:
        """The same draws give the same levels and the same number of bytes to other records."""
        protocol = ScoreHistogram("local", 1.0, 6)
        query = unary_query(protocol)
        rng = np.random.default_rng(0)
        replies = [
            answer(
                query,
                Clients.from_arrays(rng.random(300), rng.integers(0, 2, 300), np.arange(300) // 3),
                SimulatedNoise(8),
            )
            for _ in range(2)
        ]
        first_levels, second_levels = (reply["levels"] for reply in replies)
        assert isinstance(first_levels, Ragged)
        assert isinstance(second_levels, Ragged)
        np.testing.assert_array_equal(first_levels.values, second_levels.values)
        np.testing.assert_array_equal(replies[0]["bits"].offsets, replies[1]["bits"].offsets)  # type: ignore[union-attr]

    @pytest.mark.parametrize("at_once", [2**24, 32])
    @pytest.mark.parametrize("replicates", [None, 3])
    def test_bits_come_back_from_their_bytes(
        self, replicates: int | None, at_once: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Clients of several records, levels of less than a byte, groups and replicates."""
        drawn: dict[int, list[NDArray[np.bool_]]] = {}
        rng = np.random.default_rng(5)

        def marked(values: Any, size: int, epsilon: float, noise: NoiseSource) -> Any:
            bits = rng.random(noise.full_shape((values.size, size))) < 0.3
            drawn.setdefault(size, []).append(bits)
            return bits

        monkeypatch.setattr(counting, "unary_bits", marked)
        monkeypatch.setattr(counting, "BITS_AT_ONCE", at_once)
        clients = Clients.from_arrays(
            rng.random(90), rng.integers(0, 2, 90), rng.integers(0, 12, 90)
        )
        protocol = ScoreHistogram("local", 1.0, 5)
        noise = SimulatedNoise(1, replicates)
        reply = answer(unary_query(protocol), clients, noise)
        assert sorted(drawn) == [4, 8, 16, 32, 64]
        for size, parts in drawn.items():
            expected = np.concatenate(parts, axis=-2)
            computed, reports = set_bits(reply, size.bit_length() - 1)
            assert reports == expected.shape[-2]
            np.testing.assert_array_equal(computed, expected.sum(axis=-2))

    def test_a_level_that_nobody_chose_has_no_reports(self) -> None:
        reply = answer(unary_query(ScoreHistogram("local", 1.0, 5)), hospital(), NoNoise())
        computed, reports = set_bits(reply, 5)
        assert reports == 0
        assert not computed.any()

    def test_reports_take_the_bytes_of_their_level(self) -> None:
        assert report_bytes(np.array([2, 3, 4, 11], dtype=np.int8)).tolist() == [1, 1, 2, 256]

    def test_reports_that_do_not_fit_their_levels_are_refused(self) -> None:
        offsets = np.array([0, 1], dtype=np.int64)
        levels = Ragged(np.array([4], dtype=np.int8), offsets)
        bits = Ragged(np.zeros(3, dtype=np.uint8), np.array([0, 3], dtype=np.int64))
        with pytest.raises(ValueError, match="reports must hold 2 bytes, got 3"):
            set_bits({"levels": levels, "bits": bits}, 4)
        with pytest.raises(TypeError, match="must be ragged"):
            set_bits({"levels": np.zeros(1), "bits": bits}, 4)
