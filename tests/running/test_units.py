"""Units between a plan and its parties: words are compared, and records converted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit.protocol as tp
from tacit import DPAUC, Clients, DataError, ExactAUC, FedAUC, Protocol, ScoreHistogram, UStatistic
from tacit.api import evaluate
from tacit.data.units import converted
from tacit.local.ustatistic.kernels import Gini, Listed
from tacit.protocol import registry
from tacit.running.deployment.preview import check_records, doubts, preview
from tacit.running.session import messages, plan_file, service, toml_source
from tacit.running.session.coordinator import RunError
from tacit.running.units import FOREIGN_UNIT, for_plan, taken_by
from tacit.testing.rehearsal import Keys, rehearse
from tests.cells import CountedCells
from tests.laws import PROTOCOLS
from tests.running import desks as disk

HISTOGRAM_PLAN = ScoreHistogram("secure-sum", 1.0)
Change = Callable[[Any], Any]


def silent(_: int) -> tp.NoiseSource:
    return tp.NoNoise()


def hospitals() -> Clients:
    """Three hospitals' probabilities, 400 records each."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 1200)
    scores = 1 / (1 + np.exp(-rng.normal(1.5 * labels - 1, 1.0)))
    return Clients.from_arrays(scores, labels, np.repeat(["a", "b", "c"], 400))


def retold(clients: Clients, unit: str) -> Clients:
    """The first hospital's scores in another unit."""
    part = into(unit)(clients.scores[:400])
    scores = np.concatenate([part, clients.scores[400:]])
    return Clients(scores, clients.labels, clients.offsets, clients.names)


@pytest.mark.parametrize("unit", ["percent", "log-odds"])
@pytest.mark.parametrize("protocol", [ExactAUC(), FedAUC(1.0), DPAUC(1.0), HISTOGRAM_PLAN])
def test_a_hospital_in_another_unit_gives_the_same_figure(unit: str, protocol: Protocol) -> None:
    clients = hospitals()
    expected = rehearse(clients, protocol, noise=silent).server_result
    units = [unit, "probability", "probability"]
    result = rehearse(retold(clients, unit), protocol, noise=silent, units=units).server_result
    assert float(result.value) == pytest.approx(float(expected.value), abs=1e-9)
    assert result.scales is None


@pytest.mark.parametrize("wanted", ["percent", "log-odds"])
def test_a_plan_that_ranks_may_take_another_unit(wanted: str) -> None:
    clients = hospitals()
    units = ["percent", "probability", "probability"]
    run = rehearse(retold(clients, "percent"), ExactAUC(), unit=wanted, units=units)
    assert float(run.server_result.value) == pytest.approx(ExactAUC().exact(clients), abs=1e-12)


@pytest.mark.parametrize(
    ("protocol", "plan", "word"),
    [
        *((DPAUC(1.0), "probability", word) for word in ("permille", "real", "")),
        (ExactAUC(), "percent", None),
    ],
)
def test_an_inconvertible_unit_is_declined(protocol: Protocol, plan: str, word: str | None) -> None:
    """A plan of another unit than probabilities needs a word of every party."""
    units = [plan, word, plan]
    run = rehearse(hospitals(), protocol, unit=plan, units=units, min_clients=2)
    assert run.declined == {1: FOREIGN_UNIT}
    assert run.members == (0, 2)


def outlier(clients: Clients, score: float) -> Clients:
    scores = clients.scores.copy()
    scores[5] = score
    return Clients(scores, clients.labels, clients.offsets, clients.names)


