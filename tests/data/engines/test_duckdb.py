"""Files and databases by DuckDB: the same figures as records in memory, and bad input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import tacit
from tacit import PublishedDPAUC, PublishedHistogram
from tacit.data.clients import Clients, sorted_scores
from tacit.data.engines import opening
from tacit.data.engines.stored import StoredClients
from tacit.data.ragged import doubled_ranks
from tacit.data.scales import in_unit
from tacit.protocol import ClientState, DataError, NoNoise, Protocol
from tacit.protocols.fedauc.steps import pair_of_clients
from tests.data.engines.conftest import check_ranked, check_same, database

PROTOCOLS: dict[str, Protocol] = {
    "looks": tacit.ScoreHistogram(epsilon=1.0),
    "tree": tacit.ScoreHistogram(epsilon=1.0, height=5),
    "exact": tacit.ScoreHistogram("exact-sum", height=12),
    "sampled levels": PublishedHistogram("secure-sum(budget=sample)", epsilon=1.0, height=4),
    "dpauc": tacit.DPAUC(epsilon=2.0),
    "confusion": PublishedDPAUC(epsilon=2.0, thresholds=9),
    "fedauc": tacit.FedAUC(epsilon=1.0),
    "exact auc": tacit.ExactAUC(),
}


def table(records: int = 4000, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, records)
    scores = 1 / (1 + np.exp(-random.normal(labels, 1.0)))
    scores[: records // 4] = np.round(scores[: records // 4], 2)
    sites = np.array(["x", "B", "é", "a"])[random.integers(0, 4, records)]
    return pa.table({"score": scores, "label": labels, "site": sites})


def parts(folder: Path, records: pa.Table, count: int = 3) -> str:
    size = -(-records.num_rows // count)
    for index in range(count):
        pq.write_table(records.slice(index * size, size), folder / f"part-{index}.parquet")
    return str(folder / "*.parquet")


def in_memory(records: pa.Table) -> Clients:
    return Clients.from_frame(records, client="site")


def scored(records: pa.Table, scores: NDArray[Any]) -> pa.Table:
    """Records with other scores."""
    return records.set_column(0, "score", pa.array(scores))


def both(
    folder: Path, records: pa.Table, client: str | None = "site", unit: str | None = None
) -> tuple[Clients, Clients]:
    """Clients of which records are stored in files, and those with the same in memory."""
    file = parts(folder, records, 3 if client else 1)
    memory = Clients.from_frame(records, client=client, unit=unit)
    return opening.from_files([file], client=client, unit=unit), memory


@pytest.mark.parametrize("name", PROTOCOLS)
def test_records_in_files_give_the_figures_of_records_in_memory(name: str, tmp_path: Path) -> None:
    stored, memory = both(tmp_path, table())
    assert stored.names == memory.names
    # DeLong's squares are no whole numbers, and batches add them in another order
    check = check_ranked if name == "exact auc" else check_same
    check(stored, memory, PROTOCOLS[name])


def test_clients_that_are_numbers_come_in_the_order_of_memory(tmp_path: Path) -> None:
    numbered = table().set_column(2, "site", pa.array(np.arange(4000) % 12))
    check_same(*both(tmp_path, numbered), tacit.FedAUC(epsilon=1.0))


@pytest.mark.parametrize("unit", ["percent", "log-odds", "real"])
def test_units_of_stored_records_are_those_in_memory(unit: str, tmp_path: Path) -> None:
    records = table()
    changed = scored(records, records["score"].to_numpy() * 100)
    check_same(*both(tmp_path, changed, unit=unit), tacit.ScoreHistogram(epsilon=1.0))


def test_counts_and_batches_are_those_in_memory(tmp_path: Path) -> None:
    stored, memory = both(tmp_path, table())
    edges = np.array([-np.inf, 0.0, 0.3, 0.3, 0.31, 1.0, np.inf])
    assert np.array_equal(stored.counts_in(edges), memory.counts_in(edges))
    many = np.linspace(0, 1, 1000)
    assert np.array_equal(stored.counts_in(many), memory.counts_in(many))
    assert sum(batch.records for batch in stored.batches()) == memory.records
    assert (stored.positives, stored.ends) == (memory.positives, memory.ends)


def test_without_a_client_column_every_file_is_a_client(tmp_path: Path) -> None:
    stored = opening.from_files([parts(tmp_path, table())])
    assert stored.names == ("part-0", "part-1", "part-2")
    assert stored.sizes.tolist() == [1334, 1334, 1332]


def test_a_database_of_duckdb_is_only_read(tmp_path: Path) -> None:
    records = table()
    address = database(tmp_path / "clinic.duckdb", records)
    stored = opening.from_database(address, "scored", client="site")
    check_ranked(stored, in_memory(records), tacit.ExactAUC())
    query = opening.from_database(address, query="SELECT * FROM scored WHERE score < 0.5;")
    assert query.ends[1] < 0.5
    with pytest.raises(DataError, match="cannot be read"):
        opening.from_database(address, query="DROP TABLE scored")
    with pytest.raises(DataError, match="must be one SELECT statement"):
        opening.from_database(address, query="SELECT 1) AS one; SELECT * FROM (SELECT 2")


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("score", [0.5, None], "column 'score' has no value in a record of .*, client 'b'; fill"),
        ("label", [1, None], "column 'label' has no value in a record of .*, client 'b'; fill"),
        ("label", [1, 2], "labels must be 0 or 1, got 2 in a record of"),
        ("label", ["yes", "no"], "labels must be 0 or 1, got .no. in .*: --positive yes"),
        ("score", ["0.5", "high"], "column 'score' of .* must hold numbers, got type text"),
        ("score", [0.5, np.nan], "scores must be finite numbers, got nan in a record of"),
        ("score", [0.5, np.inf], "scores must be finite numbers, got inf in a record of"),
        ("score", [1, 2**53 + 1], "that are whole numbers must be below 2..53 in size, got 9"),
        ("score", pa.array([1, 2**53], pa.decimal128(20)).to_pylist(), "must be below 2"),
        ("site", ["a", None], "column 'site' of .* has no value in some records"),
    ],
)
def test_faults_are_named(column: str, values: list[object], sentence: str, tmp_path: Path) -> None:
    columns = {"score": [0.1, 0.2], "label": [0, 1], "site": ["a", "b"], column: values}
    file = parts(tmp_path, pa.table(columns), 1)
    with pytest.raises(DataError, match=sentence):
        opening.from_files([file], client="site")


def test_a_missing_column_and_an_empty_table_are_named(tmp_path: Path) -> None:
    file = parts(tmp_path, table(0), 1)
    with pytest.raises(DataError, match="has no records"):
        opening.from_files([file])
    with pytest.raises(DataError, match="has no column 'risk', its columns are 'score', 'label'"):
        opening.from_files([file], score="risk")


def test_files_that_change_between_two_steps_are_declined(tmp_path: Path) -> None:
    stored = opening.from_files([parts(tmp_path, table())], client="site")
    parts(tmp_path, table(seed=1))
    with pytest.raises(DataError, match="changed while it was being read"):
        tacit.evaluate(stored, tacit.ScoreHistogram(epsilon=1.0), 1)


@pytest.mark.parametrize("later", ["site", "'x'", "NULL"])
def test_a_table_that_grew_before_it_is_read_is_declined(later: str, tmp_path: Path) -> None:
    """Also where the first client's new records would take the places of the next one's."""
    more = "CREATE TABLE later AS SELECT * FROM scored"
    address = database(tmp_path / "clinic.duckdb", table(100), more)
    stored = opening.from_database(address, "scored", client="site")
    relation = stored.stored._relation  # type: ignore[attr-defined]
    grown = f"(SELECT * FROM scored UNION ALL SELECT score, label, {later} FROM later) AS t"
    stored.stored._relation = replace(relation, table=grown)  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="changed between two steps of a run"):
        stored.scores.sum()
    with pytest.raises(DataError, match="changed between two steps of a run"):
        tacit.evaluate(stored, tacit.ExactAUC())


@pytest.mark.parametrize(
    ("later", "sentence"),
    [
        ("FROM scored WHERE random() < 0.5", "the query has other records each time it is read; "),
        ("FROM scored ORDER BY score LIMIT 90", ", or its query does not determine its records; "),
        ("REPLACE (score / 2 + 0.2 AS score) FROM scored LIMIT 90", "or its query does not determ"),
        ("FROM scored LIMIT 80", "the query changed between two steps of a run$"),
    ],
)
@pytest.mark.parametrize("edges", [10, 1 << 14])
def test_nondeterministic_queries(later: str, sentence: str, edges: int, tmp_path: Path) -> None:
    address = database(tmp_path / "a.duckdb", table(100))
    stored = opening.from_database(address, query="SELECT * FROM scored LIMIT 90")
    relation = replace(stored.stored._relation, table=f"(SELECT * {later}) AS t")  # type: ignore[attr-defined]
    stored.stored._relation = relation  # type: ignore[attr-defined]
    with pytest.raises(DataError, match=sentence) as caught:
        stored.counts_in(np.linspace(0, 1, edges))
    assert not re.search(r"\d", str(caught.value).removeprefix(str(tmp_path)))


def test_a_folder_within_a_folder_is_no_file_whatever_its_name(tmp_path: Path) -> None:
    """Programs that write a table as many files call their folder like a file."""
    for name in ("records.parquet", "old.csv"):
        (tmp_path / "all" / name).mkdir(parents=True)
    pq.write_table(table(), tmp_path / "all" / "records.parquet" / "PART.PARQUET")
    assert opening.from_files([str(tmp_path / "all")]).records == 4000


def test_a_pattern_without_files_and_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file is found for"):
        opening.from_files([str(tmp_path / "*.parquet")])
    folder = tmp_path / "mixed"
    folder.mkdir()
    pq.write_table(table(), folder / "a.parquet")
    assert opening.from_files([str(folder)]).records == 4000
    (folder / "b.CSV").touch()
    with pytest.raises(DataError, match=r"Parquet files only, and .*mixed has .*b\.CSV"):
        opening.from_files([str(folder)])
    (tmp_path / "x.txt").touch()
    with pytest.raises(DataError, match="must be Parquet files, got"):
        opening.from_files([str(tmp_path / "*.txt")])
    with pytest.raises(DataError, match="does not exist"):
        opening.from_database(f"duckdb://{tmp_path / 'none.duckdb'}", "scored")


def test_what_is_a_pattern_and_what_is_large(tmp_path: Path) -> None:
    file = parts(tmp_path, table(), 1)
    assert opening.is_pattern(file) and opening.is_pattern(str(tmp_path))
    named = tmp_path / "a[1].csv"
    named.write_text("score,label\n", encoding="utf-8")
    assert not opening.is_pattern(str(named))
    assert not opening.is_large([str(tmp_path / "part-0.parquet")])


def test_a_file_whose_name_is_like_a_pattern_is_read_once(tmp_path: Path) -> None:
    for name, score in {"x[1]": 0.25, "x1": 0.5, "x?": 0.75, "x*": 1.0}.items():
        pq.write_table(pa.table({"score": [score], "label": [1]}), tmp_path / f"{name}.parquet")
    clients = opening.from_files([str(tmp_path)])
    assert sorted(clients.names) == ["x*", "x1", "x?", "x[1]"]
    assert dict(zip(clients.names, clients.scores.tolist(), strict=True))["x[1]"] == 0.25
    assert clients.records == 4


def test_the_type_of_the_first_file_does_not_round_the_others(tmp_path: Path) -> None:
    pq.write_table(pa.table({"score": [0, 1], "label": [0, 1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"label": [0, 1], "score": [0.25, 0.75]}), tmp_path / "b.parquet")
    clients = opening.from_files([str(tmp_path)])
    assert clients.scores.tolist() == [0.0, 1.0, 0.25, 0.75]
    assert clients.counts_in(np.array([0.2, 0.5]))[:, :, 1].tolist() == [[0, 0, 1], [0, 1, 0]]
    pq.write_table(pa.table({"label": [0.4, 1], "score": [0.25, 0.75]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"labels must be 0 or 1, got 0\.4"):
        opening.from_files([str(tmp_path)])


def test_the_name_of_a_folder_is_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "label=1"
    folder.mkdir()
    pq.write_table(pa.table({"score": [0.25, 0.5], "label": [0, 1]}), folder / "a.parquet")
    assert opening.from_files([str(tmp_path)]).positives == 1


def test_a_pass_over_stored_records_tells_how_many_it_read(tmp_path: Path) -> None:
    passes: list[list[int]] = []

    @contextmanager
    def progress(records: int) -> Iterator[Callable[[int], None]]:
        passes.append([records])
        yield passes[-1].append

    stored = opening.from_files([parts(tmp_path, table())], client="site", progress=progress)
    assert passes == []
    tacit.evaluate(stored, tacit.FedAUC(epsilon=1.0), 1)
    assert [(each[0], sum(each[1:])) for each in passes] == [(4000, 4000)]


RANKING = {"fedauc": tacit.PublishedFedAUC(1.0, "staircase"), "exact": tacit.ExactAUC()}


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("client", ["site", "number", None])
@pytest.mark.parametrize("unit", ["percent", "real"])
def test_an_engine_ranks_records_as_memory_does(
    name: str, client: str | None, unit: str, tmp_path: Path, no_room: None
) -> None:
    """Also mapped scores, of which some are tied that were not; no record is kept in memory."""
    records = table(6000, seed=3)
    records = records.append_column("number", pa.array(np.arange(6000) % 7))
    percent = scored(records, records["score"].to_numpy() * 100)
    check_ranked(*both(tmp_path, percent, client, unit), RANKING[name])


@pytest.mark.parametrize("unit", ["probability", "log-odds"])
def test_secure_sums_of_ranks_are_those_in_memory(unit: str, tmp_path: Path, no_room: None) -> None:
    """The noise does not depend on who ranks, so results are the same to the last bit."""
    stored, memory = both(tmp_path, table(), unit="probability")
    protocol = tacit.FedAUC(epsilon=2.0, trust="secure-sum")
    check_same(in_unit(stored, unit), in_unit(memory, unit), protocol)


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("units", [("log-odds", "probability"), ("percent", "log-odds")])
def test_converted_ranks(name: str, units: tuple[str, str], tmp_path: Path, no_room: None) -> None:
    """Rounding puts some images out of order, and makes others equal."""
    records, (unit, target) = table(6000, seed=5), units
    near = np.nextafter(0.5, 1) + np.arange(6000) % 40 * 2.0**-52
    scores = np.where(np.arange(6000) < 3000, near, records["score"].to_numpy()) * 100
    stored, memory = both(tmp_path, scored(records, scores), unit=unit)
    check_ranked(in_unit(stored, target), in_unit(memory, target), RANKING[name])


def test_a_table_that_changes_while_images_are_sorted_is_declined(tmp_path: Path) -> None:
    """The error is that of the records, and not the sorting engine's word for it."""
    records = table(100)
    stored = opening.from_files([parts(tmp_path, records, 1)], client="site", unit="percent")
    converted = in_unit(stored, "log-odds")
    parts(tmp_path, records.slice(1), 1)
    with pytest.raises(DataError, match="changed"):
        tacit.evaluate(converted, tacit.ExactAUC())


