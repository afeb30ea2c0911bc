"""A played scheduler (an HTTP server that notes what it is asked), a real Jupyter server before it, and a
real JupyterLab in a real browser.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
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
from tests.testbed.warm import WarmProcess, WarmScheduler, run_jupyterlab

OWN_TOKEN = "the-users-own-token"
BROWSER_TOKEN = "the-browsers-token"
#: A Hub user's name in a base URL is encoded.
BASE_URL = "/user/a%40b/"
#: The job that the notebook server in the browser is.
OWN_SERVER = "notebook_0a1b2c3d"
LAB_TOKEN = "lab-token"
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
def real_scheduler(tmp_path: Path) -> Iterator[WarmScheduler]:
    """Run a scheduler of this test's own, which knows the token of the notebook server."""
    folder = tmp_path / "scheduler"
    folder.mkdir()
    running = WarmScheduler(folder)
    yield running
    running.close()


@pytest.fixture
async def scheduler(request: pytest.FixtureRequest) -> AsyncIterator[Scheduler | WarmScheduler]:
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
    sockets = bind_sockets(0, "127.0.0.1")
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


def needed(found: str | None, name: str) -> str:
    """Skip by name what this machine lacks; with CI=true that is a failure."""
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is missing")
        pytest.skip(f"{name} is missing")
    return found


@pytest.fixture
def locale() -> str:
    """JupyterLab's language."""
    return "en"


@pytest.fixture
def token(request: pytest.FixtureRequest) -> str:
    """What the notebook server tells the scheduler."""
    return "token-of-alice" if request.node.get_closest_marker("real_scheduler") else OWN_TOKEN


@pytest.fixture
async def lab(tmp_path, scheduler, locale, token) -> AsyncIterator[str]:
    """JupyterLab as a person starts it; gives its address."""
    installed = Path(sys.prefix) / "share/jupyter/labextensions/pai-labextension/package.json"
    needed(
        str(installed) if installed.exists() else None, "the built front end (`make` builds and installs it)"
    )
    settings = tmp_path / "settings" / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"locale": locale}))
    port = free_port()
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        # (kernels know the language by it)
        "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"),
        "PAI_API_URL": scheduler.url,
        "PAI_TOKEN": token,
        "PAI_JOB_NAME": OWN_SERVER,
    }
    arguments = [
        *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={home}"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={LAB_TOKEN}"),
        "--LabApp.news_url=None",
        # (their defaults are what the environment said when the program was loaded)
        f"--LabApp.user_settings_dir={tmp_path / 'settings'}",
        f"--LabApp.workspaces_dir={tmp_path / 'workspaces'}",
    ]
    process = WarmProcess(run_jupyterlab, arguments, environment, tmp_path / "lab.log")
    try:
        await answers(f"http://127.0.0.1:{port}/api", process)
        yield f"http://127.0.0.1:{port}/lab?token={LAB_TOKEN}"
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, 60)


async def answers(url: str, process: WarmProcess) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        for _ in range(600):
            assert process.poll() is None, "JupyterLab ended at once; see lab.log"
            try:
                if (await client.get(url)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
    raise AssertionError("JupyterLab does not answer after a minute")


def no_theme(page: Page) -> Locator:
    """Find JupyterLab's dialog that its theme has not come in 1.5 seconds: too few on a busy machine."""
    return page.locator(".jp-Dialog", has_text=re.compile("Error Loading Theme|加载主题"))


async def press_ok(dialog: Locator) -> None:
    await dialog.get_by_role("button").first.click()


@pytest.fixture
async def page(lab: str, chromium: str, request) -> AsyncIterator[Page]:
    """The browser's page, with JupyterLab in it; what it showed last is kept as a picture."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        # in another zone than the kernels
        page = await browser.new_page(viewport={"width": 1280, "height": 800}, timezone_id="Asia/Tokyo")
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        await page.add_locator_handler(no_theme(page), press_ok)
        broken: list[str] = []
        page.on("console", lambda said: broken.append(said.text) if FAILED in said.text else None)
        await page.goto(lab)
        await expect(page.locator(".jp-Launcher")).to_be_visible()
        assert broken == []
        yield page
        name = re.sub(r"\W+", "-", request.node.name).strip("-")
        await page.screenshot(path=ARTEFACTS / f"{name}.png")
        await browser.close()


def job_rows(page: Page) -> Locator:
    """Find the rows of the side bar's list of jobs."""
    return page.get_by_role("grid", name=re.compile("^(My jobs|我的作业)$")).get_by_role("row")


async def serious(page: Page, selector: str) -> list[str]:
    """Return what axe finds serious in the parts of the page that a selector of CSS finds."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text(encoding="utf-8"))
    found = await page.evaluate("selector => axe.run(selector)", selector)
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
