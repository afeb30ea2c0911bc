"""`<base_url>/pai/webhdfs/v1/…`: the cluster's storage for the browser, asked with the user's own token.

What is in a file was written by anybody: it is only ever handed over as a download, so that none of it runs
as a page of the notebook server.
"""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

import aiohttp

from pai_labextension.messages import msg
from pai_scheduler.i18n import Message

from .handlers import ForwardHandler
from .resources import RequestTarget
from .storage_resources import CONTENTS, StorageTarget, storage_target


class StorageHandler(ForwardHandler):
    """Forwards one request to the storage, and its answer, both while they come."""

    _target: StorageTarget

    def find(self, method: str, path: str, query: str) -> RequestTarget:
        """Find where a request goes."""
        return storage_target(method, path, query)

    def unknown(self, path: str) -> Message:
        """Return a sentence that says that there can be nothing at a path."""
        return msg("“{path}” is no path of the storage.", path=path)

    def dress(self, answer: aiohttp.ClientResponse) -> None:
        """Set the headers; those of contents make a download of them, in a page without rights."""
        super().dress(answer)
        goal = self._target
        if goal.operation in CONTENTS and answer.status == HTTPStatus.OK:
            archive = goal.operation == "ARCHIVE"
            name = f"{goal.name or 'storage'}.zip" if archive else goal.name
            self.set_header("Content-Type", "application/zip" if archive else "application/octet-stream")
            self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(name, safe='')}")
            self.set_header("Content-Security-Policy", "sandbox; default-src 'none'")
