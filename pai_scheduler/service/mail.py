"""Mail in plain text, by the administrator's mail server, to addresses that the administrator allows."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from fnmatch import fnmatchcase
from pathlib import Path

import aiosmtplib

from pai_scheduler.core.instructions import Announcement
from pai_scheduler.core.model import State
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.message_documents import read_message
from pai_scheduler.job.spec import is_address

from .notifications import UndeliveredError, delivery_id

#: Seconds for one mail, from the connection to the server's last answer.
_TIMEOUT = 30.0
_LONGEST_REPLY = 200
#: How the connection is protected, and the server's port for that.
SECURITIES = {"starttls": 587, "tls": 465, "none": 25}
_USER = "{user}"
_SUBJECTS = {
    State.SUCCEEDED: lambda name: msg("Job {name} has succeeded", name=name),
    State.FAILED: lambda name: msg("Job {name} has failed", name=name),
    State.STOPPED: lambda name: msg("Job {name} was stopped", name=name),
}


@dataclass(frozen=True, slots=True)
class MailServer:
    """Server for outgoing mail. `security`: one of `SECURITIES`; `user` empty: no login."""

    host: str
    port: int
    security: str = "starttls"
    user: str = ""
    password_file: Path | None = None


class Mails:
    """Sends announcements by mail, from `sender`, in the language `locale`.

    `own`: a user's own address, with `{user}` in it; empty: nobody has one. `patterns`: what else jobs may
    name, as `*@lab.example`. StartError where that cannot be.
    """

    def __init__(
        self, server: MailServer, sender: str, own: str, patterns: Sequence[str], locale: str = "en"
    ) -> None:
        self.server, self._sender, self._own, self._locale = server, sender, own, locale
        self._patterns = tuple(pattern.lower() for pattern in patterns)
        _check(server, sender, own, patterns)
        self._password()

    def refusal(self, user: str, target: str) -> Message | None:
        """Return why a user's job may not be told of at an address (empty: their own); None where it may."""
        own = self._address_of(user)
        if not target:
            if own:
                return None
            if not self._own:
                return msg("This scheduler does not know your mail address: write it here instead of true.")
            return msg(
                "The name {user} can be no part of a mail address: write your address here instead of true.",
                user=user,
            )
        if target.lower() == own.lower() or any(fnmatchcase(target.lower(), one) for one in self._patterns):
            return None
        allowed = [*([own] if own else []), *self._patterns]
        return msg("Mail may go to {allowed} only.", allowed=", ".join(allowed) or "–")

    def where(self, announcement: Announcement) -> str:
        """Name the address."""
        return announcement.target or self._address_of(announcement.user) or announcement.user

    async def send(self, announcement: Announcement) -> None:
        """Send it; UndeliveredError."""
        # the administrator may have changed who is allowed since it was submitted
        if (refusal := self.refusal(announcement.user, announcement.target)) is not None:
            raise UndeliveredError(refusal, final=True)
        address = self.where(announcement)
        server = self.server
        try:
            async with asyncio.timeout(_TIMEOUT):
                await aiosmtplib.send(
                    mail_of(announcement, self._sender, address, self._locale),
                    sender=self._sender,
                    recipients=[address],
                    hostname=server.host,
                    port=server.port,
                    username=server.user or None,
                    password=self._password() if server.user else None,
                    use_tls=server.security == "tls",
                    # never without, where it is wanted: a server that does not offer it gets nothing
                    start_tls=server.security == "starttls",
                    tls_context=None if server.security == "none" else ssl.create_default_context(),
                    timeout=_TIMEOUT,
                )
        except StartError as error:
            raise UndeliveredError(error.message) from error
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = error.recipients[0]
            raise _refused(refused.code, refused.message) from error
        except aiosmtplib.SMTPDataError as error:
            raise _refused(error.code, error.message) from error
        except TimeoutError as error:
            raise UndeliveredError(msg("the mail server does not answer.")) from error
        except (aiosmtplib.SMTPException, OSError) as error:
            reason = _one_line(str(error))
            raise UndeliveredError(
                msg("the mail server does not take it: {reason}", reason=reason)
            ) from error

    def _address_of(self, user: str) -> str:
        address = self._own.replace(_USER, user)
        return address if is_address(address) else ""

    def _password(self) -> str:
        file = self.server.password_file
        if file is None:
            return ""
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error.reason
            raise StartError(
                msg(
                    "The password for the mail server in {file} cannot be read: {reason}.",
                    file=file,
                    reason=reason,
                )
            ) from error


def mail_of(announcement: Announcement, sender: str, address: str, locale: str) -> EmailMessage:
    """Write the mail: what happened in the subject, what is known of the job beneath."""
    job = announcement.document
    lines = [
        read_message(job["reason"]),
        msg("Exit code: {code}", code=job["appExitCode"]),
        msg("Virtual cluster: {vc}", vc=job["virtualCluster"]),
        msg("Submitted: {time}", time=_time(job["createdTime"])),
        msg("Ended: {time}", time=_time(job["completedTime"])),
        msg("Tried again: {count} times", count=job["retries"]),
    ]
    if "consoleUrl" in job:
        lines.append(msg("Job page: {url}", url=job["consoleUrl"]))
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"] = sender, address
    mail["Subject"] = _SUBJECTS[State(job["state"])](job["name"]).in_locale(locale)
    mail["Date"] = format_datetime(datetime.fromtimestamp(announcement.time / 1000, UTC))
    # the same however often it is sent: mail programs keep one of them
    mail["Message-ID"] = f"<{delivery_id(announcement)}@{sender.partition('@')[2]}>"
    # nobody's absence is told to a machine
    mail["Auto-Submitted"] = "auto-generated"
    why = msg("You get this because the job asks for it (extras.notify in its JSON).")
    text = "\n".join([*(line.in_locale(locale) for line in lines), "", why.in_locale(locale), ""])
    mail.set_content(text, cte="base64" if not text.isascii() else None)
    return mail


def _check(server: MailServer, sender: str, own: str, patterns: Sequence[str]) -> None:
    if not is_address(sender):
        raise StartError(msg("--mail-from must be a mail address, as pai@lab.example."))
    if own and not is_address(own.replace(_USER, "user")):
        raise StartError(
            msg("--mail-to must be a mail address in which {word} is the user's name.", word=_USER)
        )
    if not own and not patterns:
        raise StartError(
            msg("Nobody could get mail: say with --mail-to or --mail-recipient to which addresses it may go.")
        )
    if server.user and server.security == "none":
        raise StartError(
            msg("The password for the mail server would go unprotected: use --mail-security starttls or tls.")
        )
    if bool(server.user) != (server.password_file is not None):
        raise StartError(msg("--mail-user and --mail-password-file need each other."))


def _refused(code: int, reply: str) -> UndeliveredError:
    reason = msg("the mail server refuses it ({code}): {reply}", code=code, reply=_one_line(reply))
    return UndeliveredError(reason, final=code >= 500)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_REPLY]


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
