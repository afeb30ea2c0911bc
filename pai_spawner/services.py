"""Services beyond Jupyter: a web program that a profile names, served at the server's address by its login.

The server's extension (`pai_labextension/webapp`) starts the program with the server, watches over it and
passes on what the server's own authentication lets through. Here is only what it is told for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .messages import Translated

#: Where the service is, below the address of its server.
PATH = "pai-service"
#: What JupyterHub opens first in such a server (`default_url`).
URL = f"/{PATH}/"
#: the environment variable in which JupyterHub tells a server what it opens first
OPENS_FIRST = "JUPYTERHUB_DEFAULT_URL"

_ADDRESSES = ("{port}", "{unix_socket}")
#: Seconds until a program that does not answer is given up.
_START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Service:
    """A web program of a profile.

    `command`: its words, with `{port}`, `{unix_socket}`, `{base_url}` and `{prefix}` in them;
    `strip_prefix`: whether it gets paths without the address at which it is served; `start_seconds`: how long
    it may take until it answers for the first time.
    """

    title: Translated
    command: tuple[str, ...]
    strip_prefix: bool = True
    start_seconds: int = _START_SECONDS

    @classmethod
    def read(cls, raw: Mapping[str, Any], title: Translated) -> Service:
        """Read one that has the form of `profiles.schema.json`; `title`: what it is called by default."""
        return cls(
            Translated.read(raw["title"]) if "title" in raw else title,
            tuple(raw["command"]),
            raw.get("strip_prefix", True),
            raw.get("start_seconds", _START_SECONDS),
        )

    @property
    def has_address(self) -> bool:
        """Return whether the command says where the program listens."""
        return any(address in word for word in self.command for address in _ADDRESSES)

    def arguments(self, locale: str) -> list[str]:
        """Return the options of `pai-singleuser` with which it has the service, titled in a language."""
        told = {
            "title": self.title.in_locale(locale),
            "command": list(self.command),
            "strip_prefix": self.strip_prefix,
            "start_seconds": self.start_seconds,
        }
        # a Python literal: traitlets reads a dictionary on a command line so
        return [f"--PAIExtension.service={told!r}"]
