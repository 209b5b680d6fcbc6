"""PairedUStatistic: means over pairs of records by two-party computation (Bell et al. 2020, section
5).

The server draws random matchings of all records. The two clients of a pair compute the kernel of
their two records and noise together, so that the noisy value is all that anybody learns. Here that
computation is an ideal functionality (``View.MPC``); docs, section 4c. Who sees what in a run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.local.pair_kernels import KERNELS, Axis, SymbolSpace, second_values
from tacit.local.paired import estimate, kernels, mpc
from tacit.local.paired import noise as noises
from tacit.privacy.exact import MAX_SHARED_SCALE
from tacit.privacy.mechanisms.response import UniformIntegers
from tacit.protocol import audits, fields, forecast
from tacit.protocol.declared import ReportDeclarations
from tacit.protocol.scenario import measured_rounds
from tacit.results.curves.curve import UNIT

PAGE = "threat-models/mpc.md"

PAIRED = (
    "The two clients of a pair are trusted not to work together with the server beyond what is "
    "said below. Between real parties they compute by cryptography; where a trusted party took its "
    "place, a warning says so."
)

PAIRED_SERVER = (
    "Exactly: each client's number of records. With noise: the value of every pair, and for an AUC "
    "each client's count of positives."
)

WHOLE_NOISE = tp.ThreatModel(
    PAIRED,
    PAIRED_SERVER,
    "Nothing.",
    "Numbers of records, and which pairs were drawn. Against a client that tells the server "
    "all it knows, the same epsilon is left.",
    PAGE,
)

SHARED_NOISE = replace(
    WHOLE_NOISE,
    left_open="Numbers of records, and which pairs were drawn. A client that tells the server its "
    "half of the noise leaves its partner with less than the stated epsilon promises.",
)


def threats_of(settings: Mapping[str, Any]) -> tp.ThreatModel:
    """The threat model of these settings."""
    return SHARED_NOISE if settings.get("noise") == noises.SHARED else WHOLE_NOISE


@tp.step()
def offer_numbers(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the number of records, and a random number that helps to draw the matchings.

    It costs nothing: numbers of records are public, and the random number depends on nothing. The
    server learns both.
    """
    return {
        "records": clients.sizes,
        "numbers": noise.draw(UniformIntegers(mpc.SEED_BOUND), (clients.count,)),
    }


def _shared_cost(clients: tp.Clients, query: tp.Query, state: tp.ClientState) -> tp.Cost:
    return tp.Cost(float(query.broadcast["epsilon"]), adjacency=tp.Adjacency.REPLACE)


