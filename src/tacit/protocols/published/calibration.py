"""Cormode and Markov 2023, "Federated calibration and evaluation of binary classifiers": histograms
of both classes' scores, in a hierarchy of equal cells.

``2**k`` segments of [0, 1] are counted for every k up to the height h (section 2.3), under one of
three models: exact sums ("Federated"), sums with Pólya noise of which every client draws a share
("DistDP", section 2.2), or a private report of every record ("LocalDP"). Under noise epsilon is
divided over the levels, or each record counts on one level that it draws, at all of epsilon. From
the counts follow B buckets of about equally many records, and from these precision, recall and
accuracy (section 4), the AUC (section 5) and calibration (section 6).

What is ours: counts of all levels are made consistent, noise and cells are part of stated errors,
and ``aim`` may divide epsilon unevenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import tree_budget, tree_results
from tacit.counts.tree_budget import CHOICE_UNITS, FIRST_CELLS
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.mechanisms.response import Choices
from tacit.protocol import audits, releases
from tacit.protocol.conversation import ONE_REPLICATE
from tacit.protocols.histogram.protocol import ScoreHistogram, one_tree, reported_tree
from tacit.protocols.histogram.steps import agreed_height, leaves_of, tree_fields
from tacit.protocols.shared import counting

SPLIT, SAMPLE = "split", "sample"


@dataclass(frozen=True)
class LevelSum(tp.SecureSum):
    """A secure sum of the counts of a hierarchy's levels.

    Parameters
    ----------
    dropouts : as ``SecureSum`` has it.
    budget : ``"split"`` counts every record on every level and divides epsilon over the levels;
        ``"sample"`` has each record draw the level on which it counts.
    """

    budget: str = SPLIT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget not in (SPLIT, SAMPLE):
            raise ValueError(f"budget must be {SPLIT} or {SAMPLE}, got {self.budget!r}")


def _fields(query: tp.Query) -> releases.Fields:
    return tree_fields(query.protocol, agreed_height(query))


@tp.step(
    cost=lambda clients, query, state: query.protocol.guarantee,
    sums=lambda query: releases.layout_of(_fields(query)),
    shares=releases.planned_clients,
    bounds=lambda query: releases.bounds_of(_fields(query), query),
    releases=_fields,
)
def sampled_trees(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the tree of both classes' counts, each record on one level that it draws.

    The level does not depend on what the record holds. Given the levels, adding or removing a
    record changes one count by one, replacing it two, all on one level. Every count has noise of
    the scale ``distance / epsilon``, so that a record costs epsilon once, whichever level it draws.
    The guarantee is about the sum over all clients, and holds against a server that sees the sum
    only and colludes with no more clients than ``dropouts`` covers.

    The server learns the noisy sum of the trees, and how many clients answered.
    """
    height, protocol = agreed_height(query), query.protocol
    leaves = leaves_of(clients, height, protocol)
    chosen = noise.draw(Choices(protocol.level_units(height)), (clients.records,))
    counts: dict[str, Integers] = {}
    for level in protocol.level_parts(height):
        drawn = leaves[chosen == level - FIRST_CELLS]
        nodes = drawn >> (height + 1 - level)
        counts[f"{counting.LEVEL}-{level}"] = np.bincount(nodes, minlength=1 << level)
    return releases.noisy_sums(_fields(query), counts, query, clients.count, noise)


def sampled_tree(
    protocol: ScoreHistogram, sums: tp.Sums, height: int
) -> tuple[Floats, trees.TreeNoise]:
    """The consistent leaves of a tree on whose levels records were dealt out, and their noise."""
    variances = counting.tree_noise(sums.fields, float(sums.noises)).variances.copy()
    factors = np.zeros(height + 2)
    factors[FIRST_CELLS:] = CHOICE_UNITS / np.array(protocol.level_units(height), dtype=np.float64)
    variances[FIRST_CELLS:] *= factors[FIRST_CELLS:] ** 2
    counts = counting.summed_levels(sums)
    scaled = {level: factors[level] * each[..., 0, :] for level, each in counts.items()}
    records = max(float(np.mean([counts.sum(axis=-1) for counts in scaled.values()])), 1.0)
    noise = tree_budget.sampled_noise(variances, factors, records, extra=0.0, centred=False)
    known = [scaled.get(level) for level in range(height + 2)]
    return trees.consistent_leaves(known, noise.weighting), noise


OTHER_FORM = {"aim": "auc", "scale": "probability"}
"""Settings of trees that are divided for the AUC, on cells of equal log-odds."""


