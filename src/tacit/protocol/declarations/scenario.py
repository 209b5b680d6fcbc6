"""What is known before an evaluation: how many records there are, and how scores may be
distributed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from tacit.arrays import Floats
from tacit.data.categories import MAX_CATEGORIES
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY, REAL, named_scale
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.cost import check_budget

Form = Literal["even", "calibrated"]

GUESSES = (0.65, 0.775, 0.9)
"""The AUCs that are taken to be plausible where none is guessed; the middle one is central."""

MAX_RECORDS = 2**40
"""Beyond this, counts times ranks leave the 64-bit integers of the protocols."""


def planned_scale(name: str) -> str:
    """The scale of probabilities on which a protocol's scores are planned, by its scale's name.

    Shapes are those of probabilities. Cells of log-odds are the same cells; real numbers are taken
    to be spread alike.
    """
    return EVEN if name == EVEN else PROBABILITY


@dataclass(frozen=True)
class Shape:
    """How both classes' scores are distributed over [0, 1]: a binormal model.

    Latent values are normal with unit variance in both classes. ``"even"`` maps them by the normal
    distribution function, as ``binormal_scores`` does, so that scores fill [0, 1]; ``"calibrated"``
    maps them to the probability of being positive, so that scores of a rare class crowd near 0.

    Parameters
    ----------
    auc : the population's AUC, above 0.5 and below 1.
    form : how latent values become scores.

    Examples
    --------
    >>> positives, negatives = Shape(0.8).cell_fractions(2, 0.1)
    >>> round(float(positives[1]), 4), round(float(negatives[1]), 4)
    (0.7241, 0.2759)
    """

    auc: float
    form: Form = "even"

    @property
    def separation(self) -> float:
        """How far apart the classes' latent means are."""
        return math.sqrt(2.0) * float(ndtri(self.auc))

    def cell_fractions(
        self, cells: int, positive_fraction: float, scale: str = EVEN
    ) -> tuple[Floats, Floats]:
        """Both classes' fractions of equal cells of a scale, positives first, shapes (cells,).

        Scores are probabilities, or their log-odds; as numbers of any kind, even scores are latent
        values and calibrated ones log-odds.
        """
        edges = named_scale(scale).scores(np.linspace(0.0, 1.0, cells + 1))
        latent = self._latent(edges, scale, positive_fraction)
        half = self.separation / 2
        return np.diff(ndtr(latent - half)), np.diff(ndtr(latent + half))

    def reaching(self, threshold: float, positive_fraction: float) -> tuple[float, float]:
        """The fractions of positives and negatives whose scores reach a threshold."""
        edge = np.array([threshold])
        latent = ndtri(edge) if self.form == "even" else self._odds(edge, positive_fraction)
        half = self.separation / 2
        return float(ndtr(half - latent[0])), float(ndtr(-half - latent[0]))

    def scores(self, latent: Floats, positive_fraction: float) -> Floats:
        """The scores of latent values."""
        if self.form == "even":
            return np.asarray(ndtr(latent))
        return np.asarray(expit(logit(positive_fraction) + self.separation * latent))

    def _latent(self, edges: Floats, scale: str, positive_fraction: float) -> Floats:
        """The latent values of a scale's scores."""
        if scale in (PROBABILITY, EVEN):
            return ndtri(edges) if self.form == "even" else self._odds(edges, positive_fraction)
        if self.form == "calibrated":
            return np.asarray((edges - logit(positive_fraction)) / self.separation)
        if scale == REAL:
            return edges
        # of the lower tail, which a double tells apart from 0
        lower: Floats = ndtri(expit(-np.abs(edges)))
        return np.where(edges > 0, -lower, lower)

    def _odds(self, edges: Floats, positive_fraction: float) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray((logit(edges) - logit(positive_fraction)) / self.separation)


