"""Fixtures that all tests may ask for, and what holds for all of them."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.testbed.fixtures"]

# a busy machine must not make a test fail
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
