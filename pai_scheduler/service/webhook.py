"""Webhooks: a signed JSON document, posted to hosts that an administrator allows and to no others."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import ssl
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from pai_scheduler.core.instructions import Announcement
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.message_documents import read_message

from .notifications import UndeliveredError, delivery_id

#: Seconds for all of one request; a receiver that needs longer is asked again later.
_TIMEOUT = 10.0
#: Answers that say "not now": all other 4xx would be the same the next time.
_LATER = frozenset((408, 425, 429))
_PORTS = {"http": 80, "https": 443}
_LEAST_SECRET = 16


class Webhooks:
    """Posts announcements to `hosts`: names, each with a port (`hooks.lab:8443`) or at its scheme's own.

    `secret_file` has what their signatures are made with, read anew for each. StartError where it cannot be.
    """

    def __init__(self, hosts: Sequence[str], secret_file: Path) -> None:
        self._hosts = tuple(host.lower() for host in hosts)
        self._secret_file = secret_file
        self._secret()

    def refusal(self, user: str, target: str) -> Message | None:  # noqa: ARG002 - all users have the same
        """Return why nothing is posted there; None where it may be."""
        # (as httpx reads it, which will go there)
        try:
            url = httpx.URL(target)
            port = url.port or _PORTS[url.scheme]
        except (httpx.InvalidURL, KeyError):
            return msg("Webhooks go to addresses that begin with https:// or http://.")
        host = f"[{url.host}]" if ":" in url.host else url.host.lower()
        if f"{host}:{port}" in self._hosts or (host in self._hosts and port == _PORTS[url.scheme]):
            return None
        return msg(
            "Webhooks may go to no other hosts than {hosts}, and not to {host} at port {port}.",
            hosts=", ".join(self._hosts),
            host=host,
            port=port,
        )

    def where(self, announcement: Announcement) -> str:
        """Name the host: the rest of an address is often a password."""
        return httpx.URL(announcement.target).host

    async def send(self, announcement: Announcement) -> None:
        """Post it; UndeliveredError."""
        # the administrator may have changed the hosts since it was submitted
        if (refusal := self.refusal(announcement.user, announcement.target)) is not None:
            raise UndeliveredError(refusal, final=True)
        body = json.dumps(body_of(announcement), ensure_ascii=False).encode()
        now = str(int(time.time()))
        try:
            secret = self._secret()
        except StartError as error:
            raise UndeliveredError(error.message) from error
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "pai-for-jupyter",
            "X-PAI-Delivery": delivery_id(announcement),
            "X-PAI-Timestamp": now,
            "X-PAI-Signature": signature(secret, now, body),
        }
        try:
            # neither a proxy nor a password (.netrc) of this account's, and nowhere else than it was allowed
            async with (
                # (httpx counts each step by itself, and a receiver could make any number of them)
                asyncio.timeout(_TIMEOUT),
                httpx.AsyncClient(
                    verify=self._trusted, trust_env=False, follow_redirects=False, timeout=_TIMEOUT
                ) as client,
                client.stream("POST", announcement.target, content=body, headers=headers) as response,
            ):
                _check(response)
        except TimeoutError as error:
            late = msg("it does not answer within {seconds:g} seconds.", seconds=_TIMEOUT)
            raise UndeliveredError(late) from error
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise UndeliveredError(msg("it does not answer: {reason}.", reason=reason)) from error

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def _secret(self) -> bytes:
        try:
            secret = self._secret_file.read_bytes().strip()
        except OSError as error:
            message = msg(
                "The secret of webhooks in {file} cannot be read: {reason}.",
                file=self._secret_file,
                reason=error.strerror,
            )
            raise StartError(message) from error
        if len(secret) < _LEAST_SECRET:
            message = msg(
                "The secret of webhooks in {file} is too short: {least} characters at least.",
                file=self._secret_file,
                least=_LEAST_SECRET,
            )
            raise StartError(message)
        return secret


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return what X-PAI-Signature says: HMAC-SHA256 over the timestamp, a full stop and the body."""
    return "sha256=" + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def body_of(announcement: Announcement) -> dict[str, Any]:
    """Return what is posted, in the names of the REST API; what is for people in it is English."""
    document = dict(announcement.document)
    document["reason"] = str(read_message(document["reason"]))
    return {"event": "job-ended", "delivery": delivery_id(announcement), "job": document}


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    status = response.status_code
    if 300 <= status < 400:
        raise UndeliveredError(
            msg("it answers with a redirect ({status}), which is not followed.", status=status), final=True
        )
    raise UndeliveredError(
        msg("it answers with status {status}.", status=status),
        final=400 <= status < 500 and status not in _LATER,
    )
