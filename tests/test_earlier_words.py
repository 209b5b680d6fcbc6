"""Earlier words for trust and aim mean what today's mean, wherever they may stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tacit
from tacit import ScoreHistogram
from tacit.cli import main
from tacit.crypto.identities import Identity
from tacit.protocol.registry import protocol_of
from tacit.reporting.threats import threats_of
from tacit.running.session.messages import Agreement
from tacit.running.session.plan_file import Plan

TRUSTS = {
    "secure-aggregation": "exact-sum",
    "distributed-dp": "secure-sum",
    "local-dp": "local",
}
PLAN_TRUSTS = {**TRUSTS, "central": "each", "two-party": "mpc"}
AIMS = {"cdf": "curves", "even": "all"}

PLAN = """
[plan]
name = "five"
[protocol]
name = "score-histogram"
trust = "{trust}"
epsilon = 1.0
aim = "{aim}"
[[party]]
name = "a"
[[party]]
name = "b"
[[party]]
name = "c"
"""


def histogram(trust: str, aim: Any = "auc") -> ScoreHistogram:
    epsilon = None if trust in ("secure-aggregation", "exact-sum") else 1.0
    return ScoreHistogram(trust, epsilon, 4, aim=aim)


@pytest.mark.parametrize(("earlier", "today"), TRUSTS.items())
def test_a_protocol_understands_earlier_words_for_trust(earlier: str, today: str) -> None:
    protocol = histogram(earlier)
    assert protocol == histogram(today)
    assert protocol.trust == today
    assert protocol.title == histogram(today).title


@pytest.mark.parametrize(("earlier", "today"), AIMS.items())
def test_a_protocol_understands_earlier_words_for_aims(earlier: str, today: str) -> None:
    protocol = histogram("secure-sum", earlier)
    assert protocol == histogram("secure-sum", today) != histogram("secure-sum")
    settings = {"trust": "secure-sum", "epsilon": 1.0, "height": 4, "aim": earlier}
    assert protocol_of("score-histogram", settings) == protocol


def test_aims_differ_among_themselves() -> None:
    parts = [histogram("secure-sum", aim).level_scales(4) for aim in ("auc", "curves", "all")]
    assert len({tuple(scales.items()) for scales in parts}) == 3


@pytest.mark.parametrize(("earlier", "today"), PLAN_TRUSTS.items())
def test_a_plan_of_earlier_words_is_the_same(earlier: str, today: str) -> None:
    sizes = (2_000, 600, 10, 1.0)
    made = tacit.plan(*sizes, earlier, auc_guess=0.8).to_dict()
    assert made == tacit.plan(*sizes, today, auc_guess=0.8).to_dict()
    assert made["trust"] == today


@pytest.mark.parametrize(("earlier", "today"), TRUSTS.items())
def test_the_command_takes_earlier_words(earlier: str, today: str, tmp_path: Path) -> None:
    path = tmp_path / "north.csv"
    rows = [f"{index / 100},{index % 2}" for index in range(100)]
    path.write_text("\n".join(["score,label", *rows]), encoding="utf-8")
    answers = []
    for trust in (earlier, today):
        options = ["--protocol", "score-histogram", "--trust", trust, "--seed", "1", "--json"]
        budget = [] if today == "exact-sum" else ["--epsilon", "8"]
        done = CliRunner().invoke(main, ["evaluate", str(path), *options, *budget])
        assert done.exit_code in (0, 3), done.stderr
        answers.append(json.loads(done.stdout))
    assert answers[0] == answers[1]
    assert answers[0]["protocol"]["trust"] == today


def test_the_command_refuses_what_is_no_word_for_trust(tmp_path: Path) -> None:
    (tmp_path / "north.csv").write_text("score,label\n0.5,1\n", encoding="utf-8")
    options = ["--protocol", "score-histogram", "--trust", "nobody"]
    done = CliRunner().invoke(main, ["evaluate", str(tmp_path / "north.csv"), *options])
    assert done.exit_code == 2
    assert "'nobody' is not one of each, server-sees-scores, local" in done.stderr


def test_plan_files_of_earlier_and_of_today_s_words_agree(tmp_path: Path) -> None:
    """The digest that parties compare is of the protocol, not of how a plan spells it."""
    party, other, third, coordinator = (Identity.generate().public for _ in range(4))
    digests = []
    for trust, aim in (("distributed-dp", "cdf"), ("secure-sum", "curves"), ("secure-sum", "auc")):
        path = tmp_path / "plan.toml"
        path.write_text(PLAN.format(trust=trust, aim=aim), encoding="utf-8")
        protocol = Plan.read(path).protocol
        digests.append(Agreement(protocol, (party, other, third), coordinator).digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(("earlier", "today"), TRUSTS.items())
def test_a_result_of_earlier_words_has_the_same_threat_model(earlier: str, today: str) -> None:
    models = [threats_of({"name": "score-histogram", "trust": word}) for word in (earlier, today)]
    assert models[0] == models[1]
