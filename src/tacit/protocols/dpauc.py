"""DPAUC: labels and scores stay at the clients (paper 2; docs, sections 2a to 2c).

The score range [0, 1] is cut at public thresholds. Clients release noisy counts, and the server
forms the ROC curve and its area. The server sees every client's noisy counts and nothing else,
except that label adjacency treats the scores, and so each cell's number of records, as public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.metrics.curves import counts_from_thresholds
from tacit.privacy.cost import Adjacency, Cost, analytic_gaussian_sigma, check_budget
from tacit.privacy.noise import NoiseSource, gaussian_delta
from tacit.privacy.response import flip_probability, response_variance
from tacit.protocols.cells import (
    exchange_variance,
    findings_from_cells,
    findings_from_confusion,
    independent_variance,
)
from tacit.protocols.confusion import CountNoise
from tacit.protocols.conversation import Ask, Conversation, Memory, Protocol, Reply, Step, step
from tacit.protocols.flipped import everybody, flipped_labels, flipping_cost
from tacit.protocols.levels import CellNoise, Levels, best_levels
from tacit.protocols.rank_noise import RESPONSE
from tacit.protocols.score_range import UNIT_INTERVAL, check_scores_in_unit_interval
from tacit.results.findings import Findings

Floats = NDArray[np.float64]

MECHANISMS = ("histogram", "laplace", "gaussian", RESPONSE)


def _full_cost(clients: Clients, ask: Ask, memory: Memory) -> Cost:
    guarantee: Cost = ask.settings.guarantee
    return guarantee


def _response_cost(clients: Clients, ask: Ask, memory: Memory) -> Cost:
    return flipping_cost(clients, ask.settings.epsilon, memory, everybody(clients))


@step(spends=_full_cost)
def noisy_confusion_counts(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Send TP, FP, TN and FN at every threshold, each with noise (paper 2, Methods).

    At a threshold a record counts in exactly one of the four. One label flip therefore changes two
    of them by one, a replaced record at most two, an added or removed record one: over T thresholds
    the L1 distance is 2T, 2T and T, and the squared L2 distance the same. Laplace noise of scale
    ``distance / epsilon``, or Gaussian noise of the analytic calibration for the L2 distance, gives
    the declared guarantee; the paper's accounting charges 4T, which bounds all three.

    The server learns the 4T noisy counts of each client.
    """
    settings: DPAUC = ask.settings
    positives, records = cell_counts(clients, ask.settings.edges, clients.labels)
    reached = counts_from_thresholds(np.stack([positives, records - positives]).swapaxes(1, 2))
    totals = reached[..., :1]
    four = np.stack([reached[0], reached[1], (totals - reached)[1], (totals - reached)[0]])
    four = four.swapaxes(1, 2)
    if settings.mechanism == "laplace":
        return {"counts": four + noise.laplace(settings.count_scale, four.shape)}
    return {"counts": four + noise.gaussian(settings.count_scale, four.shape)}


