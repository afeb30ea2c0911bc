"""The account: who asks, how to log in, own keys, and what answers here; mostly without a token."""

from __future__ import annotations

from importlib.metadata import version

from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.cluster import AvailableAmounts
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.rest.models import (
    Login,
    LoginInfo,
    PublicKeyInfo,
    PublicKeyLine,
    ServiceHealth,
    ServiceInfo,
    Token,
    UserInfo,
)
from pai_scheduler.ssh.public_key import PublicKey

from .base import ApiHandler, Route, no_user, routes
from .body import missing, read_fields
from .operations import FLAG, FULL, NO_API, NO_SSH, NO_USER, Answer, Body, DocumentedRefusal, operation, query

# Who I am, how to log in, and what answers here; mostly without a token.

_NOT_OTHERS = msg("Only an administrator may look at other users.")


class AboutHandler(ApiHandler):
    """`/api/v1`: what answers here. `engine` runs the tasks; `frontDoor`: the Hub as containers reach it."""

    anonymous = True

    @operation(
        "GET /",
        "about",
        "account",
        "What answers here",
        {200: Answer("The service and its version.", ServiceInfo)},
    )
    async def get(self) -> None:
        """Show."""
        answer: ServiceInfo = {
            "name": "PAI for Jupyter",
            "version": version("pai-for-jupyter"),
            "engine": self.service.engine_name,
            "frontDoor": self.service.front_door_url,
            "ssh": self.context.ssh,
        }
        self.answer(answer)


class HealthHandler(ApiHandler):
    """`/healthz`: this process answers."""

    anonymous = True

    @operation(
        "GET /healthz",
        "health",
        "account",
        "Whether this process answers",
        {200: Answer("It does.", ServiceHealth)},
        speaks=False,
    )
    async def get(self) -> None:
        """Show."""
        answer: ServiceHealth = {"status": "ok"}
        self.answer(answer)


class AuthnHandler(ApiHandler):
    """`/authn/info`: how a program gets a token."""

    anonymous = True

    @operation(
        "GET /authn/info",
        "loginInfo",
        "account",
        "How a program gets a token",
        {200: Answer("The address to send name and password to.", LoginInfo)},
    )
    async def get(self) -> None:
        """Show."""
        answer: LoginInfo = {
            "authn_type": "basic",
            "loginURI": f"{self.context.prefix}api/v1/token",
            "loginURIMethod": "post",
        }
        self.answer(answer)


class TokenHandler(ApiHandler):
    """`/token`, for clients that log in by name and password: the password is one of the user's tokens."""

    anonymous = True

    @operation(
        "POST /token",
        "login",
        "account",
        "Log in by name and password",
        {200: Answer("The token is good.", Token)},
        description="The password is one of the user's tokens, and is what comes back.",
        body=Body(Login),
        refusals=[
            DocumentedRefusal(
                400,
                ["InvalidParametersError", "NoUserError", "IncorrectPasswordError"],
                "The body is wrong, there is no such user, or it is not a token of theirs.",
            )
        ],
    )
    async def post(self) -> None:
        """Check it and return it back. `expiration` is not read: a token expires when its issuer says."""
        body = read_fields(self.request, "username", "password")
        name, token = body["username"], body["password"]
        if not (name and token):
            raise missing("password" if name else "username")
        principal = await self.context.throttle.check(
            self.peer, name, token, lambda: self._owner(name, token)
        )
        if principal is None:
            raise await self._refusal(name)
        answer: Token = {"user": name, "token": token, "admin": principal.admin, "hasGitHubPAT": False}
        self.answer(answer)

    async def _owner(self, name: str, token: str) -> Principal | None:
        principal = await self.context.authenticator.identify(token)
        return principal if principal is not None and principal.name == name else None

    async def _refusal(self, name: str) -> RequestError:
        try:
            if await self.context.authenticator.find(name) is None:
                return no_user(name)
        except RequestError:
            pass  # nobody can be asked whether there is such a user
        return RequestError(
            400, "IncorrectPasswordError", msg("This is not a token of user {name}.", name=name)
        )


class _ShowingHandler(ApiHandler):
    def show(self, user: Principal) -> None:
        self.answer(self.presenter.user(user, self.service.virtual_clusters.open_to(user)))


class MeHandler(_ShowingHandler):
    """`/user`: whose token this is."""

    @operation(
        "GET /user", "whoami", "account", "Whose token this is", {200: Answer("The caller.", UserInfo)}
    )
    async def get(self) -> None:
        """Show."""
        self.show(self.principal)


class UserHandler(_ShowingHandler):
    """`/user/:u`."""

    @operation(
        "GET /user/{user}",
        "user",
        "account",
        "A user",
        {200: Answer("The user.", UserInfo)},
        description="Oneself, or for administrators anybody.",
        refusals=[NO_USER, NO_API],
    )
    async def get(self, name: str) -> None:
        """Show oneself, or as admin anybody."""
        self.show(await self.asked_user(name, _NOT_OTHERS))


