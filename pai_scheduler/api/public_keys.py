"""The public keys that users register to log into their tasks."""

from __future__ import annotations

from pai_scheduler.rest.models import PublicKeyInfo, PublicKeyLine
from pai_scheduler.ssh.keys.public_key import PublicKey

from .base_handlers import ApiHandler, Route, routes
from .body import read_fields
from .operations import FULL, NO_SSH, Answer, Body, Refusal, operation


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
            Refusal(429, ["TooManyKeysError"], "The user has as many as one may have."),
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
            Refusal(404, ["NoPublicKeyError", "NoJobSshInfoError", "NoApiError"], "There is no such key."),
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


ROUTES: list[Route] = routes(PublicKeysHandler, PublicKeyHandler)
