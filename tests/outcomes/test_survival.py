"""Time to event: figures beside those of other libraries, errors and coverage, what is absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit.protocol as tp
from tacit import Clients, Evaluation, TimeToEvent, evaluate, rehearse
from tacit.arrays import Floats, Integers
from tacit.data.categories import Categories
from tacit.outcomes.survival import figures, rounds
from tacit.results.parts import Breakdown
from tacit.running.evaluating import repeat_results
from tacit.running.session.coordinator import RunError
from tacit_studies.golden import survival as golden
from tests.terminal import run

EXACT = tp.ExactSum.word


def drawn(records: int, seed: int = 0) -> tuple[Floats, Floats, Integers]:
    """Risks, times and events of a population with a concordance of about 0.6."""
    rng = np.random.default_rng(seed)
    risk = rng.random(records)
    event, last = rng.exponential(1 / (0.4 + 1.2 * risk)), rng.uniform(0.3, 2.5, records)
    return risk, np.minimum(event, last), (event <= last).astype(np.int64)


def clients_of(records: int, seed: int = 0, sites: int = 5) -> Clients:
    risk, time, died = drawn(records, seed)
    return Clients.from_arrays(risk, died, np.arange(records) % sites, time)


def parts_of(result: Evaluation) -> Breakdown:
    """The figures besides the first."""
    assert result.breakdown is not None
    return result.breakdown


def test_exact_sums_give_what_other_libraries_give() -> None:
    """Cells of time and risk hide less than 1e-3."""
    known = json.loads(golden.PATH.read_text(encoding="utf-8"))
    risk, days, died = golden.records()
    clients = Clients.from_arrays(risk, died, second=days).with_categories(
        Categories(("even", "odd"), np.arange(golden.RECORDS) % 2)
    )
    protocol = TimeToEvent(
        trust=EXACT, until=golden.UNTIL, horizons=golden.HORIZONS, group_names=("even", "odd")
    )
    result = evaluate(clients, protocol, exact=True)
    found = parts_of(result)
    figure = {name: each.value for name, each in found.overall.items()}
    curve = found.curves["survival"]
    ends = np.linspace(80, golden.UNTIL, 10)
    assert np.interp(ends, curve.places, curve.value) == pytest.approx(known["survival"], abs=1e-3)
    assert result.estimate.value == pytest.approx(known["concordance"], abs=1e-3)
    assert result.exact == pytest.approx(known["concordance"], abs=1e-12)
    for name, key in (("AUC", "auc"), ("Brier score", "brier")):
        values = [figure[f"{name} at {horizon:g}"] for horizon in golden.HORIZONS]
        assert values == pytest.approx(known[key], abs=1e-3)
    (apart,) = found.differences
    squared = (apart.estimate.value / apart.estimate.sampling_error) ** 2
    assert squared == pytest.approx(known["log-rank"], rel=0.1)
    written = json.loads(json.dumps(result.to_dict()))
    assert Evaluation.from_dict(written).to_dict() == written


@pytest.mark.parametrize("digits", [1, 9])
def test_concordance_of_records_is_that_of_their_pairs(digits: int) -> None:
    risk, time, died = drawn(400)
    risk, time = np.round(risk, digits), np.round(time, digits)
    later = (time[:, np.newaxis] < time) | ((time[:, np.newaxis] == time) & (died == 0))
    first = (died[:, np.newaxis] == 1) & later
    won = (np.sign(risk[:, np.newaxis] - risk) + 1) / 2
    expected = (first * won).sum() / first.sum()
    assert figures.exact_concordance(time, died, risk) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("records", "trust", "largest"),
    [(4_000, "secure-sum", 2.6e-3), (10_000, "secure-sum", 6e-4), (40_000, "each", 7e-4)],
)
def test_concordance_has_the_stated_error(records: int, trust: str, largest: float) -> None:
    """400 runs tell a deviation to 5 %, and a coverage to 1.1 points."""
    protocol = TimeToEvent(epsilon=1.0, until=2.6, trust=trust)
    clients = clients_of(records, seed=3)
    runs, exact = repeat_results(clients, protocol, 400, seed=1), protocol.exact(clients)
    assert np.sqrt(np.mean((runs.value - exact) ** 2)) < largest
    assert 0.91 < np.mean(runs.covers(exact)) < 0.99


def test_the_forecast_is_the_error_of_runs() -> None:
    protocol, scenario = TimeToEvent(epsilon=1.0, until=1.0), tp.Scenario(9_000, 5_000, 5, 1.0)
    shape, metric = tp.Shape(0.7), tp.Metric.of_figure(TimeToEvent.figure)
    clients = protocol.trial_records(scenario.drawn(shape, seed=3))
    runs, exact = repeat_results(clients, protocol, 200, seed=1), protocol.exact(clients)
    observed = np.sqrt(np.mean((runs.value - exact) ** 2))
    assert 0.5 < protocol.forecast(scenario, shape, metric).error / observed < 2.5


def test_survival_and_figures_at_horizons_have_the_stated_errors() -> None:
    """Of 40 runs 95 % are covered, less 3 standard errors."""
    clients = clients_of(3000, seed=5)
    exact = parts_of(evaluate(clients, TimeToEvent(trust=EXACT, until=2.0, horizons=(1.0,))))
    protocol = TimeToEvent(epsilon=2.0, until=2.0, horizons=(1.0,))
    runs = [parts_of(evaluate(clients, protocol, seed=seed)) for seed in range(40)]
    for name, figure in exact.overall.items():
        # beside the noise, 8 cells of risk hide something of Brier score and AUC
        slack = 0 if "survival" in name else 0.01
        bounds = np.array([each.overall[name].interval() for each in runs])
        assert (
            np.mean((bounds[:, 0] - slack <= figure.value) & (figure.value <= bounds[:, 1] + slack))
            > 0.85
        ), name
    curve = exact.curves["survival"]
    apart = [
        each.curves["survival"].value
        - np.interp(each.curves["survival"].places, curve.places, curve.value)
        for each in runs
    ]
    assert np.sqrt(np.mean(np.square(np.concatenate(apart)))) < 0.0022
    at_risk = runs[0].curves["numbers at risk"]
    assert at_risk.value[0] == pytest.approx(3000, abs=60)
    held = (at_risk.low <= 3000) & (at_risk.value > 0)
    assert held.all()
    calibration = runs[0].curves["calibration at 1"]
    assert np.all(np.diff(calibration.places) > 0)
    assert calibration.value[-1] > calibration.value[0]


@pytest.mark.parametrize(
    ("shape", "until", "step", "n", "epsilon"),
    [
        ("thirds", 3.0, 1.0, 6_000, 5.0),
        ("days", 40.0, 1.0, 6_000, 5.0),
        ("early", 100.0, None, 6_000, 5.0),
        ("falling", 100.0, None, 6_000, 5.0),
        ("first", 100.0, None, 2_000, 1.0),
    ],
)
def test_figures_cover_where_cells_are_uneven_or_times_equal(
    shape: str, until: float, step: float | None, n: int, epsilon: float
) -> None:
    """Of 40 runs 95 % are covered, less 3 standard errors; beside naive figures of the records."""
    rng = np.random.default_rng(5)
    risk, last = rng.random(n), np.minimum(rng.uniform(0, 150, n), 100)
    scale = {"first": 4, "thirds": 20}.get(shape, 40)
    event = rng.exponential(200 * np.exp(-5 * risk) if shape == "falling" else scale / (0.2 + risk))
    if shape == "early":
        event = np.where(rng.random(n) < 0.6 * risk, rng.random(n), 1e9)
    died, time = (event <= last).astype(np.int64), np.minimum(event, last)
    if step is not None:
        time = np.ceil(time * until / 100)
    clients, half = Clients.from_arrays(risk, died, second=time), until / 2
    at, place = np.unique(time, return_inverse=True)
    gone = np.bincount(place)
    alive = np.cumprod(1 - np.bincount(place, died) / (n - np.cumsum(gone) + gone))
    area = np.append(1.0, alive) * np.diff(np.minimum([0.0, *at, half], half))
    protocol = TimeToEvent(epsilon=epsilon, until=until, step=step)
    naive = {
        f"survival at {half:g}": alive[at <= half][-1],
        f"restricted mean survival time at {half:g}": area.sum(),
        "concordance": protocol.exact(clients),
    }
    runs = [evaluate(clients, protocol, seed=seed) for seed in range(40)]
    for name, expected in naive.items():
        given = [parts_of(each).overall.get(name, each.estimate) for each in runs]
        bounds = [each.interval() for each in given if each.value == each.value]
        held = [low <= expected <= high for low, high in bounds]
        assert sum(held) >= 0.85 * len(held), name
        # where all events are early too few are at risk later
        assert len(held) > 20 or (shape == "first" and name != "concordance"), name


def test_groups_and_sites_have_figures_of_their_own() -> None:
    risk, time, died = drawn(12_000, seed=2)
    arm = np.arange(12_000) // 4 % 2
    time = np.where(arm == 1, time / 2, time)
    sites = np.arange(12_000) % 4
    clients = Clients.from_arrays(risk, died, sites, time).with_categories(
        Categories(("old", "new"), arm), sites
    )
    settings: dict[str, Any] = {"until": 2.0, "group_names": ("old", "new"), "horizons": (0.6,)}
    found = evaluate(clients, TimeToEvent(epsilon=8.0, trust="each", **settings), seed=1)
    exact_protocol = TimeToEvent(trust=EXACT, **settings)
    exact = evaluate(clients, exact_protocol)
    alone_settings = TimeToEvent(trust=EXACT, until=2.0, horizons=(0.6,))
    for group, name in enumerate(("old", "new")):
        inside = arm == group
        records = Clients.from_arrays(risk[inside], died[inside], second=time[inside])
        separately = parts_of(evaluate(records, alone_settings)).overall
        for figure, estimate in parts_of(exact)[name].figures.items():
            assert figure == "concordance" or estimate.value == pytest.approx(
                separately[figure].value
            )
            own = parts_of(found)[name].figures[figure]
            assert abs(own.value - estimate.value) < 4 * own.standard_error + 0.01
    low, high = parts_of(found).differences[0].estimate.interval(0.95, "population")
    assert 0.3 < low < high
    assert found.sites is not None
    for index, site in enumerate(found.sites["concordance"].sites):
        alone = exact_protocol.exact(clients.part(index, index + 1))
        assert abs(site.estimate.value - alone) < 4 * site.estimate.standard_error < 0.1


def test_the_end_of_times_is_found_among_public_ones() -> None:
    risk, time, died = drawn(8_000)
    for factor, until in ((1, 2), (340, 1000)):
        clients = Clients.from_arrays(risk, died, second=factor * time)
        result = evaluate(clients, TimeToEvent(epsilon=1.0), seed=1)
        assert result.division is not None
        assert result.division.endswith(f"until {until}")
    few = evaluate(clients_of(200), TimeToEvent(epsilon=1.0), seed=1)
    assert not few.has_signal
    assert "name the end of times" in few.warnings[-1]


def test_what_cannot_be_told_is_absent_with_its_reason() -> None:
    risk, time, died = drawn(4_000)
    censored = Clients.from_arrays(risk, 0 * died, second=time)
    for protocol in (
        TimeToEvent(epsilon=1.0, until=2.0),
        TimeToEvent(trust=EXACT, until=2.0),
    ):
        result = evaluate(censored, protocol, seed=1)
        assert not result.has_signal
        assert "pairs of an event and a later record" in result.warnings[-1]
        assert "no events by then" in parts_of(result).overall["AUC at 1"].reason
    alike = evaluate(Clients.from_arrays(risk / 50, died, second=time), TimeToEvent(trust=EXACT))
    assert "name narrower bounds or until" in alike.warnings[-1]
    early = Clients.from_arrays(risk, died, second=time / 3)
    found = parts_of(evaluate(early, TimeToEvent(epsilon=1.0, until=2.0, horizons=(1.5,)), seed=1))
    assert {each.reason for each in found.overall.values()} == {
        "too few records are at risk then, as far as noise tells"
    }
    half = np.arange(4_000) % 2
    grouped = Clients.from_arrays(risk, died * half, second=time).with_categories(
        Categories(("none", "all"), half)
    )
    settings = TimeToEvent(epsilon=1.0, until=2.0, group_names=("none", "all"))
    (apart,) = parts_of(evaluate(grouped, settings, seed=1)).differences
    assert "a group has no events" in apart.estimate.reason
    wide = TimeToEvent(trust=EXACT, until=2e3, group_names=("none", "all"))
    assert "narrower" in parts_of(evaluate(grouped, wide))["all"].reason


def test_a_record_weighs_one_in_all() -> None:
    clients = clients_of(500, sites=500)
    protocol = TimeToEvent(epsilon=1.0, until=2.0)
    grid = protocol.grid("concordance", 2.0)
    weights = rounds._weights(protocol, grid, clients)
    assert np.all(weights >= 0)
    assert np.all(weights.sum(axis=(0, 1, 2)) == rounds.WEIGHT)
    # a plane is given back exactly, but for the rounding of weights
    plane = np.add.outer(grid.edges, np.linspace(0, 1, grid.risks + 1))
    told = np.tensordot(plane, weights.sum(axis=0), axes=2) / rounds.WEIGHT
    assert clients.second is not None
    assert told == pytest.approx(np.minimum(clients.second, 2.0) + clients.scores, abs=1e-3)


TABLE = np.zeros((2, 5, 9))
ASKED = {rounds.DIVISION: "both", rounds.UNTIL: 2.0, rounds.INFLUENCES: TABLE, "clients": 1}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({rounds.INFLUENCES: TABLE + 1.5}, "from -1 to 1"),
        ({rounds.INFLUENCES: TABLE + np.nan}, "from -1 to 1"),
        ({rounds.INFLUENCES: TABLE[:, :4]}, "of shape"),
        ({rounds.INFLUENCES: None}, "64-bit floats"),
        ({rounds.UNTIL: 3.0}, "until must be one of"),
        ({rounds.DIVISION: "all"}, "division must be one of"),
        ({rounds.DIVISION: "survival"}, "has no sum"),
    ],
)
def test_queries_that_no_server_needs_are_declined(changed: dict[str, Any], message: str) -> None:
    protocol = TimeToEvent(epsilon=1.0, until=2.0)
    query = tp.Query(rounds.sum_influences, protocol, ASKED | changed, view=tp.View.SUM)
    with pytest.raises(ValueError, match=message):
        rounds.sum_influences.cost(clients_of(9), query, tp.ClientState())


def test_parties_answer_no_second_division_of_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of one and the sum of another cost more than epsilon."""

    def hostile(self: TimeToEvent, clients: int) -> tp.Conversation:
        yield from tp.ask(rounds.count_records, self, clients)
        for step, name in ((rounds.count_times, "both"), (rounds.sum_influences, "concordance")):
            table = np.zeros((2, 11, 17))
            asked = {rounds.UNTIL: 2.0, rounds.DIVISION: name, rounds.INFLUENCES: table}
            yield from tp.ask(step, self, clients, asked)
        raise AssertionError("all was answered")

    monkeypatch.setattr(TimeToEvent, "conversation", hostile)
    with pytest.raises(RunError, match="cannot go on"):
        rehearse(clients_of(300, sites=3), TimeToEvent(epsilon=1.0, until=2.0))


