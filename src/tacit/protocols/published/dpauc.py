"""DPAUC of Sun, Yang, Yao, Xie, Wu and Wang, 2022 (Sun et al. 2022b; docs, sections 2a and 2b).

Labels and scores stay at the clients. At each of T public thresholds a client counts its true and
false positives and negatives. It adds noise to these counts, or flips its labels before it counts,
and the server forms the ROC curve of the sums over clients and its area by linear pieces. The
server sees every client's noisy counts and nothing else; of flipped labels it sees exact counts,
and so each client's number of records between thresholds, which label adjacency does not protect.

Client steps of DPAUC as published: noisy confusion counts, and counts of flipped labels. What the
counts of a client with one record reveal: its cell and its label. Predictions for DPAUC as
published: of flipped labels, whose cells the server sees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import cell_areas, confusion_areas
from tacit.data.engines.stored import batch_of
from tacit.data.ragged import client_order
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.cost import check_fraction
from tacit.privacy.exact import gaussian_delta
from tacit.privacy.mechanisms import gaussian, laplace
from tacit.privacy.mechanisms.interface import Together
from tacit.privacy.mechanisms.response import flip_probability, response_variance
from tacit.protocol import audits
from tacit.protocol.conversation import OneCount
from tacit.protocol.scenario import planned_scale
from tacit.protocols import dpauc
from tacit.protocols.shared import counting, flipped_labels
from tacit.protocols.shared.declared import adjacency_setting, first_reply

ACCOUNTINGS = ("tight", "paper")
POINTS = ("clamped", "plain")


@dataclass(frozen=True)
class OnCounts(tp.Choice):
    """Noise on the four confusion counts of every threshold.

    Parameters
    ----------
    accounting : ``"tight"``, or ``"paper"``, which charges every count apart.
    points : ``"clamped"`` clamps noisy counts at 0 and orders the points as the paper does, which
        biases the area downwards when noise is large; ``"plain"`` leaves both out and pools the
        class totals.

    Raises
    ------
    ValueError : for another word.
    """

    accounting: str = "tight"
    points: str = "clamped"

    def __post_init__(self) -> None:
        for name, words in (("accounting", ACCOUNTINGS), ("points", POINTS)):
            if getattr(self, name) not in words:
                raise ValueError(f"{name} must be one of {words}, got {getattr(self, name)!r}")


@dataclass(frozen=True)
class Laplace(OnCounts):
    """Laplace noise.

    Examples
    --------
    >>> str(Laplace(accounting="paper"))
    'laplace(accounting=paper)'
    """

    word = "laplace"


@dataclass(frozen=True)
class Gaussian(OnCounts):
    """Gaussian noise.

    Parameters
    ----------
    delta : the chance that epsilon fails, above 0 and below 1; it has to be given.
    """

    delta: float = 0.0

    word = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("the delta, as in gaussian(delta=1e-6),", self.delta)


@dataclass(frozen=True)
class RandomisedResponse(tp.Choice):
    """Every label is flipped once, by a chance that epsilon gives."""

    word = "randomised-response"


IMITATED_REPEATS = 800
"""Repetitions where errors are imitated, which takes longer."""

RESPONSE = RandomisedResponse.word


@tp.step(cost=lambda clients, query, state: query.protocol.guarantee)
def noisy_confusion_counts(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send TP, FP, TN and FN at every threshold, each with noise (Sun et al. 2022b, Methods).

    At a threshold a record counts in exactly one of the four. One label flip therefore changes two
    of them by one, a replaced record at most two, an added or removed record one: over T thresholds
    the L1 distance is 2T, 2T and T, and the squared L2 distance the same. Laplace noise of scale
    ``distance / epsilon``, or Gaussian noise of the analytic calibration for the L2 distance, gives
    the declared guarantee; the paper's accounting charges 4T, which bounds all three.

    The server learns the 4T noisy counts of each client.
    """
    settings: PublishedDPAUC = query.protocol
    placed = settings.on_scale(clients)
    positives, records = counting.cell_counts(placed, settings.edges)
    reached = curves.counts_from_thresholds(
        np.stack([positives, records - positives]).swapaxes(1, 2)
    )
    totals = reached[..., :1]
    four = np.stack([reached[0], reached[1], (totals - reached)[1], (totals - reached)[0]])
    four = four.swapaxes(1, 2)
    return {"counts": four + noise.draw(settings.count_noise, four.shape)}


