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
from functools import partial
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
    return Clients.from_arrays(scores, labels, np.repeat(np.arange(len(sizes)), sizes))


Case = Any
"""A protocol, or what is declared about its errors (``audits.ErrorCase``)."""


@dataclass(frozen=True)
class Law:
    """A law about one case.

    Parameters
    ----------
    check : raises AssertionError where the law is broken. The first sentence of its docstring is
        the law.
    exempt : whether the law does not apply to a case, or why.
    of_errors : whether the law is about the cases of errors, not about protocols.
    values : what the check takes after the case, one after another.
    drawn : whether it takes a small federation that Hypothesis draws.
    """

    check: Callable[..., None]
    exempt: Callable[[Case], object] = lambda case: False
    of_errors: bool = False
    values: tuple[float, ...] = ()
    drawn: bool = False

    @property
    def name(self) -> str:
        """The name of its test: the law in words."""
        words = str(self.check.__doc__).partition(".")[0].lower().split()
        return "_".join(["test", *words])

    def test(self, every: Mapping[str, Case]) -> Test | None:
        """The test of all cases to which the law applies; None where there are none."""
        cases = {name: case for name, case in every.items() if not self.exempt(case)}

        def alone(name: str) -> None:
            self.check(cases[name])

        def with_value(name: str, value: float) -> None:
            self.check(cases[name], value)

        def with_clients(name: str, clients: Clients) -> None:
            protocol = cases[name]
            assume(clients.count >= protocol.law_traits.min_clients)
            self.check(protocol, protocol.trial_records(clients))

        test: Test = with_clients if self.drawn else with_value if self.values else alone
        test.__name__ = test.__qualname__ = self.name
        test.__doc__ = self.check.__doc__
        if self.drawn:
            test = few(given(clients=federations())(test))
        if self.values:
            test = pytest.mark.parametrize("value", self.values)(test)
        return pytest.mark.parametrize("name", list(cases))(test) if cases else None


about_clients = partial(Law, drawn=True)
about_errors = partial(Law, of_errors=True)

LAWS = (
    about_clients(checks.check_batches, lambda protocol: protocol.law_traits.indivisible),
    about_clients(checks.check_bytes),
    about_clients(checks.check_chunks),
    about_clients(checks.check_replicates),
    about_clients(checks.check_order, lambda protocol: protocol.law_traits.unordered),
    about_clients(checks.check_exactness, lambda protocol: protocol.law_traits.inexact),
    about_clients(checks.check_spending),
    Law(checks.check_neighbours, lambda each: each.law_traits.unmeasured_loss, values=SEEDS),
    Law(checks.check_persons, lambda each: each.law_traits.unmeasured_loss, values=SEEDS),
    about_errors(checks.check_errors),
    about_errors(checks.check_wrong_noise, lambda case: not case.noticed, values=FACTORS),
    about_errors(checks.check_small, lambda case: case.protocol.law_traits.few_records),
    about_errors(checks.check_sampling),
    Law(checks.check_forecast, lambda protocol: protocol.law_traits.unforecast),
    Law(checks.check_vanishing),
    Law(checks.check_limits),
    Law(checks.check_system_noise),
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
    tests = {law.name: law.test(errors if law.of_errors else protocols) for law in LAWS}
    return {name: test for name, test in tests.items() if test is not None}


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
