"""What the SSH gateway asks (`gateway/wire.py`): who logs in, which task is meant; nobody else asks."""

from __future__ import annotations

import hmac
import math
from typing import cast, get_args

from pai_scheduler.i18n import choose_locale, msg
from pai_scheduler.principal import Principal
from pai_scheduler.service.ssh_access import SshAuthorization
from pai_scheduler.service.ssh_authentication import HeldLogin
from pai_scheduler.ssh.gateway.messages import MOST_HELD, Kind, LoginAnswer, StillAnswer, TaskTarget

from .auth import bearer_token, unauthorized
from .base_handlers import ApiHandler, Route
from .body import missing, read_fields, read_object

#: who asks, as the log has it
_GATEWAY = Principal("ssh-gateway")


class GatewayHandler(ApiHandler):
    """An address for the gateway alone: no user's token opens it."""

    async def identify(self) -> Principal:
        """Check that the gateway asks, by the token that it was started with."""
        token = bearer_token(self.request.headers.get("Authorization", ""))
        known = self.ssh_authorization.keys.gateway_token()
        if not hmac.compare_digest(known.encode(), token.encode("utf-8", "surrogatepass")):
            raise unauthorized(msg("This is for the SSH gateway only."))
        return _GATEWAY

    @property
    def ssh_authorization(self) -> SshAuthorization:
        """Return who decides; 404 where nobody can log into tasks."""
        return self.service.ssh_authorization


class LoginHandler(GatewayHandler):
    """`/access/login`."""

    async def post(self) -> None:
        """Return who logs in."""
        body = read_fields(self.request, "login", "method", "credential", "peer")
        users = self.context.authenticator
        found = await self.ssh_authorization.authentication.login(
            users, body["login"], body["method"], body["credential"]
        )
        if found is None:
            # (without the challenge that says that the gateway itself is not known)
            self.answer(self.error_body(unauthorized(msg("Nobody is let in with this."))), 401)
            return
        who, sealed = found
        answer: LoginAnswer = {"user": who.user, "by": str(who.by), "session_token": sealed}
        self.answer(answer)


class OpenHandler(GatewayHandler):
    """`/access/open`."""

    async def post(self) -> None:
        """Return which task is meant, and how to reach it."""
        body = read_fields(self.request, "login", "session_token")
        self.language = choose_locale(str(body.get("language", "")))
        way = await self.ssh_authorization.open(
            self.context.authenticator, body["login"], body["session_token"]
        )
        target: TaskTarget = {
            "user": way.job.user,
            "job": way.job.name,
            "task": way.task.hostname,
            "host": way.host,
            "port": way.port,
            "privateKey": way.identity.private.decode(),
            "hostKey": way.host_key.public,
            "forward": list(way.forward),
            "isolated": way.notice is None,
        }
        if way.notice is not None:
            target["notice"] = self.in_words(way.notice)
        if way.signals is not None:
            target["signals"] = way.signals
        self.answer(target)


class NoteHandler(GatewayHandler):
    """`/access/note`."""

    async def post(self) -> None:
        """Write down what was opened or closed."""
        body = read_fields(self.request, "login", "session_token", "peer", "event")
        what = body.get("what")
        if not isinstance(what, list) or not set(map(str, what)) <= set(get_args(Kind)):
            raise missing("what")
        seconds = body.get("seconds", 0.0)
        if not isinstance(seconds, int | float) or not math.isfinite(seconds):
            raise missing("seconds")
        await self.ssh_authorization.note(
            body["login"],
            body["session_token"],
            body["peer"],
            body["event"],
            cast(list[str], what),
            str(body.get("detail", "")),
            float(seconds),
        )
        self.set_status(204)
        self.finish()


class StillHandler(GatewayHandler):
    """`/access/still`."""

    async def post(self) -> None:
        """Return who may not stay."""
        asked = read_object(self.request).get("held")
        if not isinstance(asked, list) or len(asked) > MOST_HELD:
            raise missing("held")
        names = ("login", "session_token", "method", "credential")
        held = []
        for each in asked:
            if not isinstance(each, dict) or not all(isinstance(each.get(name), str) for name in names):
                raise missing("held")
            held.append(HeldLogin(*(each[name] for name in names)))
        answer: StillAnswer = {
            "gone": await self.ssh_authorization.authentication.revoked(self.context.authenticator, held)
        }
        self.answer(answer)


#: below the prefix, not below the API
INNER_ROUTES: list[Route] = [
    ("access/login", LoginHandler),
    ("access/open", OpenHandler),
    ("access/note", NoteHandler),
    ("access/still", StillHandler),
]
