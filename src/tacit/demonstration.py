"""The demonstration: ten hospitals and one histogram, labels that stay private, and phones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

import tacit.protocol as tp
from tacit.api import evaluate
from tacit.data.splitting import binormal_scores
from tacit.extras import extra
from tacit.metrics.ranking import auc
from tacit.protocol.registry import protocol_kinds
from tacit.results import displays as drawing
from tacit.results import evaluation, text
from tacit.results.estimate import RECORDS_INTERVAL, Estimate, bounds_line, decimals
from tacit.results.measures.catalogue import label

DATA_SEED = 0
"""The records are the same in every demonstration; only the noise differs."""
HOSPITALS, PATIENTS = 10, 4_000
FRACTIONS = (-3.5, -1.0)
"""The log-odds of a positive at the least and the most specialised hospital."""
ADVERTISERS, CLICKS = 1_000, 100
PHONES = 100_000
FEDERATION_AUC = 0.8
THRESHOLD = 0.2
"""Where the hospitals would act."""

DRAWN_BUCKETS = 12

PREFACE = (
    "This is a simulation: the records are synthetic, the clients do not exist, and nothing is\n"
    "protected. Between real parties the noise comes from the operating system.\n\n"
    "Epsilon bounds what a release shows about one record: whatever the server sees is at most\n"
    "e**epsilon times as likely (2.7 times at epsilon 1) for one of two neighbouring data sets as\n"
    "for the other. The adjacency says in what neighbours differ: in a record that is added or\n"
    "removed (record), in a record's content (replace), or in a record's label (label)."
)
HEADER = ("protocol", "estimate", RECORDS_INTERVAL, "epsilon", "adjacency", "bytes sent")
FIGURES = ("figure", "from exact counts", "estimate", RECORDS_INTERVAL)
MEASURES = ("brier", "calibration_slope", "observed_over_expected")


@dataclass(frozen=True, eq=False)
class Scene:
    """Protocols' results on one federation.

    Parameters
    ----------
    title : who the clients are, and what the server may see.
    clients : the records, which only a demonstration has together.
    exact : the exact AUC of all records.
    results : each protocol's short name and its evaluation.
    """

    title: str
    clients: tp.Clients
    exact: float
    results: tuple[tuple[str, evaluation.Evaluation], ...]


def demonstrate(seed: int | None = None) -> list[Scene]:
    """Evaluate the three federations.

    Parameters
    ----------
    seed : makes the noise repeatable; None takes fresh entropy.
    """
    federations = (
        (hospital_clients(), "hospitals", "the server sees one noisy sum of histograms"),
        (advertiser_clients(), "advertisers", "the server knows the scores, and no label"),
        (phone_clients(), "phones", "every phone's report is private"),
    )
    seeds = np.random.SeedSequence(seed).generate_state(len(federations), np.uint64)
    return [
        compare(f"{what}: {sees}", clients, protocols_of(who), int(scene_seed))
        for ((what, clients), who, sees), scene_seed in zip(federations, seeds, strict=True)
    ]


def protocols_of(federation: str) -> list[tuple[str, tp.Protocol]]:
    """The protocols that declare a row for a federation, by the row's name."""
    return [
        (row, tp.protocol_of(name, settings))
        for name, kind in protocol_kinds().items()
        for row, settings in kind.demonstrated.get(federation, {}).items()
    ]


def compare(
    title: str, clients: tp.Clients, protocols: Sequence[tuple[str, tp.Protocol]], seed: int
) -> Scene:
    """Evaluate protocols on one federation, each with its own noise."""
    seeds = np.random.SeedSequence(seed).generate_state(len(protocols), np.uint64)
    results = [
        (name, evaluate(clients, protocol, seed=int(protocol_seed)))
        for (name, protocol), protocol_seed in zip(protocols, seeds, strict=True)
    ]
    return Scene(title, clients, auc(clients.scores, clients.labels), tuple(results))


def hospital_clients() -> tuple[str, tp.Clients]:
    """Calibrated scores at hospitals that see between 3 % and a quarter of positives."""
    rng = np.random.default_rng(DATA_SEED)
    log_odds = np.linspace(*FRACTIONS, HOSPITALS).repeat(PATIENTS)
    scores = expit(log_odds + rng.standard_normal(log_odds.size))
    labels = rng.random(scores.size) < scores
    names = np.arange(HOSPITALS).repeat(PATIENTS)
    clients = replace(tp.Clients.from_arrays(scores, labels, names), simulated=True)
    return f"Ten hospitals of {PATIENTS:,} patients each", clients