def test_parts_of_every_division_are_all_of_epsilon() -> None:
    for name, each in rounds.DIVISIONS.items():
        assert sum(each.parts.values()) + rounds.COUNTING == pytest.approx(1, abs=1e-12), name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"until": 0.0}, "until must be above 0"),
        ({"until": 2.0, "horizons": (2.5,)}, "horizons must be above 0 and at most 2, got 2.5"),
        ({"horizons": (0.0,)}, "horizons must be above 0"),
        ({"division": "neither"}, "division"),
        ({"bounds": (1.0, 0.0)}, "bounds must be finite and ascend"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TimeToEvent(epsilon=1.0, **settings)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--time t --event died --score risk --epsilon 5", "times counted until"),
        ("--time t --event died --score risk --epsilon 5 --until 2", "Brier score at 1"),
        ("--time early --event died --score risk --epsilon 5 --until 2", "times are below 0"),
        ("--time t --event word --score risk --epsilon 5 --positive dead", "concordance"),
        ("--time t --event word --score risk --epsilon 5", "labels must be 0 or 1"),
        ("--time none --event died --score risk --epsilon 5", "has no value"),
        ("--time t --score risk --epsilon 5", "--time needs --event"),
    ],
)
def test_columns_choose_the_protocol(options: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "site.csv"
    rows = "\n".join(
        f"{r:.3f},{t:.3f},{t - 0.2:.3f},{d},{('alive', 'dead')[d]},{'' if t > 1 else t}"
        for r, t, d in zip(*drawn(900), strict=True)
    )
    path.write_text(f"risk,t,early,died,word,none\n{rows}\n", encoding="utf-8")
    shown = run("evaluate", path, *options.split())
    assert expected in shown.stdout + shown.stderr


def test_records_of_a_database_have_the_same_figures(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path, (risk, time, died) = tmp_path / "site.duckdb", drawn(900)
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table r (risk double, t double, died integer)")
        rows = list(zip(risk.tolist(), time.tolist(), died.tolist(), strict=True))
        connection.executemany("insert into r values (?, ?, ?)", rows)
    asked = "--time t --event died --score risk --trust exact-sum --until 2 --json"
    stored = json.loads(run("evaluate", f"duckdb://{path}", "--table", "r", *asked.split()).stdout)
    alone = evaluate(
        Clients.from_arrays(risk, died, second=time), TimeToEvent(trust=EXACT, until=2.0)
    )
    assert stored["estimate"]["value"] == pytest.approx(alone.estimate.value, abs=1e-9)
    assert stored["measures"].keys() == parts_of(alone).overall.keys()
