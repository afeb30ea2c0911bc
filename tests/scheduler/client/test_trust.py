"""A client trusts the authorities that its machine trusts."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from pai_scheduler.client.http import trusted_by
from pai_scheduler.client.rest import Client, UnreachableError


class _Scheduler(RequestHandler):
    def get(self) -> None:
        user = {"username": "alice", "email": "", "grouplist": [], "extension": {}, "admin": False}
        self.finish({**user, "virtualCluster": []})


async def test_a_labs_own_authority_is_trusted_where_the_machine_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    socket, port = bind_unused_port()
    server = HTTPServer(Application([("/api/v1/user", _Scheduler)]), ssl_options=context)
    server.add_sockets([socket])
    url = f"https://127.0.0.1:{port}"
    try:
        async with Client(url, "token") as client:
            with pytest.raises(UnreachableError, match="certificate"):
                await client.whoami()
        authority.cert_pem.write_to_path(tmp_path / "authority.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        async with Client(url, "token") as client:
            assert (await client.whoami())["username"] == "alice"
    finally:
        server.stop()
        await asyncio.wait_for(server.close_all_connections(), 10)


def test_without_tls_nothing_is_loaded() -> None:
    assert trusted_by("http://127.0.0.1:9186") is True