@pytest.mark.parametrize("wrong", [17.25, -3.0])
@pytest.mark.parametrize("protocol", [DPAUC(1.0), HISTOGRAM_PLAN, UStatistic("auc", 1.0)])
def test_a_record_out_of_range_is_seen_by_nobody_else(protocol: Protocol, wrong: float) -> None:
    """The run is that of the nearest end, to the byte of what was sent."""
    runs = [
        rehearse(outlier(hospitals(), score), protocol, noise=silent)
        for score in (wrong, float(np.clip(wrong, 0, 1)))
    ]
    assert runs[0].declined == {}
    assert runs[0].refusals == ()
    assert runs[0].server_result.value == pytest.approx(runs[1].server_result.value, nan_ok=True)
    np.testing.assert_array_equal(runs[0].bytes_sent, runs[1].bytes_sent)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_takes_any_finite_scores_of_a_party(name: str) -> None:
    """No first step declines because of one record's value."""
    protocol = PROTOCOLS[name]
    wild = Clients.from_arrays([0.5, 1e9, -1e9, 0.25], [0, 1, 1, 0], second=[0.1, -1e9, 1e9, 0.5])
    unit = Keys.generate(3).agreement(protocol).unit
    taken = for_plan(wild, None, unit, protocol)
    again = protocol.fitted(taken)
    np.testing.assert_array_equal(again.scores, taken.scores)
    if protocol.score_range is not None:
        low, high = protocol.score_range
        assert taken.scores.min() >= low
        assert taken.scores.max() <= high
    query = next(protocol.conversation(1))
    if query.view.value != "joint":
        query.step.answer(taken, query, tp.NoNoise(), tp.ClientState())


def test_values_of_a_finite_domain_are_the_nearest() -> None:
    ratings = Clients.from_values([0.2, 2.6, 9.0], second=[1, 2, 3])
    fitted = UStatistic(Gini(Listed([1, 2, 3, 4, 5])), 1.0).fitted(ratings)
    assert fitted.scores.tolist() == [1.0, 3.0, 5.0]


# Plans


def plan_text(home: Path, protocol: str, unit: str) -> Path:
    extra = f'unit = "{unit}"\n' if unit else ""
    disk.federation(home, protocol, extra=extra)
    return home / "plan.toml"


def test_a_plan_of_another_unit_is_another_agreement(tmp_path: Path) -> None:
    percent = plan_file.Plan.read(plan_text(tmp_path, disk.FEDAUC, "percent")).agreement()
    plain = messages.Agreement(percent.protocol, percent.parties, percent.coordinator)
    assert (percent.unit, plain.unit) == ("percent", "probability")
    assert percent.digest != plain.digest


COUNTED = 'name = "counted-cells"\nepsilon = 1.0'
RATINGS = 'name = "ustatistic"\nkernel = "gini(domain=range(low=1, high=5))"\nepsilon = 1.0'


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {"counted-cells": CountedCells})


@pytest.mark.parametrize(
    ("protocol", "unit", "said"),
    [
        (disk.ONE_SUM, "percent", "score-histogram takes scores from 0 to 1: unit must be probab"),
        ('name = "fedauc"\nepsilon = 1.0\ntrust = "mpc"', "real", "probability, got 'real'"),
        (disk.ONE_SUM, "permille", "unit must be one of probability, percent, log-odds, real, got"),
        (RATINGS, "probability", "from 1 to 5, which are not all of the unit 'probability'"),
        (f'{COUNTED}\nscale = "log-odds"', "real", "unit must be log-odds, got 'real'"),
    ],
)
@pytest.mark.usefixtures("counted")
def test_a_unit_unfit_for_the_protocol(tmp_path: Path, protocol: str, unit: str, said: str) -> None:
    """By the plan alone: no party's file of records is there."""
    path = plan_text(tmp_path, protocol, unit)
    for name in "abc":
        (tmp_path / name / "records.csv").unlink()
    with pytest.raises(toml_source.PlanError, match=said) as caught:
        plan_file.Plan.read(path)
    assert "plan.toml:4: [plan]" in str(caught.value)
    with pytest.raises(toml_source.PlanError, match=said):
        disk.reopened(tmp_path, 0)


# Protocols with cells


def in_log_odds(clients: Clients, unit: str | None = "log-odds") -> Clients:
    p = clients.scores
    return Clients(np.log(p / (1 - p)), clients.labels, clients.offsets, clients.names, unit=unit)