@tp.step(
    cost=lambda clients, query, state: flipped_labels.flipping_cost(
        clients, query.protocol.epsilon, state, flipped_labels.every_client(clients)
    )
)
def flipped_histograms(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the exact cell counts of labels flipped once by randomised response.

    Epsilon at label adjacency, spent when the labels were flipped; the counts are post-processing.
    As Sun et al. 2022b warns, the number of records in a cell is exact: the server learns each
    client's score histogram, which label adjacency does not protect.
    """
    settings: PublishedDPAUC = query.protocol
    asked = (clients, settings.epsilon, noise, state, flipped_labels.every_client(clients))
    if clients.ranking is None:
        counts = counting.cell_counts(
            settings.on_scale(clients), settings.edges, flipped_labels.flipped_labels(*asked)
        )
        return {"positives": counts[0], "records": counts[1]}
    settings.check_range(clients)
    positives, records = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.int64)
    for listed, flipped in flipped_labels.flipped_in_order(clients.ranking, *asked):
        columns = {"scores": listed.scores, "labels": listed.labels}
        batch = batch_of(columns, listed.whose, clients.count)
        by_client = flipped[..., client_order(listed.whose, clients.count)]
        more = counting.cell_counts(settings.on_scale(batch), settings.edges, by_client)
        positives, records = positives + more[0], records + more[1]
    return {"positives": positives, "records": records}


@dataclass(frozen=True)
class PublishedDPAUC(dpauc.Thresholds):
    """The AUC and ROC curve from confusion counts, as Sun et al. 2022b form them.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    thresholds : T, spaced evenly over positions with both ends.
    mechanism : ``Laplace()``, ``Gaussian(delta=...)`` or ``RandomisedResponse()``, or their words.
    adjacency : ``"record"`` (added or removed), ``"label"`` or ``"replace"``; flipped labels
        protect ``"label"`` only.
    scale : where thresholds lie (``metrics.cells.score_scale``); ``"even"`` as in the paper.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> float(PublishedDPAUC(1.0, mechanism="laplace(accounting=paper)").count_noise.scale)
    400.0
    """

    thresholds: int = tp.setting(default=100, help="number of thresholds; 100 by default")
    mechanism: Laplace | Gaussian | RandomisedResponse | str = tp.setting(
        default=Laplace(),
        help="laplace, gaussian(delta=...) or randomised-response; laplace by default",
    )
    adjacency: Literal["record", "label", "replace"] = adjacency_setting()
    scale: str = tp.scale_setting()

    name = "published-dpauc"
    planning_module = __name__
    state_types = (flipped_labels.Flipped,)
    audit_settings = (
        {"mechanism": "laplace", "thresholds": 2},
        {"mechanism": f"gaussian(delta={audits.DELTA})", "thresholds": 2},
        {"mechanism": RESPONSE, "adjacency": "label"},
    )
    law_settings: ClassVar[audits.Configurations] = {
        name: {"thresholds": 20, "mechanism": mechanism, "adjacency": adjacency}
        for name, mechanism, adjacency in (
            ("dpauc-laplace", "laplace", "record"),
            ("dpauc-laplace-label", "laplace", "label"),
            ("dpauc-laplace-replace", "laplace", "replace"),
            ("dpauc-laplace-paper", "laplace(accounting=paper)", "label"),
            ("dpauc-laplace-unclamped", "laplace(points=plain)", "record"),
            ("dpauc-gaussian", "gaussian(delta=1e-6)", "record"),
            ("dpauc-gaussian-label", "gaussian(delta=1e-6)", "label"),
            ("dpauc-response", RESPONSE, "label"),
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.responds and self.adjacency != "label":
            raise ValueError(
                "randomised response protects labels only: adjacency must be 'label', "
                f"got {self.adjacency!r}"
            )
        if isinstance(self.mechanism, Gaussian):
            gaussian_delta(self.epsilon, self.mechanism.delta, 4 * self.thresholds)

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """The step of this mechanism."""
        return (flipped_histograms if self.responds else noisy_confusion_counts,)

    @property
    def responds(self) -> bool:
        """Whether labels answer by randomised response."""
        return isinstance(self.mechanism, RandomisedResponse)

    @property
    def on_counts(self) -> Laplace | Gaussian:
        """The noise on counts.

        Raises
        ------
        TypeError : where labels answer by randomised response.
        """
        if not isinstance(self.mechanism, Laplace | Gaussian):
            raise TypeError(f"{self.mechanism} adds no noise to counts")
        return self.mechanism

    @property
    def distance(self) -> int:
        """The L1 distance of all counts between neighbours; also their squared L2 distance."""
        if self.on_counts.accounting == "paper":
            return 4 * self.thresholds
        return (1 if self.adjacency == "record" else 2) * self.thresholds

    @property
    def count_noise(self) -> laplace.Laplace | gaussian.Gaussian:
        """The noise on a confusion count."""
        if isinstance(self.mechanism, Gaussian):
            reach, numbers = math.sqrt(self.distance), 4 * self.thresholds
            return gaussian.Gaussian(reach, self.epsilon, self.mechanism.delta, numbers)
        return laplace.Laplace(self.distance, self.epsilon)

    @property
    def guarantee(self) -> tp.Cost:
        """What one evaluation costs each client at most."""
        adjacency = tp.Adjacency(self.adjacency)
        if self.responds:
            return super().guarantee
        if isinstance(self.mechanism, Gaussian):
            return self.count_noise.cost(adjacency)
        one_count = laplace.Laplace(1, self.epsilon / self.distance)
        all_counts = Together((one_count,), self.distance)
        return tp.Cost(self.epsilon, adjacency=adjacency, mechanism=all_counts)

    @property
    def edges(self) -> Floats:
        """The thresholds as positions.

        Flipped labels are counted in the cells between them, the last one closed.
        """
        ends = np.linspace(0.0, 1.0, self.thresholds)
        return ends[:-1] if self.responds else ends

    @property
    def one_count(self) -> OneCount | None:
        """The counts at the thresholds; None where every label is flipped separately."""
        return None if self.responds else super().one_count

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: its noisy counts, and a bit a record for flipped labels."""
        counts = 8 * self.thresholds * clients.count
        return counts + (2 * clients.records if self.responds else 0)

    def conversation(self, clients: int) -> tp.Conversation:
        """One round: counts up."""
        if self.responds:
            reply = yield tp.Query(flipped_histograms, self)
            flipped, records = (
                np.asarray(reply[name]).sum(axis=-1, dtype=np.float64)
                for name in ("positives", "records")
            )
            flip = flip_probability(self.epsilon)
            positives = (flipped - flip * records) / (1 - 2 * flip)
            noise = cell_areas.CellNoise(response_variance(self.epsilon) * records)
            return dpauc.result_of(self, (positives, records - positives), noise)
        reply = yield tp.Query(noisy_confusion_counts, self)
        counts = np.asarray(reply["counts"])
        on_sums = confusion_areas.CountNoise(counts.shape[-1], self.count_noise)
        clamps = self.on_counts.points == "clamped"
        return confusion_areas.result_from_confusion(
            self.edge_scores, counts.sum(axis=-1), on_sums, clamps
        )

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """The counts of clients with one record."""
        return (guesses_from_published_counts,)

    @classmethod
    def error_cases(cls) -> Mapping[str, tp.ErrorCase]:
        """Every mechanism, with the paper's number of cells or at a larger epsilon."""
        mechanisms = {
            "dpauc-laplace": "laplace",
            "dpauc-laplace-unclamped": "laplace(points=plain)",
            "dpauc-gaussian": "gaussian(delta=1e-6)",
        }
        return {
            name: tp.ErrorCase(cls(2.0, 20, mechanism, scale=EVEN), IMITATED_REPEATS)
            for name, mechanism in mechanisms.items()
        } | {"dpauc-response": tp.ErrorCase(cls(1.0, 100, RESPONSE, "label", EVEN))}

    @property
    def law_traits(self) -> tp.LawTraits:
        """Flipped labels are debiased without noise too; the paper's accounting is loose."""
        flips = isinstance(self.mechanism, RandomisedResponse)
        charged = isinstance(self.mechanism, OnCounts) and self.mechanism.accounting == "paper"
        return tp.LawTraits(
            inexact="flipped labels are debiased all the same" if flips else "",
            loose="the paper charges every count apart" if charged else "",
        )

    def noiseless_value(self, clients: tp.Clients) -> float:
        """The area of the counts between thresholds, by linear pieces."""
        return float(curves.cell_area(*dpauc.pooled_cells(self.on_scale(clients), self.edges)))


def guesses_from_published_counts(
    protocol: tp.Protocol, sizes: tp.AttackSizes, seed: int
) -> Iterator[tp.Guesses]:
    """The cell of a client's only record, and its label, from the client's counts.

    Exact counts per threshold reveal both. Where labels are flipped the counts still reveal the
    record's cell, a weakness that Sun et al. 2022b names.
    """
    clients, epsilon = dpauc.lone_records(sizes, seed), protocol.guarantee.epsilon
    exact = PublishedDPAUC(epsilon, dpauc.THRESHOLDS, scale=EVEN)
    four = np.asarray(first_reply(exact, clients, tp.NoNoise())["counts"])
    guessed = cells_of_lone_records(four[0] + four[1]), four[0, 0] > 0
    yield from dpauc.guesses_of_lone_records(
        "exact counts per threshold", exact, clients, guessed, False
    )
    flipping = PublishedDPAUC(epsilon, dpauc.THRESHOLDS, RandomisedResponse(), "label", EVEN)
    reply = first_reply(flipping, clients, tp.SimulatedNoise(seed))
    cells = cells_of_lone_records(curves.counts_from_thresholds(np.asarray(reply["records"]).T).T)
    guessed = cells, np.asarray(reply["positives"]).sum(axis=0) > 0
    yield from dpauc.guesses_of_lone_records(
        "counts of flipped labels", flipping, clients, guessed, True
    )


def cells_of_lone_records(reached: NDArray[Any]) -> Integers:
    """The cell of every client's only record, from how many records reach each threshold.

    The difference of neighbouring counts is 1 in the record's cell, which is what Sun et al. 2022b
    warns of.

    Parameters
    ----------
    reached : at ascending thresholds, shape (T, K); noisy or not.

    Examples
    --------
    >>> cells_of_lone_records(np.array([[1, 1], [1, 0], [0, 0]]))
    array([1, 0])
    """
    below = np.vstack([reached[1:], np.zeros_like(reached[:1])])
    return np.argmax(reached - below, axis=0).astype(np.int64)


CELLS = 100
"""The number of cells that a plan takes for flipped labels."""


def published_dpauc_forecast(
    protocol: PublishedDPAUC, scenario: tp.Scenario, shape: tp.Shape
) -> tp.Forecast:
    """The variance formula of flipped labels, at the expected counts of the shape (section 2b).

    Raises
    ------
    ValueError : for noise on confusion counts, which is not planned.
    """
    if not protocol.responds:
        raise ValueError(f"plans are for {RandomisedResponse.word}, got {protocol.mechanism}")
    cells = scenario.counts(shape, protocol.edges.size, planned_scale(protocol.scale))
    noise = cell_areas.CellNoise(response_variance(protocol.epsilon) * (cells[0] + cells[1]))
    return dpauc.cells_forecast(cells, noise, protocol.adjacency, scenario, shape)


def published_dpauc_families(scenario: tp.Scenario) -> list[tp.Family]:
    """Cells of flipped labels."""
    flipped = PublishedDPAUC(scenario.epsilon, CELLS, RandomisedResponse(), "label")
    reused = (
        "the server sees every client's score histogram exactly, while the flipped labels serve "
        "later evaluations at no further cost"
    )
    return [tp.Family((flipped,), (tp.Trust.EACH,), reused)]


PLANNING = tp.Planning.of_figure(published_dpauc_families, published_dpauc_forecast)
