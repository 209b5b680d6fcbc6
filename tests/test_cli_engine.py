"""``tacit evaluate --engine``: who computes what clients compute together."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tacit.cli import main
from tacit.running.evaluating import HERE, IDEAL
from tacit.running.joint_engine import JointError

PAIRS = ("--protocol", "paired-ustatistic", "--kernel", "collision", "--epsilon", "2")
RANKED = ("--protocol", "fedauc", "--ranks", "mpc", "--epsilon", "2")


def run(folder: Path, *options: str) -> Result:
    rng = np.random.default_rng(0)
    files = []
    for name in ("north", "south"):
        labels = rng.integers(0, 2, 40)
        scores = np.round(0.3 + 0.3 * labels + 0.1 * rng.random(40), 2)
        lines = [f"{score},{label}" for score, label in zip(scores, labels, strict=True)]
        files.append(folder / f"{name}.csv")
        files[-1].write_text("\n".join(["score,label", *lines]))
    arguments = ["evaluate", *map(str, files), *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.mark.parametrize("protocol", [PAIRS, RANKED], ids=["pairs", "ranks"])
def test_a_trusted_party_is_told_apart(tmp_path: Path, protocol: tuple[str, ...]) -> None:
    result = run(tmp_path, *protocol, "--engine", "ideal")
    assert result.exit_code == 0
    assert IDEAL in result.output


@pytest.mark.parametrize("simulation", [("--split", "3"), ("--seed", "1")])
def test_simulations_do_not_start_processes(tmp_path: Path, simulation: tuple[str, ...]) -> None:
    result = run(tmp_path, *RANKED, *simulation)
    assert result.exit_code == 0
    assert IDEAL in result.output


def test_real_clients_compute_together_where_they_can(tmp_path: Path) -> None:
    pytest.importorskip("spu.libspu", reason="joint computations need SPU")
    result = run(tmp_path, *PAIRS)
    assert result.exit_code == 0
    assert HERE in result.output
    assert IDEAL not in result.output


def test_without_the_extra_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "spu.libspu", None)
    result = run(tmp_path, *PAIRS, "--engine", "spu")
    assert result.exit_code == 2
    assert "pip install 'tacit[two-party]'" in result.output
    assert "Traceback" not in result.output


def test_what_is_not_joint_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "--protocol", "dpauc", "--epsilon", "1", "--engine", "spu")
    assert result.exit_code == 2
    assert "computes nothing jointly" in result.output


@pytest.mark.parametrize("given", [("--allocation", "adaptive"), ("--sensitivity", "local")])
def test_settings_that_need_ranks_are_refused(tmp_path: Path, given: tuple[str, ...]) -> None:
    result = run(tmp_path, *RANKED, *given)
    assert result.exit_code == 2
    assert "as the server knows no ranks" in result.output


def test_a_failing_party_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise JointError("the process of south ended with exit status -9")

    monkeypatch.setattr("tacit.running.evaluating.run_jointly", fail)
    result = run(tmp_path, *PAIRS, "--engine", "spu")
    assert result.exit_code == 2
    assert result.output == "tacit: the process of south ended with exit status -9\n"
