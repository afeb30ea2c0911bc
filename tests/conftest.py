"""Fixtures that all tests may ask for, and what holds for all of them."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pai_scheduler.job.lazy_grammar import put_off_grammar

# of the many modules that import jsonschema, none has to wait for it
put_off_grammar()

# what is imported by tests and asserts for them explains itself too; before anything imports it
pytest.register_assert_rewrite("tests.faults.drill")

pytest_plugins = ["tests.testbed.fixtures", "tests.testbed.guard", "tests.testbed.sorting"]

# a busy machine must not make a test fail; see `examples`
settings.register_profile(
    "thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.register_profile("usual", settings.get_profile("thorough"), max_examples=25)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test-all`."""
    parser.addoption("--thorough", action="store_true", help="drills, fuzzing and odd images at full length")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples the tests of properties go through, before any of them is imported."""
    settings.load_profile("thorough" if config.getoption("--thorough") else "usual")


@pytest.fixture(scope="session")
def thorough(pytestconfig: pytest.Config) -> bool:
    """Return whether drills go through all that they can, instead of a part that shows what would break."""
    return bool(pytestconfig.getoption("--thorough"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> None:
    """Leave out what has no line in a source: pytest ends the whole run over it.

    A time limit raises from a signal's handler, which Python 3.11 may call between two lines.
    """
    if call.excinfo is not None:
        call.excinfo.traceback = call.excinfo.traceback.filter(_has_a_line)


def _has_a_line(entry: Any) -> bool:
    try:
        return bool(entry.lineno >= 0)
    except TypeError:
        return False
