"""Plans of classifiers with several classes, against simulation, and what is chosen for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
import tacit.protocol as tp
from tacit.cli import main
from tacit.metrics.ranking import auc
from tacit.planning.planner import choose, plan
from tests import known
from tests.classified import breakdown_of

THREE = tp.Scenario(6_000, 2_000, 10, 1.0, 3)
NAMES = THREE.class_names
SHAPE = tp.Shape(0.8)


def test_drawn_classes_have_the_aucs_of_the_shape() -> None:
    """Each of three is known to 0.0035: five such errors are 0.018."""
    clients = tp.Scenario(30_000, 10_000, 7, 1.0, 3).drawn(SHAPE, seed=0)
    assert clients.count == 7
    problems = tacit.EncryptedClassAUC(NAMES).problems(clients)
    by_class = [auc(each.scores, each.labels) for each in problems]
    assert np.allclose(by_class, 0.8, atol=0.018)


def test_the_predicted_bytes_are_those_of_a_run() -> None:
    scenario = tp.Scenario(600, 200, 3, 1.0, 3)
    protocol = tacit.EncryptedClassAUC(NAMES, thresholds=100, most_records=600)
    result = tacit.evaluate(scenario.drawn(SHAPE, seed=0), protocol)
    sent = float(np.mean(result.traffic.bytes_sent))
    predicted = protocol.traffic(scenario)
    assert predicted.bytes_per_client == pytest.approx(sent, rel=0.01)
    assert predicted.rounds == result.traffic.rounds


@pytest.mark.parametrize(
    ("trust", "name"),
    [
        ("encrypted", "encrypted-class-auc"),
        ("secure-sum", "multiclass-histogram"),
        ("each", "multiclass-histogram"),
        ("exact-sum", "multiclass-histogram"),
    ],
)
def test_every_trust_that_gives_it_plans_the_macro_auc(trust: str, name: str) -> None:
    made = plan(30_000, None, 10, 1.0, trust, classes=3, target=0.005)
    assert made.metric == "macro AUC"
    assert made.scenario.positives == 10_000
    assert made.meets_target
    assert known(made.recommended).protocol.name == name
    assert known(made.recommended).protocol.settings["classes"] == list(NAMES)
    assert made.to_dict()["classes"] == 3
    assert "3 classes of about 10,000" in str(made)
    assert f"--scores COLUMN,... --label COLUMN --protocol {name}" in str(made.command)


def test_a_class_too_small_for_the_bound_is_not_feasible() -> None:
    made = plan(1_000_000, 200, 10, 1.0, "encrypted", classes=3)
    assert made.recommended is None


def test_plans_of_two_classes_say_nothing_about_averages_of_classes() -> None:
    assert plan(40_000, 4_000, 10, 1.0, "encrypted").others == ()


def test_records_with_a_score_of_each_class_have_a_default_protocol() -> None:
    clients = THREE.drawn(SHAPE, seed=0)
    result = tacit.evaluate(clients, epsilon=1.0, seed=1)
    assert result.protocol["name"] == "multiclass-histogram"
    assert [part.name for part in breakdown_of(result).parts] == list(NAMES)
    chosen = choose(10, 6_000, None, "encrypted", classes=("cat", "dog", "bird"))
    assert chosen.options.startswith("--protocol encrypted-class-auc --classes cat,dog,bird")
    assert chosen.protocol == tacit.EncryptedClassAUC(("cat", "dog", "bird"), most_records=10_000)


def test_the_command_plans_and_chooses(tmp_path: Path) -> None:
    run = CliRunner().invoke
    usual = ["plan", "--records", "9000", "--clients", "9", "--epsilon", "1", "--json"]
    made: dict[str, Any] = json.loads(run(main, [*usual, "--classes", "3"]).stdout)
    assert made["recommended"]["protocol"] == "multiclass-histogram"
    assert "--positives" in run(main, usual).stderr
    rows = [f"{s:.3f},{1 - s:.3f},{'uv'[k % 2]}" for k, s in enumerate(np.linspace(0.1, 0.9, 800))]
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["u,v,kind", *rows]) + "\n")
    files = [str(tmp_path / f"{name}.csv") for name in ("one", "two")]
    columns = ["evaluate", *files, "--scores", "u,v", "--label", "kind", "--trust", "encrypted"]
    shown = run(main, columns)
    assert "chosen" in shown.stdout, shown.output
    assert "class v: AUC" in shown.stdout
    refused = run(main, [*columns, "--rescale", "0", "1"])
    assert "--rescale cannot be used with --scores" in refused.stderr
