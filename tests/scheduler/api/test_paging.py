"""Lists in pages, and whole lists that let other requests in between; counted, not timed."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from pai_scheduler.api.presenter import Presenter
from pai_scheduler.api.streaming import SLICE
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, JobEvent, State, SubState
from pai_scheduler.i18n import Message
from pai_scheduler.job.validation import parse_job
from pai_scheduler.principal import Principal
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.store.store import Store
from tests.scheduler.api.gateway import Gateway, open_gateway
from tests.scheduler.making import make_config, make_role
from tests.testbed.answers import check_answer

ROOT = Principal("root", admin=True)
NAMES = ("alice", "bob")
#: The ended jobs: 40 times what is made in a piece.
ENDED = 40 * SLICE


def fill(store: Store, count: int, *, ended: bool = True, first: int = 0) -> None:
    """Put jobs into a database, alice's and bob's by turns, three of them in each ms."""
    config = make_config(make_role(gpus=0 if ended else 99))
    plain = parse_job(config)
    jobs, configs, events = {}, {}, []
    for number in range(first, first + count):
        spec = replace(plain, name=f"job-{number}")
        job = Job(f"id{number:08}", NAMES[number % 2], spec, 1000 + number // 3, order=number + 1)
        if ended:
            job.state, job.sub_state, job.completed = State.STOPPED, SubState.ENDED, 5000
        jobs[job.id], configs[job.id] = job, config | {"jobName": f"job-{number}"}
        events.append(JobEvent(job.id, 1000, "submitted", Message("Submitted.")))
    store.commit(Outcome(jobs=jobs, job_events=events), configs)


class Watch:
    """Counts what is presented, and what is presented without others' having their turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *methods: str) -> None:
        self.turn = self.presented = 0
        self._in_turn: Counter[int] = Counter()
        for name in methods:
            monkeypatch.setattr(Presenter, name, self._counted(getattr(Presenter, name)))

    @property
    def most_in_a_turn(self) -> int:
        return max(self._in_turn.values())

    async def others(self) -> None:
        """Be everybody else, who wants a turn all the time."""
        while True:
            self.turn += 1
            await asyncio.sleep(0)

    def _counted(self, method: Any) -> Any:
        def present(*args: Any, **options: Any) -> Any:
            self.presented += 1
            self._in_turn[self.turn] += 1
            return method(*args, **options)

        return present


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a database with many ended jobs."""
    folder = tmp_path_factory.mktemp("full")
    store = Store.in_folder(folder)
    fill(store, ENDED)
    store.close()
    return folder


@pytest.fixture
async def listed(full: Path, tmp_path: Path) -> AsyncIterator[Gateway]:
    """Serve many ended jobs."""
    shutil.copytree(full, tmp_path, dirs_exist_ok=True)
    async with open_gateway(tmp_path, FolderStorage(tmp_path / "files")) as gateway:
        yield gateway


@pytest.fixture
async def queued(tmp_path: Path) -> AsyncIterator[Gateway]:
    """Serve 1,000 jobs that wait."""
    store = Store.in_folder(tmp_path)
    fill(store, 1000, ended=False)
    store.close()
    async with open_gateway(tmp_path, FolderStorage(tmp_path / "files")) as gateway:
        yield gateway


def api(gateway: Gateway, token: str = "root") -> httpx.AsyncClient:  # noqa: S107
    return httpx.AsyncClient(
        base_url=f"{gateway.url}/api/v1",
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
        timeout=60,
        event_hooks={"response": [check_answer]},
    )


async def pages(client: httpx.AsyncClient, path: str) -> AsyncIterator[Any]:
    """Return the pages of a list, as their links lead on."""
    while True:
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        yield answer.json()
        if "next" not in answer.links:
            return
        path = answer.links["next"]["url"]


@pytest.mark.parametrize(("path", "method"), [("/jobs", "summary"), ("/events", "event")])
async def test_a_long_list_comes_in_pieces_and_others_have_their_turn_between_them(
    listed: Gateway, monkeypatch: pytest.MonkeyPatch, path: str, method: str
) -> None:
    watch = Watch(monkeypatch, method)
    others = asyncio.create_task(watch.others())
    async with api(listed) as client:
        answer = await client.get(path)
    others.cancel()
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert len(answer.json()) == watch.presented == ENDED
    assert watch.most_in_a_turn <= SLICE


async def test_a_page_reads_and_makes_no_more_than_it_shows(
    listed: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch, "summary", "event")
    read: list[int] = []

    def counted(method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            found = method(*args, **options)
            read.append(len(found))
            return found

        return call

    for name in ("jobs", "job_events"):
        monkeypatch.setattr(Store, name, counted(getattr(Store, name)))
    async with api(listed, "a") as client:
        for path in ("/jobs?limit=10", "/user/alice/jobs?limit=10", "/events?limit=10"):
            watch.presented = 0
            read.clear()
            answer = await client.get(path)
            assert len(answer.json()) == 10
            assert "Content-Length" in answer.headers
            # one more tells whether there is a next page
            assert (watch.presented, sum(read)) == (11, 11)


async def test_pages_make_the_whole_list_newest_first_and_each_job_once(listed: Gateway) -> None:
    async with api(listed, "a") as client:
        whole = (await client.get("/jobs")).json()
        found = [job async for page in pages(client, "/jobs?limit=1500") for job in page]
    assert found == whole
    assert len({job["name"] for job in found}) == ENDED // 2
    times = [job["createdTime"] for job in found]
    assert times == sorted(times, reverse=True)


async def test_no_job_is_left_out_or_shown_twice_while_others_come_and_go(
    listed: Gateway,
) -> None:
    names: list[str] = []
    rounds = 0
    async with api(listed) as client:
        async for page in pages(client, "/jobs?limit=300"):
            names += [job["name"] for job in page]
            rounds += 1
            fill(listed.service._store, 5, first=ENDED + 5 * rounds)
            # one that was shown is deleted, and one that was shown is moved in the queue
            gone, moved = page[0], page[-1]
            await client.delete(f"/user/{gone['username']}/jobs/{gone['name']}")
            job = await listed.service.jobs.get(ROOT, moved["username"], moved["name"])
            job.order = -rounds
            listed.service._store.commit(Outcome(jobs={job.id: job}), {})
    assert sorted(names) == sorted(f"job-{number}" for number in range(ENDED))


async def test_events_come_in_pages(listed: Gateway) -> None:
    async with api(listed, "b") as client:
        found = [event["id"] async for page in pages(client, "/events?limit=1200") for event in page]
        assert found == [event["id"] for event in (await client.get("/events")).json()]
        of_job = [page async for page in pages(client, "/user/bob/jobs/job-1/events?limit=1")]
    assert len(found) == ENDED // 2
    assert [len(page) for page in of_job] == [1]


async def test_a_page_of_the_queue_makes_no_more_than_it_shows(
    queued: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch, "queue_entry")
    async with api(queued, "c") as client:
        answer = await client.get("/queue?limit=10")
    assert [entry["place"] for entry in answer.json()["default"]] == list(range(1, 11))
    assert watch.presented == 11


async def test_the_whole_queue_comes_in_pieces(queued: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch, "queue_entry")
    others = asyncio.create_task(watch.others())
    async with api(queued, "c") as client:
        whole = (await client.get("/queue")).json()
        found = [entry async for page in pages(client, "/queue?limit=300") for entry in page["default"]]
    others.cancel()
    assert found == whole["default"]
    assert [entry["place"] for entry in found] == list(range(1, 1001))
    assert watch.most_in_a_turn <= SLICE


async def test_places_of_the_queue_are_found_though_jobs_before_them_have_gone(queued: Gateway) -> None:
    shown: list[str] = []
    async with api(queued) as client:
        async for page in pages(client, "/queue?limit=300&virtualCluster=default"):
            shown += [entry["name"] for entry in page["default"]]
            first = page["default"][0]
            await client.delete(f"/user/{first['user']}/jobs/{first['name']}")
    assert shown == [f"job-{number}" for number in range(1000)]


async def test_a_page_of_the_queue_ends_with_ones_own_jobs_where_that_is_wished(queued: Gateway) -> None:
    async with api(queued, "a") as client:
        answer = (await client.get("/queue?limit=3&own=1")).json()["default"]
        plain = (await client.get("/queue?limit=3")).json()["default"]
    assert [entry["place"] for entry in plain] == [1, 2, 3]
    assert [(entry["place"], entry["name"]) for entry in answer[3:]] == [
        (5, "job-4"),
        (7, "job-6"),
        (9, "job-8"),
    ]


def cursor(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("path", ["/jobs", "/user/alice/jobs", "/events", "/queue"])
@pytest.mark.parametrize(
    "after",
    [
        "x",
        "äöü",
        "bm9uZQ",
        cursor(None),
        cursor([1]),
        cursor([True, "id"]),
        cursor([2**70, "id"]),
        cursor([1, "a\0"]),
        cursor({"default": [[1], "id"]}),
        base64.b64encode(b"[" * 9000).decode(),
    ],
)
async def test_a_wrong_cursor_is_refused_with_a_sentence(
    http: httpx.AsyncClient, path: str, after: str
) -> None:
    answer = await http.get(path, params={"after": after, "limit": 5})
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
    assert answer.json()["errors"][0]["path"] == "after"


@pytest.mark.parametrize("limit", ["0", "-1", "10001", "many", "9" * 30])
async def test_a_wrong_size_of_a_page_is_refused(http: httpx.AsyncClient, limit: str) -> None:
    for path in ("/jobs", "/events", "/queue"):
        answer = await http.get(path, params={"limit": limit})
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "limit")
    answer = await http.get("/events?limit=10&follow=1")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "limit")


async def test_the_link_keeps_what_else_was_asked(gateway: Gateway) -> None:
    fill(gateway.service._store, 4)
    async with api(gateway) as client:
        answer = await client.get("/jobs?username=alice&limit=1")
        link = httpx.URL(answer.links["next"]["url"])
        assert (link.params["username"], link.params["limit"]) == ("alice", "1")
        assert [job["name"] for job in (await client.get(link)).json()] == ["job-0"]
