"""The demonstration: every protocol side by side, on small hospitals and on many clients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.clients import Clients
from tacit.data.splitting import binormal_scores
from tacit.protocol.conversation import Protocol
from tacit.protocols.baselines import ExactAUC, NoisyScores
from tacit.protocols.dpauc.protocol import DPAUC
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.results.estimate import RECORDS_INTERVAL, bounds_line
from tacit.results.evaluation import Evaluation
from tacit.results.picture import draw_roc
from tacit.running.evaluating import evaluate

EPSILON = 1.0
HISTOGRAM = "DPAUC, histogram"
PROTOCOLS: tuple[tuple[str, Protocol], ...] = (
    ("exact, no privacy", ExactAUC()),
    ("FedAUC", FedAUC(EPSILON)),
    ("FedAUC, laplace, adaptive", FedAUC(EPSILON, mechanism="laplace", allocation="adaptive")),
    ("FedAUC, randomised response", FedAUC(EPSILON, mechanism="randomised-response")),
    (HISTOGRAM, DPAUC(EPSILON)),
    (
        "DPAUC, laplace, paper accounting",
        DPAUC(EPSILON, mechanism="laplace", accounting="paper", adjacency="label", scale="even"),
    ),
    ("noisy scores, exact labels", NoisyScores(EPSILON)),
)

HOSPITALS = 5
FEATURES = ("mean texture", "mean smoothness", "mean symmetry")
"""A few weak features, so that the classifier is as good as real ones are, and not perfect."""

FEDERATION_CLIENTS = 1_000
FEDERATION_POSITIVES, FEDERATION_NEGATIVES = 30_000, 70_000
FEDERATION_AUC = 0.80
DATA_SEED = 0
"""The records are the same in every demonstration; only the noise differs."""

PREFACE = (
    "The noise below is simulated, and the clients were split from one data set: this is a\n"
    "simulation, and protects nothing. Intervals are about the exact AUC of the same records."
)
LEGEND = (
    "Adjacency says what epsilon hides. label: one record's label; the server knows the scores.\n"
    "record: a whole record, added or removed.\n"
    "none: nothing is hidden; of noisy scores epsilon hides the scores, but not the labels."
)
HEADER = (
    "protocol",
    "exact AUC",
    "estimate",
    RECORDS_INTERVAL,
    "adjacency",
    "epsilon",
    "bytes sent",
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The protocols' results on one data set.

    Parameters
    ----------
    title : what the data are.
    results : each protocol's short name and its evaluation, whose ``exact`` is set.
    """

    title: str
    results: tuple[tuple[str, Evaluation], ...]

    @property
    def exact(self) -> float:
        """The exact AUC."""
        return float(self.results[0][1].auc.value)


def demonstrate(seed: int | None = None) -> list[Comparison]:
    """Evaluate every protocol on the hospitals and on the synthetic federation.

    Parameters
    ----------
    seed : makes the noise repeatable; None takes fresh entropy.

    Raises
    ------
    ImportError : with the install command, when scikit-learn is not installed.
    """
    federations = [hospital_clients(), synthetic_clients()]
    seeds = np.random.SeedSequence(seed).generate_state(len(federations), np.uint64)
    return [
        compare(_title(what, clients), clients, int(data_seed))
        for (what, clients), data_seed in zip(federations, seeds, strict=True)
    ]


def compare(title: str, clients: Clients, seed: int) -> Comparison:
    """Evaluate every protocol on one data set, each with its own noise."""
    seeds = np.random.SeedSequence(seed).generate_state(len(PROTOCOLS), np.uint64)
    results = [
        (name, evaluate(clients, protocol, seed=int(protocol_seed), exact=True))
        for (name, protocol), protocol_seed in zip(PROTOCOLS, seeds, strict=True)
    ]
    return Comparison(title, tuple(results))


def hospital_clients() -> tuple[str, Clients]:
    """The test half of the breast-cancer data, scored by a small model, at five hospitals."""
    try:
        from sklearn.datasets import load_breast_cancer  # noqa: PLC0415 -- an extra
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    except ImportError:
        raise ImportError(
            "the demonstration needs scikit-learn; install it with: pip install 'tacit[demo]'"
        ) from None
    data = load_breast_cancer()
    columns = [list(data.feature_names).index(name) for name in FEATURES]
    features, malignant = data.data[:, columns], 1 - data.target
    order = np.random.default_rng(DATA_SEED).permutation(malignant.size)
    train, test = np.array_split(order, 2)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(features[train], malignant[train])
    scores = model.predict_proba(features[test])[:, 1]
    split = Clients.split(scores, malignant[test], HOSPITALS, seed=DATA_SEED)
    return "Breast cancer, a logistic regression on three features", split


