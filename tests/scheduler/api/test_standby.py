"""What clients of the files hear of a standby: that they are to go on to the next address."""

from __future__ import annotations

import httpx
import pytest
from tornado.netutil import bind_sockets

from pai_scheduler.api.http_server import serve
from pai_scheduler.api.standby import make_standby_app


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
async def test_clients_of_hdfs_are_told_in_their_words_that_it_is_a_standby(method: str) -> None:
    sockets = bind_sockets(0, "127.0.0.1")
    server = serve(make_standby_app("/services/pai/", lambda: "http://leader"), sockets)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/services/pai"
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        answer = await client.request(method, "/webhdfs/v1/alice/f", params={"op": "OPEN"})
        other = await client.request(method, "/api/v1/jobs")
    server.stop()
    await server.close_all_connections()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert answer.json()["RemoteException"]["exception"] == "StandbyException"
    assert "http://leader" in answer.json()["RemoteException"]["message"]
    assert answer.json()["code"] == other.json()["code"] == "StandbyError"
    assert "RemoteException" not in other.json()
