"""Mail by a real server: what it says, how the connection is protected, and where nothing goes."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from pai_scheduler.core.instructions import Announcement
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg
from pai_scheduler.job.message_documents import message_document
from pai_scheduler.service.mail import Mails, MailServer, mail_of
from pai_scheduler.service.notifications import UndeliveredError
from pai_scheduler.testing.ports import free_port
from tests.testbed.mail import open_mailbox

ENDED = Announcement(
    "id1",
    "mail",
    "ada",
    "",
    1_795_600_000_000,
    {
        "name": "train",
        "username": "ada",
        "virtualCluster": "default",
        "state": "FAILED",
        "appExitCode": 3,
        "retries": 1,
        "createdTime": 1_795_599_000_000,
        "completedTime": 1_795_600_000_000,
        "reason": message_document(msg("Task {task} was stopped.", task="main-0")),
    },
)
FROM, OWN = "pai@lab.example", "{user}@lab.example"

MakeMails = Callable[..., Mails]


def plain(port: int) -> Mails:
    return Mails(MailServer("127.0.0.1", port, "none"), FROM, OWN, [])


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text("right\n")
    return file


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """What a server named localhost proves itself with, by an authority that this machine trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    return context


def test_a_mail_leads_to_the_page_of_the_job_where_there_is_one() -> None:
    page = "https://hub.lab/services/pai-console/jobs/ada/train"
    mail = mail_of(replace(ENDED, document={**ENDED.document, "consoleUrl": page}), FROM, "a@b.example", "en")
    assert f"\nJob page: {page}\n" in mail.get_content().replace("\r\n", "\n")
    assert "Job page" not in mail_of(ENDED, FROM, "a@b.example", "en").get_content()


async def test_a_mail_says_what_happened_in_its_subject_and_the_rest_beneath() -> None:
    with open_mailbox() as mailbox:
        await plain(mailbox.port).send(ENDED)
        mail = mailbox.mails.get(timeout=60)
    assert (mail["From"], mail["To"]) == (FROM, "ada@lab.example")
    assert mail["Subject"] == "Job train has failed"
    assert mail["Message-ID"] == "<id1-mail@lab.example>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content_type() == "text/plain"
    text = mail.get_content()
    for line in ("Task main-0 was stopped.", "Exit code: 3", "Ended: 2026-11-25 ", "extras.notify"):
        assert line in text


async def test_a_mail_in_chinese_arrives_as_it_was_written() -> None:
    with open_mailbox() as mailbox:
        server = MailServer("127.0.0.1", mailbox.port, "none")
        await Mails(server, FROM, OWN, [], "zh_CN").send(ENDED)
        mail = mailbox.mails.get(timeout=60)
    assert mail["Subject"] == "作业 train 已失败"
    assert "退出码：3" in mail.get_content()


# (the server knows only of STARTTLS)
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_server_that_wants_a_login_gets_the_password_over_tls(
    tls: ssl.SSLContext, password_file: Path, security: str
) -> None:
    with open_mailbox(tls, at_once=security == "tls") as mailbox:
        server = MailServer("localhost", mailbox.port, security, "pai", password_file)
        await Mails(server, FROM, OWN, []).send(ENDED)
        assert mailbox.mails.get(timeout=60)["To"] == "ada@lab.example"
        assert mailbox.logins == [(b"pai", b"right")]
        # the file is read anew each time
        password_file.write_text("wrong")
        with pytest.raises(UndeliveredError, match="does not take it") as caught:
            await Mails(server, FROM, OWN, []).send(ENDED)
        assert not caught.value.final


async def test_a_server_that_cannot_prove_itself_or_offers_no_tls_gets_nothing(
    tls: ssl.SSLContext, password_file: Path
) -> None:
    with open_mailbox(tls) as mailbox:
        # its certificate is for localhost
        server = MailServer("127.0.0.1", mailbox.port, "starttls", "pai", password_file)
        with pytest.raises(UndeliveredError, match="does not take it"):
            await Mails(server, FROM, OWN, []).send(ENDED)
        assert mailbox.logins == []
    with open_mailbox() as mailbox:
        server = MailServer("localhost", mailbox.port, "starttls", "pai", password_file)
        with pytest.raises(UndeliveredError, match="does not take it"):
            await Mails(server, FROM, OWN, []).send(ENDED)
        assert mailbox.mails.empty()


@pytest.mark.parametrize(("answer", "final"), [("550 no such user", True), ("450 mailbox is full", False)])
async def test_what_the_server_refuses_is_tried_again_only_where_it_says_so(answer: str, final: bool) -> None:
    with open_mailbox() as mailbox:
        mailbox.answer = answer
        with pytest.raises(UndeliveredError, match=answer[4:]) as caught:
            await plain(mailbox.port).send(ENDED)
    assert caught.value.final == final


async def test_a_server_that_is_away_is_asked_again() -> None:
    with pytest.raises(UndeliveredError, match="does not take it") as caught:
        await plain(free_port()).send(ENDED)
    assert not caught.value.final


@pytest.mark.parametrize(
    ("user", "target", "allowed"),
    [
        ("ada", "", True),
        ("ada", "Ada@lab.example", True),
        ("ada", "bob@lab.example", False),
        ("ada", "team@gpu.lab.example", True),
        ("ada", "team@gpu.lab.example.evil.example", False),
        ("王 小/明", "", False),
        ("王 小/明", "wang@gpu.lab.example", True),
        ("x@evil.example,y", "", False),
        ("a\nBcc: everybody", "", False),
    ],
)
def test_mail_goes_to_ones_own_address_and_where_the_administrator_allows(
    user: str, target: str, allowed: bool
) -> None:
    mails = Mails(MailServer("localhost", 25, "none"), FROM, OWN, ["*@gpu.lab.example"])
    assert (mails.refusal(user, target) is None) == allowed


async def test_an_address_that_is_allowed_no_more_gets_nothing() -> None:
    with open_mailbox() as mailbox:
        with pytest.raises(UndeliveredError, match="may go to") as caught:
            await plain(mailbox.port).send(replace(ENDED, target="bob@lab.example"))
        assert caught.value.final
        assert mailbox.mails.empty()


def test_where_nobody_has_an_own_address_it_must_be_named() -> None:
    mails = Mails(MailServer("localhost", 25, "none"), FROM, "", ["*@lab.example"])
    assert "does not know your mail address" in str(mails.refusal("ada", ""))
    assert mails.refusal("ada", "ada@lab.example") is None


def test_a_reason_of_many_lines_adds_no_header() -> None:
    reason = message_document(msg("{why}", why="line one\r\nBcc: x@evil.example\n\n.\nline four"))
    mail = mail_of(replace(ENDED, document={**ENDED.document, "reason": reason}), FROM, "a@b.example", "en")
    assert mail["Bcc"] is None
    assert "line four" in mail.get_content()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sender": "nobody"}, "--mail-from"),
        ({"own": "{user}"}, "--mail-to"),
        ({"own": ""}, "Nobody could get mail"),
        ({"server": MailServer("m", 25, "none", "pai", Path("/none"))}, "unprotected"),
        ({"server": MailServer("m", 587, "starttls", "pai")}, "need each other"),
        ({"server": MailServer("m", 587, "starttls", "pai", Path("/none/password"))}, "cannot be read"),
    ],
)
def test_settings_that_cannot_be_keep_from_starting(changes: dict[str, object], said: str) -> None:
    settings: dict[str, object] = {"server": MailServer("m", 587), "sender": FROM, "own": OWN, "patterns": []}
    with pytest.raises(StartError, match=said):
        Mails(**(settings | changes))  # type: ignore[arg-type]
