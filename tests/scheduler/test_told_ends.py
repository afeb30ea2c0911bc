"""A real scheduler tells a real receiver of jobs' ends, and forgets none of them when it is killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_scheduler.client.rest import ApiError, Client
from tests.testbed.mail import Mailbox, open_mailbox
from tests.testbed.postgres import with_passfile
from tests.testbed.receiver import Receiver, open_receiver
from tests.testbed.scheduler import hello_job
from tests.testbed.warm import WarmScheduler


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with open_receiver() as running:
        yield running


@pytest.fixture
def scheduler(tmp_path: Path, receiver: Receiver) -> Iterator[WarmScheduler]:
    secret = tmp_path / "webhook-secret"
    secret.write_text("0123456789abcdef")
    running = WarmScheduler(tmp_path, "--webhook-host", receiver.host, "--webhook-secret-file", str(secret))
    yield running
    running.close()


async def test_an_end_that_was_not_told_before_a_kill_is_told_after_it(
    scheduler: WarmScheduler, receiver: Receiver
) -> None:
    receiver.status = 503
    notify = {"webhook": receiver.url, "on": ["failure"]}
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("fine", "true", extras={"notify": notify}))
        await alice.submit(hello_job("broken", "exit 3", extras={"notify": notify}))
    receiver.next()
    scheduler.kill()
    receiver.status = 200
    scheduler.start()
    received = json.loads(receiver.next().body)
    assert received["job"]["name"] == "broken"
    assert (received["job"]["state"], received["job"]["appExitCode"]) == ("FAILED", 3)
    assert received["job"]["reason"]
    # what was told is forgotten before the next start asks for it
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("last", "exit 4", extras={"notify": notify}))
    assert json.loads(receiver.next().body)["job"]["name"] == "last"
    scheduler.terminate()
    scheduler.start()
    assert receiver.received.empty()


async def test_a_standby_that_takes_over_tells_what_its_leader_could_not(
    tmp_path: Path, receiver: Receiver, postgres_url: str
) -> None:
    receiver.status = 503
    secret = tmp_path / "webhook-secret"
    secret.write_text("0123456789abcdef")
    options = [
        *("--database", with_passfile(postgres_url, tmp_path)),
        *("--webhook-host", receiver.host, "--webhook-secret-file", str(secret)),
    ]
    both = []
    for name in ("leader", "standby"):
        folder = tmp_path / name
        folder.mkdir()
        both.append(WarmScheduler(folder, *options, data_dir=tmp_path / "data"))
    leader, standby = both
    try:
        async with Client(leader.url, "token-of-alice") as alice:
            await alice.submit(hello_job("train", extras={"notify": {"webhook": receiver.url}}))
        first = receiver.next()
        receiver.status = 200
        leader.kill()
        again = receiver.next()
        assert again.headers["X-PAI-Delivery"] == first.headers["X-PAI-Delivery"]
        assert again.body == first.body
    finally:
        leader.kill()
        standby.close()


async def test_why_an_end_could_not_be_told_stands_with_the_jobs_events(
    scheduler: WarmScheduler, receiver: Receiver
) -> None:
    receiver.status = 404
    async with Client(scheduler.url, "token-of-alice") as alice:
        job = hello_job("lost", extras={"notify": {"webhook": receiver.url}})
        await alice.submit(job)
        receiver.next()
        event = None
        while event is None or event["type"] != "not-told":
            await asyncio.sleep(0.05)
            event = [event async for event in alice.events("alice", "lost")][-1]
    assert (
        event["message"] == "The end of this job could not be told to 127.0.0.1: it answers with status 404."
    )


async def test_what_is_not_opened_is_refused_when_a_job_asks_for_it(scheduler: WarmScheduler) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        with pytest.raises(ApiError, match=r"\$\.extras\.notify\.webhook: Webhooks may go to no other hosts"):
            await alice.submit(hello_job("far", extras={"notify": {"webhook": "http://127.0.0.1:1/"}}))
        with pytest.raises(ApiError, match=r"\$\.extras\.notify\.mail: This scheduler sends no mail"):
            await alice.submit(hello_job("mail", extras={"notify": {"mail": True}}))
        found = await alice.validate(hello_job("mail", extras={"notify": {"mail": True}}))
        assert found["errors"][0]["path"] == "$.extras.notify.mail"


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with open_mailbox() as opened:
        yield opened


@pytest.fixture
def mailing(tmp_path: Path, mailbox: Mailbox) -> Iterator[WarmScheduler]:
    """Run a scheduler that sends mail into the box."""
    scheduler = WarmScheduler(
        tmp_path,
        *("--mail-server", f"127.0.0.1:{mailbox.port}", "--mail-security", "none"),
        *("--mail-from", "pai@lab.example", "--mail-to", "{user}@lab.example"),
    )
    yield scheduler
    scheduler.close()


async def test_a_user_gets_mail_of_the_end_of_a_job(mailing: WarmScheduler, mailbox: Mailbox) -> None:
    async with Client(mailing.url, "token-of-alice") as alice:
        await alice.submit(hello_job("train", "exit 3", extras={"notify": {"mail": True}}))
        mail = mailbox.mails.get(timeout=60)
        assert (mail["To"], mail["Subject"]) == ("alice@lab.example", "Job train has failed")
        with pytest.raises(ApiError, match=r"\$\.extras\.notify\.mail: Mail may go to alice@lab.example"):
            await alice.submit(hello_job("spam", extras={"notify": {"mail": "bob@lab.example"}}))