def test_log_odds_are_never_converted_where_their_unit_is_the_only_word() -> None:
    """The probabilities of these are all 1."""
    clients = Clients.from_arrays([40.0, 60.0, 300.0, 700.0], [0, 0, 1, 1], unit="log-odds")
    protocol, taken = taken_by(CountedCells(), clients)
    assert taken is clients
    assert (np.diff(protocol.on_scale(taken).scores) > 0).all()  # type: ignore[attr-defined]


def test_cells_that_somebody_chose_stay_and_scores_are_converted() -> None:
    clients = in_log_odds(hospitals())
    even = CountedCells(scale="even")
    protocol, taken = taken_by(even, clients)
    assert protocol is even
    assert taken.unit == "probability"
    np.testing.assert_allclose(taken.scores, hospitals().scores, rtol=1e-12)
    named, converted_scores = taken_by(CountedCells(), clients, given={"scale"})
    assert (named.settings["scale"], converted_scores.unit) == ("probability", "probability")
    # doing it again changes nothing
    assert taken_by(named, converted_scores)[0] is named


@pytest.mark.parametrize("scale", ["even", "log-odds"])
def test_cells_that_somebody_chose_for_another_unit_are_refused(scale: str) -> None:
    with pytest.raises(DataError, match="got the unit 'real', which cannot be converted"):
        taken_by(CountedCells(scale=scale), in_log_odds(hospitals(), "real"))


def test_scores_without_a_named_unit_are_what_the_cells_are_for() -> None:
    clients = in_log_odds(hospitals(), None)
    protocol = CountedCells(scale="log-odds")
    result = evaluate(clients, protocol, noise=tp.NoNoise())
    assert result.unit == "log-odds"
    assert float(rehearse(clients, protocol, noise=silent).server_result.value) == result.auc.value
    with pytest.raises(DataError, match="--unit log-odds, or --unit real for any other numbers"):
        evaluate(clients, CountedCells(), noise=tp.NoNoise())


@pytest.mark.usefixtures("counted")
def test_a_plan_may_name_its_cells_and_the_unit_follows(tmp_path: Path) -> None:
    by_cells = plan_file.Plan.read(plan_text(tmp_path, f'{COUNTED}\nscale = "log-odds"', ""))
    again = tmp_path / "plan.toml"
    disk.edited(again, ("[protocol]", 'unit = "log-odds"\n[protocol]'))
    assert plan_file.Plan.read(again) == by_cells
    disk.edited(again, ('scale = "log-odds"\n', ""))
    by_unit = plan_file.Plan.read(again)
    assert by_unit.unit == by_cells.unit == "log-odds"
    assert by_unit.agreement().digest == by_cells.agreement().digest


@pytest.mark.parametrize("plan", ["probability", "log-odds"])
@pytest.mark.usefixtures("counted")
def test_parties_of_three_units_give_one_figure(tmp_path: Path, plan: str) -> None:
    values = []
    for folder, unit, units in (
        ("plain", "", ("", "", "")),
        ("units", f'unit = "{plan}"\n', ("percent", "log-odds", "probability")),
    ):
        home = tmp_path / folder
        identity = disk.federation(home, COUNTED, extra=unit)
        for name, word in zip("abc", units, strict=True):
            with_unit(home, name, word, lambda p: np.clip(p, 0.01, 0.99))
            if word:
                with_unit(home, name, "", into(word))
        values.append(disk.carried(home, identity, tp.NoNoise()).server_result.value)
    assert float(values[1]) == pytest.approx(float(values[0]), abs=1e-3)


@pytest.mark.parametrize(
    ("protocol", "plan", "word", "said"),
    [
        *(
            (COUNTED, "real", word, "cannot be converted to the plan's 'real'")
            for word in ("", "probability", "percent", "log-odds")
        ),
        (COUNTED, "log-odds", "", "names no unit, which cannot be converted to the plan's"),
        (disk.ONE_SUM, "", "real", "'real', which cannot be converted to the plan's 'prob"),
    ],
)
@pytest.mark.usefixtures("counted")
def test_joining_refuses_another_unit_before_it_reads_a_record(
    tmp_path: Path, protocol: str, plan: str, word: str, said: str
) -> None:
    """A file without a word holds probabilities: it is not read as other numbers."""
    plan_text(tmp_path, protocol, plan)
    desk = with_unit(tmp_path, "b", word)
    (tmp_path / "b" / "records.csv").unlink()
    with pytest.raises(toml_source.PlanError, match=said):
        check_records(desk)


