"""What a notebook does with a kernel, over the WebSocket of a notebook server."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

#: Seconds; generous: this machine may be busy.
PATIENCE = 90.0


class Notebook:
    """Runs cells, and hears what the kernel says."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self._socket = socket

    async def begin(self, code: str) -> str:
        """Run a cell; return the id of the request."""
        message = uuid.uuid4().hex
        request = {
            "channel": "shell",
            "header": {
                "msg_id": message,
                "msg_type": "execute_request",
                "session": message,
                "username": "",
                "date": "",
                "version": "5.3",
            },
            "parent_header": {},
            "metadata": {},
            "content": {
                "code": code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
            },
            "buffers": [],
        }
        await self._socket.write_message(json.dumps(request))
        return message

    async def printed(self, message: str) -> str:
        """Return what a cell printed, or the name of its error, when it is done."""
        text = ""
        async with asyncio.timeout(PATIENCE):
            while True:
                said = await self.hear()
                if said["parent_header"].get("msg_id") != message:
                    continue
                kind, content = said["msg_type"], said["content"]
                if kind == "stream":
                    text += content["text"]
                elif kind == "error":
                    text += content["ename"]
                    print("\n".join(content["traceback"]))  # shown where the test fails
                elif kind == "status" and content["execution_state"] == "idle":
                    return text

    async def run(self, code: str) -> str:
        """Run a cell to its end."""
        return await self.printed(await self.begin(code))

    async def shows(self, code: str) -> str:
        """Run a cell to its end; return all that stands below it, as a terminal would show it.

        AssertionError where that is an error.
        """
        message = await self.begin(code)
        text, awaited = "", {"idle", "reply"}
        async with asyncio.timeout(PATIENCE):
            while awaited:
                said = await self.hear()
                if said["parent_header"].get("msg_id") != message:
                    continue
                kind, content = said["msg_type"], said["content"]
                if kind == "stream":
                    text += content["text"]
                elif kind in ("execute_result", "display_data"):
                    text += content["data"].get("text/plain", "") + "\n"
                elif kind == "execute_reply":
                    awaited.discard("reply")
                    # (a wrong magic is told of in the output only)
                    assert content["status"] == "ok", "\n".join([code, text, *content["traceback"]])
                elif kind == "status" and content["execution_state"] == "idle":
                    awaited.discard("idle")
        return text

    async def reply(self, message: str) -> dict[str, Any]:
        """Wait for the reply to a request."""
        async with asyncio.timeout(PATIENCE):
            while True:
                said = await self.hear()
                if said["parent_header"].get("msg_id") == message and said["msg_type"] == "execute_reply":
                    content: dict[str, Any] = said["content"]
                    return content

    async def prints(self, message: str) -> None:
        """Wait until a cell prints something."""
        async with asyncio.timeout(PATIENCE):
            while True:
                said = await self.hear()
                if said["parent_header"].get("msg_id") == message and said["msg_type"] == "stream":
                    return

    async def status(self, wanted: str) -> None:
        """Wait until the kernel's state is said to be this."""
        async with asyncio.timeout(PATIENCE):
            while True:
                said = await self.hear()
                if said["msg_type"] == "status" and said["content"]["execution_state"] == wanted:
                    return

    async def hear(self) -> dict[str, Any]:
        """Return the next message."""
        text = await self._socket.read_message()
        assert text is not None, "the connection to the kernel is closed"
        said: dict[str, Any] = json.loads(text)
        return said


@asynccontextmanager
async def connected(server: str, kernel: str, authorization: str) -> AsyncIterator[Notebook]:
    """Connect a notebook with a kernel of the server at this address."""
    session = uuid.uuid4().hex
    url = f"ws{server.removeprefix('http')}/api/kernels/{kernel}/channels?session_id={session}"
    headers = {"Authorization": authorization}
    socket = await websocket_connect(HTTPRequest(url, headers=headers, request_timeout=PATIENCE))
    try:
        yield Notebook(socket)
    finally:
        socket.close()
