"""Takes a job that was submitted, and says what is answered then, whichever way the request is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pai_scheduler.job.validate import warnings
from pai_scheduler.security.principal import Principal

if TYPE_CHECKING:
    from .base_handlers import HandlerContext


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answer to a job that was accepted durably: what it has beside what every answer has."""

    headers: list[tuple[str, str]]
    body: dict[str, str]
    status: int = 202


async def submit(
    context: HandlerContext, principal: Principal, owner: str, config: dict[str, Any]
) -> Submitted:
    """Submit for `owner`, and say where the job is found; RequestError where it is refused."""
    accepted = await context.service.admission.submit(principal, owner, config)
    name = accepted.name
    headers = [("X-Warning", _in_header(str(told))) for told in (*warnings(config), *accepted.warnings)]
    place = f"api/v1/user/{quote(owner, safe='')}/jobs/{quote(name, safe='')}"
    headers.append(("Location", context.prefix + place))
    return Submitted(headers, {"message": f"update job {name} successfully"})


def _in_header(text: str) -> str:
    """Write a sentence, in which there may be anybody's URIs, so that it can stand in a header."""
    return text.encode("unicode_escape").decode("ascii")
