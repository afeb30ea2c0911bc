"""A played scheduler (an HTTP server that notes what it is asked), a real Jupyter server before it, and a
real JupyterLab in a real browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_server.serverapp import ServerApp
from playwright.async_api import Locator, Page, async_playwright, expect
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler, stream_request_body
from traitlets.config import Config

from pai_scheduler.testing.ports import free_port
from tests.testbed.browser import CHROMIUM_FLAGS
from tests.testbed.fixtures import provide
from tests.testbed.lab import SharedLab, shared_lab
from tests.testbed.scheduler import RunningScheduler

OWN_TOKEN = "the-users-own-token"
BROWSER_TOKEN = "the-browsers-token"
#: A Hub user's name in a base URL is encoded.
BASE_URL = "/user/a%40b/"
#: What JupyterLab writes into the console of the browser where a plugin does not start.
FAILED = "failed to activate"
ARTEFACTS = Path(__file__).parents[2] / "test-artifacts" / "labextension"
AXE = Path(__file__).parents[2] / "pai_labextension" / "ui" / "node_modules" / "axe-core" / "axe.min.js"


@dataclass
class Asked:
    """One request, as the played scheduler saw it."""

    method: str
    uri: str
    headers: HTTPHeaders
    body: bytes = b""


@dataclass
class Scheduler:
    """A played scheduler: it notes what it is asked, and answers as a test wants it."""

    asked: list[Asked] = field(default_factory=list)
    #: Set when a piece of a request's body has come, and when a connection was closed by the other side.
    body_began: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    #: Answers by path below /api/v1/; without one, a request is told back as JSON.
    answers: dict[str, Callable[[RequestHandler], Any]] = field(default_factory=dict)
    url: str = ""


@stream_request_body
class _PlayedHandler(RequestHandler):
    def initialize(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    def prepare(self) -> None:
        self.asked = Asked(str(self.request.method), str(self.request.uri), self.request.headers)
        self.scheduler.asked.append(self.asked)

    def data_received(self, chunk: bytes) -> None:
        self.asked.body += chunk
        self.scheduler.body_began.set()

    def on_connection_close(self) -> None:
        self.scheduler.hung_up.set()

    async def answer(self, path: str) -> None:
        script = self.scheduler.answers.get(path)
        if script is None:
            self.set_header("Set-Cookie", "scheduler=1")
            self.set_header("X-Warning", "said by the scheduler")
            self.write({"path": path, "method": self.request.method, "body": self.asked.body.decode()})
            return
        try:
            result = script(self)
            if result is not None:
                await result
        except StreamClosedError:
            self.scheduler.hung_up.set()

    get = post = put = delete = answer


@pytest.fixture
def real_scheduler(lab_server: SharedLab) -> Iterator[RunningScheduler]:
    """Return the scheduler of the JupyterLab that several tests share; what is in it then is forgotten."""
    yield lab_server.scheduler
    lab_server.scheduler.clear()


@pytest.fixture(scope="module")
def played_port() -> int:
    """Choose the port of the played scheduler; 0: any."""
    return 0


@pytest.fixture
async def scheduler(
    request: pytest.FixtureRequest, played_port: int
) -> AsyncIterator[Scheduler | RunningScheduler]:
    """Play a scheduler; a test that is marked `real_scheduler` asks a real one."""
    if request.node.get_closest_marker("real_scheduler"):
        yield request.getfixturevalue("real_scheduler")
        return
    played = Scheduler()
    # a path of the storage is answered as "webhdfs/…"
    routes = [
        (rf"/services/pai/{path}", _PlayedHandler, {"scheduler": played})
        for path in (r"api/v1/(.*)", r"(webhdfs)/v1/.*")
    ]
    server = HTTPServer(Application(routes))
    sockets = bind_sockets(played_port, "127.0.0.1")
    server.add_sockets(sockets)
    played.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/services/pai"
    yield played
    server.stop()
    await server.close_all_connections()


MakeServer = Callable[..., Any]


@pytest.fixture
async def make_jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeServer]:
    """Make a Jupyter server with our extension, on this test's own loop; gives a browser's way to it."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTER_NO_CONFIG", "1")
    opened: list[tuple[ServerApp, HTTPServer, httpx.AsyncClient]] = []

    async def make(
        api_url: str,
        token: str = OWN_TOKEN,
        base_url: str = BASE_URL,
        service: dict[str, Any] | None = None,
        **server_settings: Any,
    ) -> httpx.AsyncClient:
        config = Config(
            {
                "ServerApp": {"jpserver_extensions": {"pai_labextension": True}, **server_settings},
                "IdentityProvider": {"token": BROWSER_TOKEN},
                "PAIExtension": {"api_url": api_url, "token": token, "service": service or {}},
                # what the server asks for by itself is no business of these tests
                "PAIKernels": {"enabled": False},
            }
        )
        app = ServerApp(
            config=config, base_url=base_url, root_dir=str(tmp_path), allow_root=True, open_browser=False
        )
        app.init_signal = lambda: None  # type: ignore[method-assign]
        app.initialize(argv=[], find_extensions=False, new_httpserver=False)
        server = HTTPServer(app.web_app)
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        browser = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{sockets[0].getsockname()[1]}{base_url}",
            headers={"Authorization": f"token {BROWSER_TOKEN}"},
            timeout=30,
            trust_env=False,
        )
        opened.append((app, server, browser))
        return browser

    yield make
    for app, server, browser in opened:
        await browser.aclose()
        server.stop()
        await server.close_all_connections()
        await app._cleanup()


