"""``tacit evaluate`` with several classes and with private groups, and their reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

from tacit.data.reading import FileColumns, read_columns
from tacit.data.scales import in_unit
from tacit.protocol import Clients, DataError
from tacit.results.saved.reading import check_result
from tests import known
from tests.classified import CLASSES, GROUPS, class_clients, group_clients
from tests.terminal import content_of, page_of, refusal_of, run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sites' files of classes (c0 to c2) and of groups (g0 to g2)."""
    folder = tmp_path_factory.mktemp("sites")
    several, grouped = class_clients(3000, 3), group_clients(3000, 3)
    for k in range(3):
        part, site = known(several.part(k, k + 1).categories), grouped.part(k, k + 1)
        columns = dict(zip(CLASSES, known(part.scores).T, strict=True))
        columns["label"] = np.array(CLASSES)[part.of_record]
        write_csv(pa.table(columns), folder / f"c{k}.csv")
        wards = np.array(GROUPS)[known(site.categories).of_record]
        records = {"score": site.scores, "label": site.labels, "ward": wards}
        write_csv(pa.table(records), folder / f"g{k}.csv")
    return folder


def evaluated(*arguments: object) -> dict[str, Any]:
    content = content_of("evaluate", *arguments)
    check_result(content)
    return content


def refusal(*arguments: object) -> str:
    return refusal_of(run("evaluate", *arguments))


def test_columns_name_the_classes_and_the_report_shows_them(files: Path, tmp_path: Path) -> None:
    sites = [files / f"c{k}.csv" for k in range(3)]
    options = ("--scores", "a,b,c,d", "--protocol", "multiclass-histogram", "--epsilon", 2)
    content = evaluated(*sites, *options)
    assert [part["name"] for part in content["classes"]] == list(CLASSES)
    assert content["protocol"]["classes"] == list(CLASSES)
    assert {"weighted AUC", "top-1 accuracy"} == content["measures"].keys()
    page = page_of(content, tmp_path)
    assert "Classes</h2>" in page


def test_masked_counts_give_each_class_a_certain_range(files: Path) -> None:
    sites = [files / f"c{k}.csv" for k in range(3)]
    options = ("--scores", "a,b,c,d", "--protocol", "encrypted-class-auc", "--thresholds", 100)
    content = evaluated(*sites, *options, "--most-records", 3000, "--exact")
    assert [part["name"] for part in content["classes"]] == list(CLASSES)
    assert all(part["records"] is None for part in content["classes"])
    low, high = content["estimate"]["interval"]
    assert low <= content["exact"] <= high
    shown = run("evaluate", *sites, *options, "--most-records", 3000).stdout
    assert "class d: AUC" in shown
    assert shown.count("certain range (these records)") == 5


def test_private_groups_are_compared_and_sites_reported(files: Path, tmp_path: Path) -> None:
    sites = [files / f"g{k}.csv" for k in range(3)]
    options = ("--protocol", "grouped-histogram", "--epsilon", 2, "--private-group", "ward")
    names = ("--group-names", "x,y,z")
    content = evaluated(*sites, *options, *names, "--trust", "each")
    assert len(content["groups"]) == len(content["sites"]) == 3
    assert {each["called"] for each in content["differences"]} >= {"equal opportunity"}
    assert content["groups"][0]["measures"]["true positive rate"]["threshold"] == 0.5
    page = page_of(content, tmp_path)
    for heading in ("Private groups</h2>", "Sites</h2>", "Differences between groups"):
        assert heading in page


def _two_classes(folder: Path, scores: str) -> Path:
    """A file of two records, the second of which has these scores."""
    path = folder / "two.csv"
    path.write_text(f"a,b,label\n1,0,a\n{scores},b\n")
    return path


def classes_of(path: Path, names: Sequence[str] = ("a", "b"), unit: str | None = None) -> Clients:
    """Records with scores in the columns a and b."""
    columns = FileColumns(label=None, unit=unit)
    return read_columns(columns.of_files(path, "label", names, ("a", "b")))[0]


def test_every_column_is_in_the_named_unit(files: Path) -> None:
    clients = classes_of(_two_classes(files, "20,80"), unit="percent")
    converted = known(in_unit(clients, "probability").categories)
    np.testing.assert_array_equal(known(converted.scores), [[0.01, 0], [0.2, 0.8]])


@pytest.mark.parametrize("scores", ["1.7,0.2", "0.2,1.7"])
def test_scores_of_any_class_outside_0_to_1_need_their_unit(files: Path, scores: str) -> None:
    two = ("--scores", "a,b", "--protocol", "multiclass-histogram", "--epsilon", 1)
    said = refusal(_two_classes(files, scores), *two)
    assert "got 1.7 in two, row 2; name their unit (--unit percent" in said


def test_files_that_do_not_fit_are_refused(files: Path) -> None:
    with pytest.raises(DataError, match="2 columns for 3 classes"):
        classes_of(files / "c0.csv", ("a", "b", "c"))
    with pytest.raises(DataError, match=r"in the order of the classes, b, a, got a, b"):
        classes_of(files / "c0.csv", ("b", "a"))
    with pytest.raises(DataError, match="is none of a, b"):
        classes_of(files / "c0.csv")
    with pytest.raises(DataError, match=r"from 0 to 100, got 130 in .*two\.csv, row 2 \(line 3\)"):
        classes_of(_two_classes(files, "40,130"), unit="percent")
    with pytest.raises(DataError, match=r"is none of .*: agree on every group"):
        read_columns(FileColumns().of_files(files / "g0.csv", "ward", ["x", "y"]))
