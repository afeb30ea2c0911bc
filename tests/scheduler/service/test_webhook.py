"""Webhooks against a real receiver: what comes, how it is signed, and where nothing goes."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pai_scheduler.core.instructions import Announcement
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg
from pai_scheduler.job.message_documents import message_document
from pai_scheduler.service import webhook
from pai_scheduler.service.notifications import UndeliveredError
from pai_scheduler.service.webhook import Webhooks
from pai_scheduler.testing.ports import free_port
from tests.testbed.receiver import Receiver, open_receiver

SECRET = b"0123456789abcdef"
REASON = {"reason": message_document(msg("Task {task} was stopped.", task="main-0"))}
ENDED = Announcement("id1", "webhook", "ada", "", 1000, {"name": "训练", "state": "STOPPED", **REASON})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with open_receiver() as running:
        yield running


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\n")
    return file


async def test_a_receiver_gets_the_end_in_json_with_a_signature_that_it_can_check(
    receiver: Receiver, secret_file: Path
) -> None:
    await Webhooks([receiver.host], secret_file).send(replace(ENDED, target=receiver.url))
    received = receiver.next()
    assert received.path == "/hooks?key=secret"
    assert json.loads(received.body) == {
        "event": "job-ended",
        "delivery": "id1-webhook",
        "job": {"name": "训练", "state": "STOPPED", "reason": "Task main-0 was stopped."},
    }
    # as docs/users/notifications.md tells receivers to
    signed = received.headers["X-PAI-Timestamp"].encode() + b"." + received.body
    expected = "sha256=" + hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(received.headers["X-PAI-Signature"], expected)
    assert received.headers["X-PAI-Delivery"] == "id1-webhook"


@pytest.mark.parametrize(
    ("status", "final", "said"),
    [
        (500, False, "status 500"),
        (429, False, "status 429"),
        (404, True, "status 404"),
        (302, True, "redirect"),
    ],
)
async def test_what_a_receiver_does_not_take_is_told_again_only_where_that_may_help(
    receiver: Receiver, secret_file: Path, status: int, final: bool, said: str
) -> None:
    receiver.status, receiver.headers = status, {"Location": f"http://{receiver.host}/elsewhere"}
    with pytest.raises(UndeliveredError, match=said) as caught:
        await Webhooks([receiver.host], secret_file).send(replace(ENDED, target=receiver.url))
    assert caught.value.final == final
    receiver.next()
    assert receiver.received.empty(), "a redirect is not followed"


async def test_a_receiver_that_is_away_is_asked_again(secret_file: Path) -> None:
    host = f"127.0.0.1:{free_port()}"
    with pytest.raises(UndeliveredError, match="does not answer") as caught:
        await Webhooks([host], secret_file).send(replace(ENDED, target=f"http://{host}/"))
    assert not caught.value.final


async def test_a_receiver_that_answers_one_letter_at_a_time_holds_nothing_up(
    secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "_TIMEOUT", 0.5)

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while True:
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(0.05)

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(UndeliveredError, match=r"within 0\.5 seconds") as caught:
        await Webhooks([host], secret_file).send(replace(ENDED, target=f"http://{host}/"))
    assert not caught.value.final
    server.close()


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("https://hooks.lab/x", True),
        ("http://HOOKS.lab:80/", True),
        ("https://hooks.lab:8443/", False),
        ("https://chat.lab:8443/", True),
        ("https://chat.lab/", False),
        ("https://hooks.lab.evil.example/", False),
        ("https://evil.example/hooks.lab", False),
        ("http://127.0.0.1/", False),
        ("http://[::1]:9186/", False),
        ("http://169.254.169.254/latest", False),
        ("ftp://hooks.lab/", False),
        ("https://hooks.lab:99999/", False),
    ],
)
def test_nothing_is_posted_to_hosts_and_ports_that_no_administrator_has_named(
    secret_file: Path, target: str, allowed: bool
) -> None:
    webhooks = Webhooks(["hooks.lab", "chat.lab:8443"], secret_file)
    assert (webhooks.refusal("ada", target) is None) == allowed


async def test_a_host_that_is_allowed_no_more_gets_nothing(receiver: Receiver, secret_file: Path) -> None:
    with pytest.raises(UndeliveredError, match="no other hosts") as caught:
        await Webhooks(["hooks.lab"], secret_file).send(replace(ENDED, target=receiver.url))
    assert caught.value.final
    assert receiver.received.empty()


def test_only_the_host_of_an_address_is_told_to_people(secret_file: Path) -> None:
    announcement = replace(ENDED, target="https://hooks.lab/services/T0/password?key=secret")
    assert Webhooks(["hooks.lab"], secret_file).where(announcement) == "hooks.lab"


def test_a_secret_that_is_missing_or_short_keeps_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    with pytest.raises(StartError, match="cannot be read"):
        Webhooks(["hooks.lab"], file)
    file.write_text("short\n")
    with pytest.raises(StartError, match="too short"):
        Webhooks(["hooks.lab"], file)
