"""Only what is usual in every way is read without tornado."""

from __future__ import annotations

import pytest

from pai_scheduler.api.plain_request import UNUSUAL, Head, read_head

START = "POST /api/v1/jobs HTTP/1.1\r\n"
PLAIN = "Host: pai.lab:8080\r\nAuthorization: Bearer t\r\nContent-Length: 12\r\nX-Other: anything\r\n"


def head_of(lines: str) -> object:
    return read_head(f"{START}{lines}\r\n".encode("latin-1"))


def test_a_plain_head_is_read() -> None:
    begun = f"{START}{PLAIN}content-type:application/json \r\n\r\n".encode()
    assert read_head(begun + b'{"jobName": ') == Head(
        "/api/v1/jobs",
        {
            "Host": "pai.lab:8080",
            "Authorization": "Bearer t",
            "Content-Length": "12",
            "Content-Type": "application/json",
        },
        len(begun),
        12,
        keeps_open=True,
    )


def test_a_client_that_closes_its_connection_is_understood() -> None:
    head = head_of(f"{PLAIN}Connection: Close\r\n")
    assert isinstance(head, Head)
    assert not head.keeps_open


@pytest.mark.parametrize(
    "lines",
    [
        "Host: a\r\n",
        "Content-Length: 5\r\n",
        "Host: a/b\r\nContent-Length: 5\r\n",
        "Host: a\r\nContent-Length: +5\r\n",
        "Host: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
        "Host: a\r\nContent-Length: 5\r\ncontent-length: 5\r\n",
        "Host: a\r\nHost: b\r\nContent-Length: 5\r\n",
        f"{PLAIN}Authorization: Bearer u\r\n",
        f"{PLAIN}Transfer-Encoding: chunked\r\n",
        f"{PLAIN}transfer-encoding : chunked\r\n",
        f"{PLAIN}Content-Encoding: gzip\r\n",
        f"{PLAIN}Expect: 100-continue\r\n",
        f"{PLAIN}Connection: Upgrade\r\nUpgrade: h2c\r\n",
        f"{PLAIN}X-Real-IP: 192.0.2.1\r\n",
        f"{PLAIN} folded: line\r\n",
        f"{PLAIN}no colon\r\n",
        f"{PLAIN}X-A: b\nTransfer-Encoding: chunked\r\n",
        f"{PLAIN}X-A: b\rc\r\n",
        f"{PLAIN}X-A: \xff\r\n",
        f"{PLAIN}X-A: a\tb\r\n",
    ],
)
def test_what_is_unusual_is_left_to_tornado(lines: str) -> None:
    assert head_of(lines) is UNUSUAL


def test_a_head_that_has_not_come_whole_or_is_long_is_left_to_tornado() -> None:
    assert read_head(f"{START}{PLAIN}".encode()) is UNUSUAL
    assert head_of(f"{PLAIN}X-A: {'a' * 20_000}\r\n") is UNUSUAL
