"""What a file server is told and reports arrives as it was said."""

from __future__ import annotations

import pickle

import pytest

from pai_scheduler.api.webhdfs.handover import Transfer
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.workers.file_server.messages import (
    Answered,
    FileServerSettings,
    Report,
    Sent,
    read_report,
    report_line,
)


def test_a_transfer_arrives_as_it_was_sent() -> None:
    transfer = Transfer(b"GET", b"begun", ("127.0.0.1", 7), Principal("alice", groups=("vision",)))
    assert pickle.loads(pickle.dumps(transfer)) == transfer  # noqa: S301 - our own


def test_why_somebody_is_refused_arrives_in_every_language() -> None:
    message = msg("This ticket is for something else, or has expired. Ask for the file again.")
    sent = pickle.dumps(Transfer(b"", b"", ("", 0), (403, "InvalidToken", message)))
    transfer = pickle.loads(sent)  # noqa: S301 - our own
    assert isinstance(transfer.admitted, tuple)
    assert RequestError(*transfer.admitted).message.in_locale("zh_CN") == message.in_locale("zh_CN")


@pytest.mark.parametrize("report", [Sent(5), Answered(201, None), Answered(403, 0.25)])
def test_a_report_is_a_line_that_says_the_same(report: Report) -> None:
    line = report_line(report)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_report(line) == report


def test_settings_are_a_line_that_says_the_same() -> None:
    settings = FileServerSettings(
        "http://name:9870", "/data/storage", "pai", True, "/services/pai/", True, "debug", "json"
    )
    assert FileServerSettings.from_line(settings.to_line()) == settings
