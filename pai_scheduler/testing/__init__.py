"""Tests for engines and storages of others, and a fake scheduler for clients (the extra `testing`).

`engine.EngineConformance` and `storage.StorageConformance` are suites for pytest: a subclass in a test file
proves an engine or a storage. `scheduler.FakeScheduler` answers over HTTP as the API does.
"""

import pytest

# what these assert explains itself as in a test file
for _module in ("engine", "home", "lab", "storage"):
    pytest.register_assert_rewrite(f"{__name__}.{_module}")
