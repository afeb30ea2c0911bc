"""What a notebook server that a real Hub started reaches: Hub, scheduler, storage, its session."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.hub import Hub, wait_for
from tests.testbed.notebook import connected

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
    address = f"{hub.url}/user/{user}"
    async with connected(address, model["id"], f"Bearer {hub.token(user)}") as notebook:
        return await notebook.run(cell)


def test_a_servers_own_token_reaches_the_hub_and_its_storage_needs_none(hub: Hub) -> None:
    assert hub.start_server("alice", {"memory_mb": 1024}).is_success
    hub.wait_ready("alice")
    assert asyncio.run(run_cell(hub, "alice", CELL)) == "200 alice\n200 alice\nmine\nTrue\n"
    # the service that watches over servers is reached from there, and reaches the server's kernels itself
    (job,) = hub.running_jobs("alice")
    told: dict[str, Any] = {}

    def is_told() -> bool:
        # (of the server before it is told until the service has looked again)
        told.update(hub.api("alice", "GET", "../../user/alice/pai/session").json())
        return bool(told.get("idleSince")) and told["job"] == job["name"]

    wait_for(is_told, "the session", hub.log)
    assert (told["user"], told["gpus"]) == ("alice", 0)