@step(spends=_full_cost)
def noisy_histograms(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Send the numbers of positives and negatives in cells and groups of cells, with noise.

    A record sits in one cell, and its group, of one class: adding or removing it changes one count
    of each level by one, and replacing it at most two. Discrete Laplace noise of scale
    ``sensitivity / part`` on every count costs that level's part of epsilon, by the Laplace
    mechanism on the integers, and both levels together epsilon. At label adjacency the number of
    records in a cell is public and sent as it is; a label flip changes one positive count of each
    level by one.

    The server learns the noisy counts of each client's cells and groups.
    """
    settings: DPAUC = ask.settings
    levels, labelled = settings.levels, settings.adjacency == "label"
    positives, records = cell_counts(clients, ask.settings.edges, clients.labels)
    cells = positives if labelled else np.stack([positives, records - positives])
    noisy = {"cells": cells + _level_noise(settings, levels.cell_epsilon, cells, noise)}
    if levels.groups:
        groups = np.add.reduceat(cells, levels.starts, axis=-2)
        noisy["groups"] = groups + _level_noise(settings, levels.group_epsilon, groups, noise)
    return noisy | {"records": records} if labelled else noisy


def _level_noise(
    settings: DPAUC, epsilon: float, counts: NDArray[np.int64], noise: NoiseSource
) -> NDArray[np.int64]:
    return noise.discrete_laplace(settings.record_distance / epsilon, counts.shape)


@step(spends=_response_cost)
def flipped_histograms(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Send the exact cell counts of labels flipped once by randomised response.

    Epsilon at label adjacency, spent when the labels were flipped; the counts are post-processing.
    As paper 2 warns, the number of records in a cell is exact: the server learns each client's
    score histogram, which label adjacency does not protect.
    """
    flipped = flipped_labels(clients, ask.settings.epsilon, noise, memory, everybody(clients))
    positives, records = cell_counts(clients, ask.settings.edges, flipped)
    return {"positives": positives, "records": records}


@dataclass(frozen=True)
class DPAUC(Protocol):
    """The AUC and ROC curve with private labels and scores.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    thresholds : the number of thresholds of the paper's forms, spaced evenly over [0, 1] with both
        ends, or the number of equal cells of the histogram.
    mechanism : ``"histogram"`` (noisy cells, and groups of cells where that pays), or the paper's
        ``"laplace"``, ``"gaussian"`` and ``"randomised-response"``.
    accounting : ``"tight"``, or ``"paper"``, which charges every count of the paper's forms apart.
    adjacency : ``"record"`` (added or removed), ``"label"`` or ``"replace"``.
    delta : for Gaussian noise only.
    clamp : the paper's forms clamp noisy counts at 0 and order the points, which biases the area
        downwards when noise is large; False leaves both out and pools the class totals.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> DPAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.RECORD: 'record'>, rho=None)
    """

    epsilon: float
    thresholds: int = 100
    mechanism: str = "histogram"
    accounting: Literal["tight", "paper"] = "tight"
    adjacency: Literal["record", "label", "replace"] = "record"
    delta: float = 0.0
    clamp: bool = True

    name = "dpauc"
    score_range = UNIT_INTERVAL

    def __post_init__(self) -> None:
        check_budget(self.epsilon)
        spelled = self.mechanism.lower().replace("_", "-").replace("randomized", "randomised")
        object.__setattr__(self, "mechanism", RESPONSE if spelled == "rr" else spelled)
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"mechanism must be one of {MECHANISMS}, got {self.mechanism!r}")
        if not 2 <= self.thresholds <= 2**20:
            raise ValueError(f"thresholds must be between 2 and 2**20, got {self.thresholds}")
        if self.accounting not in ("tight", "paper"):
            raise ValueError(f"accounting must be 'tight' or 'paper', got {self.accounting!r}")
        if self.adjacency not in ("record", "label", "replace"):
            raise ValueError(
                f"adjacency must be 'record', 'label' or 'replace', got {self.adjacency!r}"
            )
        if self.mechanism == RESPONSE and self.adjacency != "label":
            raise ValueError(
                "randomised response protects labels only: adjacency must be 'label', "
                f"got {self.adjacency!r}"
            )
        if self.mechanism == "gaussian" and not 0 < self.delta < 1:
            raise ValueError(f"gaussian noise needs a delta between 0 and 1, got {self.delta}")
        if self.mechanism == "gaussian":
            gaussian_delta(self.epsilon, self.delta, 4 * self.thresholds)
        if self.mechanism != "gaussian" and self.delta != 0:
            raise ValueError(f"delta belongs to gaussian noise, got {self.delta}")

    @property
    def steps(self) -> tuple[Step, ...]:
        """The step of this mechanism."""
        if self.mechanism == RESPONSE:
            return (flipped_histograms,)
        return (noisy_histograms if self.mechanism == "histogram" else noisy_confusion_counts,)

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        adjacency = Adjacency(self.adjacency)
        if self.mechanism == "gaussian":
            rho = self._distance / (2 * self.count_scale**2)
            return Cost(self.epsilon, self.delta, adjacency, rho)
        return Cost(self.epsilon, adjacency=adjacency)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that this combination uses."""
        used: dict[str, Any] = {
            "epsilon": self.epsilon,
            "thresholds": self.thresholds,
            "mechanism": self.mechanism,
            "adjacency": self.adjacency,
        }
        if self.mechanism in ("laplace", "gaussian"):
            used |= {"accounting": self.accounting, "clamp": self.clamp}
        if self.mechanism == "gaussian":
            used["delta"] = self.delta
        return used

    @property
    def count_scale(self) -> float:
        """The noise on a confusion count: a Laplace scale, or a standard deviation."""
        if self.mechanism == "gaussian":
            delta = gaussian_delta(self.epsilon, self.delta, 4 * self.thresholds)
            return analytic_gaussian_sigma(self.epsilon, delta, math.sqrt(self._distance))
        return self._distance / self.epsilon

    @property
    def record_distance(self) -> float:
        """How many counts of a histogram's level a neighbour changes by one."""
        return 2.0 if self.adjacency == "replace" else 1.0

    @property
    def levels(self) -> Levels:
        """How the histogram divides epsilon, chosen from public figures."""
        return best_levels(self.thresholds, self.epsilon, self.record_distance)

    @property
    def edges(self) -> Floats:
        """The lower edges of the cells, which are the thresholds.

        Flipped labels are counted in the cells between the paper's thresholds, the last one closed.
        """
        if self.mechanism == "histogram":
            return np.linspace(0.0, 1.0, self.thresholds + 1)[:-1]
        ends = np.linspace(0.0, 1.0, self.thresholds)
        return ends[:-1] if self.mechanism == RESPONSE else ends

    @property
    def _distance(self) -> int:
        """The L1 distance of the confusion counts between neighbours; also their squared L2."""
        if self.accounting == "paper":
            return 4 * self.thresholds
        return (1 if self.adjacency == "record" else 2) * self.thresholds

    def draws(self, clients: Clients) -> int:
        """Numbers a replicate holds: its noisy counts, and a bit a record for flipped labels."""
        counts = 8 * self.thresholds * clients.count
        return counts + (2 * clients.records if self.mechanism == RESPONSE else 0)

    def conversation(self, clients: int) -> Conversation:
        """One round: noisy counts up."""
        if self.mechanism in ("laplace", "gaussian"):
            reply = yield Ask(noisy_confusion_counts, self)
            counts = np.asarray(reply["counts"])
            noise = CountNoise(counts.shape[-1], self.count_scale, self.mechanism == "gaussian")
            return findings_from_confusion(self.edges, counts.sum(axis=-1), noise, self.clamp)
        if self.mechanism == RESPONSE:
            reply = yield Ask(flipped_histograms, self)
            return self._from_flipped(*(_total(reply, k) for k in ("positives", "records")))
        reply = yield Ask(noisy_histograms, self)
        drawn = self.levels.noise(np.asarray(reply["cells"]).shape[-1], self.record_distance)
        groups = _total(reply, "groups") if "groups" in reply else np.zeros(0)
        cells = drawn.reconciled(_total(reply, "cells"), groups)
        if self.adjacency == "label":
            return self._from_exchanged(cells, _total(reply, "records"), drawn)
        positives, negatives = cells[..., 0, :], cells[..., 1, :]
        spread = independent_variance(positives, negatives, drawn)
        return findings_from_cells(self.edges, (positives, negatives), spread, drawn)

    def _from_flipped(self, flipped: Floats, records: Floats) -> Findings:
        flip = flip_probability(self.epsilon)
        noise = CellNoise(response_variance(self.epsilon) * records)
        return self._from_exchanged((flipped - flip * records) / (1 - 2 * flip), records, noise)

    def _from_exchanged(self, positives: Floats, records: Floats, noise: CellNoise) -> Findings:
        """Noise that moves a record from one class to the other; cell totals are exact."""
        cells = positives, records - positives
        spread = exchange_variance(*cells, noise)
        return findings_from_cells(self.edges, cells, spread, noise)


