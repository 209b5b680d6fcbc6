"""Programs on shares give the kernels' integers; parties keep to what was agreed."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.local.paired import kernels
from tacit.local.paired.mpc import PairsProgram, PairWork, RecordPairs, drawn_seats
from tacit.local.paired.noise import LAPLACE, RESPONSE, SHARED, PairNoise
from tacit.local.paired.protocol import PairedUStatistic, compute_pairs
from tacit.protocol.mpc import MPCError
from tacit.running.mpc.transport import Meeting
from tacit.testing.room import Room
from tests.running.mpc.threads import ThreadedParties

pytestmark = pytest.mark.skipif(find_spec("spu") is None, reason="joint computations need SPU")

KERNELS = tuple(kernels.GRIDS)
PAIRS = 300


@pytest.fixture(scope="module")
def two() -> ThreadedParties:
    return ThreadedParties(2)


def records(kernel: str, pairs: int, seed: int) -> NDArray[np.float64]:
    """Rows with many ties; the first few are the ends of the range."""
    rng = np.random.default_rng(seed)
    rows = np.round(rng.random((2, pairs)), 1)
    rows[0, :4] = [0.0, 1.0, 0.0, 5e-324]
    if kernel == "auc":
        rows[1] = rng.integers(0, 2, pairs)
    elif kernel in {"kendall", "collision"}:
        rows = (rows - 0.5) * 1e9
        rows[:, :3] = [[0.0, -1e-100, 1e100], [1e-100, 1e100, -1e100]]
    return rows


def work(
    kernel: str, kind: str, rows: NDArray[np.float64], epsilon: float = 1.0, silent: bool = False
) -> PairWork:
    low, high = kernels.BOUNDS[kernel]
    source = tp.NoNoise() if silent else tp.SystemNoise()
    return PairWork(kernel, PairNoise(kind, epsilon, high - low), source, rows)


def added_shares(
    two: ThreadedParties, works: list[PairWork], leading: NDArray[np.bool_], chunk: int = 10**6
) -> NDArray[np.int64]:
    """The sum of the two parties' shares."""
    places = np.arange(leading.size)
    orders = (leading, ~leading)
    shares = two.together(
        lambda run, place: np.concatenate(
            list(works[place].shares(run, places, orders[place], chunk))
        )
    )
    return np.asarray((shares[0] + shares[1]).view(np.int64))


@pytest.mark.parametrize("kernel", KERNELS)
def test_shares_add_up_to_the_kernels_integers(two: ThreadedParties, kernel: str) -> None:
    rows = [records(kernel, PAIRS, seed) for seed in (1, 2)]
    leading = np.random.default_rng(3).random(PAIRS) < 0.5
    works = [work(kernel, LAPLACE, own, silent=True) for own in rows]
    first, second = rows
    wanted = kernels.paired_values(
        kernel, np.where(leading, first, second), np.where(leading, second, first)
    )
    np.testing.assert_array_equal(added_shares(two, works, leading, chunk=128), wanted)
    assert np.unique(wanted).size > 1


def test_a_coin_of_both_parties_flips_at_the_agreed_rate(two: ThreadedParties) -> None:
    """At epsilon 1 a bit is flipped with probability 0.269. Of 6,000 bits the share has a standard
    deviation of 0.0057; a false alarm at 5 of them in fewer than 1 of 1,000,000 runs.
    """
    size = 6_000
    works = [work("collision", RESPONSE, np.full((2, size), 0.5)) for _ in range(2)]
    opened_numbers = added_shares(two, works, np.ones(size, dtype=np.bool_))
    assert set(np.unique(opened_numbers)) == {0, 1}
    assert np.mean(opened_numbers == 0) == pytest.approx(
        works[0].pair_noise.response.probability, abs=5 * 0.0057
    )