def synthetic_clients() -> tuple[str, Clients]:
    """Binormal scores at many clients."""
    scores, labels = binormal_scores(
        FEDERATION_POSITIVES, FEDERATION_NEGATIVES, FEDERATION_AUC, seed=DATA_SEED
    )
    split = Clients.split(scores, labels, FEDERATION_CLIENTS, seed=DATA_SEED + 1)
    return f"Synthetic scores of population AUC {FEDERATION_AUC:.2f}", split


def report(comparisons: Sequence[Comparison]) -> str:
    """All tables with their notes, as text."""
    parts = [PREFACE]
    parts += [
        "\n".join([comparison.title, "", *_table(comparison), "", *_notes(comparison)]).rstrip()
        for comparison in comparisons
    ]
    return "\n\n".join([*parts, LEGEND])


def draw(comparisons: Sequence[Comparison]) -> Any:
    """A figure with a row for each data set: the ROC curve of DPAUC, and all estimates.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 -- an extra

    figure = Figure(figsize=(13, 5.5 * len(comparisons)), layout="constrained")
    panels = figure.subplots(len(comparisons), 2, squeeze=False)
    for comparison, (left, right) in zip(comparisons, panels, strict=True):
        _draw_curve(comparison, left)
        _draw_estimates(comparison, right)
    figure.suptitle(f"tacit demo: simulated noise, epsilon {EPSILON:g}")
    return figure


def require_matplotlib() -> None:
    """Refuse at once, with the install command, where the picture could not be drawn.

    Raises
    ------
    ImportError : when matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401, PLC0415 -- an extra
    except ImportError:
        raise ImportError(
            "the demonstration needs matplotlib; install it with: pip install 'tacit[demo]'"
        ) from None


def _title(what: str, clients: Clients) -> str:
    return f"{what}: {clients.records:,} records, {clients.count:,} clients"


def _table(comparison: Comparison) -> list[str]:
    rows = [HEADER, *(_row(comparison, *named) for named in comparison.results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def _row(comparison: Comparison, name: str, result: Evaluation) -> tuple[str, ...]:
    spent = result.spent
    epsilon = result.protocol.get("epsilon")
    return (
        name,
        f"{comparison.exact:.4f}",
        f"{result.auc.value:.4f}" if result.has_signal else "no signal",
        _interval(result),
        "none" if spent.adjacency is None else spent.adjacency.value,
        "unlimited" if math.isinf(spent.epsilon) else f"{epsilon:g}",
        f"{result.traffic.to_dict()['bytes_sent_per_client']['median']:,.0f}",
    )


def _interval(result: Evaluation) -> str:
    low, high = result.auc.interval(0.95)
    if not math.isfinite(high - low):
        return "none"
    return bounds_line((low, high), ".4f") if high > low else "exact"


def _notes(comparison: Comparison) -> Iterator[str]:
    for name, result in comparison.results:
        for warning in result.warnings:
            yield f"note on {name}: {warning}"


def _draw_curve(comparison: Comparison, axes: Any) -> None:
    result = dict(comparison.results)[HISTOGRAM]
    axes.set_title(f"ROC curve by {HISTOGRAM}\n{comparison.title}", fontsize="medium")
    if result.roc is None or not result.has_signal:
        axes.text(0.5, 0.5, "not enough signal", ha="center", transform=axes.transAxes)
        return
    draw_roc(result.roc, axes)


def _draw_estimates(comparison: Comparison, axes: Any) -> None:
    """One line for each protocol; the axis is the whole range of an AUC, so that widths compare."""
    names = []
    for height, (name, result) in enumerate(comparison.results):
        names.append(f"{name}\n{_summary(result)}")
        low, high = result.auc.interval(0.95)
        if math.isfinite(high - low):
            axes.plot([low, high], [height, height], color="C0", marker="|")
        if result.has_signal:
            axes.plot([result.auc.value], [height], color="C0", marker="o")
    axes.axvline(comparison.exact, color="grey", linestyle="--", label="exact AUC")
    axes.set(xlim=(0, 1), xlabel=f"AUC, with {RECORDS_INTERVAL}", yticks=range(len(names)))
    axes.set_yticklabels(names, fontsize="small")
    axes.invert_yaxis()
    axes.legend(loc="lower left")
    axes.set_title(f"Estimates and the exact AUC\n{comparison.title}", fontsize="medium")


def _summary(result: Evaluation) -> str:
    if not result.has_signal:
        return "no signal"
    low, high = result.auc.interval(0.95)
    if not math.isfinite(high - low):
        return f"{result.auc.value:.4f}, no interval"
    bounds = f" ({low:.4f} to {high:.4f})" if high > low else ""
    return f"{result.auc.value:.4f}{bounds}"