@pytest.fixture
async def browser(make_jupyter: MakeServer, scheduler: Scheduler) -> httpx.AsyncClient:
    """A browser, logged in to a Jupyter server that knows the scheduler."""
    client: httpx.AsyncClient = await make_jupyter(scheduler.url)
    return client


@pytest.fixture
def lab_translations() -> dict[str, Any]:
    """The front end's Chinese, as JupyterLab reads it."""
    root = Path(__file__).parents[2] / "pai_labextension"
    path = root / "locale" / "zh_CN" / "LC_MESSAGES" / "pai_labextension.json"
    translations: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return translations


@pytest.fixture(scope="session")
def lab_ports() -> tuple[int, int]:
    """Choose where JupyterLab is for all files and for one: the browser knows its scripts by the address."""
    return free_port(), free_port()


@pytest.fixture(scope="session")
def lab_server(lab_ports: tuple[int, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedLab]:
    """Run a JupyterLab of alice's with a scheduler; a file that needs another has one of its own."""
    with contextlib.ExitStack() as stack:
        folder = tmp_path_factory.mktemp("lab")
        yield provide(lambda: stack.enter_context(shared_lab(folder, lab_ports[0])))


StartLab = Callable[..., SharedLab]


@pytest.fixture(scope="module")
def start_lab(lab_ports: tuple[int, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartLab]:
    """Start a JupyterLab for the tests of a file, as `shared_lab` does."""
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> SharedLab:
            folder = tmp_path_factory.mktemp("lab")
            return provide(lambda: stack.enter_context(shared_lab(folder, lab_ports[1], **options)))

        yield start


@pytest.fixture
def locale() -> str:
    """JupyterLab's language."""
    return "en"


@pytest.fixture
def home(lab: str, lab_server: SharedLab) -> Path:
    """Return the folder that JupyterLab's file browser shows."""
    del lab  # it empties the folder in the end
    return lab_server.home


@pytest.fixture
def lab(lab_server: SharedLab, scheduler: Scheduler | RunningScheduler, locale: str) -> Iterator[str]:
    """JupyterLab as a person finds it at first; gives its address."""
    del scheduler  # the kernels and terminals in its jobs end first
    lab_server.choose("translation-extension:plugin", locale=locale)
    yield lab_server.address
    lab_server.clear()


def no_theme(page: Page) -> Locator:
    """Find JupyterLab's dialog that its theme has not come in 1.5 seconds: too few on a busy machine."""
    return page.locator(".jp-Dialog", has_text=re.compile("Error Loading Theme|加载主题"))


async def press_ok(dialog: Locator) -> None:
    await dialog.get_by_role("button").first.click()


@pytest.fixture(scope="session")
def browser_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where browsers, one after the other, keep the scripts that they have loaded and compiled."""
    return tmp_path_factory.mktemp("browser")


@pytest.fixture
async def page(
    lab: str, chromium: str, browser_profile: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Page]:
    """The browser's page, with JupyterLab in it; what it showed last is kept as a picture."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            browser_profile,
            executable_path=chromium,
            args=CHROMIUM_FLAGS,
            viewport={"width": 1280, "height": 800},
            # another one than the kernels'
            timezone_id="Asia/Tokyo",
        )
        (page,) = context.pages
        # what a page before has kept
        await context.clear_cookies()
        session = await context.new_cdp_session(page)
        origin = lab.partition("/lab?")[0]
        await session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        await page.add_locator_handler(no_theme(page), press_ok)
        broken: list[str] = []
        page.on("console", lambda said: broken.append(said.text) if FAILED in said.text else None)
        # (and may have written down at last of what was open)
        await page.goto(f"{lab}&reset")
        await expect(page.locator(".jp-Launcher")).to_be_visible()
        assert broken == []
        yield page
        name = re.sub(r"\W+", "-", request.node.name).strip("-")
        await page.screenshot(path=ARTEFACTS / f"{name}.png")
        await context.close()


def job_rows(page: Page) -> Locator:
    """Find the rows of the side bar's list of jobs."""
    return page.get_by_role("grid", name=re.compile("^(My jobs|我的作业)$")).get_by_role("row")


async def serious(page: Page, selector: str, *rules: str) -> list[str]:
    """Return what axe finds serious, by these or all rules, in what a selector of CSS finds in the page."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text(encoding="utf-8"))
    options = {"runOnly": rules} if rules else {}
    found = await page.evaluate("([selector, options]) => axe.run(selector, options)", [selector, options])
    return [
        f"{one['id']}: {node['html']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


async def choose_in_menu(page: Page, job: str, entry: str) -> None:
    """Choose an entry of the menu that a job has in the side bar."""
    await page.get_by_role("button", name=f"What can be done with “{job}”").click()
    await page.get_by_role("menuitem", name=entry).click()
