"""The query of a WebHDFS request, read as Hadoop reads it: names in any case, the first of doubled ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.storage.paths import StoragePath

#: Parameters outside the scope of a ticket: they say who asks and how the answer is wanted, not what is to be
#: done. `user.name` and `doas` count for nothing here: clients send them always, and who asks is known
#: otherwise.
_OUTSIDE_THE_SCOPE = frozenset({"data", "ticket", "noredirect", "user.name", "doas", "delegation"})
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Parameters:
    """The values by name; an empty one is as good as none. What cannot be read is refused (RequestError)."""

    values: Mapping[str, str]

    @classmethod
    def read(cls, arguments: Mapping[str, Sequence[bytes]]) -> Parameters:
        """Take the query as tornado has split it."""
        values: dict[str, str] = {}
        for name, given in arguments.items():
            if given and given[0]:
                values.setdefault(name.lower(), given[0].decode("utf-8", "surrogateescape"))
        return cls(values)

    @property
    def of_the_request(self) -> frozenset[tuple[str, str]]:
        """Return those that say what is to be done, whether known or not."""
        return frozenset(item for item in self.values.items() if item[0] not in _OUTSIDE_THE_SCOPE)

    @property
    def operation(self) -> str:
        """Return `op`, in capitals; empty where there is none."""
        return self.text("op").upper()

    def text(self, name: str) -> str:
        """Return a value as it is; empty where there is none."""
        return self.values.get(name, "")

    def flag(self, name: str) -> bool:
        """Return a yes or no (`true`, `false`); no where there is none."""
        text = self.text(name).lower() or "false"
        if text not in ("true", "false"):
            raise wrong_parameter(name, msg("{text} is neither true nor false.", text=text))
        return text == "true"

    def number(self, name: str) -> int | None:
        """Return a whole number from 0 on; None where there is none."""
        number = self.signed(name)
        if number is not None and number < 0:
            raise wrong_parameter(name, msg("{value} is too small: at least {least}.", value=number, least=0))
        return number

    def signed(self, name: str) -> int | None:
        """Return a whole number; None where there is none."""
        text = self.text(name)
        if not text:
            return None
        digits = text.removeprefix("-")
        # int() reads more than Java does, and takes long over a long one
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and int(digits) <= _LARGEST):
            raise wrong_parameter(name, msg("{text} is not a whole number.", text=text[:40]))
        return int(text)

    def permission(self, name: str = "permission") -> int | None:
        """Return the nine bits of an octal number; None where there is none."""
        text = self.text(name)
        if not text:
            return None
        # a leading digit may be the sticky bit, which nobody has here
        if len(text) > 4 or not set(text) <= set("01234567"):
            raise wrong_parameter(name, msg("{text} is no octal number such as 644.", text=text[:40]))
        return int(text, 8) & 0o777

    def path(self, name: str) -> StoragePath:
        """Return an absolute path; StorageError where it is none."""
        return _absolute(name, self.text(name))

    def paths(self, name: str) -> list[StoragePath]:
        """Return absolute paths with commas between them; StorageError where one is none."""
        return [_absolute(name, text) for text in self.text(name).split(",")]


def _absolute(name: str, text: str) -> StoragePath:
    if not text.startswith("/"):
        raise wrong_parameter(name, msg("{text} is no absolute path: it must begin with /.", text=text))
    return StoragePath.parse(text)


def decoded_path(raw: str) -> StoragePath:
    """Read the path of a URL, which is decoded once; StorageError where it is no plain path."""
    return StoragePath.parse(unquote_to_bytes(raw.encode("latin-1")).decode("utf-8", "surrogateescape"))


def wrong_parameter(name: str, reason: Message) -> RequestError:
    """Return what is wrong with a parameter."""
    message = msg("The query parameter {name} is wrong: {reason}", name=name, reason=reason)
    return RequestError(400, "IllegalArgumentException", message)
