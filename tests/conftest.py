"""Fixtures that all tests may ask for."""

pytest_plugins = ["tests.testbed.fixtures"]
