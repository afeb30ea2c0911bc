"""What a notebook server that a real Hub started reaches: Hub, scheduler, storage, its session."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.hub import PATIENCE, Hub, wait_for

#: The Hub and the scheduler are sent the header that stands here; the storage is reached without one.
CELL = """
import os, hdfs, requests
from urllib.parse import urlsplit

hub = {"Authorization": "token " + os.environ["JUPYTERHUB_API_TOKEN"]}
for url in (os.environ["JUPYTERHUB_API_URL"] + "/user", os.environ["PAI_API_URL"] + "/api/v1/user/alice"):
    answer = requests.get(url, headers=hub)
    print(answer.status_code, answer.json().get("name") or answer.json().get("username"))

storage = os.environ["PAI_DEFAULT_FS_URI"]
client = hdfs.InsecureClient(storage)
client.write("/alice/notes.txt", b"mine", overwrite=True)
with client.read("/alice/notes.txt") as reader:
    print(reader.read().decode())
redirect = requests.get(storage + "/webhdfs/v1/alice/notes.txt?op=OPEN", allow_redirects=False)
print(urlsplit(redirect.headers["Location"]).netloc == urlsplit(storage).netloc)
"""


async def run_cell(hub: Hub, user: str, cell: str) -> str:
    """Run a cell in the user's server; return what it printed."""
    model = hub.api(user, "POST", f"../../user/{user}/api/kernels", json={}).json()
    url = f"{hub.url.replace('http', 'ws', 1)}/user/{user}/api/kernels/{model['id']}/channels"
    connection = await websocket_connect(
        HTTPRequest(url, headers={"Authorization": f"Bearer {hub.token(user)}"})
    )
    request = uuid4().hex
    header = {"msg_id": request, "msg_type": "execute_request", "session": request, "username": user}
    content = {"code": cell, "silent": False, "store_history": False, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    await connection.write_message(json.dumps(message))
    printed = ""
    async with asyncio.timeout(PATIENCE):
        while (said := await connection.read_message()) is not None:
            answer = json.loads(said)
            if answer["parent_header"].get("msg_id") != request:
                continue
            content = answer["content"]
            printed += content.get("text", "") + "\n".join(content.get("traceback", []))
            if answer["msg_type"] == "status" and content["execution_state"] == "idle":
                break
    connection.close()
    return printed


def test_a_servers_own_token_reaches_the_hub_and_its_storage_needs_none(hub: Hub) -> None:
    assert hub.start_server("alice", {"memory_mb": 1024}).is_success
    hub.wait_ready("alice")
    assert asyncio.run(run_cell(hub, "alice", CELL)) == "200 alice\n200 alice\nmine\nTrue\n"
    # the service that watches over servers is reached from there, and reaches the server's kernels itself
    session = "../../user/alice/pai/session"
    wait_for(lambda: hub.api("alice", "GET", session).json().get("idleSince"), "the session", hub.log)
    told = hub.api("alice", "GET", session).json()
    (job,) = hub.running_jobs("alice")
    assert (told["user"], told["job"], told["gpus"]) == ("alice", job["name"], 0)
