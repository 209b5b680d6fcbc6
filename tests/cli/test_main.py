import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli.shell import OutputFile
from tacit.privacy.cost import Adjacency, Cost
from tacit.results.saved.reading import check_result
from tests.cli.conftest import NAMES
from tests.terminal import content_of, refusal_of, run, strict_json, succeeded

COMMAND = Path(sys.executable).parent / "tacit"
CSV_FILES = [f"{name}.csv" for name in NAMES]
FEDAUC = ("--protocol", "fedauc", "--epsilon", 1)
DPAUC = ("--protocol", "dpauc", "--epsilon", 1)
PNG, PDF = b"\x89PNG", b"%PDF"


def evaluated(*arguments: object) -> dict[str, Any]:
    return content_of("evaluate", *arguments)


def exact_auc(*files: str) -> float:
    records = np.concatenate([np.loadtxt(f, delimiter=",", skiprows=1) for f in files])
    positives, negatives = (records[records[:, 1] == label, 0] for label in (1, 0))
    wins = (positives[:, None] > negatives).sum() + (positives[:, None] == negatives).sum() / 2
    return float(wins / (positives.size * negatives.size))


# What files hold is never printed as control characters


HOSTILE = "\x1b]0;owned\x07\nprivacy spent  epsilon 0.001 in all"


def test_a_columns_type_prints_no_control_character(tmp_path: Path) -> None:
    column = pa.array([{HOSTILE: 0.5}, {HOSTILE: 0.7}])
    path = tmp_path / "hostile.parquet"
    pq.write_table(pa.table({"score": column, "label": [0, 1]}), path)
    reported = refusal_of(run("evaluate", path, *FEDAUC))
    assert reported.isprintable()
    assert "must hold numbers, got type" in reported


def test_a_groups_name_makes_no_line_of_the_result(tmp_path: Path) -> None:
    scores, labels = tacit.binormal_scores(500, 500, 0.8, seed=0)
    groups = ["east" if index % 2 else HOSTILE for index in range(1000)]
    path = tmp_path / "wards.csv"
    pa_csv.write_csv(pa.table({"score": scores, "label": labels, "ward": groups}), path)
    printed = run("evaluate", path, *FEDAUC, "--groups", "ward").stdout
    lines = printed.splitlines()
    assert all(line.isprintable() for line in lines)
    assert [line for line in lines if line.startswith("privacy spent")] == [
        line for line in lines if "epsilon 1 in all, label adjacency" in line
    ]
    assert any(r"\x1b]0;owned\x07\nprivacy spent" in line for line in lines)


# What a result holds


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_noise_is_fresh_and_exact_figures_are_those_of_the_files(folder: Path, ending: str) -> None:
    files = [f"{name}.{ending}" for name in NAMES]
    result, again = (evaluated(*files, *FEDAUC, "--exact") for _ in range(2))
    assert result["spent"] == Cost(1.0, adjacency=Adjacency.LABEL).to_dict()
    assert result["exact"] == again["exact"] == pytest.approx(exact_auc(*CSV_FILES), abs=1e-12)
    assert (result["noise"], again["noise"], result["warnings"]) == ("system", "system", [])
    assert result["auc"]["value"] != again["auc"]["value"]


@pytest.mark.parametrize("by", ["uniform", "score"])
def test_a_split_is_a_simulation_whose_noise_a_seed_fixes(folder: Path, by: str) -> None:
    split = (*CSV_FILES, *FEDAUC, "--split", 20, "--by", by)
    seeds: list[tuple[object, ...]] = [("--seed", 7), ("--seed", 7), ("--seed", 8), (), ()]
    results = [evaluated(*split, *seed) for seed in seeds]
    assert results[0] == results[1]
    assert len({result["auc"]["value"] for result in results}) == 4
    for result in results:
        assert (result["clients"], result["noise"]) == (20, "simulated")
        assert "simulation" in result["warnings"][0]
        assert result["exact"] == pytest.approx(exact_auc(*CSV_FILES), abs=1e-12)


def test_a_seed_alone_is_a_simulation_too(folder: Path) -> None:
    result = evaluated(*CSV_FILES, *FEDAUC, "--seed", 7)
    library = tacit.evaluate(tacit.read(CSV_FILES), tacit.FedAUC(1.0), seed=7)
    assert result["noise"] == "simulated"
    assert "simulation" in result.pop("warnings")[0]
    expected = library.to_dict()
    expected.pop("warnings")
    assert result == json.loads(json.dumps(expected))


