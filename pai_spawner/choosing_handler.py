"""Answers before Start: the Hub's address that the form and programs ask what a server would do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.scopes import needs_scope
from tornado.web import HTTPError

from pai_scheduler.i18n import choose_locale

from .choosing import Choosing
from .messages import msg
from .options import options_from_form
from .options_schema import options_schema

#: below the Hub's own prefix
PATTERN = r"/api/pai/choosing/([^/]+)(?:/([^/]*))?"


class ChoosingHandler(APIHandler):  # type: ignore[misc]  # jupyterhub has no types
    """`/hub/api/pai/choosing/:user/:server`; for who may start that server. The default one has no name."""

    @needs_scope("servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str, server_name: str | None = None) -> None:
        """Tell what the user may choose, as JSON Schema, and what was chosen last."""
        spawner = self._spawner(user_name, server_name or "")
        offer = spawner.offer
        self._answer(
            {
                "schema": options_schema(offer),
                "profiles": [
                    {
                        "slug": one.slug,
                        "display_name": one.name.in_locale(self._locale),
                        "description": one.description.in_locale(self._locale),
                    }
                    for one in offer.profiles
                    if one.slug
                ],
                "last": dict(spawner.last_options()),
            }
        )

    @needs_scope("servers")  # type: ignore[untyped-decorator]
    async def post(self, user_name: str, server_name: str | None = None) -> None:
        """Tell what a start with the options in the body would do: `{"options": {…}}`, or a form's fields as
        `{"form": {"name": ["value"]}}`."""
        spawner = self._spawner(user_name, server_name or "")
        answer = await spawner.answer(self._options(), self._locale)
        self._answer(answer.to_json(self._locale))

    def _spawner(self, user_name: str, server_name: str) -> Choosing:
        user = self.find_user(user_name)
        # for a server that there is not yet the default one stands: little depends on which it is
        known = user is not None and server_name in user.orm_spawners
        spawner = user and user.spawners[server_name if known else ""]
        if not isinstance(spawner, Choosing):
            raise HTTPError(404)
        return spawner

    def _options(self) -> dict[str, Any]:
        body = self.get_json_body()
        match body:
            case {"options": dict() as options} if len(body) == 1:
                return options
            case {"form": dict() as form} if len(body) == 1 and _are_lists(form.values()):
                return options_from_form(form)
        text = msg("The body must look like {example}.", example='{"options": {"cpus": 2}}')
        raise HTTPError(400, text.in_locale(self._locale))

    @property
    def _locale(self) -> str:
        return choose_locale(self.request.headers.get("Accept-Language", ""))

    def _answer(self, answer: dict[str, Any]) -> None:
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(answer, ensure_ascii=False))


def _are_lists(values: Iterable[object]) -> bool:
    return all(isinstance(one, list) for one in values)
