"""hub_config/variants/subdomains.py: each user's servers on a host name of their own, in a browser."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import expect

from tests.hub import ADMIN_PASSWORD, GPU_LAB, PATIENCE, REPOSITORY, Hub
from tests.testbed.docker import bridge_address, client
from tests.testbed.web_server import WebServer

from .lab_in_a_browser import (
    behind_a_web_server,
    compute,
    echo,
    make_token,
    open_page,
    start_server,
    submit_application,
)

VARIANT = REPOSITORY / "hub_config" / "variants" / "subdomains.py"


@pytest.fixture
def hub_with_subdomains(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Hub, WebServer]]:
    """Run a Hub at hub.test, behind a web server that has its certificate and that of *.hub.test."""
    kind = getattr(request, "param", "process")
    options = ["--engine", kind, "--config", str(VARIANT)]
    if kind == "process":
        options += ["--admin", "root"]
    hub = Hub(tmp_path / "run", *options, "--cluster", str(GPU_LAB))
    if kind == "docker":
        docker_host = request.getfixturevalue("docker_host")
        with client(docker_host) as engine:
            bridge = bridge_address(engine)
        hub.environment = {
            "DOCKER_HOST": docker_host,
            "PAI_NOTEBOOK_IMAGE": request.getfixturevalue("notebook_image"),
            "PAI_INNER_HOSTS": f"127.0.0.1 {bridge} pai-storage",
        }
    with behind_a_web_server(hub, tmp_path / "web", "hub.test") as web:
        yield hub, web


def test_a_user_works_on_a_host_name_of_their_own(
    hub_with_subdomains: tuple[Hub, WebServer], chromium: str, tmp_path: Path
) -> None:
    hub, web = hub_with_subdomains
    own = f"alice.hub.test:{web.port}"
    with open_page(chromium, web, tmp_path) as page:
        asked: list[str] = []
        refused: list[str] = []
        page.on("websocket", lambda socket: asked.append(socket.url))
        page.on(
            "response",
            lambda answer: refused.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None,
        )
        start_server(page, web.url)
        assert page.url.startswith(f"https://{own}/user/alice/lab")
        # (the server's own token is of use to the Lab extension, which asks the scheduler with it)
        expect(page.locator("#jp-main-statusbar").get_by_text("PAI").first).to_be_visible()
        compute(page)
        assert {url.split("/")[2] for url in asked if "/channels" in url} == {own}

        cookies = page.context.cookies()
        # what logs in at the Hub is not sent to users' servers, nor one user's to another's
        hubs = {cookie["domain"] for cookie in cookies if cookie["name"].startswith("jupyterhub-hub-login")}
        users = {cookie["domain"] for cookie in cookies if cookie["name"].startswith("jupyterhub-user-")}
        assert (hubs, users) == ({"hub.test"}, {"alice.hub.test"})

        hub.use_token("alice", make_token(page, web.url))
        job = submit_application(hub)
        page.goto(f"https://{own}/user/alice/pai/ports/alice/{job}/worker-0/web/ready")
        expect(page.locator("body")).to_contain_text('"uri": "/ready"')
        address = f"wss://{own}/user/alice/pai/ports/alice/{job}/worker-0/web/echo"
        assert echo(page, address) == "over the web server"
        assert [line for line in refused if "/pai/" in line or "/services/" in line] == []

        # administrators come to their part of the console, which has a host name of its own
        page.goto(f"{web.url}/hub/logout")
        page.goto(f"{web.url}/hub/login?next=/hub/home")
        page.get_by_label("Username:").fill("root")
        page.get_by_label("Password:").fill(ADMIN_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/hub/home")
        page.get_by_role("link", name="Admin").click()
        page.wait_for_url(f"https://pai-console--service.hub.test:{web.port}/services/pai-console/admin")
        page.get_by_role("main").get_by_role("link", name="Jobs", exact=True).click()
        expect(page.get_by_role("row", name=re.compile("alice"))).to_be_visible()
        page.get_by_role("link", name="Servers").first.click()
        page.wait_for_url(f"{web.url}/hub/home")
        # (with which their jobs are looked for in the end)
        hub.use_token("root", make_token(page, web.url))

    # the REST API at the Hub's own name, as `pai` on other machines asks it
    known = ssl.create_default_context(cafile=web.authority)
    with httpx.Client(verify=known, timeout=PATIENCE, trust_env=False) as client:
        answer = client.get(
            f"https://127.0.0.1:{web.port}/services/pai/api/v1/jobs",
            headers={"Host": f"hub.test:{web.port}", "Authorization": f"Bearer {hub.token('alice')}"},
            extensions={"sni_hostname": "hub.test"},
        )
    assert job in [each["name"] for each in answer.json()]


@pytest.mark.parametrize("hub_with_subdomains", ["docker"], indirect=True)
def test_a_container_reaches_the_hub_and_the_scheduler_by_dockers_bridge(
    hub_with_subdomains: tuple[Hub, WebServer], chromium: str, tmp_path: Path
) -> None:
    hub, web = hub_with_subdomains
    with open_page(chromium, web, tmp_path) as page:
        statuses: dict[str, set[int]] = {}
        page.on(
            "response",
            lambda answer: statuses.setdefault(urlsplit(answer.url).path, set()).add(answer.status),
        )
        start_server(page, web.url)
        compute(page)
        # the Lab extension asks the scheduler from within the container, and passes on what that says
        asked = {path: found for path, found in statuses.items() if path.startswith("/user/alice/pai/")}
        assert asked
        assert {status for found in asked.values() for status in found if status >= 400} == set()
        hub.use_token("alice", make_token(page, web.url))
