"""hub_config/variants/tls.py behind hub_config/examples/nginx.conf, with a browser and with `pai`."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from hub_config.run import main
from tests.hub import GPU_LAB, PATIENCE, REPOSITORY, Hub, use_own_ports
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

VARIANT = REPOSITORY / "hub_config" / "variants" / "tls.py"


@pytest.fixture
def tls_hub(tmp_path: Path) -> Iterator[tuple[Hub, WebServer]]:
    """Run a Hub behind a web server with a certificate of its own authority's."""
    hub = Hub(tmp_path / "run", "--config", str(VARIANT), "--cluster", str(GPU_LAB))
    with behind_a_web_server(hub, tmp_path / "web", "localhost") as web:
        yield hub, web


def test_all_of_the_hub_works_over_tls(tls_hub: tuple[Hub, WebServer], chromium: str, tmp_path: Path) -> None:
    hub, web = tls_hub
    with open_page(chromium, web, tmp_path) as page:
        asked: list[str] = []
        page.on("websocket", lambda socket: asked.append(socket.url))
        page.on("request", lambda request: asked.append(request.url))
        start_server(page, web.url)
        compute(page)
        hub.use_token("alice", make_token(page, web.url))
        job = submit_application(hub)
        port = f"localhost:{web.port}/user/alice/pai/ports/alice/{job}/worker-0/web"
        # its page waits until something listens
        page.goto(f"https://{port}/ready")
        expect(page.locator("body")).to_contain_text('"uri": "/ready"')
        assert echo(page, f"wss://{port}/echo") == "over the web server"
        kernels = [url for url in asked if "/channels" in url]
        assert kernels
        assert {url.partition(":")[0] for url in kernels} == {"wss"}
        # nothing left the page unprotected
        assert [url for url in asked if url.startswith(("http:", "ws:"))] == []
        # whoever has the token against forged requests is not logged in with it
        logins = [cookie for cookie in page.context.cookies() if cookie["name"] != "_xsrf"]
        assert logins
        assert [cookie["name"] for cookie in logins if not cookie["secure"]] == []

    known = ssl.create_default_context(cafile=web.authority)
    with httpx.Client(verify=known, timeout=PATIENCE, trust_env=False) as client:
        answer = client.get(f"{web.url}/hub/login")
        assert answer.headers["Strict-Transport-Security"]
    plain = httpx.get(f"{web.plain_url}/hub/login", trust_env=False)
    assert (plain.status_code, plain.headers["Location"]) == (301, f"{web.url}/hub/login")

    done = subprocess.run(
        [Path(sys.executable).with_name("pai"), "jobs"],
        env={
            **os.environ,
            "PAI_API_URL": f"{web.url}/services/pai",
            "PAI_TOKEN": hub.token("alice"),
            "SSL_CERT_FILE": str(web.authority),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert job in done.stdout, done.stderr


@pytest.mark.daemon
def test_an_address_without_tls_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_own_ports(tmp_path)
    monkeypatch.setenv("PAI_PUBLIC_URL", "http://hub.example.org")
    assert main(["--folder", str(tmp_path), "--config", str(VARIANT), "--port", "0"]) == 1
    assert "PAI_PUBLIC_URL begins with https://" in capsys.readouterr().err
