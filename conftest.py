"""What all tests and examples share: a property is about values, and never about seconds.

It stands at the root, so that tests, doc examples and the tests of the packages in ``examples/``
run under the same settings.
"""

import pytest
from hypothesis import HealthCheck, settings

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fixed", UNTIMED, derandomize=True)
settings.register_profile("searching", UNTIMED, derandomize=False)
settings.load_profile("fixed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of real programs come first, so that one worker runs those that share a server."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