def advertiser_clients() -> tuple[str, tp.Clients]:
    """Binormal scores at many advertisers."""
    clicks = ADVERTISERS * CLICKS
    scores, labels = binormal_scores(clicks // 10, 9 * clicks // 10, FEDERATION_AUC, DATA_SEED)
    split = tp.Clients.split(scores, labels, ADVERTISERS, seed=DATA_SEED)
    return f"A thousand advertisers with {CLICKS} clicks each", split


def phone_clients() -> tuple[str, tp.Clients]:
    """Binormal scores, one record a phone."""
    scores, labels = binormal_scores(PHONES // 5, 4 * PHONES // 5, FEDERATION_AUC, DATA_SEED)
    split = tp.Clients.split(scores, labels, PHONES, seed=DATA_SEED)
    return "A hundred thousand phones with one record each", split


def mean_of_aucs(clients: tp.Clients) -> float:
    """The mean of the clients' own AUCs, which is not the AUC of all records."""
    parts = [clients.part(index, index + 1) for index in range(clients.count)]
    return float(np.mean([auc(part.scores, part.labels) for part in parts]))


def report(scenes: Sequence[Scene]) -> str:
    """All scenes as text."""
    return "\n\n".join([PREFACE, *(_scene_text(scene) for scene in scenes)])


def draw(scenes: Sequence[Scene]) -> Any:
    """A figure: the hospitals' ROC curve and calibration, and all estimates of the AUC.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    figure = require_matplotlib().Figure(figsize=(15, 5), layout="constrained")
    curve, calibration, estimates = (part.subplots() for part in figure.subfigures(1, 3))
    drawing.draw_evaluation(scenes[0].results[0][1], curve)
    _draw_calibration(scenes[0], calibration)
    bars = [
        drawing.Bar(f"{name}\nepsilon {result.spent.epsilon:g}", result.auc, scene.exact)
        for scene in scenes
        for name, result in scene.results
    ]
    drawing.draw_bars(bars, "All estimates", "", "AUC", estimates)
    figure.suptitle("tacit demo (a simulation)")
    return figure


def require_matplotlib() -> Any:
    """The module of matplotlib's figures, which need no screen.

    Raises
    ------
    ImportError : at once, with the install command, when matplotlib is not installed.
    """
    return extra("matplotlib.figure", "the demonstration needs matplotlib", "'tacit[demo]'")


def _scene_text(scene: Scene) -> str:
    """A scene's title, its figures where there is a histogram of hospitals, and its protocols."""
    _, first = scene.results[0]
    lines = [f"AUC of all records    {scene.exact:.4f}", ""]
    if first.histogram is not None and scene.clients.count == HOSPITALS:
        mean = f"mean of the ten AUCs  {mean_of_aucs(scene.clients):.4f}"
        lines = [mean, *lines, *text.ruled([FIGURES, *_figures(scene, first)]), ""]
    protocols = text.ruled([HEADER, *(_row(*each) for each in scene.results)])
    return "\n".join([scene.title, "", *lines, *protocols])


def _figures(scene: Scene, result: evaluation.Evaluation) -> Iterator[tuple[str, ...]]:
    """The histogram's figures compared with those of exact counts."""
    exact = evaluate(scene.clients, result.protocol["name"], trust=tp.ExactSum.word)
    yield "AUC", f"{scene.exact:.4f}", *_value(result.auc)
    rates, known = result.at(THRESHOLD), exact.at(THRESHOLD)
    for name in ("recall", "specificity", "precision"):
        yield f"{name} at {THRESHOLD:g}", f"{known[name].value:.4f}", *_value(rates[name])
    for name in MEASURES:
        estimate, truth = result.measures.by_name[name], exact.measures.by_name[name]
        yield label(name), f"{truth.value:.4f}", *_value(estimate)


def _row(name: str, result: evaluation.Evaluation) -> tuple[str, ...]:
    spent, sent = result.spent, result.traffic.to_dict()["bytes_sent_per_client"]["median"]
    hidden = "none" if spent.adjacency is None else spent.adjacency.value
    return (name, *_value(result.auc), f"{spent.epsilon:g}", hidden, f"{sent:,.0f}")


def _value(figure: Estimate) -> tuple[str, str]:
    """A figure and its interval, in words where there is none."""
    bounds = figure.interval()
    if not math.isfinite(figure.value):
        return "no signal", "none"
    known = all(map(math.isfinite, bounds))
    value = f"{figure.value:.{decimals(bounds)}f}"
    return value, bounds_line(bounds) if known else "none"


def _draw_calibration(scene: Scene, axes: Any) -> None:
    histogram = scene.results[0][1].histogram
    axes.set_title("Their calibration, from the same sum")
    if histogram is not None:
        buckets = replace(histogram, buckets=DRAWN_BUCKETS)
        drawing.draw_reliability(buckets.reliability(), axes)