def test_stored_labels_are_flipped_once_at_their_rate(tmp_path: Path, no_room: None) -> None:
    """40,000 flips at a rate of 0.269: 6 standard errors, 0.0133, hold but once in 5e8 runs.

    A rate that is 30 % off is 0.08 away.
    """
    records = table(40_000)
    stored = opening.from_files([parts(tmp_path, records)], client="site")
    protocol = tacit.FedAUC(epsilon=1.0, trust="local")
    state = ClientState()
    first, again = (tacit.evaluate(stored, protocol, seed, state=state) for seed in (1, 2))
    (note,) = state.notes.values()
    flipped = np.unpackbits(note.labels)[:40_000]
    assert note.labels.nbytes == 5_000
    assert abs(flipped.mean() - records["label"].to_numpy().mean() * 0.4621 - 0.2689) < 0.0133
    assert first.auc.value == again.auc.value
    assert again.spent.epsilon == 0


FLIPPING = {
    "fedauc": tacit.FedAUC(epsilon=20.0, trust="local"),
    "dpauc": PublishedDPAUC(epsilon=20.0, mechanism="randomised-response", adjacency="label"),
}


def test_protocols_share_the_flips_of_stored_labels(tmp_path: Path, no_room: None) -> None:
    stored, state = opening.from_files([parts(tmp_path, table())], client="site"), ClientState()
    spent = [tacit.evaluate(stored, FLIPPING[name], 1, state=state).spent for name in FLIPPING]
    assert [each.epsilon for each in spent] == [20.0, 0.0]


