"""``tacit evaluate --engine``: who computes what clients compute together."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from tacit import Adjacency, Ledger
from tacit.protocol.mpc import MPCError
from tacit.running.evaluating import HERE, IDEAL
from tests import terminal

PAIRS = ("--protocol", "paired-ustatistic", "--kernel", "collision", "--epsilon", "2")
RANKED = ("--protocol", "fedauc", "--trust", "mpc", "--epsilon", "20")
"""The noise is far smaller than the distance of these records' AUC, 0.86, from 1."""


def run(folder: Path, *options: str) -> Result:
    rng = np.random.default_rng(0)
    files = []
    for name in ("north", "south"):
        labels = rng.integers(0, 2, 40)
        scores = np.round(0.1 + 0.3 * labels + 0.6 * rng.random(40), 2)
        lines = [f"{score},{label}" for score, label in zip(scores, labels, strict=True)]
        files.append(folder / f"{name}.csv")
        files[-1].write_text("\n".join(["score,label", *lines]))
    return terminal.run("evaluate", *files, *options)


def books(folder: Path, epsilon: float, adjacency: Adjacency) -> list[str]:
    """Options that name a ledger of each client, with this limit."""
    paths = [folder / f"{name}.db" for name in ("north", "south")]
    for path in paths:
        with Ledger(path) as ledger:
            ledger.limit(path.stem, epsilon, adjacency=adjacency)
    return [f"--ledger={path.stem}={path}" for path in paths]


@pytest.mark.parametrize(
    "options",
    [
        PAIRS,
        (*PAIRS, "--engine", "ideal"),
        (*RANKED, "--split", "3"),
        (*RANKED, "--seed", "1"),
    ],
)
def test_a_trusted_party_is_named(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Simulations, and real clients who are not asked to compute, start no processes."""
    assert IDEAL in run(tmp_path, *options).stdout


def test_real_clients_pay_before_they_compute_together(tmp_path: Path) -> None:
    """A limit of 2 bears one run at epsilon 2, and not a second."""
    pytest.importorskip("spu.libspu", reason="joint computations need SPU")
    options = books(tmp_path, 2.0, Adjacency.REPLACE)
    result = terminal.succeeded(run(tmp_path, *PAIRS, *options))
    assert HERE in result.output
    assert IDEAL not in result.output
    again = run(tmp_path, *PAIRS, *options)
    assert again.exit_code == 2
    assert "declined: the privacy budget does not allow it" in again.output
    for name in ("north", "south"):
        with Ledger(tmp_path / f"{name}.db") as ledger:
            ledger.verify()
            debits = [line for line in ledger.lines() if line.kind == "debit"]
            assert {line.dataset for line in debits} == {name}
            assert sum(line.epsilon for line in debits) == pytest.approx(2.0)


def test_the_engine_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "spu.libspu", None)
    assert "pip install 'tacit[two-party]'" in terminal.refusal_of(
        run(tmp_path, *PAIRS, "--engine", "spu", "--split", "2")
    )


def test_a_failing_party_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object, **named: object) -> None:
        raise MPCError("the process of south ended with exit status -9")

    monkeypatch.setattr("tacit.running.evaluating.run_mpc", fail)
    said = terminal.refusal_of(run(tmp_path, *PAIRS, "--engine", "spu"))
    assert said == "the process of south ended with exit status -9"
