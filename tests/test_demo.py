import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit import demonstration
from tacit.cli import main


def test_the_demo_prints_tables_and_saves_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["demo", "--seed", "0"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    for name, _ in demonstration.PROTOCOLS:
        assert result.stdout.count(f"\n{name}  ") == 2
    for part in ("5 clients", "1,000 clients", "100,000 records", "noise below is simulated"):
        assert part in result.stdout
    for adjacency in ("label", "record", "none"):
        assert f"  {adjacency}  " in result.stdout
    assert "Picture: tacit-demo.png" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["tacit-demo.png"]
    assert (tmp_path / "tacit-demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_data_sets_are_what_they_claim() -> None:
    title, hospitals = demonstration.hospital_clients()
    assert "reast cancer" in title
    assert (hospitals.count, hospitals.records) == (5, 284)
    _, many = demonstration.synthetic_clients()
    assert (many.count, many.records) == (1_000, 100_000)
    exact = tacit.evaluate(many, tacit.ExactAUC()).auc.value
    assert exact == pytest.approx(0.80, abs=0.005)


def test_most_intervals_hold_the_exact_value_and_the_seed_repeats_them() -> None:
    _, clients = demonstration.synthetic_clients()
    first, second = (demonstration.compare("many", clients, seed=5) for _ in range(2))
    for (name, result), (_, again) in zip(first.results, second.results, strict=True):
        assert result.auc.value == again.auc.value, name
        assert result.noise == ("none" if name.startswith("exact") else "simulated")
    for name, result in first.results[1:5]:
        assert abs(result.auc.value - first.exact) < 5 * result.auc.standard_error, name


def test_the_table_says_where_no_signal_is_left() -> None:
    rng = np.random.default_rng(0)
    clients = tacit.Clients.split(rng.random(20), np.arange(20) % 2, 10, seed=0)
    results = [demonstration.compare("tiny", clients, seed) for seed in range(4)]
    text = demonstration.report(results)
    assert "no signal" in text
    assert "a figure needs at least 6 standard errors" in text.replace("\n", " ")
    assert "nan" not in text
    assert demonstration.draw(results).axes


@pytest.mark.parametrize("absent", ["sklearn.datasets", "matplotlib"])
def test_the_demo_without_its_extras(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, absent, None)
    result = CliRunner().invoke(main, ["demo"], catch_exceptions=False)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("tacit: the demonstration needs ")
    assert result.stderr.endswith("pip install 'tacit[demo]'\n")


def test_the_picture_is_checked_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demonstration, "demonstrate", lambda seed: pytest.fail("demonstrated"))
    for name in ("demo.xyz", "nowhere/demo.png"):
        result = CliRunner().invoke(main, ["demo", "--plot", str(tmp_path / name)])
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
