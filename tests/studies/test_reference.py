"""The printed numbers agree with one another wherever the papers print something twice."""

from collections.abc import Sequence

import pytest

from tacit_studies.references import dpauc, fedauc


def test_table_1_is_part_of_table_7() -> None:
    columns = [fedauc.TABLE_7_CLIENTS.index(clients) for clients in fedauc.TABLE_1_CLIENTS]
    for epsilon, methods in fedauc.TABLE_1.items():
        for name, values in methods.items():
            row = fedauc.TABLE_7[epsilon][name]
            assert values == (row if name == "RR" else tuple(row[index] for index in columns))


@pytest.mark.parametrize(
    ("table", "columns", "cells"),
    [
        (fedauc.TABLE_1, fedauc.TABLE_1_CLIENTS, 84),
        (fedauc.TABLE_2, fedauc.TABLE_2_CLIENTS, 48),
        (fedauc.TABLE_7, fedauc.TABLE_7_CLIENTS, 120),
    ],
)
def test_every_row_has_a_cell_for_every_column(
    table: dict[float, fedauc.Stds], columns: Sequence[int], cells: int
) -> None:
    printed = 0
    for methods in table.values():
        for name, values in methods.items():
            assert len(values) == (1 if name == "RR" else len(columns))
            printed += sum(value is not None for value in values)
    assert printed == cells


def test_table_8_is_consistent_with_the_class_size() -> None:
    positives = fedauc.SMALL_SET[0]
    for top, (hits, precision, recall) in fedauc.TABLE_8.items():
        assert precision == pytest.approx(hits / top, abs=5.1e-5)
        assert recall == pytest.approx(hits / positives, rel=2e-3)


def test_both_papers_evaluate_the_same_scores() -> None:
    assert dpauc.EXACT == fedauc.SMALL_AUC
    assert dpauc.TABLE_2 is fedauc.TABLE_8
    assert dpauc.TABLE_3 is fedauc.TABLE_9


def test_table_4_of_paper_2_shares_a_row_an_epoch_with_table_5() -> None:
    for settings, thresholds in zip(dpauc.TABLE_4, dpauc.TABLE_5, strict=True):
        assert settings[("IID", 10)] == thresholds[100]


def test_spot_checks() -> None:
    assert fedauc.TABLE_7[8.0]["LocalLaplace (Non-IID)"][-1] == 2.22e-3
    assert fedauc.TABLE_7[2.0]["adaptive (IID)"][4] == 1.66e-3
    assert fedauc.TABLE_2[4.0]["LocalLaplace (IID)"][2] == 1.14e-3
    assert fedauc.TABLE_6[0.25][2] == (0.771694, 3.26e-3)
    assert fedauc.TABLE_9[7.0] == (0.6698, 0.6870, 0.6903)
    assert dpauc.TABLE_4[2][("Non-IID", 1_000)][3] == (0.746815, 0.016511)
    assert dpauc.TABLE_5[1][25][2] == (0.7649144, 0.000507)
    assert dpauc.TABLE_1[1][2] == (0.7665588, 0.001109)