@tp.step(cost=_shared_cost)
def count_positives(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send a noisy number of positive records; a client of one record, its label, flipped or not.

    Epsilon, by ``noisy_counts``: replacing a record changes what one client sends, and no other.
    The server learns a noisy count of every client.
    """
    counts = clients.ragged(clients.labels.astype(np.int64)).sum()
    epsilon = float(query.broadcast["epsilon"])
    return {"positives": noises.noisy_counts(counts, clients.sizes, epsilon, noise)}


@tp.step(cost=_shared_cost, computes=mpc.PairsProgram)
def compute_pairs(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """The noisy value of every pair, as all clients compute it together (an ideal functionality).

    A record has one seat, so one pair at most, in each of Q matchings, and a seat depends on no
    record. Replacing a record moves each of its pairs' values by at most the kernel's width, which
    costs ``epsilon / Q`` by ``PairNoise.applied``; noise of different pairs is independent, so
    together it costs epsilon. Of an odd number of records one stays out of each matching and spends
    nothing there.

    The server learns the noisy value of every pair, and no client learns anything. Between real
    clients both is true up to what the cryptography guarantees, and the cost is computational
    differential privacy (Bell et al. 2020, Theorem 5). ``PairNoise`` says what is left where one
    client reveals to the server all that it knows.

    Raises
    ------
    DataError : for seats that are not Q permutations of the records, or values outside the domain.
    """
    settings: PairedUStatistic = query.protocol
    first, second = mpc.seated_pairs(mpc.checked_seats(query).values)
    rows = settings.rows(clients)
    values = kernels.paired_values(settings.function, rows[:, first], rows[:, second])
    owners = clients.client_of_record
    crossing = owners[first] != owners[second]
    pair_noise = settings.pair_noise(float(query.broadcast["epsilon"]))
    return {"values": pair_noise.applied(values, crossing, noise)}


@dataclass(frozen=True)
class PairedUStatistic(ReportDeclarations, tp.Protocol):
    """The mean of a kernel over pairs of records, computed by the two clients of each pair.

    Parameters
    ----------
    kernel : ``Area()`` (the AUC), ``Kendall()`` (Kendall's tau of two values), ``Collision()`` (the
        probability that two values are equal) or ``Gini(low, high)`` (the mean difference of values
        in a public range, from 0 to 1 by default), or their words.
    epsilon : the privacy budget of one evaluation, for every record.
    matchings : Q, how many pairs a record is in, each with ``epsilon / Q``; 0 takes the number
        of least planned variance (``best_matchings``), which is 1 unless epsilon is large.
    noise : what hides the value of a pair between two clients, from the server and from a client
        that reveals to the server all that it knows:

        - ``"laplace"``: both clients add discrete Laplace noise that alone gives epsilon, so a
          colluding client leaves epsilon. Twice the variance of one draw.
        - ``"shared"``: both add half a draw of such noise. The variance of one draw; a colluding
          client leaves more than epsilon (``PairNoise.collusion_epsilon``).
        - ``"randomised-response"``, for kernels of the values 0 and 1 (the AUC, collisions): the
          joint computation flips the value by a coin that neither client knows, so a colluding
          client leaves epsilon. Half the variance of one draw.

        ``"best"`` takes the one of least variance that keeps epsilon against a colluding client:
        randomised response where it applies, else ``"laplace"``.

    For the AUC a fraction of epsilon goes to noisy class sizes (``class_epsilon``).

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> PairedUStatistic("kendall", 1.0).settings
    {'kernel': 'kendall', 'epsilon': 1.0, 'matchings': 1, 'noise': 'laplace'}
    >>> PairedUStatistic("auc", 1.0).kind
    'randomised-response'
    """

    kernel: kernels.Area | kernels.Collision | kernels.Kendall | kernels.Gini | str = tp.setting(
        help="the function of two records; gini with the public range of values in brackets"
    )
    epsilon: float = tp.setting(help=tp.EPSILON)
    matchings: int = tp.setting(
        default=0,
        help="how many pairs a record is in; 1, more where epsilon is large",
        shown=lambda protocol: protocol.pairs_a_record,
    )
    noise: str = tp.setting(
        default=noises.BEST,
        choices=(noises.BEST, *noises.NOISES),
        help="what hides a pair's value; randomised-response by default for the AUC and "
        "collisions, else laplace",
        shown=lambda protocol: protocol.kind,
    )

    name = "paired-ustatistic"
    adjacency = tp.Adjacency.REPLACE
    """Of a guarantee against the server alone."""
    planning_module = __name__
    planned = ({"kernel": "auc"},)
    trusts = (tp.Trust.MPC,)
    given_up = (
        "every pair of clients needs a session under cryptography, the guarantee is "
        "computational, and there is no curve"
    )
    steps = (offer_numbers, count_positives, compute_pairs)
    trials_divisor = 8
    audit_records = 2
    audit_settings = ({"kernel": "auc"}, {"kernel": "gini", "noise": "shared"})
    loose_audit_settings = ({"kernel": "gini"},)
    """The noise of both clients is more private than declared against the server."""
    law_settings: ClassVar[audits.Configurations] = {
        "paired-auc": {"kernel": "auc"},
        "paired-auc-laplace": {"kernel": "auc", "matchings": 2, "noise": "laplace"},
        "paired-auc-shared": {"kernel": "auc", "noise": "shared"},
        "paired-collision": {"kernel": "collision", "matchings": 3},
        "paired-gini": {"kernel": "gini", "matchings": 2},
    }
    threats = staticmethod(threats_of)
    law_traits = audits.LawTraits(
        unordered="the pairs of the matchings are drawn by place",
        inexact="the matched pairs are not all pairs",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "figure", KERNELS[self.function].figure)
        if self.kind == noises.RESPONSE and self.function not in kernels.TWO_VALUED:
            raise ValueError(
                f"{self.kind} flips values of 0 and 1, and the kernel {self.function!r} has others"
            )
        count, most = self.pairs_a_record, noises.MAX_GIVEN_MATCHINGS
        if not isinstance(count, int | np.integer) or not 1 <= count <= most:
            raise ValueError(f"matchings must be a whole number from 1 to {most}, got {count}")
        scale = float(self.pair_noise(self.epsilon).whole.scale)
        if self.kind == noises.SHARED and scale > MAX_SHARED_SCALE:
            raise ValueError(
                f"shared noise has a scale of at most {MAX_SHARED_SCALE:g}, got {scale:g}: "
                "take fewer matchings, or noise='laplace'"
            )

    @property
    def function(self) -> str:
        """The kernel's word."""
        return cast(tp.Choice, self.kernel).word

    @property
    def kind(self) -> str:
        """The noise that is used: the one given, or the best for the kernel."""
        if self.noise != noises.BEST:
            return self.noise
        return noises.RESPONSE if self.function in kernels.TWO_VALUED else noises.LAPLACE

    @property
    def pairs_a_record(self) -> int:
        """Q, the number of matchings: the one given, or the best for kernel, epsilon and noise."""
        if self.matchings != 0:
            return self.matchings
        return noises.best_matchings(self.function, self.epsilon, self.kind)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The public range of Gini's values; the other kernels compare numbers."""
        gini = self.kernel
        return (gini.low, gini.high) if isinstance(gini, kernels.Gini) else None

    @property
    def _ends(self) -> tuple[float, float]:
        """The ends of the values' public range; those of the unit range where there is none."""
        return self.score_range or UNIT

    @property
    def needs_labels(self) -> bool:
        """Whether the kernel reads labels."""
        return "labels" in KERNELS[self.function].columns

    @property
    def needs_second_values(self) -> bool:
        """Whether the kernel reads second values."""
        return "second values" in KERNELS[self.function].columns

    def exact(self, clients: tp.Clients) -> float:
        """The exact figure of all clients' records, which is not private."""
        return KERNELS[self.function].exact(clients, self._space)

    @property
    def _space(self) -> SymbolSpace:
        """The values' public range; values are not cut."""
        low, high = self._ends
        return SymbolSpace((Axis("values", low=low, high=high),))

    def replicate_size(self, clients: tp.Clients) -> int:
        """Seats, pairs, both records' values and noise."""
        return 12 * self.pairs_a_record * clients.records

    def class_epsilon(self, sizes: Integers) -> float:
        """The fraction of epsilon that class sizes get, of clients with so many records; 0 for
        none."""
        if not isinstance(self.kernel, kernels.Area):
            return 0.0
        return noises.class_epsilon(self.epsilon, self.kind, self.pairs_a_record, sizes)

    def pair_noise(self, epsilon: float) -> noises.PairNoise:
        """The noise of a pair, where all of a record's pairs together have this epsilon."""
        return noises.PairNoise(
            self.kind, epsilon / self.pairs_a_record, noises.kernel_width(self.function)
        )

    def rows(self, clients: tp.Clients) -> Floats:
        """What of every record enters its pairs, shape (2, M), as ``paired_values`` takes it.

        Raises
        ------
        DataError : naming client, row and value, for a value outside the domain; or where records
            have no second value and the kernel needs one.
        """
        values, second = clients.scores, np.zeros(clients.records)
        if isinstance(self.kernel, kernels.Area):
            second = clients.labels.astype(np.float64)
        elif isinstance(self.kernel, kernels.Kendall):
            second = second_values(clients)
        elif isinstance(self.kernel, kernels.Gini):
            low, high = self._ends
            self._space.axes[0].check(clients, values, (values >= low) & (values <= high))
            values = (values - low) / (high - low)
        return np.stack([values, second])

    def conversation(self, clients: int) -> tp.Conversation:
        """Random numbers up; for the AUC noisy class sizes up; seats down, values of pairs up."""
        offer = yield tp.Query(offer_numbers, self)
        sizes = np.asarray(offer["records"])
        records = mpc.believed_records(sizes, self.pairs_a_record)
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        seats = mpc.drawn_seats(np.asarray(offer["numbers"]), self.pairs_a_record, records)
        count_epsilon = self.class_epsilon(sizes)
        class_counts = None
        if count_epsilon:
            reply = yield tp.Query(count_positives, self, {"epsilon": count_epsilon})
            class_counts = noises.counted_positives(
                np.asarray(reply["positives"]), sizes, count_epsilon
            )
        per_client, rest = {"seats": tp.Ragged(seats, offsets)}, self.epsilon - count_epsilon
        reply = yield tp.Query(compute_pairs, self, {"epsilon": rest}, per_client, tp.View.MPC)
        sample = self._sample(np.asarray(reply["values"]), seats, offsets, rest)
        return self._result(sample, class_counts, count_epsilon)

    def _sample(
        self, received: NDArray[Any], seats: Integers, offsets: Integers, epsilon: float
    ) -> estimate.MatchedSample:
        """The debiased values, in the kernel's own scale."""
        noise = self.pair_noise(epsilon)
        owners = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        first, second = mpc.seated_pairs(seats)
        crossing = float(np.mean(owners[first] != owners[second]))
        unit = self._unit
        low, high = (end * unit for end in kernels.BOUNDS[self.function])
        values = noise.debiased(received) * unit
        variance = noise.variance(crossing) * unit**2
        return estimate.MatchedSample(self.function, values, seats, variance, low, high)

    @property
    def _unit(self) -> float:
        """The value of one of the kernel's integers."""
        low, high = self._ends
        return (high - low) / kernels.GRIDS[self.function]

    def _result(
        self,
        sample: estimate.MatchedSample,
        class_counts: tuple[Floats, float] | None,
        count_epsilon: float,
    ) -> tp.ServerResult:
        """The mean, or the AUC; with shared noise, what a client that helps the server leaves."""
        if class_counts is not None:
            positives, variance = class_counts
            result = estimate.matched_area_result(sample, positives, math.sqrt(variance))
        else:
            rounding = self._unit / math.sqrt(6) if isinstance(self.kernel, kernels.Gini) else 0.0
            limits = KERNELS[self.function].limits(self._space, sample.records)
            result = estimate.matched_mean_result(sample, rounding, limits)
        if self.kind != noises.SHARED or sample.mean.ndim:
            return result
        pair = self.pair_noise(self.epsilon - count_epsilon)
        rest = count_epsilon + self.pairs_a_record * pair.collusion_epsilon
        warning = (
            f"shared noise keeps epsilon {self.epsilon:g} from the server alone: a client that "
            f"tells it all it knows leaves epsilon {rest:.3g} to the records it met"
        )
        return replace(result, warnings=(*result.warnings, warning))


PAIR_SECONDS, PAIR_BYTES = 3.3e-5, 340
"""Seconds and bytes of a pair between two clients in an open session; measured."""

MAX_CLIENTS = 2**12
"""Largest number of clients whose sizes are computed; the others have as many records."""


def paired_forecast(
    protocol: PairedUStatistic, scenario: tp.Scenario, shape: tp.Shape
) -> forecast.Forecast:
    """The server's variance of the AUC at its expected mean over pairs (docs, section 4c).

    A pair of both classes that the positive wins counts 1: ``2 A P N / (n (n - 1))`` of all. With
    several clients a pair is between two of them with probability ``1 - 1/K``.

    Raises
    ------
    ValueError : for another kernel than the AUC's.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 10, 2.0)
    >>> forecast = paired_forecast(PairedUStatistic("auc", 2.0), scenario, tp.Shape(0.8))
    >>> round(forecast.standard_error, 3)
    0.021
    """
    if not isinstance(protocol.kernel, kernels.Area):
        raise ValueError(f"plans are for the kernel 'auc', got {protocol.function!r}")
    n, (sizes, weight) = scenario.records, client_sizes(scenario)
    count_epsilon = protocol.class_epsilon(sizes)
    counted = weight * noises.count_variance(sizes, count_epsilon)
    noise = protocol.pair_noise(protocol.epsilon - count_epsilon).variance(1 - 1 / scenario.clients)
    positives, negatives = float(scenario.positives), float(scenario.negatives)
    pair_fraction = 2 * positives * negatives / (n * (n - 1))
    mean = shape.auc * pair_fraction
    area = np.array(shape.auc)
    shared = estimate.area_shared_covariance(area, np.array(positives), n)
    shared = np.minimum(shared, mean * (1 - mean) / 2)
    matchings = protocol.pairs_a_record
    matching_term = float(estimate.matching_variance(mean * (1 - mean), shared, n, matchings))
    of_pairs = (matching_term + noise / (matchings * (n // 2))) / pair_fraction**2
    of_counts = (shape.auc * (negatives - positives) / (positives * negatives)) ** 2 * counted
    return forecast.Forecast(
        math.sqrt(of_pairs + of_counts), 0.0, min(positives, negatives), math.sqrt(counted)
    )


def paired_traffic(protocol: PairedUStatistic, scenario: tp.Scenario) -> tp.Traffic:
    """A dry run of the queries and the first replies; pairs cost what was measured.

    The values of all pairs count as sent by all clients in equal parts, rounded up.
    """
    *first_rounds, mpc = measured_rounds(protocol, scenario)
    matchings, half = protocol.pairs_a_record, scenario.records // 2
    kind = np.uint8 if protocol.kind == noises.RESPONSE else np.int64
    values = len(fields.encode({"values": np.zeros((matchings, 0), dtype=kind)}))
    values += matchings * half * np.dtype(kind).itemsize
    rounds = [*first_rounds, replace(mpc, sent=-(-values // scenario.clients))]
    traffic = tp.traffic_of_rounds(rounds, scenario)
    pairs = matchings * scenario.records_per_client * (1 - 1 / scenario.clients)
    return replace(
        traffic, seconds=traffic.seconds + PAIR_SECONDS * pairs, beyond=round(PAIR_BYTES * pairs)
    )


def client_sizes(scenario: tp.Scenario) -> tuple[NDArray[np.int64], float]:
    """The numbers of records of up to ``MAX_CLIENTS`` clients, and how many each represents.

    The best fraction of epsilon for class sizes is the same for any number of clients of the same
    sizes.
    """
    few = min(scenario.clients, MAX_CLIENTS)
    more = scenario.clients / few
    ends = np.rint(np.arange(few + 1) * scenario.records / (few * more)).astype(np.int64)
    return np.diff(ends), more


PLANNING = forecast.Planning.of_figure(None, paired_forecast, paired_traffic)
