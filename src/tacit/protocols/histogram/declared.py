"""What ScoreHistogram declares for audits, reports and laws.

Who sees what when a run counts both classes in a tree of cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

import tacit.protocol as tp
from tacit.counts import influence
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol import audits
from tacit.protocol.declared import LOCAL, LOCAL_PAGE
from tacit.protocols.shared.cells import KNOTS
from tacit.protocols.shared.declared import CountingProtocol, forest_model

if TYPE_CHECKING:
    from tacit.protocol.conversation import ClientState, Query


PAGE = "threat-models/score-histogram.md"

REPORTED = tp.ThreatModel(
    LOCAL,
    "Exactly: each client's number of records, in which round each spoke, and about which level. "
    "With noise: of every record some bits about its class and cell, or, of a few where cells are "
    "placed, where their scores lie.",
    "Cells that hold about equally many records, as far as noisy reports tell.",
    "Numbers of records, and the order in which they were sent.",
    LOCAL_PAGE,
)
PUBLISHED = dict.fromkeys(
    (tp.Trust.SECURE_SUM, tp.Trust.EACH),
    "Cells where noisy counts placed them, and both classes' noisy distributions and sizes where "
    "there was a second round; else nothing.",
)


def threats_of(settings: Mapping[str, Any]) -> tp.ThreatModel:
    """The threat model of these settings."""
    trust = tp.Trust.of(str(settings.get("trust", tp.Trust.SECURE_SUM.value)))
    if trust is tp.Trust.LOCAL:
        return REPORTED
    counted = "how many positives and negatives lie in every cell"
    if trust is not tp.Trust.EXACT_SUM:
        counted += ", and, with a second round, the sum of the records' influences on the AUC"
    return forest_model(settings, counted, PUBLISHED, PAGE)


SECURE_SUM = tp.SecureSum.word

LOOK_REPEATS = 800
"""Repetitions of runs whose rounds follow from what came before, which are slow."""


class HistogramDeclarations(CountingProtocol):
    """Cases, attacks, threats and laws of ``ScoreHistogram``."""

    gives_curve = True
    replicated_fields = (
        influence.POSITIVES,
        influence.NEGATIVES,
        influence.SIZES,
        KNOTS,
    )
    threats = staticmethod(threats_of)

    audit_settings: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"trust": SECURE_SUM, "height": 2},
        {"trust": SECURE_SUM, "height": 2, "adjacency": "replace"},
        {"trust": SECURE_SUM, "height": 2, "aim": "auc"},
        {"trust": SECURE_SUM},
        {"trust": tp.Each.word, "height": 2},
        {"trust": tp.Each.word},
        {"trust": tp.Local.word, "height": 2},
        {"trust": tp.Local.word, "height": 2, "scale": EVEN},
        {"trust": tp.ExactSum.word, "height": 2},
    )
    """Every trust model, on small trees."""

    def hostile_query(self, query: Query) -> Query:
        """Published functions under which a low negative moves the sum most.

        All positives lie in the middle and all negatives at the top, so that the AUC is 0. A
        negative below the middle has the influence 1, a positive there 0. The other query holds
        nothing that changes how much a step reveals.
        """
        if influence.SIZES not in query.broadcast:
            return query
        inner = query.broadcast[influence.POSITIVES].shape[-1]
        positives = (np.arange(inner) >= inner // 2).astype(np.float64)
        fields = {
            influence.POSITIVES: positives,
            influence.NEGATIVES: np.zeros(inner),
            influence.SIZES: np.ones(2),
        }
        return replace(query, broadcast={**query.broadcast, **fields})

    def renew_state(self, clients: tp.Clients, state: ClientState) -> None:
        """Keep the turns that were drawn, without a look at the records."""
        from tacit.local import turns

        turns.renew_turns(clients, state)

    law_settings: ClassVar[audits.Configurations] = {
        "histogram-secure": {"trust": tp.ExactSum.word, "epsilon": None, "height": 5},
        "histogram-looks": {"epsilon": 30.0},
        "histogram-looks-replace": {"epsilon": 60.0, "adjacency": "replace"},
        "histogram-auc": {"epsilon": 30.0, "aim": "auc"},
        "histogram-tree": {"height": 5},
        "histogram-each": {"trust": tp.Each.word, "height": 5},
        "histogram-each-looks": {"trust": tp.Each.word, "epsilon": 30.0},
        "local-histogram": {"trust": tp.Local.word, "height": 4},
    }
    """Every trust model, and every aim. Looks get an epsilon at which the classes of small data
    show, so that there is an AUC."""

    @classmethod
    def error_cases(cls: Any) -> Mapping[str, audits.ErrorCase]:
        """The forms with noise in a sum."""
        return {
            "histogram": audits.ErrorCase(cls(SECURE_SUM, 1.0, 10), noticed=True),
            "histogram-replace": audits.ErrorCase(cls(SECURE_SUM, 2.0, 10, adjacency="replace")),
            "histogram-dropouts": audits.ErrorCase(cls(tp.SecureSum(0.3), 1.0, 10), noticed=True),
            "histogram-looks": audits.ErrorCase(cls(SECURE_SUM, 1.0), LOOK_REPEATS, True),
            "histogram-looks-replace": audits.ErrorCase(
                cls(SECURE_SUM, 1.0, adjacency="replace"), LOOK_REPEATS
            ),
            "histogram-auc": audits.ErrorCase(cls(SECURE_SUM, 1.0, aim="auc"), noticed=True),
            "histogram-each": audits.ErrorCase(cls(tp.Each(), 1.0), LOOK_REPEATS, True),
            "histogram-each-auc": audits.ErrorCase(cls(tp.Each(), 1.0, aim="auc")),
        }

    @property
    def law_traits(self) -> audits.LawTraits:
        """A second round and debiased bits are not exact."""
        local, inexact, protocol = self.lone_records, "", cast(Any, self)
        if protocol.looks:
            inexact = "noisy counts place the cells, and a number cancels errors to first order"
        elif protocol.places_cells:
            inexact = "records that report where scores lie are not among those counted"
        elif local:
            inexact = "records that are assigned to levels are not all"
        planned_otherwise = protocol.looks
        return audits.LawTraits(
            inexact=inexact,
            unforecast="plans use other settings" if planned_otherwise else "",
            unmeasured_loss="bits without flips are no reports" if local else "",
        )

    def noiseless_value(self: Any, clients: tp.Clients) -> float:
        """The area of the exact tree at the depth that suits the protocol's noise."""
        from tacit.counts import tree_results
        from tacit.protocol import releases
        from tacit.protocols.histogram.steps import leaves_of, tree_fields
        from tacit.protocols.shared.tree_counts import tree_noise

        height = self.tree_height(clients.count)
        leaves = np.bincount(leaves_of(clients, height, self), minlength=2 << height)
        noise = trees.TreeNoise(np.zeros(height + 2))
        if self.epsilon is not None:
            noises = releases.planned_noises(self.trust, clients.count) * self.strata
            noise = tree_noise(tree_fields(self, height), noises)
        cells = leaves.reshape(2, -1).astype(np.float64)
        return float(tree_results.area_from_tree(cells, noise, self.score_axis).value)
