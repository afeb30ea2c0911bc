"""What the engine tests share: assertions of the conformance suite explain themselves when they fail."""

import pytest

pytest.register_assert_rewrite("tests.scheduler.engine.conformance", "tests.scheduler.engine.lab")