# A party's own files


def into(unit: str) -> Change:
    """A change of probabilities into a unit."""
    return lambda scores: converted(scores, "probability", unit)


def with_unit(home: Path, name: str, unit: str, change: Change = lambda p: p) -> service.PartyDesk:
    """A party whose file names a unit, and whose scores were changed."""
    folder = home / name
    if unit:
        disk.edited(folder / "party.toml", ("[limit]", f'unit = "{unit}"\n[limit]'))
    scores, labels = np.loadtxt(folder / "records.csv", delimiter=",", skiprows=1).T
    rows = [f"{s!r},{y:.0f}" for s, y in zip(change(scores).tolist(), labels, strict=True)]
    (folder / "records.csv").write_text("\n".join(["score,label", *rows]) + "\n")
    return service.PartyDesk.open(folder / "party.toml")


def test_a_desk_declines_before_it_reads_a_record(tmp_path: Path) -> None:
    """Its file of records is not there, and it answers all the same."""
    identity = disk.federation(tmp_path, disk.ONE_SUM)
    with_unit(tmp_path, "b", "permille")
    (tmp_path / "b" / "records.csv").unlink()
    coordinator = disk.coordinated(tmp_path, identity)
    with pytest.raises(RunError, match=FOREIGN_UNIT):
        disk.advanced(tmp_path, coordinator)
    assert coordinator.declined == {1: FOREIGN_UNIT}


def test_records_out_of_range_are_told_to_their_owner_and_join(tmp_path: Path) -> None:
    disk.federation(tmp_path, disk.ONE_SUM)
    desk = with_unit(tmp_path, "b", "", lambda p: 100 * p)
    check_records(desk)
    (reported,) = doubts(desk)
    assert "of 60 scores are outside of what the plan takes as probability" in reported
    assert "under [data], unit is one of probability, percent, log-odds, real" in reported
    assert doubts(disk.reopened(tmp_path, 0)) == []


def test_percent_that_lie_within_one_are_doubted(tmp_path: Path) -> None:
    disk.federation(tmp_path, disk.ONE_SUM)
    desk = with_unit(tmp_path, "b", "percent")
    assert doubts(desk) == ["all scores are from 0 to 1, and are read as percent"]
    assert ("scores", "percent, converted to the plan's probability") in preview(desk)
    assert doubts(with_unit(tmp_path, "b", "", lambda p: 100 * p)) == []


def test_scores_of_a_plan_in_one_process_must_be_of_one_scale(tmp_path: Path) -> None:
    pytest.importorskip("flwr")
    from tacit.running.deployment.local import check_parties

    disk.federation(tmp_path, disk.FEDAUC)
    with_unit(tmp_path, "b", "", lambda p: 100 * p)
    desks = [disk.reopened(tmp_path, index) for index in range(3)]
    with pytest.raises(DataError, match="seem to be of different scales"):
        check_parties(desks)


def test_a_name_that_the_ledger_never_answered_about_is_doubted(tmp_path: Path) -> None:
    disk.carried(tmp_path, disk.federation(tmp_path, disk.ONE_SUM))
    desk = disk.reopened(tmp_path, 0)
    assert doubts(desk) == []
    renamed = replace(desk, party_file=replace(desk.party_file, dataset="renamed"))
    (reported,) = doubts(renamed)
    assert f"answered about {desk.party_file.dataset} and not about renamed" in reported


def test_more_records_than_sums_have_room_for_are_told_to_their_owner(tmp_path: Path) -> None:
    disk.federation(tmp_path, disk.ONE_SUM)
    desk = disk.reopened(tmp_path, 0)
    assert doubts(replace(desk, plan=replace(desk.plan, most_records=desk.records.records))) == []
    (reported,) = doubts(replace(desk, plan=replace(desk.plan, most_records=5)))
    assert "records are more than the 5 of a party for which the plan's sums have room" in reported