@pytest.mark.parametrize("name", FLIPPING)
def test_flipped_labels_count_as_in_memory(name: str, tmp_path: Path, no_room: None) -> None:
    other, one = (
        tacit.evaluate(each, FLIPPING[name], noise=NoNoise()).auc.value
        for each in both(tmp_path, table())
    )
    assert other == pytest.approx(one, abs=1e-12)


@pytest.mark.parametrize("column", [0, 1], ids=["scores", "labels"])
def test_changes_after_flips_are_declined(column: int, tmp_path: Path, no_room: None) -> None:
    """Two of one client exchange labels, or a score moves and passes no other: numbers stay."""
    records, state = table(), ClientState()
    stored = opening.from_files([parts(tmp_path, records, 1)], client="site")
    tacit.evaluate(stored, FLIPPING["fedauc"], 1, state=state)
    labels, sites = records["label"].to_numpy().copy(), records["site"].to_numpy()
    swapped = [np.flatnonzero((sites == "x") & (labels == label))[-1] for label in (0, 1)]
    labels[swapped] = labels[swapped[::-1]]
    scores = records["score"].to_numpy().copy()
    scores[scores.argmax()] += 1.0
    name, values = [("score", scores), ("label", labels)][column]
    file = parts(tmp_path, records.set_column(column, name, pa.array(values)), 1)
    changed = opening.from_files([file], client="site")
    with pytest.raises(DataError, match="records differ from those whose labels were flipped"):
        tacit.evaluate(changed, FLIPPING["fedauc"], 1, state=state)


