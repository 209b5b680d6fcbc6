"""No test fails because the machine is busy."""

from hypothesis import HealthCheck, settings


def test_properties_have_no_deadline() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
