"""Fixtures that all tests may ask for, and what holds for all of them."""

import pytest
from hypothesis import HealthCheck, settings

# what is imported by tests and asserts for them explains itself too; before anything imports it
pytest.register_assert_rewrite("tests.scheduler.engine.conformance", "tests.scheduler.engine.lab")

pytest_plugins = ["tests.testbed.fixtures"]

# a busy machine must not make a test fail
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
