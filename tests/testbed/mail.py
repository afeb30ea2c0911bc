"""A real mail server on this machine that keeps what it gets; with TLS and a login where a test wants it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from queue import Queue
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from pai_scheduler.testing.ports import free_port


@dataclass
class Mailbox:
    """`mails` has what came, `logins` who logged in; `answer` is what a recipient's address is answered."""

    port: int
    answer: str = "250 OK"
    mails: Queue[EmailMessage] = field(default_factory=Queue)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _: Any) -> str:
        """Be asked whether mail may come for an address."""
        if self.answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.answer

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        """Get a mail."""
        mail = message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        self.mails.put(mail)
        return "250 OK"

    def log_in(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
        """Let one in who knows the password."""
        assert isinstance(given, LoginPassword)
        self.logins.append((given.login, given.password))
        # (one that is not handled is answered by the server)
        return AuthResult(success=given.password == b"right", handled=False)


@contextmanager
def open_mailbox(tls: ssl.SSLContext | None = None, *, at_once: bool = False) -> Iterator[Mailbox]:
    """Run one until the end. `tls`: by STARTTLS, or `at_once`; a login is needed then."""
    mailbox = Mailbox(free_port())
    controller = Controller(
        mailbox,
        hostname="127.0.0.1",
        port=mailbox.port,
        ssl_context=tls if at_once else None,
        tls_context=tls if not at_once else None,
        require_starttls=tls is not None and not at_once,
        authenticator=mailbox.log_in,
        auth_required=tls is not None,
        auth_require_tls=not at_once,
    )
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()
