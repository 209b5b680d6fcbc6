import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit import demonstration
from tacit.cli import main

README = Path(__file__).parents[1] / "README.md"


def test_the_demo_prints_and_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["demo", "--seed", "0"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.count("simulation") == 1
    for part in ("Ten hospitals", "A thousand advertisers", "A hundred thousand phones"):
        assert result.stdout.count(part) == 1
    for adjacency in ("label", "record", "replace"):
        assert f"  {adjacency}  " in result.stdout
    assert "nan" not in result.stdout
    for line in ("mean of the ten AUCs  0.7547", "AUC of all records    0.8008"):
        assert line in result.stdout
        assert line in README.read_text(encoding="utf-8")
    assert "Report:  tacit-demo.html" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"tacit-demo.png", "tacit-demo.html"}
    assert (tmp_path / "tacit-demo.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "tacit-demo.html").read_text(encoding="utf-8")
    assert "<title>Ten hospitals, a simulation</title>" in page


def test_the_data_sets_are_what_they_claim() -> None:
    hospitals, advertisers = demonstration.hospital_clients(), demonstration.advertiser_clients()
    made = hospitals, advertisers, demonstration.phone_clients()
    sizes = {(clients.count, clients.records, clients.simulated) for _, clients in made}
    assert sizes == {(10, 40_000, True), (1_000, 100_000, True), (100_000, 100_000, True)}


def test_intervals_hold_the_exact_value_and_the_seed_repeats_them() -> None:
    what, clients = demonstration.hospital_clients()
    first, second = (
        demonstration.compare(what, clients, demonstration.protocols_of("hospitals"), seed=5)
        for _ in range(2)
    )
    for (_, result), (_, again) in zip(first.results, second.results, strict=True):
        assert result.auc.value == again.auc.value
        assert result.noise == "simulated"
        assert abs(result.auc.value - first.exact) < 5 * result.auc.standard_error


def test_the_table_says_where_no_signal_is_left() -> None:
    rng = np.random.default_rng(0)
    clients = tacit.Clients.split(rng.random(20), np.arange(20) % 2, 2, seed=0)
    scene = demonstration.compare("tiny", clients, demonstration.protocols_of("hospitals"), 0)
    text = demonstration.report([scene])
    assert "no signal" in text
    assert "nan" not in text
    assert demonstration.draw([scene]).axes


def test_the_demo_without_its_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = CliRunner().invoke(main, ["demo"], catch_exceptions=False)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("tacit: the demonstration needs ")
    assert result.stderr.endswith("pip install 'tacit[demo]'\n")


def test_the_picture_is_checked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration, "demonstrate", lambda seed: pytest.fail("demonstrated"))
    for flag, name in (
        ("--plot", "demo.xyz"),
        ("--plot", "nowhere/demo.png"),
        ("--report", "nowhere/demo.html"),
    ):
        result = CliRunner().invoke(main, ["demo", flag, str(tmp_path / name)])
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
