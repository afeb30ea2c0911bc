"""Callers as the Hub knows them: a token counts when it holds the scope `access:services!service=pai`."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from aiohttp import ClientError
from jupyterhub.httpclient import fetch
from jupyterhub.services.auth import HubAuth
from tornado.web import HTTPError

from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError, forbidden

#: How long a token's owner, and that there is a user, is remembered (seconds): so long does what was revoked
#: go on working, and for about as long again what it opened (`gateway/settings.py`, `stream.py`).
CACHE_SECONDS = 20
_MOST_USERS = 10_000
#: The name of our service where the Hub did not tell it.
SERVICE_NAME = "pai"


class HubTokens:
    """Asks the Hub whose token it is. `admin_services`: the services that act for users."""

    def __init__(self, hub: HubAuth, admin_services: Collection[str] = ()) -> None:
        self._hub = hub
        self._admin_services = frozenset(admin_services)
        #: users that there are, and until when (seconds, `time.monotonic`) that is believed
        self._users: dict[str, tuple[float, Principal]] = {}
        self._scopes = set(hub.access_scopes) or {f"access:services!service={SERVICE_NAME}"}

    @classmethod
    def from_environment(cls, admin_services: Collection[str] = ()) -> HubTokens:
        """Make it from the `JUPYTERHUB_…` variables that the Hub sets for a service."""
        return cls(HubAuth(cache_max_age=CACHE_SECONDS), admin_services)

    async def identify(self, token: str) -> Principal | None:
        """Return whose token this is; refuses one without the scope, and a service that nobody listed."""
        try:
            model = await self._hub.user_for_token(token, sync=False)
        except HTTPError:
            raise _unreachable() from None
        if model is None:
            return None
        if not self._hub.check_scopes(self._scopes, model):
            raise forbidden(
                msg(
                    "This token lacks the scope {scope}. Ask for a token that has it, "
                    "or an administrator to add it to your role.",
                    scope=sorted(self._scopes)[-1],
                )
            )
        if model.get("kind") == "service":
            if model["name"] not in self._admin_services:
                raise forbidden(
                    msg("The service {name} may not use the scheduler (--admin-service).", name=model["name"])
                )
            return Principal(model["name"], admin=True)
        return _principal(model)

    async def find(self, name: str) -> Principal | None:
        """Find a user of the Hub by name; refuses where the Hub does not let this service look."""
        until, known = self._users.get(name, (0.0, None))
        if known is not None and until > time.monotonic():
            return known
        return await self.find_now(name)

    async def find_now(self, name: str) -> Principal | None:
        """Find a user as `find` does, with the groups that the Hub knows at this moment."""
        self._users.pop(name, None)
        found = await self._look_up(name)
        if found is not None:
            if len(self._users) >= _MOST_USERS:
                self._users.clear()
            self._users[name] = (time.monotonic() + CACHE_SECONDS, found)
        return found

    async def _look_up(self, name: str) -> Principal | None:
        url = f"{self._hub.api_url}/users/{quote(name, safe='')}"
        headers = {"Authorization": f"token {self._hub.api_token}"}
        try:
            response = await fetch(url, headers=headers, raise_for_status=False)
            if response.status == 404:
                return None
            if response.status == 403:
                message = msg(
                    "JupyterHub does not let the scheduler look at users (scope {scope}).", scope="read:users"
                )
                raise forbidden(message)
            response.raise_for_status()
            return _principal(json.loads(await response.text()))
        except (OSError, ClientError):
            raise _unreachable() from None


def _unreachable() -> RequestError:
    message = msg("JupyterHub does not answer, so nobody can be recognised just now.")
    return RequestError(503, "HubUnreachableError", message)


def _principal(model: Mapping[str, Any]) -> Principal:
    return Principal(str(model["name"]), bool(model.get("admin")), tuple(model.get("groups") or ()))