class AvailableHandler(ApiHandler):
    """`/user/:u/available`."""

    @operation(
        "GET /user/{user}/available",
        "available",
        "cluster",
        "What a user's next job could have, by virtual cluster",
        {200: Answer("Those virtual clusters that are open to the user.", dict[str, AvailableAmounts])},
        description="Oneself, or for administrators anybody. What is kept for jobs that wait is not free.",
        parameters=[
            query(
                "borrowing",
                FLAG,
                "Also what others do not use, for jobs that may borrow",
                "0",
            )
        ],
        refusals=[NO_USER, NO_API],
    )
    async def get(self, name: str) -> None:
        """Show."""
        borrowing = self.query_flag("borrowing")
        user = await self.asked_user(name, _NOT_OTHERS)
        found = self.service.virtual_clusters.available_to(user, borrowing=borrowing)
        self.answer({name: self.presenter.available(one) for name, one in found.items()})


# The public keys that users register to log into their tasks.


class PublicKeysHandler(ApiHandler):
    """`/user/:u/ssh-keys`."""

    @operation(
        "GET /user/{user}/ssh-keys",
        "publicKeys",
        "account",
        "The public keys that a user registered, oldest first",
        {200: Answer("The keys.", list[PublicKeyInfo])},
        description="Each opens every task of that user's. One's own, or for administrators anybody's.",
        refusals=[NO_SSH],
    )
    async def get(self, user: str) -> None:
        """List one's own; admins anybody's."""
        keys = await self.service.ssh_authorization.public_keys.list(self.principal, user)
        self.answer([_info(key, added) for key, added in keys])

    @operation(
        "POST /user/{user}/ssh-keys",
        "addPublicKey",
        "account",
        "Register a public key",
        {201: Answer("It is registered.", PublicKeyInfo)},
        description="The same again changes nothing. There may be 50.",
        body=Body(PublicKeyLine),
        refusals=[
            NO_SSH,
            DocumentedRefusal(429, ["TooManyKeysError"], "The user has as many as one may have."),
        ],
    )
    async def post(self, user: str) -> None:
        """Register one; the same again is no error."""
        line = read_fields(self.request, "key")["key"]
        key, added = await self.service.ssh_authorization.public_keys.add(self.principal, user, line)
        self.answer(_info(key, added), 201)


class PublicKeyHandler(ApiHandler):
    """`/user/:u/ssh-keys/:fingerprint`."""

    @operation(
        "DELETE /user/{user}/ssh-keys/{fingerprint}",
        "removePublicKey",
        "account",
        "Forget a public key",
        {204: Answer("It opens nothing any more.")},
        refusals=[
            DocumentedRefusal(
                404, ["NoPublicKeyError", "NoJobSshInfoError", "NoApiError"], "There is no such key."
            ),
            FULL,
        ],
    )
    async def delete(self, user: str, fingerprint: str) -> None:
        """Forget it."""
        await self.service.ssh_authorization.public_keys.remove(self.principal, user, fingerprint)
        self.set_status(204)
        self.finish()


def _info(key: PublicKey, added: int) -> PublicKeyInfo:
    return {
        "fingerprint": key.fingerprint,
        "type": key.type,
        "comment": key.comment,
        "addedTime": added,
    }


# Shows the API's own document. What it says is made in `openapi.py`, of all handlers, these too.

#: The application's settings with what writes the document of an API that answers under a prefix.
AS_YAML, AS_JSON = "openapi_as_yaml", "openapi_as_json"
_DOCUMENT = {"type": "object", "required": ["openapi", "paths"]}


class OpenApiYamlHandler(ApiHandler):
    """`/openapi.yaml`: this API, for people and for programs that make clients."""

    anonymous = True

    @operation(
        "GET /openapi.yaml",
        "openapiYaml",
        "account",
        "This document",
        {200: Answer("OpenAPI 3.1 as YAML.", others={"application/yaml": _DOCUMENT})},
        speaks=False,
    )
    async def get(self) -> None:
        """Show."""
        self.set_header("Content-Type", "application/yaml; charset=UTF-8")
        self.finish(self.settings[AS_YAML](self.context.prefix))


class OpenApiJsonHandler(ApiHandler):
    """`/openapi.json`: the same for those who read no YAML."""

    anonymous = True

    @operation(
        "GET /openapi.json",
        "openapiJson",
        "account",
        "This document as JSON",
        {200: Answer("OpenAPI 3.1 as JSON.", _DOCUMENT)},
        speaks=False,
    )
    async def get(self) -> None:
        """Show."""
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        self.finish(self.settings[AS_JSON](self.context.prefix))


ROUTES: list[Route] = routes(
    AboutHandler,
    HealthHandler,
    AuthnHandler,
    TokenHandler,
    MeHandler,
    UserHandler,
    AvailableHandler,
    PublicKeysHandler,
    PublicKeyHandler,
    OpenApiYamlHandler,
    OpenApiJsonHandler,
)