@dataclass(frozen=True)
class PublishedHistogram(ScoreHistogram):
    """Cormode and Markov 2023: one histogram of both classes in equal cells, in one round.

    Parameters
    ----------
    trust : ``LevelSum()`` ("DistDP"; with ``budget="sample"`` records draw their level),
        ``ExactSum()`` ("Federated") or ``Local()`` ("LocalDP"), or their words.
    epsilon, height, adjacency : as ``ScoreHistogram`` has them.
    aim : how epsilon is divided over the levels, or records are dealt out to them: evenly
        (``"all"``, as in the paper), or as suits the AUC or curves.
    scale : of whose positions there are equal cells: the scores themselves in the paper.
    buckets : B, the number of equi-depth buckets of curves and calibration; None takes as many as
        the counts support under their noise.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> PublishedHistogram("secure-sum(budget=sample)", epsilon=1.0, buckets=20).steps[0].name
    'sampled_trees'
    """

    trust: LevelSum | tp.ExactSum | tp.Local | str = tp.trust_setting(LevelSum())
    aim: tree_budget.Aim = tp.setting(  # type: ignore[assignment]  # the paper divides in further ways
        default="all", help="how epsilon is divided over levels; evenly by default"
    )
    scale: str = tp.scale_setting(EVEN)
    buckets: int | None = tp.setting(
        default=None, help="equi-depth buckets of curves and calibration"
    )

    name = "published-histogram"
    planning_module = ""
    plan_example: ClassVar[Mapping[str, Any] | None] = None
    demonstrated: ClassVar[Mapping[str, Any]] = {}
    counts_in_rounds, places_cells = False, False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buckets is not None and self.buckets < 1:
            raise ValueError(f"buckets must be at least 1, got {self.buckets}")

    @property
    def is_sampled(self) -> bool:
        """Whether records draw the level of a secure sum on which they count."""
        return isinstance(self.trust, LevelSum) and self.trust.budget == SAMPLE

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """One step."""
        return (sampled_trees,) if self.is_sampled else super().steps

    def level_parts(self, height: int) -> dict[int, float]:
        """The levels that are asked for, with what counting there costs a record."""
        if self.is_sampled:
            return dict.fromkeys(range(FIRST_CELLS, height + FIRST_CELLS), self.known_epsilon)
        return super().level_parts(height)

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds; those of sampled levels run one at a time."""
        return ONE_REPLICATE if self.is_sampled else super().replicate_size(clients)

    @property
    def one_count(self) -> Any:
        """One tree over all records; None where records report by themselves or are dealt out."""
        return None if self.is_sampled else super().one_count

    def conversation(self, clients: int) -> tp.Conversation:
        """One round: trees or reports up."""
        if not self.is_sampled:
            ask_once = reported_tree if isinstance(self.trust, tp.Local) else one_tree
            return (yield from ask_once(self, clients, self.buckets))
        height = self.tree_height(clients)
        sums = yield from tp.ask(sampled_trees, self, clients, {"height": height})
        leaves, noise = sampled_tree(self, sums, height)
        # a record counts on one level only, so what the noise supports is about one field
        one_level = dict(list(sums.fields.items())[:1])
        protection = releases.total_protection((replace(sums, fields=one_level),))
        return tree_results.result_from_tree(
            leaves, noise, self.buckets, protection, axis=self.score_axis
        )

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> tp.AuditCase:
        """Sampled levels are drawn one reply at a time."""
        case = super().audit_case(settings)
        sampled = SAMPLE in str(settings.get("trust", ""))
        return replace(case, one_by_one=audits.SAMPLED_DRAWS) if sampled else case

    audit_settings = (
        {"trust": LevelSum.word, "height": 2},
        {"trust": LevelSum.word, "height": 2, "adjacency": "replace"},
        {"trust": str(LevelSum(budget=SAMPLE)), "height": 2},
        {"trust": tp.Local.word, "height": 2},
        {"trust": tp.ExactSum.word, "height": 2},
    )
    """Both budgets, private reports and exact sums, on small trees."""

    law_settings: ClassVar[audits.Configurations] = {
        "histogram-even": {"height": 5},
        "histogram": {"height": 5, **OTHER_FORM},
        "histogram-replace": {"height": 5, "adjacency": "replace", **OTHER_FORM},
        "histogram-sample": {"trust": LevelSum(budget=SAMPLE), "height": 5, **OTHER_FORM},
        "local-histogram-even": {"trust": tp.Local.word, "height": 4},
    }
    """The paper's forms on equal cells, and divided for the AUC on those of log-odds."""

    @classmethod
    def error_cases(cls: Any) -> Mapping[str, tp.ErrorCase]:
        """Split budgets; records that are dealt out take too long."""
        return {"histogram-even": tp.ErrorCase(cls(LevelSum(), 1.0), noticed=True)}

    @property
    def law_traits(self) -> tp.LawTraits:
        """Sampled records are not all, and debiased bits are not exact."""
        if self.is_sampled:
            return tp.LawTraits(inexact="records that are assigned to levels are not all")
        return super().law_traits