@dataclass(frozen=True)
class Scenario:
    """How many records there are, who holds them, and the privacy budget.

    Parameters
    ----------
    records, positives : M and P, of all clients together.
    clients : K; records are taken to be dealt out at random, equally many each.
    epsilon : the privacy budget of one evaluation.
    classes : C; of more than two, ``positives`` are the records of one class, and all others the
        negatives, with the shape's AUC for every class.

    Raises
    ------
    ValueError : for a plan that no data could follow; the message names bound and value.

    Examples
    --------
    >>> Scenario(40_000, 4_000, 10, 1.0).positive_fraction
    0.1
    """

    records: int
    positives: int
    clients: int
    epsilon: float
    classes: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.records <= MAX_RECORDS:
            raise ValueError(f"records must be from 2 to {MAX_RECORDS}, got {self.records}")
        if not 1 <= self.positives < self.records:
            raise ValueError(
                f"positives must be from 1 to {self.records - 1}, fewer than the records, "
                f"got {self.positives}"
            )
        if not 1 <= self.clients <= self.records:
            raise ValueError(
                f"clients must be from 1 to {self.records}, as each holds a record, "
                f"got {self.clients}"
            )
        if not 2 <= self.classes <= MAX_CATEGORIES:
            raise ValueError(f"classes must be from 2 to {MAX_CATEGORIES}, got {self.classes}")
        check_budget(self.epsilon)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes while they have none: their numbers."""
        return tuple(map(str, range(self.classes)))

    @property
    def negatives(self) -> int:
        """N, the number of records that are not positive."""
        return self.records - self.positives

    @property
    def positive_fraction(self) -> float:
        """The fraction of the positives."""
        return self.positives / self.records

    @property
    def records_per_client(self) -> float:
        """The mean number of records of a client."""
        return self.records / self.clients

    def counts(self, shape: Shape, cells: int, scale: str = EVEN) -> tuple[Floats, Floats]:
        """The expected positives and negatives in equal cells of a scale, shapes (cells,)."""
        positive_fractions, negative_fractions = shape.cell_fractions(
            cells, self.positive_fraction, scale
        )
        return self.positives * positive_fractions, self.negatives * negative_fractions

    def sampling_error(self, shape: Shape) -> float:
        """The standard error of an exact AUC of these records about the population's."""
        return math.sqrt(plug_in_variance(shape.auc, self.positives, self.negatives))

    def scaled(self, factor: float) -> Scenario:
        """The scenario with this many times the records, in the same proportions.

        Clients of one record keep one record, and their number grows. The number of other clients
        stays, and each has more records.
        """
        records = max(2, round(self.records * factor))
        positives = min(max(1, round(records * self.positive_fraction)), records - 1)
        lone = self.clients == self.records
        clients = records if lone else min(self.clients, records)
        return Scenario(records, positives, clients, self.epsilon, self.classes)

    def drawn(self, shape: Shape, seed: int | None = None) -> Clients:
        """Records drawn from the shape, dealt out to simulated clients.

        Examples
        --------
        >>> clients = Scenario(100, 20, 5, 1.0).drawn(Shape(0.8), seed=0)
        >>> clients.count, clients.records
        (5, 100)
        """
        rng = np.random.default_rng(seed)
        if self.classes > 2:
            return self._drawn_by_class(shape, rng)
        sizes = [self.positives, self.negatives]
        labels = np.repeat(np.array([1, 0], dtype=np.int8), sizes)
        latent = rng.standard_normal(self.records) + shape.separation * (labels - 0.5)
        dealt = int(rng.integers(2**62))
        return Clients.split(
            shape.scores(latent, self.positive_fraction), labels, self.clients, seed=dealt
        )

    def _drawn_by_class(self, shape: Shape, rng: np.random.Generator) -> Clients:
        """Classes of equal size, whose scores are independent of each other."""
        of_record = rng.permutation(self.records) % self.classes
        own = of_record[:, np.newaxis] == np.arange(self.classes)
        latent = rng.standard_normal(own.shape) + shape.separation * (own - 0.5)
        scores = shape.scores(latent, 1 / self.classes)
        dealt = np.arange(self.records) % self.clients
        return Clients.from_classes(scores, of_record, self.class_names, dealt)


def plausible_shapes(guess: float | None) -> tuple[Shape, ...]:
    """The shapes that a plan considers, the central one first.

    Both forms of the central AUC; without a guess the even form of the others too.

    Raises
    ------
    ValueError : for a guess that is not above 0.5 and below 1.
    """
    if guess is not None and not 0.5 < guess < 1:
        raise ValueError(f"the guessed AUC must be above 0.5 and below 1, got {guess}")
    central = GUESSES[1] if guess is None else guess
    shapes = [Shape(central), Shape(central, "calibrated")]
    if guess is None:
        shapes += [Shape(GUESSES[0]), Shape(GUESSES[-1])]
    return tuple(shapes)
