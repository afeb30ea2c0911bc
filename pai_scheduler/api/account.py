"""Who I am, how to log in, and what answers here; mostly without a token."""

from __future__ import annotations

from importlib.metadata import version

from pai_scheduler.job.messages import msg
from pai_scheduler.job.validate import SpecError
from pai_scheduler.rest.errors import RequestError, forbidden, invalid_parameters
from pai_scheduler.security.principal import Principal

from .base_handlers import ApiHandler, Route
from .body import read_object


class AboutHandler(ApiHandler):
    """`/api/v1`: what answers here. `engine` runs the tasks; `frontDoor`: the Hub as containers reach it."""

    anonymous = True

    async def get(self) -> None:
        """Show."""
        self.answer(
            {
                "name": "PAI for Jupyter",
                "version": version("pai-for-jupyter"),
                "engine": self.service.engine_name,
                "frontDoor": self.service.front_door_url,
                "ssh": self.context.ssh,
            }
        )


class HealthHandler(ApiHandler):
    """`/healthz`: this process answers."""

    anonymous = True

    async def get(self) -> None:
        """Show."""
        self.answer({"status": "ok"})


class AuthnHandler(ApiHandler):
    """`/authn/info`: how a program gets a token."""

    anonymous = True

    async def get(self) -> None:
        """Show."""
        self.answer(
            {
                "authn_type": "basic",
                "loginURI": f"{self.context.prefix}api/v1/token",
                "loginURIMethod": "post",
            }
        )


class TokenHandler(ApiHandler):
    """`/token`, for clients that log in by name and password: the password is one of the user's tokens."""

    anonymous = True

    async def post(self) -> None:
        """Check it and return it back. `expiration` is not read: a token expires when its issuer says."""
        body = read_object(self.request)
        for key in ("username", "password"):
            if not isinstance(body.get(key), str) or not body[key]:
                message = msg("{key} is missing.", key=key)
                raise invalid_parameters(message, [SpecError(f"$.{key}", message)])
        name, token = body["username"], body["password"]
        principal = await self.context.throttle.check(
            self.peer, name, token, lambda: self._owner(name, token)
        )
        if principal is None:
            raise await self._refusal(name)
        self.answer({"user": name, "token": token, "admin": principal.admin, "hasGitHubPAT": False})

    async def _owner(self, name: str, token: str) -> Principal | None:
        principal = await self.context.authenticator.identify(token)
        return principal if principal is not None and principal.name == name else None

    async def _refusal(self, name: str) -> RequestError:
        try:
            if await self.context.authenticator.find(name) is None:
                return _no_user(name)
        except RequestError:
            pass  # nobody can be asked whether there is such a user
        return RequestError(
            400, "IncorrectPasswordError", msg("This is not a token of user {name}.", name=name)
        )


class _ShowingHandler(ApiHandler):
    def show(self, user: Principal) -> None:
        self.answer(self.presenter.user(user, self.service.clusters_open_to(user)))


class MeHandler(_ShowingHandler):
    """`/user`: whose token this is."""

    async def get(self) -> None:
        """Show."""
        self.show(self.principal)


class UserHandler(_ShowingHandler):
    """`/user/:u`."""

    async def get(self, name: str) -> None:
        """Show oneself, or as admin anybody."""
        if name == self.principal.name:
            self.show(self.principal)
            return
        if not self.principal.admin:
            raise forbidden(msg("Only an administrator may look at other users."))
        user = await self.context.authenticator.find(name)
        if user is None:
            raise _no_user(name)
        self.show(user)


def _no_user(name: str) -> RequestError:
    return RequestError(400, "NoUserError", msg("User {name} is not known.", name=name))


ROUTES: list[Route] = [
    (r"", AboutHandler),
    (r"/healthz", HealthHandler),
    (r"/authn/info", AuthnHandler),
    (r"/token", TokenHandler),
    (r"/user", MeHandler),
    (r"/user/([^/]+)", UserHandler),
]