@pytest.mark.parametrize(("kind", "draws", "kurtosis"), [(LAPLACE, 2, 4.5), (SHARED, 1, 6.0)])
def test_both_parties_noise_has_the_agreed_scale(
    two: ThreadedParties, kind: str, draws: int, kurtosis: float
) -> None:
    """A mean square of n values has a relative standard deviation of ``sqrt((kurtosis - 1) / n)``,
    at most 1.6 % here; false alarms at 5 of them in fewer than 1 of 100,000 runs. Noise of 0.7
    times the scale has half the variance.
    """
    size = 20_000
    works = [work("gini", kind, np.full((2, size), 0.5)) for _ in range(2)]
    opened_numbers = added_shares(two, works, np.ones(size, dtype=np.bool_)).astype(np.float64)
    wanted = draws * 2 * float(kernels.GRIDS["gini"]) ** 2
    bound = 5 * ((kurtosis - 1) / size) ** 0.5
    assert np.mean(opened_numbers**2) == pytest.approx(wanted, rel=bound)


def test_shares_alone_say_nothing(two: ThreadedParties) -> None:
    """One party's shares of equal values are spread over the whole ring: the chance that 300
    uniform words keep to one half of it is ``2**-299``.
    """
    works = [work("gini", LAPLACE, np.full((2, PAIRS), 0.5), silent=True) for _ in range(2)]
    places, leading = np.arange(PAIRS), np.ones(PAIRS, dtype=np.bool_)
    shares = two.together(lambda run, place: next(works[place].shares(run, places, leading, PAIRS)))
    for own in shares:
        high = own >= 2**63
        assert high.any() and not high.all()


def test_codes_keep_the_order_of_numbers() -> None:
    numbers = np.array([-1e154, -2.5, -1e-100, 0.0, 1e-100, 1.0, np.nextafter(1, 2), 1e154])
    assert (np.diff(kernels.comparable_codes(numbers)) > 0).all()
    assert kernels.comparable_codes(np.array([-0.0]))[0] == 0
    for wrong in (2.0 ** (kernels.HALVINGS + 1), 1e-300):
        with pytest.raises(ValueError, match="to compare must be"):
            kernels.comparable_codes(np.array([wrong]))


def test_scores_beyond_the_unit_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 1.5"):
        kernels.kernel_codes("auc", np.array([[0.5, 1.5], [0.0, 1.0]]), np.array([True, True]))


@pytest.mark.parametrize("matchings", [1, 3])
def test_no_record_meets_more_often_than_agreed(matchings: int) -> None:
    """Whatever the seats, which are permutations, and however many records each client has."""
    sizes = np.array([4, 0, 1, 7, 3])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    seats = drawn_seats(np.array([1, 2]), matchings, int(sizes.sum()))
    pairs = RecordPairs.of(offsets, seats)
    assert (pairs.indices >= 0).all() and (pairs.indices < sizes[pairs.owners]).all()
    met = np.bincount((offsets[pairs.owners] + pairs.indices).ravel(), minlength=offsets[-1])
    assert met.max() == matchings
    assert met.sum() == 2 * matchings * (sizes.sum() // 2)


def test_a_party_answers_for_its_own_number_of_records_only() -> None:
    """With another number of them its seats would be other records' seats."""
    clients = tp.Clients.from_arrays([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    seats = {"seats": tp.Ragged(np.array([[0, 1, 2, 3, 4]]), np.array([0, 4, 5]))}
    query = tp.Query(compute_pairs, PairedUStatistic("gini", 1.0), {"epsilon": 1.0}, seats)
    meeting = Meeting("session", 0, ({}, {}), ({"records": 3}, {"records": 2}), {})
    with (
        Room().meet(meeting) as peers,
        pytest.raises(MPCError, match=r"5 records have seats, and the parties announced \[3, 2\]"),
    ):
        PairsProgram().compute(clients, query, tp.NoNoise(), tp.ClientState(), peers)


def test_a_rare_flip_is_rounded_up() -> None:
    none = np.zeros((2, 0))
    assert work("auc", RESPONSE, none, epsilon=30.0).threshold == 1
    assert work("auc", RESPONSE, none, epsilon=1e-12).threshold == 2**29
    assert work("auc", RESPONSE, none, silent=True).threshold == 0