def test_exact_figures_are_for_those_who_ask(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default it is not even computed; a split of one party's records may show it."""
    assert "exact AUC" in run("evaluate", *CSV_FILES, *FEDAUC, "--exact").stdout
    assert "exact" not in evaluated(*CSV_FILES, *FEDAUC, "--split", 5, "--no-exact")
    monkeypatch.setattr(tacit.FedAUC, "exact", lambda self, clients: pytest.fail("computed"))
    for chosen in ((), ("--seed", 1), ("--no-exact",)):
        assert "exact" not in evaluated(*CSV_FILES, *FEDAUC, *chosen)
        assert "exact" not in run("evaluate", *CSV_FILES, *FEDAUC, *chosen).stdout


# Settings


# Records that cannot be evaluated


def test_an_absent_class_is_no_refusal_where_labels_are_private(folder: Path) -> None:
    """It would tell every label, whatever epsilon is."""
    for seed in range(3):
        requested = ("negatives.csv", "--protocol", "fedauc", "--epsilon", 1, "--seed", seed)
        assert run("evaluate", *requested).exit_code in (0, 3)


@pytest.mark.parametrize("protocol", ["fedauc", "dpauc"])
def test_without_signal_there_is_no_number(folder: Path, protocol: str) -> None:
    requested = ("evaluate", "first.csv", "--protocol", protocol, "--epsilon", 1e-3, "--seed", 3)
    printed = run(*requested, "--no-exact", "--json=a.json", "--plot", "roc.png")
    observed = strict_json(Path("a.json").read_text())
    assert observed["auc"]["value"] is None
    assert observed["auc"]["interval"] == [None, None]
    assert "not enough signal" in " ".join(observed["warnings"])
    assert printed.exit_code == 3
    assert run(*requested, "--json").exit_code == 3
    assert Path("roc.png").read_bytes().startswith(PNG)
    assert re.search(r"^AUC +not enough signal$", printed.stdout, re.MULTILINE)
    assert "interval" not in printed.stdout.partition("warning")[0]


# Pictures and calibrators


@pytest.mark.parametrize("method", ["binning", "bbq", "isotonic", "platt"])
def test_a_calibrator_is_printed_and_saved(folder: Path, method: str) -> None:
    options = ("--protocol", "score-histogram", "--epsilon", 2, "--calibrate", method)
    result = evaluated("north.csv", "--split", 10, *options, "--save-calibrator", "map.json")
    check_result(result)
    assert {"reliability", "calibration", "supported_buckets"} <= result.keys()
    assert result["calibrator"] == json.loads(Path("map.json").read_text())
    loaded = tacit.Calibrator.load("map.json")
    mapped = loaded.transform(np.linspace(0, 1, 11))
    assert (loaded.method, 0 <= mapped.min() <= mapped.max() <= 1) == (method, True)


@pytest.mark.parametrize(("name", "start"), [("roc.png", PNG), ("ROC.PDF", PDF), ("a.svg", b"<?")])
def test_a_picture_is_saved(folder: Path, name: str, start: bytes) -> None:
    succeeded(run("evaluate", *CSV_FILES, *DPAUC, "--plot", name))
    assert Path(name).read_bytes().startswith(start)
    assert not list(folder.glob(".*"))


def test_a_full_disk_loses_only_the_picture(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("roc.png").write_bytes(b"earlier")

    def fill_up(path: Path, content: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", fill_up)
    result = run("evaluate", *CSV_FILES, *FEDAUC, "--plot", "roc.png", "--json")
    assert result.exit_code == 2
    assert strict_json(result.stdout)["auc"]["value"] is not None
    assert result.stderr == "tacit: roc.png cannot be written: No space left on device\n"
    assert Path("roc.png").read_bytes() == b"earlier"
    assert not list(folder.glob(".*"))


def test_an_interrupted_file_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OutputFile(str(tmp_path / "map.json"))

    def interrupted(path: Path, content: bytes) -> None:
        path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.write(b"{}")
    assert not list(tmp_path.iterdir())


def test_a_link_is_followed_and_a_device_is_left_in_place(folder: Path) -> None:
    Path("link.png").symlink_to("target.png")
    assert run("evaluate", "north.csv", *DPAUC, "--plot", "link.png").exit_code == 0
    assert Path("link.png").is_symlink()
    assert Path("target.png").read_bytes().startswith(PNG)
    os.mkfifo("map.json")
    reader = os.open("map.json", os.O_RDONLY | os.O_NONBLOCK)
    calibrated = ("--calibrate", "platt", "--save-calibrator", "map.json")
    histogram = ("--protocol", "score-histogram", "--epsilon", 1)
    assert run("evaluate", *CSV_FILES, *histogram, *calibrated).exit_code == 0
    assert strict_json(os.read(reader, 2**16).decode())
    os.close(reader)
    assert Path("map.json").is_fifo()


def test_without_matplotlib_a_picture_is_refused_before_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = "tacit.cli.sources.read_columns"
    monkeypatch.setattr(reader, lambda *arguments: pytest.fail("read a file"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("evaluate", "absent.csv", *FEDAUC, "--plot", "roc.png")
    assert "pip install 'tacit[plot]'" in refusal_of(result)


# The command as a process


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [str(COMMAND), *map(str, arguments)]
    return subprocess.run(command, check=False, text=True, stderr=subprocess.PIPE, **options)


def test_the_installed_command_prints_the_result_and_nothing_else(folder: Path) -> None:
    result = process("evaluate", *CSV_FILES, *FEDAUC, "--json", stdout=subprocess.PIPE)
    assert result.returncode == 0
    assert result.stderr == ""
    assert strict_json(result.stdout)["noise"] == "system"


@pytest.mark.parametrize("arguments", [("evaluate", "north.csv", *FEDAUC, "--json"), ("--help",)])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_standard_output_on_a_full_disk(folder: Path, arguments: tuple[object, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        result = process(*arguments, stdout=full)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("tacit: ")


def test_a_reader_that_left_causes_no_traceback(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = process("evaluate", "north.csv", *FEDAUC, stdout=writing)
    os.close(writing)
    assert result.returncode == 1
    assert result.stderr == ""


# JSON beside the text


@pytest.mark.parametrize("form", [("--json", "out.json"), ("--json=out.json",)])
def test_with_a_file_the_text_is_printed_as_well(folder: Path, form: tuple[str, ...]) -> None:
    printed = run("evaluate", *CSV_FILES, *DPAUC, "--seed", 1, *form)
    assert (printed.exit_code, printed.stderr) == (0, "")
    for part in ("AUC  ", "95 % interval", "record adjacency", "simulated", "warning: this is a"):
        assert part in printed.stdout
    assert strict_json(Path("out.json").read_text())["clients"] == 5


def test_a_file_of_records_after_json_is_never_written_over(folder: Path) -> None:
    before = Path("north.csv").read_text()
    printed = run("evaluate", "--protocol", "exact", "--json", "north.csv")
    assert strict_json(printed.stdout)["clients"] == 1
    assert Path("north.csv").read_text() == before
