"""Figures of several classes: sensitivity, errors, coverage, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, roc_auc_score

import tacit
from tacit.metrics.ranking import auc
from tacit.protocol import ClientState, NoNoise, ServerResult
from tacit.protocol.releases import conducted
from tacit.results.estimate import Estimate
from tests.classified import (
    CLASSES,
    breakdown_of,
    class_clients,
    coverages,
    known_classes,
    worst_loss,
)

MANY = tuple(map(str, range(200)))

Pairs = Mapping[str, list[tuple[Estimate, float]]]


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("adjacency", ["record", "replace"])
@pytest.mark.parametrize("trust", ["secure-sum", "each"])
def test_a_record_of_any_class_costs_epsilon_at_most_and_nearly_that(
    count: int, adjacency: str, trust: str
) -> None:
    """Exact: the noise of all rounds, against what any neighbour moves.

    The second round's numbers may all lie at ends of what was published, and cost nothing.
    """
    classes = tuple("abcde"[:count])
    clients = class_clients(9, 1, classes)
    settings: dict[str, Any] = {"trust": trust, "epsilon": 1.0, "adjacency": adjacency}
    protocol = tacit.MulticlassHistogram(**settings, height=3, classes=classes)
    assert 0.6 * (1 - protocol.number_part) < worst_loss(protocol, clients) <= 1 + 1e-9


def test_exact_sums_give_the_figures_of_scikit_learn() -> None:
    clients = class_clients(3000)
    scores, labels = known_classes(clients)
    protocol = tacit.MulticlassHistogram("exact-sum", classes=CLASSES, height=12)
    result = tacit.evaluate(clients, protocol)
    made = breakdown_of(result)
    one_hot = labels[:, np.newaxis] == np.arange(4)
    macro = roc_auc_score(one_hot, scores, average="macro")
    assert protocol.exact(clients) == pytest.approx(macro, abs=1e-12)
    assert result.estimate.value == pytest.approx(macro, abs=1e-4)
    overall = made.overall
    weighted = roc_auc_score(one_hot, scores, average="weighted")
    assert overall["weighted AUC"].value == pytest.approx(weighted, abs=1e-4)
    top = accuracy_score(labels, scores.argmax(axis=1))
    assert overall["top-1 accuracy"].value == pytest.approx(top, abs=1e-12)
    part = made["b"]
    assert part.positives == np.count_nonzero(labels == 1)
    large = (labels == 1).mean() - scores[:, 1].mean()
    found = part.figures["observed less expected"]
    assert abs(found.value - large) < 3 * found.standard_error < 0.003


def exact_aucs(clients: tacit.Clients) -> list[float]:
    scores, labels = known_classes(clients)
    return [auc(scores[:, c], (labels == c).astype(np.int8)) for c in range(scores.shape[1])]


def figures(clients: tacit.Clients, by_class: list[float], result: ServerResult) -> Pairs:
    """The estimates of all figures whose exact value is defined without cells."""
    scores, labels = known_classes(clients)
    right = scores.argmax(axis=1) == labels
    sizes, made = np.bincount(labels) / labels.size, breakdown_of(result)
    overall = made.overall
    return {
        "macro": [(result.estimate(), float(np.mean(by_class)))],
        "weighted": [(overall["weighted AUC"], float(sizes @ by_class))],
        "accuracy": [(overall["top-1 accuracy"], float(right.mean()))],
        "AUC": [(p.figures["AUC"], by_class[c]) for c, p in enumerate(made.parts)],
        "recall": [
            (part.figures["top-1 recall"], float(right[labels == c].mean()))
            for c, part in enumerate(made.parts)
        ],
        "large": [
            (
                part.figures["observed less expected"],
                float((labels == c).mean() - scores[:, c].mean()),
            )
            for c, part in enumerate(made.parts)
        ],
    }


def test_intervals_cover_and_notice_wrong_noise() -> None:
    """95 % intervals at 4,000 records of 10 clients: 800 of each figure by class.

    A coverage of 95 % is then known to 0.8 %, and leaves 92.5 to 97.5 % with a probability below
    2e-3. Noise 30 % off gives 83 or 99.4 %.
    """
    clients = class_clients(4000)
    protocol = tacit.MulticlassHistogram(epsilon=1.0, classes=CLASSES)
    exact = exact_aucs(clients)

    def found(factor: float, runs: int) -> dict[str, float]:
        return coverages(clients, protocol, lambda r: figures(clients, exact, r), runs, factor)

    right = found(1.0, 200)
    assert all(0.925 <= right[name] <= 0.975 for name in ("AUC", "recall", "large")), right
    assert all(0.91 <= each <= 0.99 for each in right.values()), right
    small, large = found(0.7, 25), found(1.3, 25)
    assert small["AUC"] + small["large"] > 2 * 0.975
    assert large["AUC"] + large["large"] < 2 * 0.925


def test_a_class_with_too_few_records_is_absent_with_the_reason() -> None:
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.repeat([0, 1], 2000), [2] * 5])
    clients = tacit.Clients.from_classes(rng.dirichlet((1, 1, 1), labels.size), labels, "abc")
    result = tacit.evaluate(
        clients, tacit.MulticlassHistogram(epsilon=1.0, classes=("a", "b", "c")), seed=1
    )
    assert not result.has_signal
    made = breakdown_of(result)
    assert "not enough signal" in made["c"].reason
    assert math.isfinite(made["a"].figures["AUC"].value)
    assert "class c has no AUC" in result.warnings[-1]
    assert result.to_dict()["classes"][2]["reason"] == made["c"].reason


def lied_about(own: NDArray[Any], others: NDArray[Any]) -> ServerResult:
    """The result of exact sums where a client adds these to the cells of class a and the others."""
    clients = class_clients(300)
    conversation = conducted(
        tacit.MulticlassHistogram("exact-sum", classes=CLASSES, height=4), clients.count
    )
    query = next(conversation)
    reply = dict(query.step.answer(clients, query, NoNoise(), ClientState()))
    for name, added in (("own-4", own), ("other-4", others)):
        counts = np.array(reply[name])
        counts[:16] += added
        reply[name] = counts
    with pytest.raises(StopIteration) as ended:
        conversation.send(reply)
    result: ServerResult = ended.value.value.published()
    return result


def test_a_class_whose_own_counts_are_below_0_has_no_figures() -> None:
    """A client that lies in one of the two counts of a class leaves the other, and their mean."""
    result = lied_about(np.full(16, -1000), np.zeros(16, np.int64))
    assert math.isnan(result.value)
    assert [bool(part.figures) for part in breakdown_of(result).parts] == [False, True, True, True]
    assert "not enough signal" in breakdown_of(result)["a"].reason


def test_a_calibration_error_is_1_at_most() -> None:
    waves = 10_000 * (-1) ** np.arange(16)
    error = breakdown_of(lied_about(waves, -waves))["a"].figures["calibration error"]
    assert (error.value, error.limits) == (1.0, (0.0, 1.0))
    assert error.bias < -1


def test_clients_of_other_classes_are_refused() -> None:
    protocol = tacit.MulticlassHistogram(epsilon=1.0, classes=("a", "b"))
    with pytest.raises(tacit.DataError, match="classes must be a, b, got a, b, c, d"):
        tacit.evaluate(class_clients(40), protocol, seed=1)
    several = tacit.MulticlassHistogram(epsilon=1.0, classes=CLASSES)
    plain = tacit.Clients.from_arrays([0.1, 0.9], [0, 1])
    with pytest.raises(tacit.DataError, match="4 classes need a column of scores each, got one"):
        tacit.evaluate(plain, several, seed=1)
