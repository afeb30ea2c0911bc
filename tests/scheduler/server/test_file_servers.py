"""How many file servers there may be, and how what they report is counted."""

from __future__ import annotations

import argparse

import pytest

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.monitoring.monitor import Monitor
from pai_scheduler.server.file_servers import check_options, count
from pai_scheduler.workers.file_server.messages import Answered, Sent


@pytest.mark.parametrize("processes", [None, 1, 64])
def test_some_processes_or_the_usual_number_are_allowed(processes: int | None) -> None:
    check_options(argparse.Namespace(file_processes=processes))


@pytest.mark.parametrize("processes", [0, -1, 5000])
def test_no_processes_or_far_too_many_are_refused(processes: int) -> None:
    with pytest.raises(StartError, match="--file-processes must be from 1 to 1024"):
        check_options(argparse.Namespace(file_processes=processes))


def test_what_file_servers_did_counts_as_done_by_the_scheduler() -> None:
    monitor = Monitor("process", [])
    count(monitor, Sent(5))
    count(monitor, Sent(6))
    count(monitor, Answered(201, None))
    handler = {"handler": "WebHdfsHandler"}
    assert monitor.registry.get_sample_value("pai_stream_bytes_total", handler) == 11
    assert monitor.registry.get_sample_value("pai_http_request_seconds_count", handler) is None
