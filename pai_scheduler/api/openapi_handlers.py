"""Shows the API's own document. What it says is made in `openapi.py`, of all handlers, these too."""

from __future__ import annotations

from .base_handlers import ApiHandler, Route, routes
from .operations import Answer, operation

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


ROUTES: list[Route] = routes(OpenApiYamlHandler, OpenApiJsonHandler)
