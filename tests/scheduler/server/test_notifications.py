"""The options that open ways out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.server.notifications import open_notifications
from pai_scheduler.server.options import make_parser


def test_nothing_is_opened_unless_an_administrator_says_so() -> None:
    assert open_notifications(make_parser().parse_args([])).channels == {}


def test_webhooks_need_a_secret(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="--webhook-secret-file"):
        open_notifications(make_parser().parse_args(["--webhook-host", "hooks.lab"]))
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef")
    options = make_parser().parse_args(["--webhook-host", "hooks.lab", "--webhook-secret-file", str(secret)])
    assert list(open_notifications(options).channels) == ["webhook"]
