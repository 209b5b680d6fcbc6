"""What all tests and examples share: a property is about values, and never about seconds.

It stands at the root, so that tests, doc examples and the tests of the packages in ``examples/``
run under the same settings.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
