"""No test fails because the machine is busy, and none by chance."""

import pytest
from hypothesis import HealthCheck, settings


def test_properties_have_no_deadline() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


@pytest.mark.parametrize(("profile", "fixed"), [("fixed", True), ("searching", False)])
def test_examples_are_fixed_unless_a_search_is_asked_for(profile: str, fixed: bool) -> None:
    chosen = settings.get_profile(profile)
    assert chosen.derandomize is fixed
    assert chosen.deadline is None
