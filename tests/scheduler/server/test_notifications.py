"""The options that open ways out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.server.notifications import open_notifications
from pai_scheduler.server.options import make_parser
from pai_scheduler.service.mail import Mails


def test_nothing_is_opened_unless_an_administrator_says_so() -> None:
    assert open_notifications(make_parser().parse_args([])).channels == {}


def test_webhooks_need_a_secret(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="--webhook-secret-file"):
        open_notifications(make_parser().parse_args(["--webhook-host", "hooks.lab"]))
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef")
    options = make_parser().parse_args(["--webhook-host", "hooks.lab", "--webhook-secret-file", str(secret)])
    assert list(open_notifications(options).channels) == ["webhook"]


@pytest.mark.parametrize(
    ("given", "port"), [((), 587), (("--mail-security", "tls"), 465), (("--mail-security", "none"), 25)]
)
def test_a_mail_server_is_at_the_port_of_its_protection_unless_another_is_named(
    given: tuple[str, ...], port: int
) -> None:
    common = ("--mail-from", "pai@lab.example", "--mail-to", "{user}@lab.example", *given)
    for server, expected in (("mail.lab", port), ("mail.lab:2525", 2525)):
        options = make_parser().parse_args(["--mail-server", server, *common])
        mails = open_notifications(options).channels["mail"]
        assert isinstance(mails, Mails)
        assert (mails.server.host, mails.server.port) == ("mail.lab", expected)
    with pytest.raises(StartError, match="--mail-server"):
        open_notifications(make_parser().parse_args(["--mail-server", "mail.lab:smtp", *common]))
