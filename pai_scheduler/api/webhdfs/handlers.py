"""WebHDFS in front of the cluster's files, so that no client needs to reach a datanode, or HDFS at all.

Hadoop's "WebHDFS REST API", with the redirects of OPEN, CREATE and APPEND leading back here: their Location
has a ticket instead of a token. `data=true` with a token of one's own is answered at once. Beside it there
are COPY, ARCHIVE, and `limit` for LISTSTATUS_BATCH. What carries a file's bytes never comes as far as this
handler: `handover.py` passes it on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from urllib.parse import urlencode

from tornado.web import stream_request_body

from pai_scheduler.api.base_handlers import ApiHandler, HandlerContext
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Files

from .answers import listing_pieces
from .handover import sender_of
from .operations import OPERATIONS, Question, no_operation
from .redirect_tickets import RequestScope
from .request import TRANSFERS, WebHdfsRequest

#: What may have a long answer.
_LONG: Mapping[str, tuple[str, ...]] = {"GET": ("LISTSTATUS",)}


@stream_request_body
class WebHdfsHandler(WebHdfsRequest, ApiHandler):
    """`/webhdfs/v1/…`: redirects, and everything that is done without a file's bytes."""

    def initialize(self, context: HandlerContext) -> None:  # type: ignore[override]
        """Take what tornado hands to each new handler."""
        WebHdfsRequest.initialize(self)
        ApiHandler.initialize(self, context)
        self.prefix = context.prefix

    @property
    def files(self) -> Files:
        """Return the cluster's files."""
        return self.service.files

    async def identify(self) -> Principal:
        """Know the caller by a ticket, or by a token of one's own or of a job."""
        return await sender_of(self.request, self.context)

    async def begin(self) -> None:
        """Redirect what carries a file; refuse what there is not."""
        method = self.request.method or ""
        if self.operation in TRANSFERS.get(method, ()):
            if self.parameters.flag("data"):
                raise RuntimeError("what carries a file's bytes came past the file servers")
            await self.check_transfer()
            self._redirect(method)
        elif self.operation not in (*_LONG.get(method, ()), *OPERATIONS.get(method, ())):
            raise no_operation(self.operation, method, TRANSFERS, _LONG, OPERATIONS)

    async def act(self) -> None:
        """Do it."""
        if self.operation == "LISTSTATUS":
            # a folder of any length, beside everybody else's requests
            listing = await self.files.list(self.principal, self.path)
            self.set_header("Content-Type", "application/json; charset=UTF-8")
            await self.send_pieces(_one_by_one(listing_pieces(listing, self.path)))
            return
        ask = Question(self.files, self.principal, self.path, self.parameters)
        body = await OPERATIONS[self.request.method or ""][self.operation](ask)
        self.answer_nothing() if body is None else self.answer(body)

    def sent(self, size: int) -> None:
        """Count bytes that were sent."""
        self.service.monitor.sent(type(self).__name__, size)

    def _redirect(self, method: str) -> None:
        """Send the client to ourselves again, with a ticket."""
        scope = RequestScope(method, self.operation, self.path, self.parameters.of_the_request)
        ticket = self.context.tickets.issue(self.principal, scope)
        values = [*sorted(scope.parameters), ("data", "true"), ("ticket", ticket)]
        location = f"{self.here}?{urlencode(values, errors='surrogateescape')}"
        if self.parameters.flag("noredirect"):
            self.answer({"Location": location})
            return
        self.set_status(307)
        self.set_header("Location", location)
        self.answer_nothing()


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
