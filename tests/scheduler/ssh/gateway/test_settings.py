"""What a process is told at its start."""

from __future__ import annotations

from pai_scheduler.ssh.gateway.protocol import GatewaySettings


def test_settings_are_one_line_and_come_back_as_they_were() -> None:
    settings = GatewaySettings(
        "http://127.0.0.1:1/services/pai/", "token", "PEM\nof two lines\n", [3, 4], 5.0, 7.0, "debug", "json"
    )
    line = settings.to_line()
    assert line.count(b"\n") == 1
    assert GatewaySettings.from_line(line) == settings


def test_what_is_secret_is_not_shown() -> None:
    assert "secret" not in repr(GatewaySettings("http://x", "secret token", "secret key"))