def test_scores_of_another_scale_are_told_of_by_an_engine_too(tmp_path: Path) -> None:
    """One client of four has percentages, which the ends and widths of its scores show."""
    records = table(800)
    scores, sites = records["score"].to_numpy().copy(), records["site"].to_numpy()
    for low in (0.0, 5.0):
        changed = scored(records, np.where(sites == "x", scores * 100, scores) + low)
        other, one = (tacit.evaluate(each, tacit.ExactAUC()) for each in both(tmp_path, changed))
        assert "scores seem to be of different scales" in one.warnings[-1]
        assert other.warnings == one.warnings


def test_stored_ranks_of_other_records_are_refused(tmp_path: Path) -> None:
    """A client's noise is for the ranks whose sum it sends."""
    files = parts(tmp_path, table(100))
    first, second = (opening.from_files([files], client="site") for _ in range(2))
    ranks, pivot = doubled_ranks(sorted_scores(first)), np.zeros(4, dtype=np.int64)
    for clients in (second, in_memory(table(100))):
        with pytest.raises(ValueError, match="must be those of the clients' records"):
            pair_of_clients(clients, ranks, pivot)
    assert pair_of_clients(first, ranks, pivot)[0].sum() == first.positives


def read_in_order(folder: Path, order: str) -> list[tuple[float, int]]:
    records = pa.table({"score": [0.5, 0.25, 0.5, 0.0], "label": [1, 0, 0, 1]})
    address = database(folder / f"{order}.duckdb", records.sort_by([(order, "descending")]))
    records = StoredClients(opening.from_database(address, "scored").stored, by_value=True)
    return list(zip(records.scores.tolist(), records.labels.tolist(), strict=True))


def test_records_have_the_same_places_however_a_table_orders_them(tmp_path: Path) -> None:
    expected = [(0.0, 1), (0.25, 0), (0.5, 0), (0.5, 1)]
    assert read_in_order(tmp_path, "score") == expected
    assert read_in_order(tmp_path, "label") == expected
