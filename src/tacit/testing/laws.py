"""Laws that every protocol obeys, as tests for pytest, for protocols of any package.

One line in a test module makes a test of every law for every case::

    from tacit.testing.laws import laws_for

    globals().update(laws_for(MyProtocol))

What a protocol declares decides which cases run and which laws apply: ``law_cases``,
``error_cases`` and ``law_traits`` (``tacit.protocol.declared``). By default every law
applies.
The laws need pytest and Hypothesis, which ``tacit`` does not install.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.clients import Clients
from tacit.protocol import audits
from tacit.protocol.conversation import Protocol

try:
    import pytest
    from hypothesis import HealthCheck, assume, given, settings
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "the laws need pytest and hypothesis: pip install pytest hypothesis"
    ) from error

from tacit.testing import checks

Test = Callable[..., None]

SEEDS = (0, 1, 2)
"""Small clients on which the privacy law runs."""

FACTORS = (0.7, 1.3)
"""Wrong noise scales that must be noticed."""

few = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def federations(draw: st.DrawFn) -> Clients:
    """One to five clients of one to seven records, tied scores among them, both classes present."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=5).filter(lambda s: sum(s) > 1))
    records = sum(sizes)
    scores = draw(
        st.lists(st.integers(0, 8).map(lambda v: v / 8), min_size=records, max_size=records)
    )
    labels = draw(
        st.lists(st.integers(0, 1), min_size=records, max_size=records).filter(
            lambda chosen: 0 < sum(chosen) < len(chosen)
        )
    )
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Clients(np.array(scores), np.array(labels, dtype=np.int8), offsets)


@dataclass(frozen=True)
class Law:
    """A law about one protocol and one small federation that Hypothesis draws.

    Parameters
    ----------
    name : of the test.
    check : raises AssertionError where the law is broken.
    exempt : why the law does not apply; empty where it does.
    """

    name: str
    check: Callable[[Protocol, Clients], None]
    exempt: Callable[[audits.LawTraits], str] = lambda traits: ""


LAWS = (
    Law(
        "test_a_batch_answers_as_its_clients_one_at_a_time",
        checks.check_batches,
        lambda traits: traits.indivisible,
    ),
    Law("test_replies_travel_as_bytes_of_the_stated_size", checks.check_bytes),
    Law("test_any_chunking_gives_the_same_estimate", checks.check_chunks),
    Law("test_replicates_without_noise_are_copies", checks.check_replicates),
    Law(
        "test_the_order_of_clients_and_records_does_not_matter",
        checks.check_order,
        lambda traits: traits.unordered,
    ),
    Law(
        "test_without_noise_the_estimate_is_exact_on_what_is_measured",
        checks.check_exactness,
        lambda traits: traits.inexact,
    ),
    Law("test_a_run_spends_what_the_protocol_declares", checks.check_spending),
)


def laws_for(*subjects: Protocol | type[Protocol]) -> dict[str, Test]:
    """A test of every law by its name, with a case for every configuration that it concerns.

    Parameters
    ----------
    subjects : protocols' classes, for all configurations that they declare, or single
        configurations.

    Raises
    ------
    ValueError : for two cases of one name.

    Examples
    --------
    >>> from tacit import DPAUC
    >>> sorted(laws_for(DPAUC(1.0)))[0]
    'test_a_batch_answers_as_its_clients_one_at_a_time'
    """
    protocols = _merged(
        {subject.name: subject} if isinstance(subject, Protocol) else subject.law_cases()
        for subject in subjects
    )
    errors = _merged(_error_cases(subject) for subject in subjects)
    noticed = {name: case for name, case in errors.items() if case.noticed}
    many = {n: case for n, case in errors.items() if not case.protocol.law_traits.few_records}
    forecast = {n: each for n, each in protocols.items() if not each.law_traits.unforecast}
    tests = [_drawn(law, protocols) for law in LAWS]
    tests += [
        _seeded(
            protocols,
            "test_no_neighbour_costs_more_than_the_step_declares",
            checks.check_neighbours,
        ),
        _seeded(
            protocols,
            "test_a_person_costs_no_more_than_the_named_budget",
            checks.check_persons,
        ),
        _tested("test_predicted_errors_and_intervals_hold", checks.check_errors, errors),
        _scaled(noticed),
        _tested("test_intervals_hold_on_few_records", checks.check_small, many),
        _tested("test_the_sampling_error_is_that_of_the_population", checks.check_sampling, errors),
        _tested("test_the_forecast_is_the_error_of_runs", checks.check_forecast, forecast),
        _tested("test_a_client_that_vanishes_is_said", checks.check_vanishing, protocols),
        _tested("test_the_limits_hold_the_figure", checks.check_limits, protocols),
        _tested(
            "test_exact_noise_from_the_system_runs_every_protocol",
            checks.check_system_noise,
            protocols,
        ),
    ]
    return {test.__name__: test for test in tests if test is not None}


def _error_cases(subject: Protocol | type[Protocol]) -> Mapping[str, audits.ErrorCase]:
    """The declared cases; of a single configuration itself, where its protocol gives errors."""
    cases = subject.error_cases()
    if not isinstance(subject, Protocol) or not cases:
        return cases
    return {subject.name: audits.ErrorCase(subject, noticed=True)}


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All cases by name."""
    cases: dict[str, Any] = {}
    for part in parts:
        for name, case in part.items():
            if name in cases:
                raise ValueError(f"two cases of the laws are called {name!r}")
            cases[name] = case
    return cases


def _drawn(law: Law, protocols: Mapping[str, Protocol]) -> Test | None:
    """The test of a law about federations that Hypothesis draws."""

    def test(name: str, clients: Clients) -> None:
        protocol = protocols[name]
        assume(clients.count >= protocol.law_traits.min_clients)
        law.check(protocol, protocol.fitted(clients))

    names = [name for name, each in protocols.items() if not law.exempt(each.law_traits)]
    test = _named(test, law.name, law.check)
    return _cases(few(given(clients=federations())(test)), names)


def _seeded(
    protocols: Mapping[str, Protocol], law: str, check: Callable[[Protocol, int], None]
) -> Test | None:
    """The test of a privacy law, on several small clients."""

    def test(name: str, seed: int) -> None:
        check(protocols[name], seed)

    names = [name for name, each in protocols.items() if not each.law_traits.unmeasured_loss]
    test = _named(test, law, check)
    return _cases(pytest.mark.parametrize("seed", SEEDS)(test), names)


def _scaled(cases: Mapping[str, audits.ErrorCase]) -> Test | None:
    """The test that wrong noise is noticed."""

    def test(name: str, factor: float) -> None:
        checks.check_wrong_noise(cases[name], factor)

    test = _named(test, "test_a_noise_scale_30_percent_off_is_noticed", checks.check_wrong_noise)
    named = _cases(test, list(cases))
    return named and pytest.mark.parametrize("factor", FACTORS)(named)


def _tested(name: str, check: Callable[[Any], None], cases: Mapping[str, Any]) -> Test | None:
    """The test of a law about a case alone."""

    def test(name: str) -> None:
        check(cases[name])

    return _cases(_named(test, name, check), list(cases))


def _named(test: Test, name: str, check: Callable[..., None]) -> Test:
    """A test under its law's name, with its law's description."""
    test.__name__ = test.__qualname__ = name
    test.__doc__ = check.__doc__
    return test


def _cases(test: Test, names: list[str]) -> Test | None:
    """A test with a case for each name; None for none."""
    return pytest.mark.parametrize("name", names)(test) if names else None
