"""One connection for all that a page follows: joined at the scheduler, resumed, and held back by nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.web import RequestHandler
from tornado.websocket import WebSocketClientConnection, websocket_connect

from pai_labextension.callers import Requester
from pai_labextension.proxy import stream
from pai_labextension.proxy.forwarding import Upstream
from pai_labextension.proxy.stream import JoinedStreams, PageSubscriptions, Subject, Subscriber, _Lines
from tests.labextension.conftest import BROWSER_TOKEN, Scheduler

EVENTS = {"kind": "events", "user": "alice"}
LOG = {
    "kind": "log",
    "user": "alice",
    "job": "train",
    "role": "worker",
    "index": 0,
    "attempt": 0,
    "stream": "all",
}
LOG_PATH = "user/alice/jobs/train/taskRoles/worker/tasks/0/logs/all"
STAMP = "2026-01-02T03:04:05.678Z "
ALICE = Subscriber(Requester("alice", "token-of-alice"), "en")


class Tape:
    """Something that is played to each who asks; `cut` ends all connections."""

    def __init__(self) -> None:
        self.open = 0
        self.asked: list[RequestHandler] = []
        self._queues: list[asyncio.Queue[bytes | None]] = []

    def say(self, text: str | bytes) -> None:
        for queue in self._queues:
            queue.put_nowait(text.encode() if isinstance(text, str) else text)

    def cut(self) -> None:
        for queue in self._queues:
            queue.put_nowait(None)

    async def play(self, handler: RequestHandler, first: str) -> None:
        self.asked.append(handler)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._queues.append(queue)
        self.open += 1
        connection = handler.request.connection.stream  # type: ignore[union-attr]
        try:
            handler.write(first)
            await handler.flush()
            while not connection.closed():
                try:
                    piece = await asyncio.wait_for(queue.get(), 0.02)
                except TimeoutError:
                    continue
                if piece is None:
                    handler.detach().close()
                    return
                handler.write(piece)
                await handler.flush()
        finally:
            self._queues.remove(queue)
            self.open -= 1


@pytest.fixture
def events(scheduler: Scheduler) -> Tape:
    tape = Tape()

    async def play(handler: RequestHandler) -> None:
        last = handler.request.headers.get("Last-Event-ID")
        await tape.play(handler, "retry: 1000\n\n" + ("" if last else "id: 5\n\n"))

    scheduler.answers["events"] = play
    return tape


@pytest.fixture
def log(scheduler: Scheduler) -> Tape:
    tape = Tape()

    async def play(handler: RequestHandler) -> None:
        handler.set_header("X-Log-Offset", max(0, int(handler.get_query_argument("offset"))))
        await tape.play(handler, "")

    scheduler.answers[LOG_PATH] = play
    return tape


@pytest.fixture
async def streams(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[JoinedStreams]:
    monkeypatch.setattr(stream, "_GATHER", 0.01)
    monkeypatch.setattr(stream, "_SOON", 0.05)
    upstream = Upstream(scheduler.url)
    streams = JoinedStreams(upstream)
    yield streams
    await streams.close()
    await upstream.close()


class Tab:
    """A subscriber that notes what it is told."""

    def __init__(self, frames: AsyncGenerator[str]) -> None:
        self.frames = frames
        self.heard: list[dict[str, Any]] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for frame in self.frames:
            self.heard.append(json.loads("{" + frame + "}"))

    async def until(self, holds: Callable[[list[dict[str, Any]]], bool]) -> None:
        await until(lambda: holds(self.heard))

    @property
    def types(self) -> list[str]:
        return [frame["type"] for frame in self.heard]

    def ids(self) -> list[int]:
        return [event["id"] for frame in self.heard if frame["type"] == "data" for event in frame["data"]]

    def text(self) -> str:
        return "".join(frame["data"]["text"] for frame in self.heard if frame["type"] == "data")

    async def leave(self) -> None:
        self.reading.cancel()
        await asyncio.gather(self.reading, return_exceptions=True)
        await self.frames.aclose()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 (what is waited for has no event)
            await asyncio.sleep(0.005)


def event(number: int) -> str:
    return f"id: {number}\ndata: {json.dumps({'id': number, 'job': 'train'})}\n\n"


def live(heard: list[dict[str, Any]]) -> bool:
    return any(frame["type"] == "live" for frame in heard)


def told(number: int) -> Callable[[list[dict[str, Any]]], bool]:
    return lambda heard: heard[-1].get("cursor") == str(number)


async def test_equal_subjects_of_one_caller_are_one_stream_and_end_with_the_last_of_them(streams, events):
    tabs = [Tab(streams.follow(ALICE, Subject.read(EVENTS), None)) for _ in range(50)]
    for tab in tabs:
        await tab.until(live)
        assert [(frame["type"], frame["cursor"]) for frame in tab.heard] == [("gap", "5"), ("live", "5")]
    assert events.open == 1
    events.say(event(6) + event(7))
    for tab in tabs:
        await tab.until(lambda heard: heard[-1].get("cursor") == "7")
        assert tab.ids() == [6, 7]
    for tab in tabs[1:]:
        await tab.leave()
    assert events.open == 1
    await tabs[0].leave()
    await until(lambda: events.open == 0)


async def test_two_people_are_never_joined_nor_two_logins_of_one(streams, events):
    followers = [
        ALICE,
        Subscriber(Requester("alice", "another-token"), "en"),
        Subscriber(Requester("bob", "token-of-bob"), "en"),
        # a token says who somebody is; the name is not relied on
        Subscriber(Requester("bob", "token-of-alice"), "en"),
    ]
    tabs = [Tab(streams.follow(follower, Subject.read(EVENTS), None)) for follower in followers]
    for tab in tabs:
        await tab.until(live)
    assert events.open == len(followers)
    tokens = [handler.request.headers["Authorization"] for handler in events.asked]
    assert sorted(tokens) == sorted(f"Bearer {follower.caller.token}" for follower in followers)
    for tab in tabs:
        await tab.leave()


async def test_after_a_cut_it_goes_on_without_loss_or_double(streams, events):
    tab = Tab(streams.follow(ALICE, Subject.read(EVENTS), None))
    await tab.until(live)
    events.say(event(6))
    await tab.until(lambda heard: heard[-1].get("cursor") == "6")
    events.cut()
    await until(lambda: len(events.asked) == 2)
    assert events.asked[1].request.headers["Last-Event-ID"] == "6"
    events.say(event(7))
    await tab.until(lambda heard: heard[-1].get("cursor") == "7")
    assert tab.ids() == [6, 7]
    assert tab.types == ["gap", "live", "data", "lost", "live", "data"]
    # one that comes with a cursor is told what it has missed, or that it has
    behind = Tab(streams.follow(ALICE, Subject.read(EVENTS), "6"))
    await behind.until(lambda heard: len(heard) == 2)
    assert (behind.types, behind.ids()) == (["live", "data"], [7])
    assert behind.heard[0]["cursor"] == "6"
    lost = Tab(streams.follow(ALICE, Subject.read(EVENTS), "1"))
    await lost.until(live)
    assert lost.types[0] == "gap"
    for one in (tab, behind, lost):
        await one.leave()


async def test_a_slow_subscriber_hears_of_a_gap_and_holds_nobody_back(streams, events):
    quick = Tab(streams.follow(ALICE, Subject.read(EVENTS), None))
    await quick.until(live)
    slow = streams.follow(ALICE, Subject.read(EVENTS), "5")
    assert '"live"' in await anext(slow)
    for number in range(6, 46):
        text = json.dumps({"id": number, "message": "x" * 5000})
        events.say(f"id: {number}\ndata: {text}\n\n")
        await quick.until(told(number))
    assert quick.ids() == list(range(6, 46))
    assert '"gap"' in await anext(slow)
    frame = json.loads("{" + await anext(slow) + "}")
    assert frame["data"][0]["id"] > 30
    await slow.aclose()
    await quick.leave()


async def test_a_log_comes_in_pieces_that_each_begin_with_a_time_at_their_offset(streams, log):
    tab = Tab(streams.follow(ALICE, Subject.read(LOG), "100"))
    await tab.until(live)
    assert tab.types == ["live"]
    (asked,) = log.asked
    assert [asked.get_query_argument(name) for name in ("offset", "follow", "timestamps", "attempt")] == [
        "100",
        "1",
        "1",
        "0",
    ]
    whole = f"{STAMP}one\n{STAMP}tw".encode() + "ö".encode()[:1]
    log.say(whole)
    await tab.until(lambda heard: heard[-1].get("cursor") == "106")
    log.say("ö".encode()[1:] + f"!\n{STAMP[:7]}".encode())
    await tab.until(lambda heard: heard[-1].get("cursor") == "110")
    log.say(f"{STAMP[7:]}three\n")
    await tab.until(lambda heard: heard[-1].get("cursor") == "116")
    pieces = [frame["data"] for frame in tab.heard if frame["type"] == "data"]
    assert [(piece["start"], piece["text"].encode("latin-1").decode()) for piece in pieces] == [
        (100, f"{STAMP}one\n{STAMP}tw"),
        (106, f"{STAMP}ö!\n"),
        (110, f"{STAMP}three\n"),
    ]
    log.cut()
    await until(lambda: len(log.asked) == 2)
    assert log.asked[1].get_query_argument("offset") == "116"
    await tab.leave()


async def test_a_log_that_nobody_can_read_goes_on_near_its_end(streams, log, monkeypatch):
    monkeypatch.setattr(stream, "_SKIP_PAUSE", 0.01)
    tab = Tab(streams.follow(ALICE, Subject.read(LOG), "0"))
    await tab.until(live)
    log.say(f"{STAMP}{'x' * 74}\n" * 5000)
    await until(lambda: len(log.asked) == 2)
    assert log.asked[1].get_query_argument("offset") == str(-16 * 1024)
    await tab.leave()


async def test_the_schedulers_refusal_is_handed_on(streams, scheduler):
    def refuse(handler: RequestHandler) -> None:
        handler.set_status(429)
        handler.finish({"code": "TooManyStreamsError", "message": "You follow 200 logs and events."})

    scheduler.answers["events"] = refuse
    tab = Tab(streams.follow(ALICE, Subject.read(EVENTS), None))
    await tab.until(bool)
    assert tab.heard == [
        {
            "type": "end",
            "error": {
                "status": 429,
                "code": "TooManyStreamsError",
                "message": "You follow 200 logs and events.",
            },
        }
    ]
    await tab.leave()


async def test_the_versions_of_the_cluster_are_told_while_they_change(streams, scheduler, monkeypatch):
    monkeypatch.setattr(stream, "_CHANGES_PAUSE", 0.01)
    version = 1

    async def answer(handler: RequestHandler) -> None:
        await until(lambda: handler.get_query_argument("after", "") != f"v{version}")
        handler.finish({"version": f"v{version}"})

    scheduler.answers["changes"] = answer
    tab = Tab(streams.follow(ALICE, Subject.read({"kind": "changes"}), None))
    await tab.until(live)
    version = 2
    await tab.until(lambda heard: heard[-1]["type"] == "data")
    assert [frame["cursor"] for frame in tab.heard] == ["v1", "v1", "v2"]
    await tab.leave()


@pytest.mark.parametrize(
    "subject",
    [
        None,
        {"kind": "nodes"},
        {"kind": "events", "user": ""},
        {**LOG, "user": "../../nodes"},
        {**LOG, "job": "a/b"},
        {**LOG, "stream": "stdin"},
        {**LOG, "index": "0"},
    ],
)
async def test_what_is_no_subject_is_refused_and_nobody_is_asked(streams, scheduler, subject):
    heard: list[dict[str, Any]] = []

    async def note(frame: str) -> None:
        heard.append(json.loads(frame))

    conversation = PageSubscriptions(streams, ALICE, note)
    conversation.take({"type": "sub", "id": 3, "subject": subject, "cursor": None})
    await until(lambda: bool(heard))
    assert (heard[0]["id"], heard[0]["type"], heard[0]["error"]["status"]) == (3, "end", 400)
    assert scheduler.asked == []
    conversation.close()


def test_a_log_of_any_bytes_cut_anywhere_is_the_same_log():
    said = [b"plain", "Grüße 你好".encode(), b"\xff\xfe\x00", b"", b"x" * 30]
    whole = b"".join(STAMP.encode() + line + b"\n" for line in said)
    text = b"".join(line + b"\n" for line in said)
    for size in (1, 2, 3, 7, 25, 26, 1000):
        lines, found = _Lines(10), b""
        for at in range(0, len(whole), size):
            start = lines.end
            piece = lines.feed(whole[at : at + size])
            if not piece:
                continue
            assert piece.startswith(STAMP.encode())
            bare = piece.replace(STAMP.encode(), b"")
            assert len(bare) == lines.end - start
            found += bare
        assert found == text


async def opened(browser: httpx.AsyncClient, **headers: str) -> WebSocketClientConnection:
    url = str(browser.base_url).replace("http", "ws", 1) + "pai/stream"
    return await websocket_connect(HTTPRequest(url, headers=headers))


async def test_a_page_of_the_notebook_server_follows_with_the_users_own_token(browser, events):
    socket = await opened(browser, Authorization=f"token {BROWSER_TOKEN}")
    for nonsense in ("", "{", "null", "[]", '{"type": "sub"}', '{"type": "unsub", "id": 9}'):
        await socket.write_message(nonsense)
    await socket.write_message(json.dumps({"type": "sub", "id": 1, "subject": EVENTS, "cursor": None}))
    assert json.loads(await socket.read_message() or "") == {"id": 1, "type": "gap", "cursor": "5"}
    assert json.loads(await socket.read_message() or "") == {"id": 1, "type": "live", "cursor": "5"}
    assert events.asked[0].request.headers["Authorization"] == "Bearer the-users-own-token"
    await socket.write_message(json.dumps({"type": "unsub", "id": 1}))
    await until(lambda: events.open == 0)
    socket.close()


async def test_strangers_follow_nothing(browser, events):
    with pytest.raises(HTTPClientError, match="403"):
        await opened(browser)
    assert events.asked == []
