"""What a tunnel server is told arrives as it was said."""

from __future__ import annotations

import pytest

from pai_scheduler.workers.tunnel_server.settings import TunnelSettings


@pytest.mark.parametrize("credentials", [None, "/data/agents/a\nb.pem"])
def test_settings_are_a_line_that_says_the_same(credentials: str | None) -> None:
    settings = TunnelSettings(credentials, "debug", "json")
    line = settings.to_line()
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert TunnelSettings.from_line(line) == settings
