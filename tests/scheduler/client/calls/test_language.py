"""The language of remote functions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pai_scheduler.client import remote
from pai_scheduler.client.calls import function


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    function.use_locale_of(function.environment_locale)


def test_it_is_the_environments_until_somebody_knows_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAI_LOCALE", raising=False)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert remote(len)._access.locale == "zh_CN"
    function.use_locale_of(lambda: "en")
    assert remote(len)._access.locale == "en"
    assert remote(locale="zh_CN")(len)._access.locale == "zh_CN"