def _total(reply: Reply, name: str) -> Floats:
    """A field's sum over clients."""
    return np.asarray(reply[name]).sum(axis=-1, dtype=np.float64)


def cell_counts(
    clients: Clients, thresholds: Floats, labels: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positives and records of every client in every cell, shapes (..., T, K) and (T, K).

    Cell ``j`` holds the scores from ``thresholds[j]`` up to the next threshold.

    Raises
    ------
    DataError : for a score outside [0, 1], naming the client and the score.
    """
    check_scores_in_unit_interval(clients)
    cells = thresholds.size
    cell = np.searchsorted(thresholds, clients.scores, side="right") - 1
    place = cell * clients.count + clients.client_of_record
    shape = (cells, clients.count)
    records = np.bincount(place, minlength=cells * clients.count).reshape(shape)
    if labels.ndim == 1:
        positives = np.bincount(place[labels == 1], minlength=cells * clients.count)
        return positives.reshape(shape).astype(np.int64), records.astype(np.int64)
    order = np.argsort(place, kind="stable")
    filled = np.flatnonzero(records.ravel())
    starts = np.concatenate(([0], np.cumsum(records.ravel()[filled])[:-1]))
    replicated = np.zeros((*labels.shape[:-1], cells * clients.count), dtype=np.int64)
    replicated[..., filled] = np.add.reduceat(labels[..., order], starts, axis=-1, dtype=np.int64)
    return replicated.reshape(*labels.shape[:-1], *shape), records.astype(np.int64)
