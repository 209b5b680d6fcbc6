"""The printed numbers agree with one another wherever the papers print something twice."""

import pytest

from tacit_studies.references import dpauc, fedauc


def test_table_1_is_part_of_table_7() -> None:
    columns = [fedauc.TABLE_7_CLIENTS.index(clients) for clients in fedauc.TABLE_1_CLIENTS]
    for epsilon, methods in fedauc.TABLE_1.items():
        for name, values in methods.items():
            row = fedauc.TABLE_7[epsilon][name]
            assert values == (row if name == "RR" else tuple(row[index] for index in columns))


def test_table_8_is_consistent_with_the_class_size() -> None:
    positives = fedauc.SMALL_SET[0]
    for top, (hits, precision, recall) in fedauc.TABLE_8.items():
        assert precision == pytest.approx(hits / top, abs=5.1e-5)
        assert recall == pytest.approx(hits / positives, rel=2e-3)


def test_table_4_of_paper_2_shares_a_row_an_epoch_with_table_5() -> None:
    for settings, thresholds in zip(dpauc.TABLE_4, dpauc.TABLE_5, strict=True):
        assert settings[("IID", 10)] == thresholds[100]
