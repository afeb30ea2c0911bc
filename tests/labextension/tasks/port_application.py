"""A web application in a task, for the tests of ports: it tells what it is asked, streams, and echoes."""

from __future__ import annotations

import asyncio
import json
import os

from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler


class Tell(RequestHandler):
    def answer(self, _path: str = "") -> None:
        self.set_header("Content-Type", "application/json")
        body = {
            "method": self.request.method,
            "uri": self.request.uri,
            "headers": sorted(self.request.headers.get_all()),
            "body": self.request.body.hex(),
        }
        self.finish(json.dumps(body))

    get = post = put = patch = delete = options = answer


class Say(RequestHandler):
    """Answers as the request says: {"status", "headers": [[name, value]], "body"}."""

    def post(self) -> None:
        wanted = json.loads(self.request.body)
        self.set_status(wanted.get("status", 200))
        self.clear_header("Content-Type")
        for name, value in wanted.get("headers", []):
            self.add_header(name, value)
        self.finish(wanted.get("body", ""))


class Stream(RequestHandler):
    """Server-sent events; the next one comes when somebody asks `/next`."""

    next = asyncio.Event()

    async def get(self) -> None:
        self.set_header("Content-Type", "text/event-stream")
        for number in range(3):
            self.write(f"data: {number}\n\n")
            await self.flush()
            await self.next.wait()
            self.next.clear()


class Next(RequestHandler):
    def get(self) -> None:
        Stream.next.set()


class Break(RequestHandler):
    def get(self) -> None:
        self.set_header("Content-Length", "1000")
        self.write("half")
        self.flush()
        self.detach().close()


class Much(RequestHandler):
    async def get(self, megabytes: str) -> None:
        for _ in range(int(megabytes)):
            self.write(b"x" * 1_000_000)
            await self.flush()

    def head(self, megabytes: str) -> None:
        self.set_header("Content-Length", str(int(megabytes) * 1_000_000))

    def put(self, _megabytes: str) -> None:
        self.finish(str(len(self.request.body)))


class Echo(WebSocketHandler):
    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return "second" if "second" in subprotocols else None

    def check_origin(self, origin: str) -> bool:
        return super().check_origin(origin)

    async def on_message(self, message: str | bytes) -> None:
        if message == "headers":
            await self.write_message(json.dumps(sorted(self.request.headers.get_all())))
        elif message == "bye":
            self.close(4001, "as you wish")
        else:
            await self.write_message(message, binary=isinstance(message, bytes))

    def on_close(self) -> None:
        print(f"closed {self.close_code} {self.close_reason}", flush=True)


async def main() -> None:
    routes = [
        (r"/say", Say),
        (r"/stream", Stream),
        (r"/next", Next),
        (r"/break", Break),
        (r"/much/(\d+)", Much),
        (r".*/echo", Echo),
        (r"/(.*)", Tell),
    ]
    port = int(os.environ["PAI_CONTAINER_HOST_web_PORT_LIST"].split(",")[0])  # noqa: SIM112 - the label's own spelling
    HTTPServer(Application(routes), max_buffer_size=1 << 30).listen(port, "127.0.0.1")
    print("listens", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
