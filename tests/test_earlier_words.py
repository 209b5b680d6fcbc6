"""Words that are gone are refused in one sentence that names those of today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import main
from tacit.protocol.registry import protocol_of
from tacit.running.session.plan_file import Plan

PLAN_TRUSTS = {
    "secure-aggregation": "exact-sum",
    "distributed-dp": "secure-sum",
    "local-dp": "local",
    "central": "each",
    "two-party": "mpc",
}
GONE: list[tuple[str, Any, str]] = [
    ("trust", "distributed-dp", "trust must be one of secure-sum, exact-sum, local, got"),
    ("aim", "cdf", r"aim must be one of \('auc', 'curves', 'all'\), got 'cdf'"),
    ("dropouts", 0.1, "dropouts"),
    ("second_round", 0.5, "second_round"),
    ("budget", "sample", "budget"),
    ("buckets", 10, "buckets"),
]

PLAN = """
[plan]
name = "five"
[protocol]
name = "score-histogram"
epsilon = 1.0
{setting} = {value}
[[party]]
name = "a"
[[party]]
name = "b"
[[party]]
name = "c"
"""


@pytest.mark.parametrize(("name", "value", "message"), GONE)
def test_a_protocol_refuses_what_is_gone(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        protocol_of("score-histogram", {"epsilon": 1.0, name: value})


@pytest.mark.parametrize(("name", "value", "message"), GONE)
def test_a_plan_file_refuses_what_is_gone(
    name: str, value: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.toml"
    written = repr(value).replace("'", '"')
    path.write_text(PLAN.format(setting=name, value=written), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Plan.read(path)


@pytest.mark.parametrize(("earlier", "today"), PLAN_TRUSTS.items())
def test_a_plan_of_earlier_words_is_the_same(earlier: str, today: str) -> None:
    sizes = (2_000, 600, 10, 1.0)
    made = tacit.plan(*sizes, earlier, auc_guess=0.8).to_dict()
    assert made == tacit.plan(*sizes, today, auc_guess=0.8).to_dict()
    assert made["trust"] == today


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trust", "nobody"), "trust"),
        (("--trust", "local-dp"), "trust"),
        (("--budget", "sample"), "--budget"),
        (("--buckets", "5"), "--buckets"),
    ],
)
def test_the_command_refuses_what_is_gone(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "north.csv").write_text("score,label\n0.5,1\n", encoding="utf-8")
    chosen = ["--protocol", "score-histogram", "--epsilon", "1", *options]
    done = CliRunner().invoke(main, ["evaluate", str(tmp_path / "north.csv"), *chosen])
    assert done.exit_code == 2
    assert message in done.stderr
    print(done.stderr)
